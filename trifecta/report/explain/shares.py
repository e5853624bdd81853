"""What share each part of the time has of a difference, in sentences: where it is, not why."""

from __future__ import annotations

from trifecta.analysis.causes import ROUND_TRIPS, Cause, Causes
from trifecta.analysis.transport.parts import CONGESTION, CPU, PROPAGATION, REST, TRANSMISSION
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain.chain import Chain, Split
from trifecta.conclude.explain.parts import CYCLES, LOADS, PACKETS, REQUESTS, STARTS, of_the_verdict
from trifecta.conclude.facts import RunFacts
from trifecta.design import numbers
from trifecta.design.phrases import counted

_OF = {
    REQUESTS: "a request, by the times of its samples",
    CYCLES: "a cycle, by the times of its hops",
    LOADS: "a page load, by the times that the browser tells",
    STARTS: "the start of a video, by the times of its requests",
    PACKETS: "a request, by its packets",
}
_PLAIN = {
    CPU: "CPU (a host had what it needed and sent nothing)",
    PROPAGATION: "propagation (the path's minimum delay, once each way)",
    TRANSMISSION: "transmission (the link sending the connection's packets at its rate)",
    CONGESTION: "congestion window (waiting for acknowledgements: slow start, the smaller window after a loss, "
    "or a send buffer)",
    REST: "rest (sending one packet after another, and everything else)",
    ROUND_TRIPS: "round trips of set-up, their minimum number times the path's RTT",
}
_SHORT = {
    CPU: "CPU of the hosts",
    CONGESTION: "waiting for the congestion window",
    REST: "sending, and everything else",
}
_SMALL = 0.02  # parts below this share are told together


def sentences(about: RunFacts, chain: Chain, pair: tuple[str, str]) -> list[str]:
    """The link of the parts; ``pair`` are the names of both protocols."""
    lines = [line for split in chain.splits for line in _split(about, split, chain.comparison, pair)]
    causes = first_split(about, chain)
    if not chain.splits:
        lines.append(_why_unsplit(about))
    elif not chain.comparison.excludes_one:
        lines.append(
            "The verdict's interval includes a ratio of 1, so there is no difference to split."
            if chain.comparison.has_interval
            else "The verdict has no interval yet, so there is no difference to split."
        )
    if not chain.comparison.excludes_one:
        return lines
    for program, more in chain.cpu_ns.items():
        lines.append(
            f"CPU of the {program}: {pair[0]} spends {numbers.duration(abs(more))} "
            f"{'more' if more > 0 else 'less'} on a {about.sample_word} than {pair[1]}"
            f"{_bound(more, causes) if not about.is_video else ''}."
        )
    return lines


def _why_unsplit(about: RunFacts) -> str:
    """Why no time could be split, and where it was."""
    if about.is_captured:
        return (
            "Samples cannot split the difference: no block has valid trials of both. Packets can, once the "
            "captures are dissected (trifecta trace RUN): see the table “Where the time of a request went” of this "
            "cell in the report, and trifecta explain."
        )
    return (
        "Unknown: no block has a valid trial of both that reports its times. With --capture the packets show where "
        "the time went."
    )


def _bound(more: float, causes: Causes | None) -> str:
    """What CPU time of one program can explain at most; a watch of a video goes on after its start."""
    if causes is None or not causes.told_apart or not more:
        return ""
    of_it = more / causes.whole.whole.difference_ns
    if of_it < 0:
        return ", which works against the difference"
    return f", {'as much as' if of_it > 1 else 'at most ' + numbers.whole_percent(of_it) + ' of'} the difference"


def first_split(about: RunFacts, chain: Chain) -> Causes | None:
    """The first split of what the verdict is about."""
    return next((one.causes for one in chain.splits if of_the_verdict(about, one.parts.of)), None)


def _split(about: RunFacts, split: Split, comparison: Comparison, pair: tuple[str, str]) -> list[str]:
    causes, parts = split.causes, split.parts
    effect = causes.whole.whole
    blocks = counted(causes.whole.blocks, "block")
    own, other = numbers.duration(effect.arm_ns), numbers.duration(effect.reference_ns)
    head = (
        f"{pair[0]} took {own} for {_OF[parts.of]}, {pair[1]} {other} "
        f"(means over {blocks}): {_signed(effect.difference_ns, effect.low_ns, effect.high_ns)}."
    )
    if not of_the_verdict(about, parts.of):
        head += f" Requests of a {about.sample_word} run at the same time: their mean is not its {about.latency_word}."
    if not causes.told_apart:
        apart = " The means do not show a difference that could be split." if comparison.excludes_one else ""
        return [head + apart]
    sentences = [head, f"By part: {_parts(causes)}."]
    round_trips = [parts.round_trips.get(arm) for arm in (comparison.arm, comparison.reference)]
    arm, reference = round_trips
    if arm is not None and reference is not None and parts.rtt_ns and max(arm, reference) > 0:
        expected = (arm - reference) * parts.rtt_ns
        needed = [_in_round_trips(one) for one in round_trips[:2] if one is not None]
        sentences.append(
            f"Before a request can be sent {pair[0]} needs {needed[0]} and {pair[1]} {needed[1]}; at the "
            f"{numbers.duration(parts.rtt_ns)} that the path was probed to take, that alone makes {_signed(expected)}."
        )
    return sentences


def _in_round_trips(value: float) -> str:
    rounded = round(value, 2)
    return "no round trip" if rounded == 0 else "1 round trip" if rounded == 1 else f"{rounded:g} round trips"


def _parts(causes: Causes) -> str:
    shown = [one for one in causes.causes if one.share is None or abs(one.share) >= _SMALL]
    parts = [_cause(one) for one in shown]
    hidden = [one for one in causes.causes if one not in shown]
    if hidden:
        rest = sum(one.found.difference_ns for one in hidden)
        parts.append(f"all else together {_signed(rest)}")
    return "; ".join(parts)


def _cause(cause: Cause) -> str:
    low, high = cause.found.low_ns, cause.found.high_ns
    of_it = "" if cause.share is None else f" ({share(cause)} of it)"
    return f"{_PLAIN.get(cause.part, cause.part)}: {_signed(cause.found.difference_ns, low, high)}{of_it}"


def part_words(cause: Cause) -> str:
    """What a part is, short."""
    return _SHORT.get(cause.part, cause.part)


def share(cause: Cause) -> str:
    """``98 % [95 %, 101 %]``."""
    if cause.share is None:
        return ""
    if cause.share_low is None or cause.share_high is None:
        return numbers.whole_percent(cause.share)
    return numbers.whole_percent(cause.share, (cause.share_low, cause.share_high))


def _signed(value: float, low: float | None = None, high: float | None = None) -> str:
    """``80.1 ms less [79.8, 80.4]``; an interval that holds 0 with signs."""
    sentence = f"{numbers.duration(abs(value))} {'less' if value < 0 else 'more'}" if value else "no difference"
    if low is None or high is None:
        return sentence
    if low > 0 or high < 0:
        ends = sorted((abs(low), abs(high)))
        return f"{sentence} [{numbers.duration(ends[0])}, {numbers.duration(ends[1])}]"
    return f"{sentence} [{numbers.duration(abs(low))} less, {numbers.duration(high)} more]"

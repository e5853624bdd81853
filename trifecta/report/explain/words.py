"""A chain of evidence in plain sentences, link by link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.analysis.challenges import Challenge
from trifecta.conclude import more_blocks
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.explain.chain import Chain, Checked, Setting
from trifecta.conclude.facts import RunFacts
from trifecta.design import naming, numbers
from trifecta.design.metrics import METRICS
from trifecta.design.model import Verdict
from trifecta.design.phrases import counted, listed, sentence
from trifecta.report import interactions as apart
from trifecta.report import next_commands, verdict_words
from trifecta.report.explain import shares
from trifecta.report.figures.style import name

RIVALS = ("latency_p50_ns", "latency_mean_ns", "latency_p95_ns", "latency_p99_ns", "requests_per_s")
_KINDS = {"same": "the same"}


@dataclass(frozen=True)
class Link:
    """One link of the chain: its heading and its sentences."""

    name: str  # differed, ruled_out, doubts, programs, causes, overturn, threats
    heading: str
    sentences: list[str]


def links(about: RunFacts, chain: Chain) -> list[Link]:
    """The whole chain in words; a link without anything to say is left out."""
    pair = (name(chain.comparison.arm), name(chain.comparison.reference))
    passed = [one for one in chain.checked if one.status == "pass"]
    found = [
        Link("differed", "What differed", _differed(chain.settings, pair)),
        Link("ruled_out", "What was ruled out", [_passed(one) for one in passed]),
        Link("doubts", "What could not be ruled out", [_doubt(one) for one in chain.checked if one.status != "pass"]),
        Link(
            "programs",
            "What is due to the program",
            [apart.sentence(one, about.metric, place=False) for one in chain.apart],
        ),
        Link("causes", "Where the time difference is", shares.sentences(about, chain, pair)),
        Link("overturn", "What would overturn it", overturn(about, chain, pair)),
        Link("threats", "Threats to validity", _threats(chain)),
    ]
    return [one for one in found if one.sentences]


def conclusion(about: RunFacts, chain: Chain) -> str:
    """The verdict, and the part of the time that has most of it, in one sentence."""
    said = sentence(verdict_words.statement(chain.comparison, about.metric_label))
    found = shares.first(about, chain)
    told = found.causes[:1] if found is not None and found.told_apart else ()
    if not told or told[0].share is None or told[0].share < 0.1:
        return said
    over = "; other parts offset some of it" if (told[0].share_low or 0.0) > 1.0 else ""
    return f"{said} Of the difference of the means {shares.share(told[0])} is {shares.part(told[0])}{over}."


def _differed(settings: Sequence[Setting], pair: tuple[str, str]) -> list[str]:
    told = [f"The {naming.factor()}, which the study varies: {pair[0]} and {pair[1]}."]
    differ = [f"{one.name} ({one.arm} and {one.reference})" for one in settings if not one.same]
    if differ:
        told.append(f"Also, as read back: {listed(differ)}.")
    same = [f"{one.name} ({one.arm})" for one in settings if one.same]
    if same:
        told.append(f"Equal in both, as read back: {listed(same)}.")
    told.append("Equal by design within a block: requests, place, path and its seed; the order is random.")
    return told


def _passed(one: Checked) -> str:
    trials = f" in all {one.trials} trials" if one.trials > 1 else ""
    return f"{one.question} The check {one.check.replace('_', ' ')} passed{trials}{_evidence(one)}"


def _doubt(one: Checked) -> str:
    said = {"fail": "failed", "warn": "warned", "unknown": "could not tell"}
    counts = [f"{said[status]} in {one.counts[status]}" for status in said if one.counts[status]]
    where = f" {listed(counts)} of {counted(one.trials, 'trial')}" if one.trials > 1 else f" {said[one.status]}"
    return f"{one.question} The check {one.check.replace('_', ' ')}{where}{_evidence(one)}"


def _evidence(one: Checked) -> str:
    """What the check said; of several trials what it said of one, which is of one arm."""
    whose = f"; of one with {name(one.arm)}" if one.trials > 1 and one.arm else ""
    return f"{whose}: {sentence(one.evidence)}"


def overturn(about: RunFacts, chain: Chain, pair: tuple[str, str]) -> list[str]:
    """How far the verdict is from another one, and what else the same data say."""
    one, found = chain.comparison, chain.challenge
    told = [_distance(about, one, pair)]
    if one.decided:
        told += steadiness(found)
    told += _counted(one, found)
    told += _other_metrics(found, one)
    told += _neighbours(chain)
    told += _fixed(one)
    return told


def steadiness(found: Challenge) -> list[str]:
    """Whether single blocks, or when they were run, make the ratio."""
    told = []
    if found.without_one is not None:
        low, high = found.without_one
        told.append(
            f"Leaving out any one of the {found.blocks} blocks keeps the ratio between {numbers.ratio(low)} and "
            f"{numbers.ratio(high)}; {found.opposed or 'none'} of them point{'' if found.opposed > 1 else 's'} the "
            "other way."
        )
    if found.halves is not None:
        first, second = found.halves
        told.append(
            f"The first half of the blocks gives {numbers.ratio(first)}, the second {numbers.ratio(second)}: "
            "drift of the machine would show here."
        )
    return told


def _distance(about: RunFacts, one: Comparison, pair: tuple[str, str]) -> str:
    floor = one.row["noise_floor"]
    seen = f"{pair[1]}, run against itself," if one.reference == about.baseline else "the baseline, run against itself,"
    noise = f"; by chance {seen} differs by up to {numbers.ratio(1 + floor)}" if floor is not None else ""
    if one.kind in ("faster", "slower"):
        return (
            f"An error that alone makes {pair[0]} look {numbers.ratio(one.row['factor_low'])} times "
            f"{one.metric.word(one.kind)}, the "
            f"near end of the interval, in every block{noise}."
        )
    if one.kind == "same":
        ends = [end for end in (one.row["low"], one.row["high"]) if end]
        reach = max((max(end, 1 / end) for end in ends), default=None)
        margin = numbers.percent((reach or 1) - 1)
        return f"A margin below {margin}, which is how far the interval reaches from 1{noise}."
    needs = (
        "another verdict is not within reach"
        if verdict_words.needs(one) == "not within reach"
        else verdict_words.needs(one)
    )
    said = sentence(f"Nothing is decided: {one.row['reason'] or 'no reason is known'}{needs and f' ({needs})'}")
    more = next_commands.command(about, more_blocks.of(about, one))
    return f"{said} More blocks for it: `{more}`." if more else said


def _counted(one: Comparison, found: Challenge) -> list[str]:
    if found.counted is None:
        return []
    same = found.counted.verdict == one.kind
    ratio = numbers.ratio(found.counted.ratio)
    kind = "the same within the margin" if found.counted.verdict == "same" else one.metric.word(found.counted.verdict)
    return [
        f"Counting the trials that a check excluded, the verdict would {'still be' if same else 'be'} {kind} "
        f"(ratio {ratio})."
    ]


def _other_metrics(found: Challenge, one: Comparison) -> list[str]:
    rivals = [verdict for verdict in found.metrics if verdict.metric in RIVALS]
    agree = [verdict for verdict in rivals if verdict.verdict == one.kind]
    differ = [verdict for verdict in rivals if verdict.verdict not in (one.kind, "undecided")]
    besides = [verdict for verdict in found.metrics if verdict not in rivals and verdict.verdict != "undecided"]
    told = []
    if differ:
        head = "Another metric gives another verdict" if one.decided else "By other metrics"
        told.append(f"{head}: {'; '.join(map(_verdict, differ))}.")
    if agree and one.decided:
        told.append(f"The same verdict by: {'; '.join(map(_verdict, agree))}.")
    if besides:
        told.append(f"What it does not say: {'; '.join(map(_verdict, besides))}.")
    return told


def _verdict(one: Verdict) -> str:
    ends = numbers.interval((one.low, one.high))
    metric = METRICS[one.metric]
    said = _KINDS.get(one.verdict) or metric.word(one.verdict)
    return f"{metric.label}, {said}, ratio {numbers.ratio(one.ratio)} {ends}"


def _neighbours(chain: Chain) -> list[str]:
    other: dict[str, list[str]] = {}
    held: dict[str, list[str]] = {}
    for factor, cell in chain.neighbours:
        level = levels(cell.cell)[factor]
        if cell.kind == chain.comparison.kind:
            held.setdefault(factor, []).append(level)
        elif cell.decided:
            other.setdefault(factor, []).append(
                f"{level} ({verdict_words.headline(cell)} {verdict_words.interval(cell)})"
            )
    told = [
        f"Another {factor}: with {listed(found)} instead of {levels(chain.comparison.cell)[factor]} the "
        "verdict differs."
        for factor, found in other.items()
    ]
    if chain.comparison.decided:
        told += [f"It holds with another {factor}, too: {listed(found)}." for factor, found in held.items()]
    return told


def _fixed(one: Comparison) -> list[str]:
    p = one.row["fixed_p"]
    if p is None or not one.decided or one.kind == "same":
        return []
    ends = numbers.interval((one.row["fixed_low"], one.row["fixed_high"]))
    return [
        f"By the signed-rank test alone, had the number of blocks been fixed in advance: ratio "
        f"{numbers.ratio(one.row['fixed_ratio'])} {ends}, p {numbers.p_value(p)}."
    ]


def _threats(chain: Chain) -> list[str]:
    by_state = {state: [one for one in chain.switches if one.state == state] for state in ("on", "unknown", "off")}
    told = [f"On: {one.title} ({one.id}); {one.why}." for one in by_state["on"]]
    told += [f"Unknown: {one.title} ({one.id}); {one.why}." for one in by_state["unknown"]]
    if by_state["off"]:
        off = [f"{one.id} ({one.why.rstrip('.')})" for one in by_state["off"]]
        told.append(f"Off: {'; '.join(off)}.")
    return told

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
    chain_links = [
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
    return [one for one in chain_links if one.sentences]


def conclusion(about: RunFacts, chain: Chain) -> str:
    """The verdict, and the part of the time that has most of it, in one sentence."""
    text = sentence(verdict_words.statement(chain.comparison, about.metric_label))
    causes = shares.first_split(about, chain)
    largest = causes.causes[:1] if causes is not None and causes.told_apart else ()
    if not largest or largest[0].share is None or largest[0].share < 0.1:
        return text
    over = "; other parts offset some of it" if (largest[0].share_low or 0.0) > 1.0 else ""
    return f"{text} Of the difference of the means {shares.share(largest[0])} is {shares.part_words(largest[0])}{over}."


def _differed(settings: Sequence[Setting], pair: tuple[str, str]) -> list[str]:
    sentences = [f"The {naming.factor()}, which the study varies: {pair[0]} and {pair[1]}."]
    differ = [f"{one.name} ({one.arm} and {one.reference})" for one in settings if not one.same]
    if differ:
        sentences.append(f"Also, as read back: {listed(differ)}.")
    same = [f"{one.name} ({one.arm})" for one in settings if one.same]
    if same:
        sentences.append(f"Equal in both, as read back: {listed(same)}.")
    sentences.append("Equal by design within a block: requests, place, path and its seed; the order is random.")
    return sentences


def _passed(check: Checked) -> str:
    trials = f" in all {check.trials} trials" if check.trials > 1 else ""
    return f"{check.question} The check {check.check.replace('_', ' ')} passed{trials}{_evidence(check)}"


def _doubt(check: Checked) -> str:
    status_words = {"fail": "failed", "warn": "warned", "unknown": "could not tell"}
    counts = [f"{status_words[status]} in {check.counts[status]}" for status in status_words if check.counts[status]]
    where = (
        f" {listed(counts)} of {counted(check.trials, 'trial')}"
        if check.trials > 1
        else f" {status_words[check.status]}"
    )
    return f"{check.question} The check {check.check.replace('_', ' ')}{where}{_evidence(check)}"


def _evidence(check: Checked) -> str:
    """What the check said; of several trials what it said of one, which is of one arm."""
    whose = f"; of one with {name(check.arm)}" if check.trials > 1 and check.arm else ""
    return f"{whose}: {sentence(check.evidence)}"


def overturn(about: RunFacts, chain: Chain, pair: tuple[str, str]) -> list[str]:
    """How far the verdict is from another one, and what else the same data say."""
    one, challenge = chain.comparison, chain.challenge
    sentences = [_distance(about, one, pair)]
    if one.decided:
        sentences += steadiness(challenge)
    sentences += _challenge_counts(one, challenge)
    sentences += _other_metrics(challenge, one)
    sentences += _neighbours(chain)
    sentences += _fixed(one)
    return sentences


def steadiness(challenge: Challenge) -> list[str]:
    """Whether single blocks, or when they were run, make the ratio."""
    sentences = []
    if challenge.without_one is not None:
        low, high = challenge.without_one
        sentences.append(
            f"Leaving out any one of the {challenge.blocks} blocks keeps the ratio {numbers.between(low, high, 'at')}; "
            f"{challenge.opposed or 'none'} of them "
            f"point{'' if challenge.opposed > 1 else 's'} the "
            "other way."
        )
    if challenge.halves is not None:
        first, second = challenge.halves
        sentences.append(
            f"The first half of the blocks gives {numbers.ratio(first)}, the second {numbers.ratio(second)}: "
            "drift of the machine would show here."
        )
    return sentences


def _distance(about: RunFacts, comparison: Comparison, pair: tuple[str, str]) -> str:
    floor = comparison.row["noise_floor"]
    subject = (
        f"{pair[1]}, run against itself,"
        if comparison.reference == about.baseline
        else "the baseline, run against itself,"
    )
    noise = f"; by chance {subject} differs by up to {numbers.ratio(1 + floor)}" if floor is not None else ""
    if comparison.kind in ("faster", "slower"):
        return (
            f"An error that alone makes {pair[0]} look {numbers.ratio(comparison.row['factor_low'])} times "
            f"{comparison.metric.word(comparison.kind)}, the "
            f"near end of the interval, in every block{noise}."
        )
    if comparison.kind == "same":
        ends = [end for end in (comparison.row["low"], comparison.row["high"]) if end]
        reach = max((max(end, 1 / end) for end in ends), default=None)
        margin = numbers.percent((reach or 1) - 1)
        return f"A margin below {margin}, which is how far the interval reaches from 1{noise}."
    needs = (
        "another verdict is not within reach"
        if verdict_words.needed_blocks(comparison) == "not within reach"
        else verdict_words.needed_blocks(comparison)
    )
    text = sentence(f"Nothing is decided: {comparison.row['reason'] or 'no reason is known'}{needs and f' ({needs})'}")
    more = next_commands.command(about, more_blocks.of(about, comparison))
    return f"{text} More blocks for it: `{more}`." if more else text


def _challenge_counts(comparison: Comparison, challenge: Challenge) -> list[str]:
    if challenge.counted is None:
        return []
    same = challenge.counted.verdict == comparison.kind
    ratio = numbers.ratio(challenge.counted.ratio)
    kind = (
        "the same within the margin"
        if challenge.counted.verdict == "same"
        else comparison.metric.word(challenge.counted.verdict)
    )
    return [
        f"Counting the trials that a check excluded, the verdict would {'still be' if same else 'be'} {kind} "
        f"(ratio {ratio})."
    ]


def _other_metrics(challenge: Challenge, comparison: Comparison) -> list[str]:
    rivals = [verdict for verdict in challenge.metrics if verdict.metric in RIVALS]
    agree = [verdict for verdict in rivals if verdict.verdict == comparison.kind]
    differ = [verdict for verdict in rivals if verdict.verdict not in (comparison.kind, "undecided")]
    besides = [verdict for verdict in challenge.metrics if verdict not in rivals and verdict.verdict != "undecided"]
    sentences = []
    if differ:
        head = "Another metric gives another verdict" if comparison.decided else "By other metrics"
        sentences.append(f"{head}: {'; '.join(map(_verdict, differ))}.")
    if agree and comparison.decided:
        sentences.append(f"The same verdict by: {'; '.join(map(_verdict, agree))}.")
    if besides:
        sentences.append(f"What it does not say: {'; '.join(map(_verdict, besides))}.")
    return sentences


def _verdict(verdict: Verdict) -> str:
    ends = numbers.interval((verdict.low, verdict.high))
    metric = METRICS[verdict.metric]
    verdict_word = _KINDS.get(verdict.verdict) or metric.word(verdict.verdict)
    return f"{metric.label}, {verdict_word}, ratio {numbers.ratio(verdict.ratio)} {ends}"


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
    own = "the verdict differs" if chain.comparison.decided else "it is decided"
    sentences = [
        f"Another {factor}: with {listed(neighbour_levels)} instead of {levels(chain.comparison.cell)[factor]} {own}."
        for factor, neighbour_levels in other.items()
    ]
    if chain.comparison.decided:
        sentences += [
            f"It holds with another {factor}, too: {listed(neighbour_levels)}."
            for factor, neighbour_levels in held.items()
        ]
    return sentences


def _fixed(comparison: Comparison) -> list[str]:
    p = comparison.row["fixed_p"]
    if p is None or not comparison.decided or comparison.kind == "same":
        return []
    ends = numbers.interval((comparison.row["fixed_low"], comparison.row["fixed_high"]))
    return [
        f"By the signed-rank test alone, had the number of blocks been fixed in advance: ratio "
        f"{numbers.ratio(comparison.row['fixed_ratio'])} {ends}, p {numbers.p_value(p)}."
    ]


def _threats(chain: Chain) -> list[str]:
    by_state = {state: [one for one in chain.switches if one.state == state] for state in ("on", "unknown", "off")}
    sentences = [f"On: {one.title} ({one.id}); {one.why}." for one in by_state["on"]]
    sentences += [f"Unknown: {one.title} ({one.id}); {one.why}." for one in by_state["unknown"]]
    if by_state["off"]:
        off = [f"{one.id} ({one.why.rstrip('.')})" for one in by_state["off"]]
        sentences.append(f"Off: {'; '.join(off)}.")
    return sentences

"""What a map says, in sentences."""

from __future__ import annotations

import math

from trifecta.analysis.mapping.noise import Noise
from trifecta.analysis.mapping.result import MapResult, PlaceEstimate
from trifecta.design import numbers
from trifecta.design.metric import TIME, Metric
from trifecta.design.metrics import METRICS
from trifecta.design.phrases import counted, listed
from trifecta.report.claims import is_
from trifecta.report.figures.style import name


def times(low: float, high: float) -> str:
    """``1.12 to 1.19 times``, or ``1.12 times`` where both are written alike."""
    first, last = numbers.ratio(low), numbers.ratio(high)
    return f"{first} times" if first == last else f"{first} to {last} times"


def sentence(answer: PlaceEstimate) -> str:
    """``at 35 ms and 0.5 % loss, for 20 objects of 30 kB: HTTP/3, 1.12 to 1.19 times faster``."""
    result = answer.map
    where = f"{result.plan.where(answer.x, answer.y)}, for {result.traffic}: "
    low, high = answer.factors()
    if answer.winner:
        return f"{where}{name(answer.winner)}, {times(low, high)} {METRICS[result.metric].word('faster')}"
    arm, reference = name(result.plan.arm), name(result.plan.reference)
    text = _between(METRICS[result.metric], arm, reference, numbers.between(low, high))
    if answer.outcome == "same":
        return f"{where}the same within {numbers.percent(result.margin)} ({text})"
    return f"{where}open ({text})"


def _between(metric: Metric, arm: str, reference: str, ends: str) -> str:
    """``HTTP/3 is between 0.98 and 1.10 times as fast as HTTP/2``; a factor above 1 is to the good of ``arm``."""
    if metric.wording is TIME:
        return f"{arm} is {ends} times as fast as {reference}"
    more, less = (reference, arm) if metric.lower_is_better else (arm, reference)
    return f"{more} {metric.wording.is_} {ends} times the {metric.label} of {less}"


def evidence(answer: PlaceEstimate) -> str:
    """What the answer rests on: interval, metric, blocks, checks."""
    blocks, failed, reasons = answer.checks()
    result = answer.map
    where = "near" if answer.near else "at the nearest three places, none of them near"
    parts = [
        f"{numbers.percent(result.confidence)} interval, {METRICS[result.metric].label}",
        f"{counted(result.blocks, 'block')} on the plane; {blocks} {where}",
        f"Trials there that failed a check do not count: {checks(reasons)}" if reasons else
        "Every trial there passed its checks",
    ]  # fmt: skip
    if failed:
        parts[-1] += f"; {counted(failed, 'block')} with them"
    return ". ".join(parts) + "."


def checks(reasons: dict[str, int]) -> str:
    """``path in 3 trials, errors in 1 trial``."""
    return listed([f"{check} in {counted(number, 'trial')}" for check, number in sorted(reasons.items())])


def headline(result: MapResult) -> str:
    """Who wins where, in a sentence."""
    division = result.outcome_of_border()
    if not division:
        return "No result: in no block did all trials pass their checks."
    arm, reference = name(result.plan.arm), name(result.plan.reference)
    parts = []
    better = is_(METRICS[result.metric], "faster")
    for share, text in ((division["faster"], f"{arm} {better}"), (division["slower"], f"{reference} {better}")):
        if share:
            parts.append(f"{text} on {numbers.percent(share)} of the plane")
    if division["same"]:
        parts.append(
            f"they are the same within {numbers.percent(result.margin)} on {numbers.percent(division['same'])}"
        )
    if division["open"]:
        parts.append(f"{numbers.percent(division['open'])} is open" if parts else "all of the plane is open")
    return f"For {result.traffic}, {listed(parts)}."


def noise(estimate: Noise, reference: str) -> str:
    """What the reference's second runs say."""
    if not estimate.blocks:
        return f"No block has two valid runs of {name(reference)}, so the noise is unknown."
    if not any(end is not None and math.isfinite(end) for end in (estimate.low, estimate.high)):
        over = counted(estimate.blocks, "block")
        return f"{name(reference)} against itself over {over}: {numbers.ratio(estimate.ratio)}, too few to tell."
    interval = f"{_end(estimate.low)} to {_end(estimate.high)}"
    over = counted(estimate.blocks, "block")
    sentence = f"{name(reference)} against itself over {over}: {numbers.ratio(estimate.ratio)} ({interval})"
    if estimate.biased:
        return f"{sentence}: it differs from itself, so nothing below {numbers.percent(estimate.floor)} is claimed."
    return f"{sentence}: no difference."


def nodes(result: MapResult) -> str:
    """By how much the nodes of a cluster differ; empty where all blocks are of one."""
    summary = result.nodes()
    if summary is None:
        return ""
    if summary["count"] == 1:
        return "Measured on several nodes, of which only one counts, and no place is decided by one node alone."
    differ, low, high = (
        numbers.percent(math.expm1(end)) for end in (summary["differ_by"], summary["low"], summary["high"])
    )
    sentence = f"Measured on {summary['count']} nodes, between which the speed-up differs by {differ} [{low}, {high}]"
    return f"{sentence} (standard deviation); no place is decided by one of them alone."


def _end(value: float | None) -> str:
    return "no bound" if value is None or not math.isfinite(value) else numbers.ratio(value)

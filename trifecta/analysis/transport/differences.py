"""The difference between two protocols in a treatment, split by the parts of `attribution`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.mean_ratio import half_width
from trifecta.analysis.student import t_quantile
from trifecta.analysis.transport.attribution import RequestTime
from trifecta.analysis.transport.parts import PARTS


@dataclass(frozen=True, slots=True)
class PartDifference:
    """How much of one part an arm has more than the reference, in ns; negative: less. Bounds: None with one block."""

    part: str
    arm_ns: float
    reference_ns: float
    difference_ns: float
    low_ns: float | None
    high_ns: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Both load times and their parts, means over blocks; the parts' differences add up to the whole's."""

    blocks: int
    whole: PartDifference
    parts: tuple[PartDifference, ...]


def mean_parts(requests: Sequence[RequestTime]) -> dict[str, float]:
    """The mean of each part over the requests of a trial, in ns. They add up to the mean load time."""
    if not requests:
        raise ValueError("no requests: there is nothing to take a mean of")
    sums = dict.fromkeys(PARTS, 0)
    for one in requests:
        for part, value in one.parts.items():
            sums[part] += value
    return {part: value / len(requests) for part, value in sums.items()}


def difference(
    blocks: Sequence[tuple[Mapping[str, float], Mapping[str, float]]],
    confidence: float = 0.95,
    names: Sequence[str] = PARTS,
    *,
    anytime: bool = False,
) -> Difference | None:
    """Arm less reference of each block's `mean_parts`, or of other parts that add up; None without blocks.

    Intervals are Student's for the mean of paired differences, for a number of blocks set in advance; ``anytime``: the
    confidence sequence of that mean (`analysis.mean_ratio`), which holds whenever the run stopped. Each is for its part
    alone: that all of them hold at once is less sure.
    """
    if not blocks:
        return None
    arms = np.array([[arm[part] for part in names] for arm, _ in blocks], dtype=np.float64)
    references = np.array([[reference[part] for part in names] for _, reference in blocks], dtype=np.float64)
    reach = _reach(len(blocks), confidence, anytime=anytime)
    parts = tuple(_paired(part, arms[:, at], references[:, at], reach) for at, part in enumerate(names))
    return Difference(len(blocks), _paired("whole", arms.sum(axis=1), references.sum(axis=1), reach), parts)


def _reach(blocks: int, confidence: float, *, anytime: bool) -> float:
    """Half an interval of a mean, in standard deviations of a block; infinite where there is no bound."""
    if blocks < 2:
        return math.inf
    if anytime:
        return half_width(blocks, 1 - confidence)
    return t_quantile(0.5 + confidence / 2, blocks - 1) / math.sqrt(blocks)


def _paired(
    part: str, arm: np.typing.NDArray[np.float64], reference: np.typing.NDArray[np.float64], reach: float
) -> PartDifference:
    each = arm - reference
    mean, low, high = float(each.mean()), None, None
    if math.isfinite(reach):
        half = reach * float(each.std(ddof=1))
        low, high = mean - half, mean + half
    return PartDifference(part, float(arm.mean()), float(reference.mean()), mean, low, high)


def by_block(
    trials: Iterable[tuple[int, str, Mapping[str, float]]], arms: Sequence[str]
) -> dict[str, list[dict[str, float]]]:
    """`mean_parts` of trials (block, arm, parts) as a list of blocks for each arm, in the same order for all.

    Of two trials of an arm in a block (the baseline's) the mean. Only blocks with every one of the arms that has any
    trial at all count, so that means of arms differ by the mean difference. Trials without parts are left out.
    """
    parts_by_arm: dict[str, dict[int, list[Mapping[str, float]]]] = {arm: {} for arm in arms}
    for block, arm, parts in trials:
        if arm in parts_by_arm and parts:
            parts_by_arm[arm].setdefault(block, []).append(parts)
    there = {arm: blocks for arm, blocks in parts_by_arm.items() if blocks}
    shared = sorted(set.intersection(*(set(blocks) for blocks in there.values()))) if there else []
    return {
        arm: [
            {part: sum(one[part] for one in blocks[block]) / len(blocks[block]) for part in PARTS} for block in shared
        ]
        for arm, blocks in there.items()
        if shared
    }


def mean_of(blocks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each part over blocks."""
    return {part: sum(block[part] for block in blocks) / len(blocks) for part in PARTS}

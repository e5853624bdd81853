"""The difference between two protocols in a treatment, split by the parts of `attribution`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.averages import half_width
from trifecta.analysis.student import t_quantile
from trifecta.analysis.transport.attribution import RequestTime
from trifecta.analysis.transport.parts import CPU, PARTS


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
    confidence sequence of that mean (`analysis.averages`), which holds whenever the run stopped. Each is for its part
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
    found: dict[str, dict[int, list[Mapping[str, float]]]] = {arm: {} for arm in arms}
    for block, arm, parts in trials:
        if arm in found and parts:
            found[arm].setdefault(block, []).append(parts)
    there = {arm: blocks for arm, blocks in found.items() if blocks}
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


def sentence(found: Difference, arm: str, reference: str) -> str:
    """One sentence: which is faster by how much, and the parts that make most of it, with their intervals."""
    whole = found.whole
    write = _Writer(max(whole.arm_ns, whole.reference_ns))
    if whole.low_ns is not None and whole.high_ns is not None and whole.low_ns <= 0 <= whole.high_ns:
        opening = f"A request over {arm} cannot be told from one over {reference}: {write.signed(whole)}"
    elif write.number(whole.difference_ns) == write.number(0):
        return f"A request took the same time over {arm} and {reference}, {write.number(whole.arm_ns)} {write.unit}."
    else:
        more = "less" if whole.difference_ns < 0 else "more"
        size = f"{write.number(abs(whole.difference_ns))} {write.unit}"
        opening = f"A request took {size} {more} over {arm} than over {reference}{write.interval(whole)}"
    largest = sorted(found.parts, key=lambda one: -abs(one.difference_ns))
    least = max(0.1 * abs(whole.difference_ns), 0.01 * whole.reference_ns)
    shown = [one for one in largest[:4] if abs(one.difference_ns) >= least]
    words = ", ".join(f"{'CPU' if one.part == CPU else one.part} {write.signed(one)}" for one in shown)
    return f"{opening}{': ' if words else ''}{words}."


class _Writer:
    """Writes times in one unit, with a decimal: ms, or us where requests take less than 10 ms."""

    def __init__(self, longest_ns: float) -> None:
        self.unit, self.ns = ("ms", 1e6) if longest_ns >= 1e7 else ("µs", 1e3)

    def number(self, ns: float) -> str:
        return f"{ns / self.ns:.1f}"

    def signed(self, one: PartDifference) -> str:
        return f"{self._sign(one.difference_ns)} {self.unit}{self.interval(one)}"

    def interval(self, one: PartDifference) -> str:
        """`` [−12.1, −8.0]``; nothing with one block."""
        if one.low_ns is None or one.high_ns is None:
            return ""
        return f" [{self._sign(one.low_ns)}, {self._sign(one.high_ns)}]"

    def _sign(self, ns: float) -> str:
        return f"{ns / self.ns:+.1f}".replace("-", "\N{MINUS SIGN}")

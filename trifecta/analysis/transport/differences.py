"""The difference between two protocols in a treatment, split by the parts of `attribution`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.attribution import PARTS, RequestTime


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
    blocks: Sequence[tuple[Mapping[str, float], Mapping[str, float]]], confidence: float = 0.95
) -> Difference | None:
    """Arm less reference of each block's `mean_parts`; None without blocks.

    Intervals are Student's for the mean of paired differences, for a number of blocks set in advance. Each is for its
    part alone: that all of them hold at once is less sure.
    """
    if not blocks:
        return None
    arms = np.array([[arm[part] for part in PARTS] for arm, _ in blocks], dtype=np.float64)
    references = np.array([[reference[part] for part in PARTS] for _, reference in blocks], dtype=np.float64)
    parts = tuple(_paired(part, arms[:, at], references[:, at], confidence) for at, part in enumerate(PARTS))
    return Difference(len(blocks), _paired("whole", arms.sum(axis=1), references.sum(axis=1), confidence), parts)


def _paired(
    part: str, arm: np.typing.NDArray[np.float64], reference: np.typing.NDArray[np.float64], confidence: float
) -> PartDifference:
    from scipy.stats import t

    each = arm - reference
    mean, low, high = float(each.mean()), None, None
    if len(each) > 1:
        half = float(t.ppf(0.5 + confidence / 2, len(each) - 1)) * float(each.std(ddof=1)) / math.sqrt(len(each))
        low, high = mean - half, mean + half
    return PartDifference(part, float(arm.mean()), float(reference.mean()), mean, low, high)


def sentence(found: Difference, arm: str, reference: str) -> str:
    """One sentence: which is faster by how much, and the parts that make most of it."""
    whole = found.whole.difference_ns
    if round(abs(whole) / 1e6, 1) == 0:
        return f"{arm} and {reference} took the same time, {found.whole.arm_ns / 1e6:.1f} ms."
    largest = sorted(found.parts, key=lambda one: -abs(one.difference_ns))
    shown = [one for one in largest if abs(one.difference_ns) >= 0.1 * abs(whole)][:4]
    words = ", ".join(
        f"{abs(one.difference_ns) / 1e6:.1f} ms {'less' if one.difference_ns < 0 else 'more'} {one.part}"
        for one in shown
    )
    faster = "less" if whole < 0 else "more"
    return f"{arm} took {abs(whole) / 1e6:.1f} ms {faster} than {reference}: {words}."

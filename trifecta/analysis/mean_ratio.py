"""The mean ratio: what the average block says, beside the median block, with an interval of its own.

The geometric mean of the block ratios, with the confidence sequence of the anytime-valid t-test (Lai 1976; Wang &
Ramdas 2024): the mixture of likelihood ratios over effects N(0, 1) in standard deviations, scale left free. It holds at
any stopping time where block ratios are log-normal, and by simulation for heavier tails; a mode too rare to have been
seen is in no interval of a mean. No verdict rests on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.memoize import memoized

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanRatio:
    """Geometric mean of the block ratios, and its interval; None where there is no bound yet."""

    ratio: float
    low: float | None
    high: float | None


@memoized
def mean_ratio(log_ratios: Floats, alpha: float) -> MeanRatio | None:
    """Of block log ratios (T,); None without blocks, or where one is censored: then there is no finite mean."""
    blocks = len(log_ratios)
    if blocks == 0 or not np.isfinite(log_ratios).all():
        return None
    middle = float(log_ratios.mean())
    half = half_width(blocks, alpha) * float(log_ratios.std(ddof=1)) if blocks > 1 else math.inf
    if not math.isfinite(half):
        return MeanRatio(math.exp(middle), None, None)
    return MeanRatio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def half_width(blocks: int, alpha: float) -> float:
    """In standard deviations: the t at which the mixture's Bayes factor reaches 1/alpha, over the root of blocks.

    Infinite while there are too few blocks for a bound: at 5 % under five.
    """
    if blocks < 2:
        return math.inf
    freedom = blocks - 1
    grown = 1 + blocks
    q = (math.sqrt(grown) / alpha) ** (2 / blocks)
    if q >= grown:
        return math.inf
    return math.sqrt((q - 1) / (1 - q / grown) * freedom / blocks)

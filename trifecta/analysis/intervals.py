"""Intervals of sums of independent means over blocks: what an effect is when it is pooled, or between cells.

A *part* is a weight and the values of one cell by block (logs, or what can be zero as it is). Parts are independent of
each other; what belongs together within a block is subtracted before it comes here. The interval is Student's t with
the degrees of freedom of Welch and Satterthwaite (1946). Where a block is censored there is no mean: then the median
of a single part, with the exact interval of order statistics. For a number of blocks set in advance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LARGEST_LOG_RATIO
from trifecta.analysis.means import median_of
from trifecta.analysis.student import t_quantile

Floats = NDArray[np.float64]
Part = tuple[float, Floats]
_LEAST_EQUAL = 3  # so many equal blocks are taken for a value without spread


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, as a log ratio or a difference; None where there is none. ``blocks``: of the part
    with the fewest."""

    value: float | None
    low: float | None
    high: float | None
    blocks: int

    @property
    def reach(self) -> float | None:
        """Half the length of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


NOTHING = Estimate(None, None, None, 0)


def linear(parts: Sequence[Part], confidence: float) -> Estimate:
    """The weighted sum of the parts' means; nothing where a part has no block."""
    sizes = [len(values) for _, values in parts]
    if not parts or min(sizes) == 0:
        return NOTHING
    blocks = min(sizes)
    if not all(np.isfinite(values).all() for _, values in parts):
        return _by_order(parts[0], confidence) if len(parts) == 1 else Estimate(None, None, None, blocks)
    value = float(sum(weight * values.mean() for weight, values in parts))
    if blocks < 2:
        return Estimate(value, None, None, blocks)
    variances = np.array([weight**2 * float(values.var(ddof=1)) / len(values) for weight, values in parts])
    if variances.sum() <= (1e-12 * max(1.0, abs(value))) ** 2:
        exact = value if blocks >= _LEAST_EQUAL else None
        return Estimate(value, exact, exact, blocks)
    freedom = float(variances.sum() ** 2 / sum(v**2 / (n - 1) for v, n in zip(variances, sizes, strict=True)))
    reach = t_quantile((1 + confidence) / 2, round(freedom, 6)) * math.sqrt(float(variances.sum()))
    return Estimate(value, value - reach, value + reach, blocks)


def _by_order(part: Part, confidence: float) -> Estimate:
    """The median of one part with infinite values, between two order statistics (binomial, so for any distribution)."""
    from scipy import stats

    weight, values = part
    ordered = np.sort(weight * values)
    count = len(ordered)
    middle = median_of(ordered)
    outside = int(stats.binom.ppf((1 - confidence) / 2, count, 0.5))  # P(fewer than this many lie below) fits the tail
    while outside > 0 and 2 * float(stats.binom.cdf(outside - 1, count, 0.5)) > 1 - confidence:
        outside -= 1
    if outside < 1:
        return Estimate(_finite(middle), None, None, count)
    low, high = float(ordered[outside - 1]), float(ordered[count - outside])
    # A bound that is beyond every finite value is reported as one that is far out.
    low, high = min(low, LARGEST_LOG_RATIO), max(high, -LARGEST_LOG_RATIO)
    return Estimate(_finite(middle), _finite(low), _finite(high), count)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

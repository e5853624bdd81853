"""How a set of times or sizes is spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.rows import Ints


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Least, middle, tails and most, in the unit of the values."""

    count: int
    least: float
    p50: float
    p90: float
    p99: float
    most: float


def quantiles(values: Ints) -> Quantiles | None:
    """Linear between values (numpy's default); None where there are none."""
    if not len(values):
        return None
    ordered = np.sort(values)
    return Quantiles(len(values), *(_between(ordered, at) for at in (0.0, 0.5, 0.9, 0.99, 1.0)))


def _between(ordered: Ints, quantile: float) -> float:
    """As `numpy.quantile` does it, without what that takes to begin: short lists are asked for often."""
    place = (len(ordered) - 1) * quantile
    below = int(place)
    low, high = int(ordered[below]), int(ordered[min(below + 1, len(ordered) - 1)])
    part = place - below
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)

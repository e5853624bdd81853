"""How a set of times or sizes is spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.columns import Ints


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
    least, p50, p90, p99, most = np.quantile(values, [0, 0.5, 0.9, 0.99, 1]).tolist()
    return Quantiles(len(values), least, p50, p90, p99, most)

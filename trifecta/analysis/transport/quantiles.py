"""How a set of times or sizes is spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.ranges import each_cell
from trifecta.analysis.transport.rows import Ints
from trifecta.design.percentiles import holds

Floats = NDArray[np.float64]
_AT = (0.0, 0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Least, middle, tails and most, in the unit of the values; None for a tail that so many values do not hold."""

    count: int
    least: float
    p50: float
    p90: float | None
    p99: float | None
    most: float


def quantiles_of_each(values: Ints, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    """Of the values of each [start, end), linear between values (numpy's default); None where there are none."""
    counts = np.maximum(ends - starts, 0)
    of, at = each_cell(starts, counts)
    ordered = values[at]
    ordered = ordered[np.lexsort((ordered, of))]
    first = counts.cumsum() - counts
    some = counts > 0
    columns = [_between(ordered, first[some], counts[some], quantile).tolist() for quantile in _AT]
    quantiles: list[Quantiles | None] = [None] * len(counts)
    each = zip(counts[some].tolist(), *columns, strict=True)
    for place, (count, *quantiles_here) in zip(some.nonzero()[0].tolist(), each, strict=True):
        least, p50, p90, p99, most = quantiles_here
        quantiles[place] = Quantiles(
            count, least, p50, p90 if holds(0.9, count) else None, p99 if holds(0.99, count) else None, most
        )
    return quantiles


def _between(ordered: Ints, first: Ints, counts: Ints, quantile: float) -> Floats:
    """As `numpy.quantile` does it, of so many values from ``first`` on."""
    place = (counts - 1) * quantile
    below = place.astype(np.int64)
    low, high = ordered[first + below], ordered[first + np.minimum(below + 1, counts - 1)]
    part = place - below
    between: Floats = np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))
    return between

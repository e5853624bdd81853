"""Which percentiles a sample holds: of three requests the 99.9th is the largest of three, and says nothing of a tail.

A percentile *q* needs at least 1 / (1 - q) values, so that one of them can be expected beyond it: the 90th 10, the 95th
20, the 99th 100, the 99.9th 1,000 (below the median by symmetry 1 / q). The median needs one. What is not held is left
out: None, NULL, or a dash beside the number of values.
"""

from __future__ import annotations

import math


def needed(quantile: float) -> int:
    """How many values hold the percentile; ``quantile`` is a share, 0 and 1 are least and most."""
    tail = min(quantile, 1 - quantile)
    if quantile in (0.0, 0.5, 1.0):
        return 1
    return math.ceil(round(1 / tail, 6))


def holds(quantile: float, values: int) -> bool:
    """Whether a sample of so many values holds the percentile."""
    return values >= needed(quantile)


def held_sql(expression: str, quantile: float, count: str) -> str:
    """The SQL of a percentile that is NULL where ``count`` (SQL, too) says that the sample does not hold it."""
    return f"CASE WHEN {count} >= {needed(quantile)} THEN {expression} END"

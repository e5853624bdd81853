"""Values of a protocol in one cell over blocks: the geometric mean with a t interval of the logs.

Descriptive: for a number of blocks set in advance. Verdicts between protocols rest on `confidence`, not on this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import Row, log_value, usable
from trifecta.analysis.student import reach_of_mean
from trifecta.design.metric import Metric
from trifecta.design.model import AA_SUFFIX

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """A value in the metric's unit; ``low`` and ``high`` are None with fewer than two blocks or with censored ones.

    ``value`` is None when it is not finite; with censored blocks it is the median.
    """

    value: float | None
    low: float | None
    high: float | None
    blocks: int
    censored: int


def block_logs(rows: Sequence[Row], metric: Metric, arm: str) -> Floats:
    """The log value of every usable block of one cell; of the baseline's two runs the mean."""
    by_block = logs_by_block(rows, metric, arm)
    return np.array([by_block[block] for block in sorted(by_block)])


def logs_by_block(rows: Sequence[Row], metric: Metric, arm: str) -> dict[int, float]:
    """The same by the number of the block."""
    blocks: dict[int, list[float]] = {}
    for row in rows:
        if str(row["arm"]) in (arm, arm + AA_SUFFIX) and usable(row):
            value = log_value(row, metric)
            if not math.isnan(value):
                blocks.setdefault(int(row["block"]), []).append(value)
    return {block: float(np.mean(values)) for block, values in blocks.items()}


def median_of(values: Floats) -> float:
    """The median of one value or more, which may be infinite: where half of them are, so is it; NaN between both."""
    ordered = np.sort(values)
    low, high = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
    return low if low == high else (low + high) / 2


def geometric_mean(logs: Floats, confidence: float) -> Mean:
    """The geometric mean of the blocks whose logs are given."""
    if not len(logs):
        return Mean(None, None, None, 0, 0)
    censored = int((~np.isfinite(logs)).sum())
    middle = median_of(logs) if censored else float(logs.mean())
    low = high = None
    if not censored and len(logs) > 1:
        reach = reach_of_mean(logs, confidence)
        low, high = math.exp(middle - reach), math.exp(middle + reach)
    return Mean(math.exp(middle) if math.isfinite(middle) else None, low, high, len(logs), censored)

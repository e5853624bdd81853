"""Metrics of browsers' visits: from visits to a value a trial, from trials to values, comparisons and noise by block.

A trial is the replicate: the visits within it share its path, its server and its browser. Times, sizes and rates are
compared by their ratio, on logarithms. What can be zero (stalls, switches, dropped frames) has no ratio: there it is
the difference of means. Intervals are Student's t over blocks, paired within them. Descriptive, as `means` is: for a
number of blocks set in advance. Verdicts rest on `confidence`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.means import median_of
from trifecta.analysis.student import reach_of_mean
from trifecta.contract.trial import TrialValues, value_of
from trifecta.design.model import AA_SUFFIX

Floats = NDArray[np.float64]
_LARGEST = 700.0  # its exponential is a number


@dataclass(frozen=True)
class Spread:
    """A value over blocks. Ends are None with fewer than two blocks, where all are equal, or where one is censored."""

    value: float | None
    low: float | None
    high: float | None
    blocks: int


NOTHING = Spread(None, None, None, 0)


@dataclass(frozen=True)
class Summary:
    """One metric of one arm in one cell.

    ``change`` is that to the baseline: a ratio, or a difference in the metric's unit. ``repeat`` is the same of the
    baseline's second run to its first (A/A), whose truth is no change. Where a block is censored, either is the median
    (two that are, are a tie), without an interval. ``noise`` is the standard deviation of one trial about the mean of
    its block, by that pair: relative (0.05: 5 %), or in the metric's unit; None where that pair is censored.
    """

    value: Spread
    change: Spread
    repeat: Spread
    noise: float | None


def summarise(
    rows: Sequence[TrialValues], name: str, arm: str, baseline: str, *, confidence: float, zero: bool
) -> Summary:
    """A metric of an arm from the trials of one cell that count: rows with ``arm``, ``block`` and the value ``name``.

    Of the baseline's two runs of a block the mean (on logarithms, the geometric one) is its value.
    """
    own, base = (_by_block(rows, name, which, zero=zero) for which in ((arm, arm + AA_SUFFIX), _arm_pair(baseline)))
    first, second = (_by_block(rows, name, (which,), zero=zero) for which in _arm_pair(baseline))
    (change, one_fails), (repeated, itself_fails) = _differences(own, base), _differences(second, first)
    return Summary(
        value=_spread(np.array([own[block] for block in sorted(own)]), confidence, zero=zero),
        change=NOTHING if arm == baseline else _spread(change, confidence, zero=zero, censored=one_fails),
        repeat=_spread(repeated, confidence, zero=zero, censored=itself_fails),
        noise=None if itself_fails else _noise(repeated, zero=zero),
    )


def _arm_pair(baseline: str) -> tuple[str, str]:
    return baseline, baseline + AA_SUFFIX


def _by_block(rows: Sequence[TrialValues], name: str, arms: tuple[str, ...], *, zero: bool) -> dict[int, float]:
    """The value of every block, as a logarithm unless it can be zero; what has no logarithm is left out."""
    values_by_block: dict[int, list[float]] = {}
    for row in rows:
        value = value_of(row, name)
        if row["arm"] not in arms or value is None or math.isnan(value) or (not zero and value <= 0):
            continue
        values_by_block.setdefault(int(row["block"]), []).append(float(value) if zero else math.log(value))
    return {block: float(np.mean(values)) for block, values in values_by_block.items()}


def _differences(arm: Mapping[int, float], reference: Mapping[int, float]) -> tuple[Floats, bool]:
    """By block, where both have a value; and whether any is censored. Infinite where one is, a tie where both are."""
    shared = [(arm[block], reference[block]) for block in sorted(arm) if block in reference]
    censored = any(math.isinf(value) for pair in shared for value in pair)
    return np.array([0.0 if math.isinf(own) and own == other else own - other for own, other in shared]), censored


def _spread(values: Floats, confidence: float, *, zero: bool, censored: bool | None = None) -> Spread:
    """The mean with its interval; the median alone where a block is ``censored`` (None: where one is infinite)."""
    if not len(values):
        return NOTHING
    write = float if zero else _exp
    if not np.isfinite(values).all() if censored is None else censored:
        middle = median_of(values)
        return Spread(_finite(write(middle)) if math.isfinite(middle) else None, None, None, len(values))
    middle = float(values.mean())
    if len(values) < 2 or float(np.ptp(values)) == 0:
        return Spread(_finite(write(middle)), None, None, len(values))
    reach = reach_of_mean(values, confidence)
    low, high = write(middle - reach), write(middle + reach)
    return Spread(_finite(write(middle)), _finite(low), _finite(high), len(values))


def _exp(value: float) -> float:
    """The exponential, infinite where it is too large for a number."""
    return math.exp(value) if value < _LARGEST else math.inf


def _finite(value: float) -> float | None:
    """The value; None where it is so large that nothing is known."""
    return value if math.isfinite(value) else None


def _noise(repeated: Floats, *, zero: bool) -> float | None:
    """Two runs of a block differ by sqrt(2) times what one of them does. Their mean difference is no noise."""
    if len(repeated) < 2:
        return None
    one = float(repeated.std(ddof=1)) / math.sqrt(2)
    return one if zero else _finite(_exp(one) - 1)

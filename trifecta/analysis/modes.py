"""Modes: do the trials of an arm fall into groups, of which the median sees only the larger one?

Each trial is compared with its arm's median and with what its block did to all arms (a median polish, Tukey 1977), so
shared weather and drift are no mode. A trial *stands apart* where it is further out than the margin and than six robust
standard deviations. Two or more on one side that lie closer to each other than to the rest are named as a mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import Row, log_value, usable
from trifecta.analysis.memoize import memoized
from trifecta.design.metric import Metric

Floats = NDArray[np.float64]

FEWEST_TRIALS = 5  # of an arm: fewer have no majority to stand apart from
DEVIATIONS = 6.0
RARE = 0.05  # trials that stand apart are an accident up to this share, and keep nothing from being called the same
_POLISHES = 5
_OF_A_ROUND_TRIP = 0.15


@dataclass(frozen=True)
class MinorityMode:
    """Trials of one arm that stand apart: how many of how many, at what factor of the others' value.

    They may lie on both sides of the others: ``factor`` is that of the side that weighs more, in count and distance.
    """

    arm: str
    trials: int
    apart: int
    factor: float  # geometric mean of theirs / the others', of the metric
    is_mode: bool
    shift: float  # theirs less the others' median, in the metric's unit
    across: tuple[int, float] | None = None  # how many of them lie on the other side, and at what factor

    @property
    def sides(self) -> list[tuple[int, float]]:
        """How many of them at what factor, the side that weighs more first."""
        if self.across is None:
            return [(self.apart, self.factor)]
        return [(self.apart - self.across[0], self.factor), self.across]

    @property
    def rare(self) -> bool:
        """Whether they are so few of so many that they may be left to chance."""
        return self.apart <= RARE * self.trials

    def words(self, name: str, metric: Metric, rtt_ns: float | None = None) -> str:
        """``2 of 7 trials of HTTP/2 took one round trip less``."""
        who = f"{self.apart} of {self.trials} trials of {name}"
        if self.across is not None:
            each = " and ".join(f"{count} at {factor:.2f}" for count, factor in sorted(self.sides, key=itemgetter(1)))
            return f"{who} stand apart: {each} times the others"
        if metric.unit == "ns" and rtt_ns:
            round_trips = round(abs(self.shift) / rtt_ns)
            if 1 <= round_trips <= 9 and abs(abs(self.shift) - round_trips * rtt_ns) <= _OF_A_ROUND_TRIP * rtt_ns:
                many = ("one round trip", "two round trips", "three round trips")[round_trips - 1 : round_trips] or [
                    f"{round_trips} round trips"
                ]
                return f"{who} took {many[0]} {'more' if self.shift > 0 else 'less'}"
        apart = "form a mode" if self.is_mode else "stands apart" if self.apart == 1 else "stand apart"
        return f"{who} {apart} at {self.factor:.2f} times the others"


def minority_modes(rows: Sequence[Row], metric: Metric, margin: float) -> dict[str, MinorityMode]:
    """Trials of one cell that stand apart, by arm; only arms that have some. ``margin`` is a ratio - 1."""
    if not rows:
        return {}
    arms = sorted({str(row["arm"]) for row in rows})
    blocks = sorted({int(row["block"]) for row in rows})
    table = np.full((len(blocks), len(arms)), math.nan)
    for row in rows:
        if usable(row):
            value = log_value(row, metric)
            if math.isfinite(value):
                table[blocks.index(int(row["block"])), arms.index(str(row["arm"]))] = value
    residuals = _polished(table)
    by_cell = {}
    for column, arm in enumerate(arms):
        stacked = np.stack([residuals[:, column], table[:, column]])
        one = _of_arm(stacked, arm, math.log1p(margin))
        if one is not None:
            by_cell[arm] = one
    return by_cell


def merged(minority_modes: Mapping[str, MinorityMode], arm: str, second: str, trials: int) -> MinorityMode | None:
    """An arm and its second run as one: ``trials`` are those of the one that has none apart."""
    a, b = minority_modes.get(arm), minority_modes.get(second)
    if a is None or b is None:
        one = a or b
        return one and replace(one, arm=arm, trials=one.trials + trials)
    count = a.apart + b.apart
    by_side = [[side for side in (*a.sides, *b.sides) if (side[1] > 1) == above] for above in (False, True)]
    means = [_mean_side(sides) for sides in by_side if sides]
    larger, *smaller = sorted(means, key=lambda side: -side[0] * abs(math.log(side[1])))
    shift = (a.apart * a.shift + b.apart * b.shift) / count
    near = abs(math.log(a.factor / b.factor)) < 0.5 * min(abs(math.log(a.factor)), abs(math.log(b.factor)))
    return MinorityMode(arm, a.trials + b.trials, count, larger[1], near, shift, smaller[0] if smaller else None)


def _mean_side(sides: Sequence[tuple[int, float]]) -> tuple[int, float]:
    """How many trials lie there together, and their geometric mean."""
    count = sum(trials for trials, _ in sides)
    return count, math.exp(sum(trials * math.log(factor) for trials, factor in sides) / count)


@memoized
def _polished(table: Floats) -> Floats:
    """Residuals of a median polish of blocks and arms."""
    left = table
    for _ in range(_POLISHES):
        left = left - _median(left, axis=0)
        left = left - _median(left, axis=1)
    return left - _median(left, axis=0)


def _median(table: Floats, axis: int) -> Floats:
    if not np.isnan(table).any():
        quick: Floats = np.median(table, axis=axis, keepdims=True)
        return quick
    empty = np.isnan(table).all(axis=axis, keepdims=True)
    filled = np.where(np.isnan(table) & empty, 0.0, table)
    result: Floats = np.nanmedian(filled, axis=axis, keepdims=True)
    return result


@memoized
def _of_arm(stacked: Floats, arm: str, log_margin: float) -> MinorityMode | None:
    """``stacked``: (2, blocks), the residuals of an arm's trials and their values."""
    residuals, values = stacked
    present = np.isfinite(residuals)
    known, own = residuals[present], values[present]
    if len(known) < FEWEST_TRIALS:
        return None
    spread = 1.4826 * float(np.median(np.abs(known - np.median(known))))
    far = np.abs(known) > max(log_margin, DEVIATIONS * spread)
    if not far.any() or far.sum() * 2 >= len(known):
        return None
    side = far & (np.sign(known) == np.sign(known[far].sum() or 1.0))
    group, rest = known[side], known[~far]
    gap = float(np.abs(group[:, None] - rest[None, :]).min())
    mode = len(group) >= 2 and float(np.ptp(group)) < gap
    shift = float(np.exp(np.median(own[~far]) + np.median(known[far])) - np.exp(np.median(own[~far])))
    opposite = known[far & ~side]
    across = (len(opposite), float(np.exp(opposite.mean()))) if len(opposite) else None
    return MinorityMode(arm, len(known), int(far.sum()), float(np.exp(known[side].mean())), mode, shift, across)

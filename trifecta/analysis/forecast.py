"""How many blocks would decide: the stakes go on from where they are, with votes like those seen, give or take chance.

What share of the blocks to come will agree is not known from a few: it is drawn from its posterior (Jeffreys' prior on
the shares of blocks for, against and split), so a forecast is a range. No decision rests on it but which cell gets the
next block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LAMBDAS, WEIGHTS, differences_of, log_wealth, votes_above
from trifecta.analysis.memoize import memoized

Floats = NDArray[np.float64]

HORIZON = 10  # a forecast beyond this many times the blocks seen is worth nothing
FAR_FROM = 10  # blocks, before which nothing is called out of reach
_DRAWS = 200
_TAILS = (0.1, 0.5, 0.9)  # four of five forecasts shall hold


@dataclass(frozen=True)
class Forecast:
    """Total blocks that would decide: the middle and the ends of a range that holds in four of five cases.

    Infinite ends are out of reach.
    """

    low: float
    middle: float
    high: float


OUT_OF_REACH = Forecast(math.inf, math.inf, math.inf)


@memoized
def blocks_to_difference(logs: Floats, log_e_to_claim: float) -> Forecast:
    """Total blocks at which the e-value against "no larger" or "no smaller" reaches ``log_e_to_claim``."""
    if len(logs) < 2:
        return OUT_OF_REACH
    differences, zero = differences_of(logs), np.zeros(1)
    above, below = votes_above(differences, zero)[0], votes_above(-differences, zero)[0]
    return _range(np.minimum(_totals(above, log_e_to_claim), _totals(below, log_e_to_claim)))


@memoized
def blocks_to_same(logs: Floats, log_margin: float, log_e_to_claim: float) -> Forecast:
    """Total blocks at which both e-values against a median beyond the margin reach ``log_e_to_claim``."""
    if len(logs) < 2:
        return OUT_OF_REACH
    differences, edge = differences_of(logs), np.array([-log_margin])
    above, below = votes_above(differences, edge)[0], votes_above(-differences, edge)[0]
    return _range(np.maximum(_totals(above, log_e_to_claim), _totals(below, log_e_to_claim)))


def earliest(first: Forecast, second: Forecast) -> Forecast:
    """Whichever of the two comes first."""
    return Forecast(min(first.low, second.low), min(first.middle, second.middle), min(first.high, second.high))


def at_least(forecast: Forecast, blocks: float) -> Forecast:
    """The forecast, but never before so many blocks."""
    return Forecast(max(forecast.low, blocks), max(forecast.middle, blocks), max(forecast.high, blocks))


def within_horizon(needed: float, blocks: int) -> int | None:
    """A forecast as a whole number above the blocks seen; None beyond ten times those, where it is worth nothing."""
    if not math.isfinite(needed) or needed > HORIZON * blocks:
        return None
    return max(blocks + 1, math.ceil(needed))


@memoized
def _totals(votes: Floats, threshold: float) -> Floats:
    """(draws,): total blocks at which the best bet alone, with its share of the mixture, reaches the threshold."""
    blocks = len(votes)
    counts = [(votes > 0).sum(), (votes < 0).sum(), (votes == 0).sum()]
    rng = np.random.default_rng(blocks)  # the same forecast for the same blocks
    shares = rng.dirichlet(np.array(counts) + 0.5, _DRAWS)
    growth = shares[:, :1] * np.log1p(LAMBDAS) + shares[:, 1:2] * np.log1p(-np.minimum(LAMBDAS, 1 - 1e-9))
    missing = np.maximum(threshold - np.log(WEIGHTS) - log_wealth(votes), 0.0)
    with np.errstate(divide="ignore"):
        further = np.where(growth > 1e-9, missing / np.maximum(growth, 1e-9), np.where(missing > 0, math.inf, 0.0))
    # A bet of everything is lost with the first block that disagrees: it counts only where none is expected before.
    further[:, -1] = np.where(further[:, -1] * shares[:, 1] < 0.5, missing[-1] / math.log(2), math.inf)
    totals: Floats = blocks + further.min(axis=1)
    return totals


def _range(totals: Floats) -> Forecast:
    low, middle, high = np.quantile(totals, _TAILS, method="inverted_cdf")
    return Forecast(float(low), float(middle), float(high))

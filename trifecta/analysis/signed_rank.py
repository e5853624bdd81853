"""The fixed-size analysis beside the confidence sequences: the signed rank test, inverted (Hodges & Lehmann 1963).

Valid when the number of blocks was set in advance, and for block ratios that are symmetric about their centre, as those
of arms that differ by a constant factor are. **Not valid under peeking**: when the planner stopped because of what it
saw, these numbers are a cross-check for readers who know them, not the basis of a verdict. Each is for one comparison
by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LARGEST_LOG_RATIO

Floats = NDArray[np.float64]

FEWEST_BLOCKS = 6  # with five the test cannot reject at 5 %, whatever was seen
EXACT_LIMIT = 2**14  # sign patterns enumerated one by one; beyond, a random sample of them
MONTE_CARLO_DRAWS = 9_999


@dataclass(frozen=True)
class FixedAnalysis:
    """The Hodges-Lehmann ratio, the ratios that the signed rank test does not reject, and its two-sided p of "none"."""

    ratio: float
    low: float | None
    high: float | None
    p: float


def fixed_analysis(logs: Floats, confidence: float = 0.95) -> FixedAnalysis | None:
    """Analyse one pair; None with fewer than `FEWEST_BLOCKS` or with censored trials, which have no ranks.

    No interval where the level asks for more blocks than there are, or where all ratios are equal.
    """
    ratios = _one_to_one(logs)
    if len(ratios) < FEWEST_BLOCKS or not np.isfinite(ratios).all():
        return None
    walsh = walsh_averages(ratios)
    cut = _rejected(len(ratios), 1 - confidence)
    middle = float(np.clip(np.median(walsh), -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))
    ends = (_bound(walsh[cut - 1]), _bound(walsh[-cut])) if cut and np.ptp(ratios) > 0 else (None, None)
    return FixedAnalysis(math.exp(middle), *ends, signed_rank_p(ratios))


def _one_to_one(logs: Floats) -> Floats:
    """Log ratio of the arm to one reference run a block: to the mean of two, equal arms would not be symmetric."""
    if not len(logs):
        return np.empty(0)
    first = np.argmax(~np.isnan(logs[:, 1:]), axis=1)
    with np.errstate(invalid="ignore"):
        result: Floats = logs[:, 0] - logs[np.arange(len(logs)), 1 + first]
    return result


def _bound(log_end: float) -> float | None:
    """A ratio; one further out than `LARGEST_LOG_RATIO` is no bound."""
    return math.exp(log_end) if abs(log_end) < LARGEST_LOG_RATIO else None


def walsh_averages(values: Floats) -> Floats:
    """Means of all pairs of values, each value with itself included, in order: their signs make up the signed rank."""
    first, second = np.triu_indices(len(values))
    result: Floats = np.sort((values[first] + values[second]) / 2)
    return result


def signed_rank_p(ratios: Floats) -> float:
    """Two-sided p-value of "centred on 0"; exact without ties, too large with them (a tie counts against)."""
    walsh = walsh_averages(ratios)
    least = min(int((walsh >= 0).sum()), int((walsh <= 0).sum()))
    return min(1.0, 2 * float(_signed_rank(len(ratios))[least]))


def _rejected(blocks: int, alpha: float) -> int:
    """How many Walsh averages lie outside the interval, and one, on each side; 0 where there is none."""
    return int(np.searchsorted(_signed_rank(blocks), alpha / 2, side="right"))


@lru_cache(maxsize=256)
def _signed_rank(blocks: int) -> Floats:
    """P(signed rank <= 0, 1, 2, ...) when every sign is a fair coin."""
    chances = np.ones(1)
    for rank in range(1, blocks + 1):
        with_it = np.zeros(len(chances) + rank)
        with_it[: len(chances)] += chances / 2
        with_it[rank:] += chances / 2
        chances = with_it
    result: Floats = np.cumsum(chances)
    return result


def permutation_p(ratios: Floats, seed: int = 1) -> float:
    """Two-sided p-value of "no difference": among all signs the values could have had, how extreme is their mean.

    Exact up to `EXACT_LIMIT` sign patterns, else `MONTE_CARLO_DRAWS` seeded draws with the observed one counted in.
    """
    observed = abs(float(ratios.sum()))
    slack = 1e-12 * (1 + observed)  # equal sums, added in another order, are equal
    if 2 ** len(ratios) <= EXACT_LIMIT:
        sums = np.zeros(1)
        for ratio in ratios:
            sums = np.concatenate([sums + ratio, sums - ratio])
        return float((np.abs(sums) >= observed - slack).mean())
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(MONTE_CARLO_DRAWS, len(ratios)), dtype=np.int8)
    sums = (2.0 * signs - 1.0) @ ratios
    return float((1 + (np.abs(sums) >= observed - slack).sum()) / (MONTE_CARLO_DRAWS + 1))

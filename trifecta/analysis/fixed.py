"""The fixed-size analysis beside the confidence sequences: sign-flip permutation test, BCa bootstrap, Holm.

Valid when the number of blocks was set in advance. **Not valid under peeking**: when the planner stopped because of
what it saw, these numbers are a cross-check for readers who know them, not the basis of a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import log_ratios

Floats = NDArray[np.float64]

EXACT_LIMIT = 2**14  # sign patterns enumerated one by one; beyond, a random sample of them
MONTE_CARLO_DRAWS = 9_999
BOOTSTRAP_DRAWS = 4_999
NOT_UNDER_PEEKING = "fixed-size analysis: valid only for a number of blocks set in advance, not under peeking"


@dataclass(frozen=True)
class FixedAnalysis:
    """Geometric mean ratio with its BCa interval, and the two-sided permutation p-value."""

    ratio: float
    low: float | None
    high: float | None
    p: float


def fixed_analysis(logs: Floats, confidence: float = 0.95, seed: int = 1) -> FixedAnalysis | None:
    """Analyse one pair; None with fewer than two blocks or with censored trials, which have no mean."""
    ratios = log_ratios(logs)
    if len(ratios) < 2 or not np.isfinite(ratios).all():
        return None
    low, high = bca_interval(ratios, confidence, seed)
    return FixedAnalysis(math.exp(float(ratios.mean())), low, high, permutation_p(ratios, seed))


def permutation_p(ratios: Floats, seed: int = 1) -> float:
    """Two-sided p-value of "no difference": among all signs the log ratios could have had, how extreme is their mean.

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


def bca_interval(ratios: Floats, confidence: float, seed: int) -> tuple[float | None, float | None]:
    """Bias-corrected and accelerated bootstrap interval (Efron 1987) of the geometric mean of exp(ratios)."""
    from scipy.stats import bootstrap

    if float(np.ptp(ratios)) == 0.0:
        return None, None  # no spread: the bootstrap has nothing to resample
    result = bootstrap(
        (ratios,),
        np.mean,
        confidence_level=confidence,
        n_resamples=BOOTSTRAP_DRAWS,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    low, high = float(result.confidence_interval.low), float(result.confidence_interval.high)
    if math.isnan(low) or math.isnan(high):
        return None, None
    return math.exp(low), math.exp(high)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) step-down adjusted p-values; a missing one counts as a member that is never claimed."""
    count = len(p_values)
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * count
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, (count - rank) * p))
        adjusted[index] = largest
    return adjusted

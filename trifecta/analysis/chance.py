"""What chance can explain: counts of lost packets against the probability asked for."""

from __future__ import annotations

import math

LEVEL = 0.999  # of the interval: one check in a thousand fails by chance alone
_Z = 3.2905  # two-sided normal quantile of LEVEL


def consistent(count: int, trials: int, probability: float, inflation: float = 1.0) -> bool:
    """Whether ``count`` of ``trials`` lies in the 99.9 % interval of the probability; exact for independent events.

    ``inflation`` is the variance relative to independent events, for events that come in bursts.
    """
    if probability <= 0:
        return count == 0
    if probability >= 1:
        return count == trials
    if inflation > 1:
        low, high = plausible_share(trials, probability, inflation)
        return low <= count / trials <= high if trials else True
    from scipy.special import bdtr, bdtrc

    tail = (1 - LEVEL) / 2
    at_most = float(bdtr(count, trials, probability))
    at_least = float(bdtrc(count - 1, trials, probability)) if count else 1.0
    return at_most > tail and at_least > tail


def plausible_share(trials: int, probability: float, inflation: float = 1.0) -> tuple[float, float]:
    """Normal approximation, with continuity correction, of the interval of a share."""
    if trials == 0:
        return 0.0, 1.0
    error = _Z * math.sqrt(probability * (1 - probability) * inflation / trials) + 0.5 / trials
    return max(0.0, probability - error), min(1.0, probability + error)

"""What chance can explain: counts of lost packets against the probability asked for."""

from __future__ import annotations

import math

from trifecta.contract.path import ImpairmentDocument

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


def burst_inflation(impairment: ImpairmentDocument) -> tuple[float, float]:
    """Long-run loss of a Gilbert-Elliott channel, and the variance of its count relative to independent loss.

    The states form a Markov chain with autocorrelation r = 1 - p - q; the sum of n losses has variance
    n (P (1 - P) + 2 r / (1 - r) g b (lb - lg)^2) with the shares g, b of the states and their losses lg, lb.
    """
    to_bad, to_good = float(impairment["good_to_bad"]), float(impairment["bad_to_good"])
    in_good, in_bad = float(impairment.get("loss_good", 0.0)), float(impairment.get("loss_bad", 1.0))
    if to_bad + to_good == 0:
        return in_good, 1.0
    bad = to_bad / (to_bad + to_good)
    share = (1 - bad) * in_good + bad * in_bad
    memory = 1 - to_bad - to_good
    between = bad * (1 - bad) * (in_bad - in_good) ** 2
    own = share * (1 - share)
    if own == 0:
        return share, 1.0
    return share, max(1.0, 1 + 2 * memory / (1 - memory) * between / own)

"""The success rate of requests, with an interval that knows that requests of a trial fail together.

Requests of one trial share connections, a queue and a moment: a burst of losses or a dead service takes many at once.
The variance is therefore that of a ratio estimator over trials (Cochran 1977), the design effect how many times it
exceeds that of independent requests, and the interval that of Clopper and Pearson (1934) for so many fewer requests
(Korn & Graubard 1998), which also exists near 100 %. Where nothing failed, or everything, there is no spread to learn
the design effect from: then a trial counts as one, as if requests failed with their whole trial or not at all ("rule
of three": none in n leaves 3.7 / n at 95 %, two-sided).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LARGEST_LOG_RATIO, Interval, log_wealth, mix
from trifecta.analysis.signed_rank import permutation_p
from trifecta.analysis.student import reach_of_mean, t_quantile

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rate:
    """A success rate 0..1 and its interval; None without requests.

    ``design_effect`` is None when it cannot be known: nothing or everything failed, or there is one trial. Where
    nothing or everything failed, the interval is that of whole trials.
    """

    requests: int
    succeeded: int
    trials: int
    rate: float | None
    low: float | None
    high: float | None
    design_effect: float | None


def success_rate(trials: Sequence[tuple[int, int]], confidence: float) -> Rate:
    """The rate over trials given as (requests, succeeded)."""
    counted = [(requests, succeeded) for requests, succeeded in trials if requests > 0]
    requests, succeeded = sum(n for n, _ in counted), sum(k for _, k in counted)
    if not counted:
        return Rate(0, 0, 0, None, None, None, None)
    rate = succeeded / requests
    effect = design_effect(counted)
    effective = float(requests)
    if effect is not None:
        effective = min(effective, requests / max(effect, 1e-9) * _fewer(requests, len(counted), confidence))
    if succeeded in (0, requests):
        effective = float(len(counted))
    low, high = clopper_pearson(rate * effective, effective, confidence)
    return Rate(requests, succeeded, len(counted), rate, low, high, effect)


def with_unseen(interval: Interval, logs: Floats, confidence: float) -> Interval:
    """The interval of a ratio of success rates that holds 1, with the failures that so few trials could have missed.

    ``logs`` are those of success rates, as in `PairBlocks`. A median does not see a trial in ten that fails; what share
    of trials may hold failures is bounded by those that do, each as if it failed whole: a bet in every block, valid at
    any look, as the interval itself.
    """
    if interval.low is None or interval.high is None or interval.excludes_zero():
        return interval
    least = [_least_sound(failing, math.log(2 / (1 - confidence))) for failing in _failing(logs)]
    return Interval(min(interval.low, least[0]), max(interval.high, -least[1]))


def log_e_unseen(logs: Floats, log_margin: float) -> float:
    """Log e-value of "trials of an arm fail more often than that": it reaches log(2 / level) just where `with_unseen`
    at that level lies within the margin.
    """
    return min(_log_e_sound(failing, -log_margin) for failing in _failing(logs))


def _failing(logs: Floats) -> list[Floats]:
    """Of the arm and of the reference the share of each block's trials that hold a failure; these share a moment."""
    with np.errstate(invalid="ignore"):
        failed = np.where(np.isnan(logs), np.nan, logs < 0)
    return [np.nanmean(runs, axis=1) for runs in (failed[:, :1], failed[:, 1:])]


def _log_e_sound(failing: Floats, log_sound: float) -> float:
    """Log e-value of "the share of trials without a failure is at most exp(``log_sound``)"."""
    sound = math.exp(log_sound)
    # One where no trial fails wins (1 - sound) / sound of what was bet, one where all do loses all of it.
    return float(mix(log_wealth((1 - failing - sound) / sound)))


def _least_sound(failing: Floats, enough: float) -> float:
    """The log of the least share of trials without a failure that is not refuted."""
    refuted, standing = -LARGEST_LOG_RATIO, 0.0
    if _log_e_sound(failing, refuted) < enough:
        return refuted
    while standing - refuted > 1e-12:
        middle = (refuted + standing) / 2
        if _log_e_sound(failing, middle) >= enough:
            refuted = middle
        else:
            standing = middle
    return refuted


def design_effect(trials: Sequence[tuple[int, int]]) -> float | None:
    """Variance of the rate over that with independent requests; None when there is no variation to learn it from."""
    n = np.array([requests for requests, _ in trials], dtype=np.float64)
    k = np.array([succeeded for _, succeeded in trials], dtype=np.float64)
    total, rate = n.sum(), k.sum() / n.sum()
    if len(trials) < 2 or rate in (0.0, 1.0):
        return None
    residuals = k - rate * n  # they add up to 0
    variance = len(trials) / (len(trials) - 1) * float((residuals**2).sum()) / total**2
    return float(variance / (rate * (1 - rate) / total))


def _fewer(requests: int, trials: int, confidence: float) -> float:
    """What few trials cost: the variance itself is an estimate with ``trials`` - 1 degrees of freedom."""
    share = (1 + confidence) / 2
    return float((t_quantile(share, requests - 1) / t_quantile(share, trials - 1)) ** 2)


def ratio_interval(one: Rate, other: Rate) -> tuple[float, float | None]:
    """The ends of one rate by another, of the ends of each: MOVER-R (Donner & Zou 2012), which also exists near 100 %.

    The upper one is None where the other may be 0. ValueError where a rate is missing, or the other is 0.
    """
    if one.rate is None or not other.rate or one.low is None or one.high is None or other.low is None:
        raise ValueError("no ratio without two rates, the second above 0")
    high = _mover(one.rate, one.high, other.rate, other.low, 1) if other.low > 0 else None
    return max(0.0, _mover(one.rate, one.low, other.rate, other.high or 1.0, -1)), high


def _mover(rate: float, end: float, other: float, other_end: float, sign: int) -> float:
    """A root of the equation whose solutions are the ends of the ratio, at an end of each rate."""
    product, reach = rate * other, other_end * (2 * other - other_end)
    if abs(reach) < 1e-12:  # the equation is linear then
        return end * (2 * rate - end) / (2 * product) if product else 0.0
    return (product + sign * math.sqrt(max(0.0, product**2 - end * (2 * rate - end) * reach))) / reach


def clopper_pearson(succeeded: float, requests: float, confidence: float) -> tuple[float, float]:
    """The exact interval, by the beta distribution, for counts that need not be whole."""
    from scipy import special

    tail = (1 - confidence) / 2
    failed = max(0.0, requests - succeeded)
    low = float(special.betaincinv(succeeded, failed + 1, tail)) if succeeded > 0 else 0.0
    high = float(special.betaincinv(succeeded + 1, failed, 1 - tail)) if failed > 1e-9 else 1.0
    return (0.0 if math.isnan(low) else low), (1.0 if math.isnan(high) else high)


@dataclass(frozen=True)
class Difference:
    """How much larger the success rate of one arm is than that of another, in 0..1, over blocks; ``p`` of "none".

    No interval with one block, or where all blocks differ by the same: there is no spread to make one from.
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    blocks: int


def difference(
    arm: Mapping[tuple[str, int], float], reference: Mapping[tuple[str, int], float], confidence: float
) -> Difference | None:
    """Compare success rates of trials, given by (cell, block), where both arms have one; None where none has.

    A block of the run is one value, the mean over its cells. The p-value is that of the sign-flip permutation test.
    """
    blocks: dict[int, list[float]] = {}
    for key in arm.keys() & reference.keys():
        blocks.setdefault(key[1], []).append(arm[key] - reference[key])
    if not blocks:
        return None
    values = np.array([float(np.mean(blocks[block])) for block in sorted(blocks)])
    middle, low, high = float(values.mean()), None, None
    if len(values) > 1 and np.ptp(values) > 0:
        reach = reach_of_mean(values, confidence)
        low, high = middle - reach, middle + reach
    return Difference(middle, low, high, permutation_p(values), len(values))

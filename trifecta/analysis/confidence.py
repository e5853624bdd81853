"""Confidence sequences by randomisation: valid at any stopping time, whatever the noise.

Within a block the arm and its m - 1 reference runs are put in an order drawn at random. If the arm differs from its
reference by exactly the factor exp(theta), then after taking theta off the arm's log value the m values are
exchangeable: given the values but not who had which, each of them is the arm's with probability 1/m. For any scores
x_j that treat the m values alike and any lambda,

    exp(lambda x_arm) / mean_j exp(lambda x_j)

therefore has conditional mean 1, and so the product over blocks, mixed over a fixed set of lambdas and both signs, is
a test martingale: P(it ever reaches 1/alpha) <= alpha (Ville 1939). No distribution is assumed and blocks may depend
on each other. The thetas that the martingale does not reject form the confidence sequence. For m = 2 the factor is
exp(lambda x) / cosh(lambda x), sharper than de la Pena's (1999) exp(lambda x - lambda^2 x^2 / 2).
See docs/methodology.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import log_ratios

Floats = NDArray[np.float64]

# Tuned by simulation (tests/analysis/test_power.py): large lambdas decide large effects in the fewest blocks that the
# randomisation allows, small ones find small effects within 200 blocks.
LAMBDAS: Floats = np.array([0.1, 0.3, 0.8, 4.0])
WEIGHTS: Floats = np.array([0.07, 0.11, 0.20, 0.62])
CLIP = 2.0  # scores beyond this many scales count as this: one outlier must not end the evidence
LARGEST_LOG_RATIO = math.log(10_000)  # a bound further out than this factor is reported as no bound
_CENSORED = 1e6  # stands for the distance to a censored value, far beyond any clip
_SIGNED = np.concatenate([LAMBDAS, -LAMBDAS])
_LOG_WEIGHTS = np.log(np.concatenate([WEIGHTS, WEIGHTS]) / 2)


@dataclass(frozen=True)
class Interval:
    """A confidence sequence at the current block, as log ratios; None where it has no bound (yet).

    ``contradictory`` is set when every constant ratio is rejected: the effect changed during the run.
    """

    low: float | None
    high: float | None
    contradictory: bool = False

    def excludes_zero(self) -> bool:
        """Whether a log ratio of 0, a ratio of 1, is outside."""
        return (self.low is not None and self.low > 0) or (self.high is not None and self.high < 0)

    def within(self, log_margin: float) -> bool:
        """Whether the whole interval lies inside [-log_margin, log_margin]."""
        return (
            not self.contradictory
            and self.low is not None
            and self.high is not None
            and self.low >= -log_margin
            and self.high <= log_margin
        )


def _scores(values: Floats, final_scale: bool) -> tuple[Floats, NDArray[np.bool_]]:
    """Clipped, scaled deviations of every slot of values (N, T, m), and which slots exist.

    The deviation of a slot is its value minus the mean of the other slots of its block. The scale of block b uses the
    size of the deviations of blocks up to b without looking at who is the arm, so it is known before the arm is:
    the power mean with exponent 1/2, which exists even for Cauchy noise.
    """
    present = ~np.isnan(values)
    count = present.sum(axis=-1, keepdims=True)
    live = (count >= 2) & present[..., :1]
    present &= live
    filled = np.where(present, values, 0.0)
    infinite = np.isinf(filled)
    censored = infinite.any(axis=-1)
    if censored.any():
        finite = np.where(infinite, 0.0, filled)
        filled = np.where(infinite, np.sign(filled) * _CENSORED, finite)
    size = np.where(live, count, 2)
    mean = filled.sum(axis=-1, keepdims=True) / size
    deviation = np.where(present, (filled - mean) * (size / (size - 1)), 0.0)
    spread = np.sqrt((deviation**2).sum(axis=-1) / size[..., 0])
    counted = live[..., 0] & ~censored & (spread > 0)
    root = np.where(counted, np.sqrt(spread), 0.0)
    if final_scale:
        total, blocks = root.sum(axis=1, keepdims=True), counted.sum(axis=1, keepdims=True)
    else:
        total, blocks = np.cumsum(root, axis=1), np.cumsum(counted, axis=1)
    scale = (total / np.maximum(blocks, 1)) ** 2
    with np.errstate(over="ignore"):
        scores = deviation / np.maximum(scale, 1e-300)[..., None]
    clipped: Floats = np.clip(scores, -CLIP, CLIP)
    return clipped, present


def log_factors(values: Floats, final_scale: bool = False) -> Floats:
    """Log betting factors, (N, T, 2 L), of values (N, T, m): slot 0 the arm's, NaN for a missing slot.

    With ``final_scale`` every block uses the scale of all blocks: for forecasts only, not a martingale.
    """
    scores, present = _scores(values, final_scale)
    size = np.maximum(present.sum(axis=-1), 1)
    factors = np.empty((*scores.shape[:2], len(_SIGNED)))
    for i, lam in enumerate(LAMBDAS):
        bets = np.exp(lam * scores)
        up = np.where(present, bets, 0.0).sum(axis=-1) / size
        down = np.where(present, 1.0 / bets, 0.0).sum(axis=-1) / size
        score = lam * scores[..., 0]
        live = present[..., 0]
        factors[..., i] = np.where(live, score - np.log(np.where(live, up, 1.0)), 0.0)
        factors[..., i + len(LAMBDAS)] = np.where(live, -score - np.log(np.where(live, down, 1.0)), 0.0)
    return factors


def log_e_process(values: Floats) -> Floats:
    """Log of the e-process after every block, (N, T), for N sequences of blocks (N, T, m) under "no difference"."""
    if values.shape[1] == 0:
        return np.zeros(values.shape[:2])
    return _mix(np.cumsum(log_factors(values), axis=1))


def log_e_value(logs: Floats, thetas: Floats | None = None) -> Floats:
    """Log of the e-process after the last block of one pair, for each log ratio in ``thetas`` (default: 0)."""
    thetas = np.zeros(1) if thetas is None else thetas
    if len(logs) == 0:
        return np.zeros(len(thetas))
    shifted = np.repeat(logs[None, :, :], len(thetas), axis=0)
    shifted[:, :, 0] -= thetas[:, None]
    return _mix(log_factors(shifted).sum(axis=1))


def _mix(log_products: Floats) -> Floats:
    terms = log_products + _LOG_WEIGHTS
    top = terms.max(axis=-1)
    result: Floats = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))
    return result


@dataclass(frozen=True)
class Judgement:
    """One pair's blocks, judged: its interval and the log e-value against "no difference"."""

    interval: Interval
    log_e: float


def judge(logs: Floats, alpha: float) -> Judgement:
    """`confidence_sequence` and `log_e_value` of one pair; what has been computed for the same blocks is remembered."""
    return _judge(logs.tobytes(), logs.shape, alpha)


@lru_cache(maxsize=1024)
def _judge(data: bytes, shape: tuple[int, ...], alpha: float) -> Judgement:
    logs = np.frombuffer(data).reshape(shape)
    return Judgement(confidence_sequence(logs, alpha), float(log_e_value(logs)[0]))


def confidence_sequence(logs: Floats, alpha: float) -> Interval:
    """The log ratios that the e-process does not reject at level ``alpha`` after the last block: their hull.

    The search looks at a grid that follows the quantiles of the blocks' ratios and reaches out to a factor of 10,000,
    then refines both ends to 1e-5.
    """
    threshold = math.log(1 / alpha)
    ratios = log_ratios(logs)
    known = np.sort(ratios[np.isfinite(ratios)])
    # With every slot at the extreme a block multiplies the evidence by at most m: too few blocks reject nothing.
    if len(known) == 0 or len(logs) * math.log(logs.shape[1]) < threshold:
        return Interval(None, None)
    grid = _grid(known)
    accepted = np.flatnonzero(log_e_value(logs, grid) < threshold)
    if len(accepted) == 0:
        return Interval(None, None, contradictory=True)
    first, last = int(accepted[0]), int(accepted[-1])
    low = None if first == 0 else _refine(logs, threshold, float(grid[first]), float(grid[first - 1]))
    high = None if last == len(grid) - 1 else _refine(logs, threshold, float(grid[last]), float(grid[last + 1]))
    return Interval(low, high)


def _grid(known: Floats) -> Floats:
    inner = np.quantile(known, np.linspace(0.0, 1.0, 49))
    span = max(float(known[-1] - known[0]), 1e-4)
    steps = span * 4.0 ** np.arange(-2, 10)
    low = np.append(known[0] - steps[steps < LARGEST_LOG_RATIO], min(-LARGEST_LOG_RATIO, known[0] - span))
    high = np.append(known[-1] + steps[steps < LARGEST_LOG_RATIO], max(LARGEST_LOG_RATIO, known[-1] + span))
    grid: Floats = np.unique(np.concatenate([low, inner, high]))
    return grid


def _refine(logs: Floats, threshold: float, inside: float, outside: float) -> float:
    """The outermost accepted point between an accepted and a rejected one, to 1e-5 of a log ratio."""
    while abs(outside - inside) > 1e-5:
        points = np.linspace(inside, outside, 10)
        accepted = np.flatnonzero(log_e_value(logs, points) < threshold)
        last = int(accepted[-1]) if len(accepted) else 0
        if last >= len(points) - 1:
            return outside
        inside, outside = float(points[last]), float(points[last + 1])
    return outside  # the rejected side: never narrower than the exact interval

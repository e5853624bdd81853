"""Confidence sequences by randomisation: valid at any stopping time, whatever the noise.

Within a block the arm and its reference run in an order drawn at random. If the arm differs from its reference by
exactly the factor exp(theta), the sign of D - theta, with D the log ratio of the block, is therefore a fair coin given
its size and all earlier blocks. With x = (D - theta) / s, where s is known before the sign is, and any lambda,

    exp(lambda x) / cosh(lambda x)

has conditional mean 1, so its product over blocks, mixed over a fixed set of lambdas and both signs, is a test
martingale: P(it ever reaches 1/alpha) <= alpha (Ville 1939). No distribution is assumed and blocks may depend on each
other. The thetas that it does not reject form the confidence sequence. The factor is never below de la Pena's (1999)
exp(lambda x - lambda^2 x^2 / 2). Where the reference ran twice in a block, the evidence is the mean of the martingales
against each of its runs, which is one too. See docs/methodology.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
_PRECISION = 1e-5  # of an end of the interval, as a log ratio
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


@dataclass(frozen=True)
class Judgement:
    """One pair's blocks, judged: its interval and the log e-value against "no difference"."""

    interval: Interval
    log_e: float


def _scores(differences: Floats, final_scale: bool = False) -> Floats:
    """Clipped, scaled differences (..., T): NaN (no such block) and ties score 0, infinite ones the clip.

    The scale of block b uses the sizes of the differences of blocks up to b, never a sign: the power mean with exponent
    1/2, which exists even for Cauchy noise. With ``final_scale`` every block uses the scale of all (for forecasts).
    """
    size = np.abs(differences)
    counted = np.isfinite(differences) & (size > 0)
    root = np.sqrt(np.where(counted, size, 0.0))
    if final_scale:
        total, blocks = root.sum(axis=-1, keepdims=True), counted.sum(axis=-1, keepdims=True)
    else:
        total, blocks = np.cumsum(root, axis=-1), np.cumsum(counted, axis=-1)
    scale = np.maximum((total / np.maximum(blocks, 1)) ** 2, 1e-300)
    with np.errstate(over="ignore"):
        scores: Floats = np.clip(np.where(np.isnan(differences), 0.0, differences) / scale, -CLIP, CLIP)
    return scores


def log_factors(differences: Floats, final_scale: bool = False) -> Floats:
    """Log betting factors (..., T, 2 L) of differences (..., T): for every lambda, then for every -lambda.

    With ``final_scale`` they are for forecasts only: not a martingale.
    """
    bets = _scores(differences, final_scale)[..., None] * LAMBDAS
    up = math.log(2) - np.log1p(np.exp(-2 * bets))  # log of exp(bet) / cosh(bet)
    return np.concatenate([up, up - 2 * bets], axis=-1)


def log_e_process(differences: Floats) -> Floats:
    """Log of the e-process after every block (..., T) for the hypothesis that the differences (..., T) centre on 0."""
    return _mix(np.cumsum(log_factors(differences), axis=-2))


def _mix(log_products: Floats) -> Floats:
    terms = log_products + _LOG_WEIGHTS
    top = terms.max(axis=-1)
    result: Floats = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))
    return result


def differences_of(logs: Floats) -> Floats:
    """(references, T): the arm's log minus each reference run's; NaN where a trial is missing.

    A censored arm against a censored reference is a tie: which of them is worse is not known.
    """
    arm, references = logs[:, 0], logs[:, 1:].T
    tie = np.isinf(arm) & (arm == references)
    with np.errstate(invalid="ignore"):
        result: Floats = np.where(tie, 0.0, arm - references)
    return result


def log_e_value(logs: Floats, thetas: Floats | None = None) -> Floats:
    """Log of the e-process after the last block of one pair, for each log ratio in ``thetas`` (default: 0).

    ``logs`` has the columns arm, reference and, if the reference ran twice in a block, its second run.
    """
    return mean_of_runs(_log_e_by_run(logs, np.zeros(1) if thetas is None else thetas))


def _log_e_by_run(logs: Floats, thetas: Floats) -> Floats:
    """(thetas, references): log of the e-process against each run of the reference."""
    differences = differences_of(logs)
    return _mix(log_factors(differences[None, :, :] - thetas[:, None, None]).sum(axis=-2))


def mean_of_runs(log_e: Floats) -> Floats:
    """Log of the mean over the last axis, the runs of the reference."""
    top = log_e.max(axis=-1)
    result: Floats = top + np.log(np.exp(log_e - top[..., None]).mean(axis=-1))
    return result


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
    then refines both ends, outwards.
    """
    threshold = math.log(1 / alpha)
    if len(logs) * math.log(2) < threshold:
        return Interval(None, None)  # a block at most doubles the evidence: so few reject nothing
    ratios = log_ratios(logs)
    grid = _grid(np.sort(ratios[np.isfinite(ratios)]))
    by_run = _log_e_by_run(logs, grid)
    # Where the reference's runs differ from each other, no ratio may fit both: then what fits one of them is kept.
    for combine in (mean_of_runs, _smallest):
        accepted = np.flatnonzero(combine(by_run) < threshold)
        if len(accepted):
            break
    else:
        return _beyond_every_ratio(ratios)

    def accepts(thetas: Floats) -> NDArray[np.bool_]:
        return combine(_log_e_by_run(logs, thetas)) < threshold

    first, last = int(accepted[0]), int(accepted[-1])
    low = None if first == 0 else _refine(accepts, float(grid[first]), float(grid[first - 1]))
    high = None if last == len(grid) - 1 else _refine(accepts, float(grid[last]), float(grid[last + 1]))
    return Interval(low, high)


def _smallest(log_e: Floats) -> Floats:
    result: Floats = log_e.min(axis=-1)
    return result


def _beyond_every_ratio(ratios: Floats) -> Interval:
    """Every finite ratio is rejected: most blocks are censored on one side, or the effect changed."""
    if np.median(ratios) == math.inf:
        return Interval(LARGEST_LOG_RATIO, None)
    if np.median(ratios) == -math.inf:
        return Interval(None, -LARGEST_LOG_RATIO)
    return Interval(None, None, contradictory=True)


def _grid(known: Floats) -> Floats:
    if len(known) == 0:
        known = np.zeros(1)
    inner = np.quantile(known, np.linspace(0.0, 1.0, 49))
    span = max(float(known[-1] - known[0]), 1e-4)
    steps = span * 4.0 ** np.arange(-2, 10)
    low = np.append(known[0] - steps[steps < LARGEST_LOG_RATIO], min(-LARGEST_LOG_RATIO, known[0] - span))
    high = np.append(known[-1] + steps[steps < LARGEST_LOG_RATIO], max(LARGEST_LOG_RATIO, known[-1] + span))
    grid: Floats = np.unique(np.concatenate([low, inner, high]))
    return grid


def _refine(accepts: Callable[[Floats], NDArray[np.bool_]], inside: float, outside: float) -> float:
    """The outermost accepted point between an accepted and a rejected one: its rejected neighbour, never too narrow."""
    while abs(outside - inside) > _PRECISION:
        points = np.linspace(inside, outside, 10)
        accepted = np.flatnonzero(accepts(points))
        last = int(accepted[-1]) if len(accepted) else 0
        if last >= len(points) - 1:
            return outside
        inside, outside = float(points[last]), float(points[last + 1])
    return outside

"""Confidence sequences for the median ratio: valid at any stopping time, without symmetry and without a distribution.

A block compares one run of the arm with each run of the reference. The estimand is the median of the log ratio D of a
run of the arm to a run of the reference. Let theta be the true median. A block's vote for "above theta" is the mean
over its reference runs of +1 where D > theta and -1 elsewhere: given all earlier blocks its mean is at most 0. For any
bet 0 < lambda <= 1 the product over blocks of

    1 + lambda * vote

is therefore a test supermartingale, and so is a fixed mixture over bets: P(it ever reaches 2/alpha) <= alpha/2 (Ville
1939). The same holds for "below". The thetas that neither rejects form the confidence sequence (Howard & Ramdas 2022
for quantiles; Waudby-Smith & Ramdas 2024 for betting). A value equal to theta votes against both, so ties cost
evidence and never the level. See docs/methodology.md, 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis import betting
from trifecta.analysis.memoize import memoized

Floats = NDArray[np.float64]

LAMBDAS: Floats = np.array(betting.SHARES)
WEIGHTS: Floats = np.array(betting.WEIGHTS)
LARGEST_LOG_RATIO = math.log(10_000)  # a bound further out than this factor is reported as no bound
_LOG_WEIGHTS = np.log(WEIGHTS)
_LOSE_ALL = -1e6  # log of nothing: finite, so that sums stay numbers
_AT_ONCE = 64  # values that are tried in one go: more take more memory than they save time


@dataclass(frozen=True)
class Interval:
    """A confidence sequence at the current block, as log ratios; None where it has no bound (yet)."""

    low: float | None
    high: float | None

    def excludes_zero(self) -> bool:
        """Whether a log ratio of 0, a ratio of 1, is outside."""
        return (self.low is not None and self.low > 0) or (self.high is not None and self.high < 0)

    def within(self, log_margin: float) -> bool:
        """Whether the whole interval lies inside [-log_margin, log_margin]."""
        return self.low is not None and self.high is not None and self.low >= -log_margin and self.high <= log_margin


@dataclass(frozen=True)
class Judgement:
    """One pair's blocks, judged.

    ``log_e_above`` and ``log_e_below`` are the log e-values of "the median ratio is at most 1" and "at least 1";
    ``log_e`` is that of "it is 1", their mean.
    """

    interval: Interval
    log_e_above: float
    log_e_below: float

    @property
    def log_e(self) -> float:
        """Log e-value against a ratio of 1, in either direction."""
        return float(np.logaddexp(self.log_e_above, self.log_e_below) - math.log(2))


def differences_of(logs: Floats) -> Floats:
    """(references, T): the arm's log minus each reference run's; NaN where a trial is missing.

    ``logs`` has the columns arm, reference and, if the reference ran twice in a block, its second run. A censored arm
    against a censored reference is a tie: which of them is worse is not known. Other censored ratios are cut at
    `LARGEST_LOG_RATIO`.
    """
    arm, references = logs[:, 0], logs[:, 1:].T
    tie = np.isinf(arm) & (arm == references)
    with np.errstate(invalid="ignore"):
        differences = np.where(tie, 0.0, arm - references)
    result: Floats = np.clip(differences, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    return result


@memoized
def median_log_ratio(logs: Floats) -> float | None:
    """The median over blocks of the log ratio of the arm to a run of the reference: the estimate.

    Every block weighs the same, whether its reference ran once or twice. None without a block, or where the median
    block is censored.
    """
    if len(logs) == 0:
        return None
    differences = differences_of(logs)
    present = ~np.isnan(differences)
    weights = np.where(present, 1.0 / np.maximum(present.sum(axis=0), 1), 0.0)[present]
    values = differences[present]
    order = np.argsort(values, kind="stable")
    values, share = values[order], np.cumsum(weights[order]) / weights.sum()
    low = values[np.searchsorted(share, 0.5 - 1e-9)]
    high = values[min(int(np.searchsorted(share, 0.5 + 1e-9)), len(values) - 1)]
    middle = float(low + high) / 2
    return None if max(abs(low), abs(high)) >= LARGEST_LOG_RATIO else middle


def votes_above(differences: Floats, thetas: Floats) -> Floats:
    """(thetas, T): each block's vote for a median above theta, from -1 to 1, of differences (references, T)."""
    return _votes(differences[None, :, :] > thetas[:, None, None], differences)


def _votes(agrees: NDArray[np.bool_], differences: Floats) -> Floats:
    present = ~np.isnan(differences)
    runs = np.maximum(present.sum(axis=0), 1)
    votes: Floats = np.where(present, np.where(agrees, 1.0, -1.0), 0.0).sum(axis=-2) / runs
    return votes


def log_wealth(votes: Floats) -> Floats:
    """Log of the stake of every bet after all blocks (..., L) of votes (..., T)."""
    factors = 1 + votes[..., None] * LAMBDAS
    with np.errstate(divide="ignore"):
        wealth: Floats = np.maximum(np.log(factors), _LOSE_ALL).sum(axis=-2)
    return wealth


def mix(log_stakes: Floats) -> Floats:
    """Log of the weighted mean over bets, the last axis."""
    terms = log_stakes + _LOG_WEIGHTS
    top = terms.max(axis=-1)
    result: Floats = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))
    return result


def log_e_above(logs: Floats, thetas: Floats) -> Floats:
    """Log e-value of "the median log ratio is at most theta" after the last block, for each theta."""
    return mix(log_wealth(votes_above(differences_of(logs), thetas)))


def log_e_below(logs: Floats, thetas: Floats) -> Floats:
    """Log e-value of "the median log ratio is at least theta" after the last block, for each theta."""
    return mix(log_wealth(votes_above(-differences_of(logs), -thetas)))


def log_e_above_without(logs: Floats, theta: float, groups: NDArray[np.intp]) -> Floats:
    """`log_e_above` of one theta without the blocks of each group in turn. ``groups``: of each block, from 0."""
    (votes,) = votes_above(differences_of(logs), np.array([theta]))
    kinds, kind = np.unique(votes, return_inverse=True)
    # Counted and not summed: groups that say the same leave the same, to the last bit.
    counts = np.zeros((int(groups.max()) + 1, len(kinds)))
    np.add.at(counts, (groups, kind), 1.0)
    return mix((counts.sum(axis=0) - counts) @ log_wealth(kinds[:, None]))


def log_e_below_without(logs: Floats, theta: float, groups: NDArray[np.intp]) -> Floats:
    """The same of `log_e_below`."""
    return log_e_above_without(-logs, -theta, groups)


@memoized
def log_e_within(logs: Floats, log_margin: float) -> float:
    """Log e-value of "the median log ratio is beyond the margin": both of its halves must be refuted."""
    edge = np.array([log_margin])
    return float(min(log_e_above(logs, -edge)[0], log_e_below(logs, edge)[0]))


@memoized
def judge(logs: Floats, alpha: float) -> Judgement:
    """The interval at level ``alpha`` and the e-values of one pair."""
    zero = np.zeros(1)
    return Judgement(
        confidence_sequence(logs, alpha), float(log_e_above(logs, zero)[0]), float(log_e_below(logs, zero)[0])
    )


@memoized
def confidence_sequence(logs: Floats, alpha: float) -> Interval:
    """The log ratios that are not rejected at level ``alpha`` after the last block.

    The evidence changes at the values seen only, so both ends are exact: each is one of the differences.
    """
    if len(logs) * math.log(2) < math.log(2 / alpha):
        return Interval(None, None)  # a block at most doubles a stake: so few reject nothing
    threshold = math.log(2 / alpha)
    differences = differences_of(logs)
    high = _lower_end(-differences, threshold)
    return Interval(_lower_end(differences, threshold), None if high is None else -high)


def _lower_end(differences: Floats, threshold: float) -> float | None:
    """The largest value seen below which every theta is rejected; None where there is none."""
    values = np.unique(differences[~np.isnan(differences)])
    # The larger a theta, the fewer vote for "above" it: what is rejected lies below all that is not.
    rejected, standing = -1, len(values)
    while standing - rejected > 1:
        between = standing - rejected - 1
        tried = np.linspace(rejected + 1, standing - 1, min(_AT_ONCE, between)).astype(int)
        # A theta just below a value: that value and all above it vote for "above".
        votes = _votes(differences[None, :, :] >= values[tried, None, None], differences)
        crossings = np.flatnonzero(mix(log_wealth(votes)) >= threshold)
        last = int(crossings[-1]) if len(crossings) else -1
        if last >= 0:
            rejected = int(tried[last])
        if last + 1 < len(tried):
            standing = int(tried[last + 1])
    if rejected < 0:
        return None
    end = float(values[rejected])
    return None if end <= -LARGEST_LOG_RATIO else end

"""The log speed-up of one arm over another as a surface over two factors, estimated from blocks at some points.

A Gaussian process (`likelihood`). Many blocks at a point and few at another are no problem. Nothing is known
beforehand: the nine unknowns (ten of blocks of several nodes) are drawn from their posterior by importance sampling,
adapted a few times (Cappe et al. 2004), and what is said of the surface is averaged over the draws. With the most
likely values alone intervals would be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.mapping.likelihood import (
    UNKNOWNS_OF_NODES,
    Data,
    Floats,
    Point,
    Prior,
    as_data,
    log_likelihood,
    prior_covariance,
    prior_variance,
    scatter_at,
    solve,
)

POPULATION = 256
ROUNDS = 6
DRAWS = 24
DRAWS_BETWEEN = 400  # of how much nodes differ, whose interval is said: the ends of 24 draws would hold 87 %
_FREEDOM = 6.0  # of the proposal: a t distribution, whose tails are those of no posterior
_BETWEEN = UNKNOWNS_OF_NODES.index("between_nodes")


@dataclass(frozen=True)
class Surface:
    """What the blocks say: ``draws`` are equally likely values of the unknowns, a line each."""

    data: Data
    draws: Floats
    between: Floats | None = None
    """Of blocks of several nodes: draws of the standard deviation between nodes, as likely each."""
    _solved: dict[int | None, tuple[Floats, Floats]] = field(default_factory=dict, compare=False, repr=False)
    """By the node that is left out."""

    def at(self, places: Floats) -> Prediction:
        """The surface at some places, without what they have in common."""
        (prediction,) = self._predictions(places, [None])
        return prediction

    def without_each_node(self, places: Floats) -> list[Prediction]:
        """The same without what a node says, for each node of several in turn.

        How much nodes differ is still taken from all of them, as by `nested.Nested.weakest`.
        """
        return self._predictions(places, self.data.all_nodes)

    def between_nodes(self, confidence: float) -> tuple[float, float, float] | None:
        """By how much nodes differ, as a standard deviation of the log speed-up: its median, and its interval.

        None where all blocks are of one node.
        """
        if self.between is None:
            return None
        tail = (1 - confidence) / 2
        low, middle, high = (float(one) for one in np.quantile(self.between, [tail, 0.5, 1 - tail]))
        return middle, low, high

    def jointly(self, places: Floats, most: int) -> tuple[Floats, Floats]:
        """(draws, places) means and (draws, places, places) covariances, for at most so many of the draws."""
        draws = self.draws[:most]
        inverse, weights = (part[:most] for part in self._solution())
        cross = prior_covariance(draws, places, self.data.places)
        covariances = prior_covariance(draws, places, places) - cross @ inverse @ cross.transpose(0, 2, 1)
        return np.einsum("kpn,kn->kp", cross, weights), covariances

    def scatter(self, places: Floats, most: int | None = None) -> Floats:
        """(draws, places): standard deviation of a block around the surface."""
        return scatter_at(self.draws[:most], places)

    def _predictions(self, places: Floats, left_out: Sequence[int | None]) -> list[Prediction]:
        """One for each node that is left out, or None for all of them."""
        if not left_out:
            return []
        cross = prior_covariance(self.draws, places, self.data.places)
        predictions = []
        for node in left_out:
            inverse, weights = self._solution(node)
            explained = np.einsum("kpn,kpn->kp", cross @ inverse, cross)
            variances = np.maximum(prior_variance(self.draws, places) - explained, 1e-12)
            predictions.append(Prediction(np.einsum("kpn,kn->kp", cross, weights), np.sqrt(variances)))
        return predictions

    def _solution(self, without: int | None = None) -> tuple[Floats, Floats]:
        if without not in self._solved:
            self._solved[without] = solve(self.data, self.draws, without)
        return self._solved[without]


@dataclass(frozen=True)
class Prediction:
    """(draws, places): normal with these means and standard deviations in each draw, every draw as likely."""

    means: Floats
    sds: Floats

    @property
    def mean(self) -> Floats:
        """The expected value at each place."""
        result: Floats = self.means.mean(axis=0)
        return result

    @property
    def sd(self) -> Floats:
        """The standard deviation at each place, with that between the draws."""
        result: Floats = np.sqrt((self.sds**2).mean(axis=0) + self.means.var(axis=0))
        return result

    def above(self, value: float) -> Floats:
        """The probability that the surface is above a value at each place."""
        from scipy.special import ndtr

        result: Floats = ndtr((self.means - value) / self.sds).mean(axis=0)
        return result

    def quantile(self, share: float) -> Floats:
        """The quantile of the surface at each place, to 1e-4."""
        from scipy.special import ndtr, ndtri

        ends = self.means + float(ndtri(share)) * self.sds
        low, high = ends.min(axis=0), ends.max(axis=0)
        while float((high - low).max()) > 1e-4:
            middle = (low + high) / 2
            below = ndtr((middle - self.means) / self.sds).mean(axis=0) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        result: Floats = (low + high) / 2
        return result


def fit(points: Sequence[Point], seed: int = 1, population: int = POPULATION, *, several: bool = False) -> Surface:
    """The surface through the points; the same for the same points and seed. At least one block is needed.

    ``several``: the map has blocks of several nodes, even if those that count are of one.
    """
    data = as_data(points, several=several)
    if not len(data.means):
        raise ValueError("a surface needs at least one block")
    rng = np.random.default_rng(seed)
    sample, weight = _posterior(data, rng, population)
    draws: Floats = rng.permutation(sample[_resampled(rng, weight, DRAWS)])
    if data.nodes is None:
        return Surface(data, draws)
    between: Floats = np.exp(sample[_resampled(rng, weight, DRAWS_BETWEEN), _BETWEEN])
    return Surface(data, draws, between)


def _posterior(data: Data, rng: np.random.Generator, population: int) -> tuple[Floats, Floats]:
    """Unknowns, a line each, and their weights: a proposal that is moved towards the posterior round by round."""
    prior = Prior(of_nodes=data.nodes is not None)
    centre, covariance = prior.centre, np.diag(prior.spread**2)
    for turn in range(ROUNDS):
        sample, log_proposal = _propose(rng, centre, covariance, population)
        log_weight = log_likelihood(data, sample) + prior.log(sample) - log_proposal
        heat = 1.0 if turn == ROUNDS - 1 else _heat(log_weight, population / 4)
        weight = _normal_weights(log_weight * heat)
        if turn < ROUNDS - 1:
            centre = weight @ sample
            apart = sample - centre
            covariance = 1.2 * (apart.T * weight) @ apart + np.diag((0.1 * prior.spread) ** 2)
    return sample, weight


def _resampled(rng: np.random.Generator, weight: Floats, count: int) -> NDArray[np.intp]:
    """Systematic resampling: as many copies of each as its weight says, to within one."""
    steps = (rng.random() + np.arange(count)) / count
    return np.searchsorted(np.cumsum(weight), steps).clip(max=len(weight) - 1)


def _propose(rng: np.random.Generator, centre: Floats, covariance: Floats, count: int) -> tuple[Floats, Floats]:
    from scipy.special import gammaln

    root = np.linalg.cholesky(covariance)
    size = len(centre)
    normal = rng.standard_normal((count, size))
    stretch = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, (count, 1)))
    score = normal * stretch
    log_density = (
        gammaln((_FREEDOM + size) / 2)
        - gammaln(_FREEDOM / 2)
        - size / 2 * math.log(_FREEDOM * math.pi)
        - np.log(np.diag(root)).sum()
        - (_FREEDOM + size) / 2 * np.log1p((score**2).sum(axis=1) / _FREEDOM)
    )
    return centre + score @ root.T, log_density


def _heat(log_weight: Floats, wanted: float) -> float:
    """The largest power of the weights, at most 1, that leaves so many effective draws."""
    low, high = 0.0, 1.0
    if _effective(log_weight) >= wanted:
        return 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if _effective(log_weight * middle) >= wanted else (low, middle)
    return low


def _effective(log_weight: Floats) -> float:
    return float(1 / (_normal_weights(log_weight) ** 2).sum())


def _normal_weights(log_weight: Floats) -> Floats:
    weight = np.exp(log_weight - log_weight.max())
    result: Floats = weight / weight.sum()
    return result

"""The log speed-up of one arm over another as a surface over two factors, estimated from blocks at some points.

A Gaussian process (Rasmussen and Williams 2006): a plane, plus a smooth part (Matern 5/2, a length for each factor),
plus a rough part that a point does not share with its neighbours. Blocks scatter around it with a standard deviation
that may change over the plane; many blocks at a point and few at another are no problem. Nothing of this is known
beforehand: the nine unknowns are drawn from their posterior by importance sampling, adapted a few times (Cappe et al.
2004), and what is said of the surface is averaged over the draws. With the most likely values alone intervals would be
too narrow.

Coordinates are those of the unit square; values are natural logs of a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL_SD = 0.7  # of the plane's height in its middle, before anything is known: a factor of 2
SLOPE_SD = 0.5  # of its rise from the middle to an edge
LARGEST_LOG = math.log(10)  # a block beyond this factor counts as this: one side hardly answered

# Unknowns: name, centre and spread of the normal prior of each. All but the slopes of the scatter are logs.
_PRIORS: tuple[tuple[str, float, float], ...] = (
    ("amplitude", math.log(0.2), 0.9),
    ("length_x", math.log(0.5), 0.7),
    ("length_y", math.log(0.5), 0.7),
    ("roughness", math.log(0.012), 0.7),
    ("scatter", math.log(0.08), 1.0),
    ("scatter_slope_x", 0.0, 0.8),
    ("scatter_slope_y", 0.0, 0.8),
    ("scatter_bend_x", 0.0, 0.5),
    ("scatter_bend_y", 0.0, 0.5),
)
UNKNOWNS = tuple(name for name, _, _ in _PRIORS)
_CENTRE: Floats = np.array([centre for _, centre, _ in _PRIORS])
_SPREAD: Floats = np.array([spread for _, _, spread in _PRIORS])
_SCATTER = UNKNOWNS.index("scatter")  # it and all that follow say how blocks scatter
_LEAST_SCATTER = 1e-3

POPULATION = 256
ROUNDS = 6
DRAWS = 24
_FREEDOM = 6.0  # of the proposal: a t distribution, whose tails are those of no posterior


@dataclass(frozen=True)
class Point:
    """A place in the unit square and the blocks measured there; values are log speed-ups, clipped at LARGEST_LOG."""

    x: float
    y: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Data:
    """Points in numbers: place, mean, sum of squares around it, and number of blocks."""

    places: Floats
    means: Floats
    squares: Floats
    counts: Floats


def as_data(points: Sequence[Point]) -> Data:
    """The points that have a block."""
    known = [point for point in points if point.values]
    values = [np.clip(np.array(point.values), -LARGEST_LOG, LARGEST_LOG) for point in known]
    return Data(
        places=np.array([(point.x, point.y) for point in known], dtype=np.float64).reshape(-1, 2),
        means=np.array([one.mean() for one in values]),
        squares=np.array([((one - one.mean()) ** 2).sum() for one in values]),
        counts=np.array([float(len(one)) for one in values]),
    )


@dataclass(frozen=True)
class Surface:
    """What the blocks say: ``draws`` are equally likely values of the unknowns, a line each."""

    data: Data
    draws: Floats
    _solved: list[tuple[Floats, Floats]] = field(default_factory=list, compare=False, repr=False)

    def at(self, places: Floats) -> Prediction:
        """The surface at some places, without what they have in common."""
        means, covariances = self._given(places, whole=False)
        return Prediction(means, np.sqrt(np.maximum(covariances, 1e-12)))

    def jointly(self, places: Floats, most: int) -> tuple[Floats, Floats]:
        """(draws, places) means and (draws, places, places) covariances, for at most so many of the draws."""
        return self._given(places, whole=True, most=most)

    def scatter(self, places: Floats, most: int | None = None) -> Floats:
        """(draws, places): standard deviation of a block around the surface."""
        return _scatter(self.draws[:most], places)

    def _given(self, places: Floats, *, whole: bool, most: int | None = None) -> tuple[Floats, Floats]:
        draws = self.draws[:most]
        if not self._solved:
            self._solved.append(_solve(self.data, self.draws))
        inverse, weights = (part[:most] for part in self._solved[0])
        cross = _prior_covariance(draws, places, self.data.places)
        means = np.einsum("kpn,kn->kp", cross, weights)
        explained = cross @ inverse
        if whole:
            covariances = _prior_covariance(draws, places, places) - explained @ cross.transpose(0, 2, 1)
        else:
            covariances = _prior_variance(draws, places) - np.einsum("kpn,kpn->kp", explained, cross)
        return means, covariances


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


def fit(points: Sequence[Point], seed: int = 1, population: int = POPULATION) -> Surface:
    """The surface through the points; the same for the same points and seed. At least one block is needed."""
    data = as_data(points)
    if not len(data.means):
        raise ValueError("a surface needs at least one block")
    return Surface(data, _posterior_draws(data, np.random.default_rng(seed), population))


def _posterior_draws(data: Data, rng: np.random.Generator, population: int) -> Floats:
    """Draws of the unknowns: a proposal that is moved towards the posterior round by round, then resampled."""
    centre, covariance = _CENTRE, np.diag(_SPREAD**2)
    for turn in range(ROUNDS):
        sample, log_proposal = _propose(rng, centre, covariance, population)
        log_weight = log_likelihood(data, sample) + _log_prior(sample) - log_proposal
        heat = 1.0 if turn == ROUNDS - 1 else _heat(log_weight, population / 4)
        weight = _normal_weights(log_weight * heat)
        if turn < ROUNDS - 1:
            centre = weight @ sample
            apart = sample - centre
            covariance = 1.2 * (apart.T * weight) @ apart + np.diag((0.1 * _SPREAD) ** 2)
    # Systematic resampling: as many copies of each as its weight says, to within one.
    steps = (rng.random() + np.arange(DRAWS)) / DRAWS
    chosen = np.searchsorted(np.cumsum(weight), steps).clip(max=population - 1)
    result: Floats = rng.permutation(sample[chosen])
    return result


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


def _log_prior(sample: Floats) -> Floats:
    result: Floats = -0.5 * (((sample - _CENTRE) / _SPREAD) ** 2).sum(axis=1) - float(
        np.log(_SPREAD * math.sqrt(2 * math.pi)).sum()
    )
    return result


def log_likelihood(data: Data, sample: Floats) -> Floats:
    """For each line of unknowns, the log density of the blocks, up to a constant of the data."""
    scatter = _scatter(sample, data.places)
    covariance = _noisy_covariance(data, sample, scatter)
    root = np.linalg.cholesky(covariance)
    score = np.linalg.solve(root, data.means[None, :, None])[..., 0]
    of_means = -0.5 * (score**2).sum(axis=1) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    within = -(data.counts - 1) * np.log(scatter) - data.squares / (2 * scatter**2)
    result: Floats = of_means + within.sum(axis=1)
    return result


def _solve(data: Data, draws: Floats) -> tuple[Floats, Floats]:
    """The inverse of the covariance of the means in each draw, and that times the means."""
    covariance = _noisy_covariance(data, draws, _scatter(draws, data.places))
    inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    return inverse, inverse @ data.means


def _noisy_covariance(data: Data, sample: Floats, scatter: Floats) -> Floats:
    covariance = _prior_covariance(sample, data.places, data.places)
    own = np.arange(len(data.means))
    covariance[:, own, own] += scatter**2 / data.counts
    return covariance


def _scatter(sample: Floats, places: Floats) -> Floats:
    centred = 2 * places - 1
    log = sample[:, _SCATTER : _SCATTER + 1] + sample[:, _SCATTER + 1 :] @ np.hstack([centred, centred**2]).T
    result: Floats = np.clip(np.exp(log), _LEAST_SCATTER, LARGEST_LOG)
    return result


def _prior_covariance(sample: Floats, first: Floats, second: Floats) -> Floats:
    plane = LEVEL_SD**2 + SLOPE_SD**2 * (2 * first - 1) @ (2 * second - 1).T
    apart = first[:, None, :] - second[None, :, :]
    lengths = np.exp(sample[:, 1:3])
    distance = np.sqrt(5 * ((apart[None] / lengths[:, None, None, :]) ** 2).sum(axis=-1))
    smooth = (1 + distance + distance**2 / 3) * np.exp(-distance)
    same = (np.abs(apart) < 1e-9).all(axis=-1)
    amplitude, rough = np.exp(2 * sample[:, 0]), np.exp(2 * sample[:, 3])
    result: Floats = plane + amplitude[:, None, None] * smooth + rough[:, None, None] * same
    return result


def _prior_variance(sample: Floats, places: Floats) -> Floats:
    plane = LEVEL_SD**2 + SLOPE_SD**2 * ((2 * places - 1) ** 2).sum(axis=1)
    result: Floats = plane + np.exp(2 * sample[:, :1]) + np.exp(2 * sample[:, 3:4])
    return result


class SurfaceDocument(TypedDict):
    """A surface in ``map.json``: what was drawn of each of the unknowns, and the data that it was drawn from."""

    unknowns: list[str]
    draws: list[list[float]]
    places: list[list[float]]
    means: list[float]
    squares: list[float]
    counts: list[float]


def as_document(surface: Surface) -> SurfaceDocument:
    """Numbers that :func:`from_document` reads back."""
    data = surface.data
    return {
        "unknowns": list(UNKNOWNS),
        "draws": surface.draws.tolist(),
        "places": data.places.tolist(),
        "means": data.means.tolist(),
        "squares": data.squares.tolist(),
        "counts": data.counts.tolist(),
    }


def from_document(document: SurfaceDocument) -> Surface:
    """The surface that was written; ValueError or KeyError where the document is none."""
    if document["unknowns"] != list(UNKNOWNS):
        raise ValueError("the surface has other unknowns than this version of Trifecta")
    told = cast(Mapping[str, list[float]], document)
    parts = {name: np.array(told[name], dtype=np.float64) for name in ("places", "means", "squares", "counts", "draws")}
    draws = parts.pop("draws")
    count = len(parts["means"])
    shapes = {"places": (count, 2), "means": (count,), "squares": (count,), "counts": (count,)}
    good = all(parts[name].shape == shape and np.isfinite(parts[name]).all() for name, shape in shapes.items())
    if not (good and count and draws.ndim == 2 and draws.shape[1] == len(UNKNOWNS) and np.isfinite(draws).all()):
        raise ValueError("the surface is damaged")
    return Surface(Data(**parts), draws)

"""What blocks say of a surface over two factors, where its unknowns are known: one multivariate normal.

A plane, plus a smooth part (Matern 5/2, a length for each factor), plus a rough part that a place does not share with
its neighbours (Rasmussen and Williams 2006). Blocks scatter around it with a standard deviation that may change over
the plane. Blocks of several nodes of a cluster share what their node is like: each node adds an offset of its own, the
same on the whole plane, and by how much nodes differ is the tenth unknown. What is said is said of such nodes.

The offsets are taken out node by node (of a node's blocks only their sum matters for them), so that matrices are of
places, however many nodes there are.

Coordinates are those of the unit square; values are natural logs of a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
# Of blocks of several nodes one more, after them.
_BETWEEN_NODES = ("between_nodes", math.log(0.05), 1.5)
UNKNOWNS = tuple(name for name, _, _ in _PRIORS)
UNKNOWNS_OF_NODES = (*UNKNOWNS, _BETWEEN_NODES[0])
_SCATTER = UNKNOWNS.index("scatter")  # it and all that follow say how blocks scatter
_BETWEEN = UNKNOWNS_OF_NODES.index("between_nodes")
_LEAST_SCATTER = 1e-3

_AT_A_TIME = 4_000_000  # numbers in an array of all lines of unknowns, places and nodes


@dataclass(frozen=True)
class Point:
    """A place in the unit square and the blocks measured there, on one node; values are log speed-ups, clipped at
    LARGEST_LOG.
    """

    x: float
    y: float
    values: tuple[float, ...]
    node: str = ""


@dataclass(frozen=True)
class Data:
    """Points in numbers: place, mean, sum of squares around it, and number of blocks."""

    places: Floats
    """(places, 2): each once."""
    means: Floats
    squares: Floats
    counts: Floats
    at: NDArray[np.intp]
    """The place of each point, by its number."""
    nodes: NDArray[np.intp] | None = None
    """The node of each; None where all blocks of the map are of one."""

    @property
    def all_nodes(self) -> list[int]:
        """The numbers of the nodes; empty where all are of one."""
        return [] if self.nodes is None else [int(one) for one in np.unique(self.nodes)]


def as_data(points: Sequence[Point], *, several: bool = False) -> Data:
    """The points that have a block. ``several``: the map has blocks of several nodes, even if here they are of one."""
    known = [point for point in points if point.values]
    values = [np.clip(np.array(point.values), -LARGEST_LOG, LARGEST_LOG) for point in known]
    names = sorted({point.node for point in known})
    of_nodes = several or len(names) > 1
    where = [(point.x, point.y) for point in known]
    # Of one machine a place has one point, and the order stays that of the points.
    places = list(dict.fromkeys(where)) if of_nodes else where
    number = {place: order for order, place in enumerate(places)}
    return Data(
        places=np.array(places, dtype=np.float64).reshape(-1, 2),
        means=np.array([one.mean() for one in values]),
        squares=np.array([((one - one.mean()) ** 2).sum() for one in values]),
        counts=np.array([float(len(one)) for one in values]),
        at=np.array([number[one] for one in where]) if of_nodes else np.arange(len(known)),
        nodes=np.array([names.index(point.node) for point in known]) if of_nodes else None,
    )


class Prior:
    """Independent normals, one of each unknown."""

    def __init__(self, *, of_nodes: bool) -> None:
        """``of_nodes``: with that of how much nodes differ."""
        each = (*_PRIORS, _BETWEEN_NODES) if of_nodes else _PRIORS
        self.centre: Floats = np.array([centre for _, centre, _ in each])
        self.spread: Floats = np.array([spread for _, _, spread in each])

    def log(self, sample: Floats) -> Floats:
        """Of each line its log density."""
        result: Floats = -0.5 * (((sample - self.centre) / self.spread) ** 2).sum(axis=1) - float(
            np.log(self.spread * math.sqrt(2 * math.pi)).sum()
        )
        return result


def log_likelihood(data: Data, sample: Floats) -> Floats:
    """For each line of unknowns, the log density of the blocks, up to a constant of the data."""
    if data.nodes is not None:
        nodes = int(data.nodes.max()) + 1
        size = len(sample) * len(data.places) * max(len(data.places), nodes)
        parts = np.array_split(sample, min(len(sample), -(-size // _AT_A_TIME)))
        joined: Floats = np.concatenate([_log_likelihood_of_nodes(data, part) for part in parts])
        return joined
    scatter = scatter_at(sample, data.places)
    root = np.linalg.cholesky(_noisy_covariance(data, sample, scatter))
    score = np.linalg.solve(root, data.means[None, :, None])[..., 0]
    of_means = -0.5 * (score**2).sum(axis=1) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    result: Floats = of_means + _within_points(data, scatter)
    return result


def _within_points(data: Data, scatter: Floats) -> Floats:
    """Of the blocks around the mean of their point."""
    within = -(data.counts - 1) * np.log(scatter) - data.squares / (2 * scatter**2)
    result: Floats = within.sum(axis=1)
    return result


def solve(data: Data, draws: Floats, without: int | None = None) -> tuple[Floats, Floats]:
    """The inverse of the covariance of what is seen at the places, in each draw, and that times what is seen.

    ``without``: a node of several that is left out.
    """
    if data.nodes is not None:
        terms = _Said(data, draws, without)
        covariance = prior_covariance(draws, data.places, data.places)
        mixed = np.eye(len(data.places)) + terms.precision @ covariance
        values: Floats = np.linalg.solve(mixed, np.concatenate([terms.precision, terms.weighed[..., None]], axis=2))
        return values[..., :-1], values[..., -1]
    covariance = _noisy_covariance(data, draws, scatter_at(draws, data.places))
    inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    return inverse, inverse @ data.means


def _noisy_covariance(data: Data, sample: Floats, scatter: Floats) -> Floats:
    covariance = prior_covariance(sample, data.places, data.places)
    own = np.arange(len(data.means))
    covariance[:, own, own] += scatter**2 / data.counts
    return covariance


class _Said:
    """What the blocks of several nodes say of the places, once the offsets of the nodes are taken out.

    For each line of unknowns: ``precision`` (lines, places, places) and ``weighed`` (lines, places), precision times
    value; ``square`` and ``log_size``, what is left of the exponent and of the determinant.
    """

    def __init__(self, data: Data, sample: Floats, without: int | None = None) -> None:
        assert data.nodes is not None
        scatter = scatter_at(sample, data.places)[:, data.at]
        weight = data.counts / scatter**2
        if without is not None:
            weight = np.where(data.nodes == without, 0.0, weight)
        lines, places, nodes = len(sample), len(data.places), int(data.nodes.max()) + 1
        summed = np.zeros((places * nodes, lines))
        np.add.at(summed, data.at * nodes + data.nodes, weight.T)
        by_node = np.ascontiguousarray(summed.T).reshape(lines, places, nodes)
        valued = _summed(weight * data.means, data.nodes, nodes)
        own = np.arange(places)
        between = np.exp(2 * sample[:, _BETWEEN])[:, None]
        total = by_node.sum(axis=1)
        taken = between / (1 + between * total)
        self.precision: Floats = -(by_node * taken[:, None, :]) @ by_node.transpose(0, 2, 1)
        self.precision[:, own, own] += by_node.sum(axis=2)
        offsets = np.einsum("kpn,kn->kp", by_node, taken * valued)
        self.weighed: Floats = _summed(weight * data.means, data.at, places) - offsets
        self.square: Floats = (weight * data.means**2).sum(axis=1) - (taken * valued**2).sum(axis=1)
        self.log_size: Floats = np.log1p(between * total).sum(axis=1) - 2 * np.log(np.sqrt(data.counts) / scatter).sum(
            axis=1
        )
        self.within = _within_points(data, scatter)


def _summed(values: Floats, groups: NDArray[np.intp], count: int) -> Floats:
    """(lines, groups): the sum of the columns of each group."""
    result: Floats = values @ np.eye(count)[groups]
    return result


def _log_likelihood_of_nodes(data: Data, sample: Floats) -> Floats:
    terms = _Said(data, sample)
    covariance = prior_covariance(sample, data.places, data.places)
    mixed = np.eye(len(data.places)) + terms.precision @ covariance
    smoothed = np.linalg.solve(mixed, terms.weighed[..., None])
    explained = np.einsum("kp,kp->k", terms.weighed, (covariance @ smoothed)[..., 0])
    log_size = terms.log_size + np.linalg.slogdet(mixed)[1]
    result: Floats = -0.5 * (terms.square - explained) - 0.5 * log_size + terms.within
    return result


def scatter_at(sample: Floats, places: Floats) -> Floats:
    """(lines, places): standard deviation of a block around the surface."""
    centred = 2 * places - 1
    bends = sample[:, _SCATTER + 1 : _BETWEEN]
    log = sample[:, _SCATTER : _SCATTER + 1] + bends @ np.hstack([centred, centred**2]).T
    result: Floats = np.clip(np.exp(log), _LEAST_SCATTER, LARGEST_LOG)
    return result


def prior_covariance(sample: Floats, first: Floats, second: Floats) -> Floats:
    """(lines, places, places): of the surface between two sets of places, before anything is measured."""
    plane = LEVEL_SD**2 + SLOPE_SD**2 * (2 * first - 1) @ (2 * second - 1).T
    apart = first[:, None, :] - second[None, :, :]
    lengths = np.exp(sample[:, 1:3])
    distance = np.sqrt(5 * ((apart[None] / lengths[:, None, None, :]) ** 2).sum(axis=-1))
    smooth = (1 + distance + distance**2 / 3) * np.exp(-distance)
    same = (np.abs(apart) < 1e-9).all(axis=-1)
    amplitude, rough = np.exp(2 * sample[:, 0]), np.exp(2 * sample[:, 3])
    result: Floats = plane + amplitude[:, None, None] * smooth + rough[:, None, None] * same
    return result


def prior_variance(sample: Floats, places: Floats) -> Floats:
    """(lines, places): its diagonal."""
    plane = LEVEL_SD**2 + SLOPE_SD**2 * ((2 * places - 1) ** 2).sum(axis=1)
    result: Floats = plane + np.exp(2 * sample[:, :1]) + np.exp(2 * sample[:, 3:4])
    return result

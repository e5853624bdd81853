"""Where to measure next, and when to stop: level sets of an uncertain surface.

What is wanted is not the surface but on which side of 1 it lies. A block far from the border is wasted, one on it tells
of its neighbours too. A batch is chosen point by point: the point whose next block takes away the most variance where
the border may be (Picheny et al. 2010; the straddle rule of Bryan et al. 2005 looks at each point by itself), divided
by what the block costs. The variances are brought up to date after each choice, the means stay (as in Gotovos et al.
2013), so that a batch spreads. It ends when every place is classified: one side wins or they are the same within the
margin, with the confidence asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.mapping.likelihood import Floats
from trifecta.analysis.mapping.surface import Prediction, Surface

Outcome = Literal["faster", "slower", "same", "open"]

FIRST_POINTS = 12
FIRST_ROUNDS = 2  # blocks at each of the first points: their scatter is seen before anything is decided
BATCH = 4
_JOINT_DRAWS = 6  # of the surface, for the choice alone


@dataclass(frozen=True)
class PlaceIntervals:
    """Each place of the grid: the interval of the log speed-up, and what follows."""

    mean: Floats
    low: Floats
    high: Floats
    above: Floats
    """The probability that the arm is faster."""
    outcomes: tuple[Outcome, ...]

    def is_open(self) -> NDArray[np.bool_]:
        """Places without an answer yet."""
        return np.array([outcome == "open" for outcome in self.outcomes])

    @property
    def apart(self) -> Floats:
        """How far each interval lies from a speed-up of 1; where it is not above 0, who wins is not known."""
        result: Floats = np.maximum(self.low, -self.high)
        return result

    def expected_wrong(self) -> float:
        """The expected share of places whose likelier side is the wrong one."""
        return float(np.minimum(self.above, 1 - self.above).mean())


def classify(
    prediction: Prediction,
    *,
    margin: float,
    confidence: float,
    floor: float = 0.0,
    others: Sequence[Prediction] = (),
) -> PlaceIntervals:
    """Judge every place. ``floor``: a difference up to this ratio - 1 is not claimed (where the lab is biased).

    ``others``: what is predicted without each node of several in turn. An interval reaches over all of these, so that
    no place is decided by a node alone.
    """
    tail = (1 - confidence) / 2
    every = (prediction, *others)
    low: Floats = np.min([one.quantile(tail) for one in every], axis=0)
    high: Floats = np.max([one.quantile(1 - tail) for one in every], axis=0)
    outcomes = tuple(judge(float(a), float(b), margin=margin, floor=floor) for a, b in zip(low, high, strict=True))
    return PlaceIntervals(prediction.mean, low, high, prediction.above(0.0), outcomes)


def sides_of(surface: Surface, places: Floats, margin: float, confidence: float, floor: float = 0.0) -> PlaceIntervals:
    """Judge some places of a surface, as `classify` does."""
    others = surface.without_each_node(places)
    return classify(surface.at(places), margin=margin, confidence=confidence, floor=floor, others=others)


def judge(low: float, high: float, *, margin: float, floor: float = 0.0) -> Outcome:
    """What the interval of a log speed-up says."""
    least = math.log1p(floor)
    if low > least:
        return "faster"
    if high < -least:
        return "slower"
    reach = math.log1p(margin)
    return "same" if low >= -reach and high <= reach and floor <= margin else "open"


def first_points(grid: Floats, count: int = FIRST_POINTS) -> list[int]:
    """The corners of a grid (places, 2), then points each as far as can be from those before."""
    chosen: list[int] = []
    for corner in ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)):
        nearest = int(((grid - np.array(corner)) ** 2).sum(axis=1).argmin())
        if nearest not in chosen:
            chosen.append(nearest)
    while len(chosen) < min(count, len(grid)):
        away = ((grid[:, None, :] - grid[chosen][None]) ** 2).sum(axis=-1).min(axis=1)
        chosen.append(int(away.argmax()))
    return chosen[:count]


def first_blocks(grid: Floats) -> list[int]:
    """The places of the first blocks, in order: every first point once, then every one again."""
    return first_points(grid) * FIRST_ROUNDS


def next_batch(
    surface: Surface,
    grid: Floats,
    open_places: NDArray[np.bool_],
    *,
    costs: Floats | None = None,
    barred: NDArray[np.bool_] | None = None,
    size: int = BATCH,
    given: Sequence[int] = (),
) -> list[int]:
    """The places of the next blocks. ``costs``: of a block at each; ``barred``: where nothing can be measured;
    ``given``: the places of blocks that the surface does not know yet, which take away variance, too.
    """
    means, covariances = surface.jointly(grid, _JOINT_DRAWS)
    noise = surface.scatter(grid, _JOINT_DRAWS) ** 2
    price = np.ones(len(grid)) if costs is None else costs
    chosen: list[int] = []
    for place in given:
        covariances = _after(covariances, noise, place)
    for _ in range(size):
        gains = _gains(means, covariances, noise, open_places) / price
        if barred is not None:
            gains = np.where(barred, -1.0, gains)
        best = int(gains.argmax())
        chosen.append(best)
        covariances = _after(covariances, noise, best)
    return chosen


def _after(covariances: Floats, noise: Floats, place: int) -> Floats:
    """The covariances once there is a block more at a place, whatever it says."""
    column = covariances[:, :, place]
    total = column[:, place] + noise[:, place]
    result: Floats = covariances - column[:, :, None] * column[:, None, :] / total[:, None, None]
    return result


def _gains(means: Floats, covariances: Floats, noise: Floats, wanted: NDArray[np.bool_]) -> Floats:
    """For each place: the variance that a block there takes away, weighted by how likely the border is there."""
    own = np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 1e-12)
    sd = np.sqrt(own)
    weight = np.exp(-0.5 * (means / sd) ** 2) / sd * wanted
    taken = covariances**2 / (own + noise)[:, None, :]
    result: Floats = np.einsum("kp,kpc->c", weight, taken) / len(means)
    return result

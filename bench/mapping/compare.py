"""A full grid and a map's search against blocks that neither has seen.

The truth is not known: every block scatters around it. What is said here needs no model of it:

* Two blocks g and v of one place, and a value p that rests on neither: (p - g)(p - v) is on average the squared error
  of p, since the scatter of g and v is independent. So the search (p) is judged by the grid's block and the held-out
  block of the same place. For a grid without a model p is g itself, and its squared error the scatter of a block,
  (g - v)^2 / 2.
* The share of held-out blocks whose side is not that of p. Scatter alone makes some wrong, the same ones for all.

Intervals are of the bootstrap over the held-out places, which are resampled for all alike: percentiles, 95 %.

Which places are on the wrong side needs a reference: the same Gaussian process through the grid's blocks, in eight
parts, each judged by a surface through the other seven. So neither the search nor a block of the grid is judged by
itself. Counted are only places where the reference's interval leaves out 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trifecta.analysis.mapping.likelihood import LARGEST_LOG, Floats, Point
from trifecta.analysis.mapping.search import PlaceIntervals, classify
from trifecta.analysis.mapping.surface import Prediction, Surface, fit

FOLDS = 8
CONFIDENCE = 0.95
_POPULATION = 96  # of the fits through some 220 blocks; the unknowns are known better there
_DRAWS = 4000


@dataclass(frozen=True)
class Blocks:
    """Log speed-ups by place: ``grid`` (NaN where no trial counts), ``held_out``, and the surface of the search."""

    shares: Floats
    grid: Floats
    held_out: Mapping[int, float]
    search: Surface
    margin: float


@dataclass(frozen=True)
class Reference:
    """At each place, what the grid's blocks of the other folds say; NaN where a fold had nothing to go by."""

    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Comparison:
    """The numbers, and what the picture needs."""

    figures: dict[str, Any]
    reference: Reference
    sides: PlaceIntervals
    wrong: dict[str, np.ndarray[Any, Any]]


def compare(blocks: Blocks, seed: int = 1, workers: int = 2) -> Comparison:
    """Judge both."""
    reference = cross_fitted(blocks.shares, blocks.grid, seed, workers)
    prediction = blocks.search.at(blocks.shares)
    sides = classify(prediction, margin=blocks.margin, confidence=CONFIDENCE)
    rng = np.random.default_rng(seed)
    wrong, counted = wrong_sides(blocks.grid, sides, reference)
    figures = {
        **errors(blocks, sides.mean, reference.mean, rng),
        "reference": counted,
        "unseen_blocks_in_the_interval_of_a_block": coverage(blocks, prediction),
        "open_share": float(sides.is_open().mean()),
    }
    return Comparison(figures, reference, sides, wrong)


def _clipped(values: Any) -> Floats:
    result: Floats = np.clip(np.asarray(values, dtype=np.float64), -LARGEST_LOG, LARGEST_LOG)
    return result


def errors(blocks: Blocks, search: Floats, smoothed: Floats, rng: np.random.Generator) -> dict[str, Any]:
    """Root mean squared errors of the log speed-up, and wrong sides, at the held-out places."""
    usable = sorted(i for i in blocks.held_out if np.isfinite(blocks.grid[i]) and np.isfinite(smoothed[i]))
    grid, held = _clipped(blocks.grid[usable]), _clipped([blocks.held_out[i] for i in usable])
    if len(usable) < 2:
        return {"held_out_places": len(usable)}
    apart = {
        "grid": (grid - held) ** 2 / 2,
        "search": (search[usable] - grid) * (search[usable] - held),
        "grid_smoothed": (smoothed[usable] - grid) * (smoothed[usable] - held),
    }
    misses = {
        name: (np.sign(values) != np.sign(held)).astype(float)
        for name, values in (("grid", grid), ("search", search[usable]), ("grid_smoothed", smoothed[usable]))
    }
    chosen = rng.integers(0, len(usable), (_DRAWS, len(usable)))
    squares = {name: values[chosen].mean(axis=1) for name, values in apart.items()}
    shares = {name: values[chosen].mean(axis=1) for name, values in misses.items()}
    return {
        "held_out_places": len(usable),
        "rmse": {name: _root(float(apart[name].mean()), draws) for name, draws in squares.items()},
        "mean_square_search_to_grid": _ratio(apart["search"].mean(), apart["grid"].mean(), squares),
        "wrong_side_of_held_out": {
            name: _interval(float(misses[name].mean()), draws) for name, draws in shares.items()
        },
        "wrong_side_search_less_grid": _interval(
            float((misses["search"] - misses["grid"]).mean()), shares["search"] - shares["grid"]
        ),
    }


def _interval(value: float, draws: Floats) -> list[float]:
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return [value, float(low), float(high)]


def _root(mean: float, draws: Floats) -> list[float]:
    """The root of a mean square with interval; an estimate of a small one may come out below 0, which counts as 0."""
    return [math.sqrt(max(0.0, one)) for one in _interval(mean, draws)]


def _ratio(search: float, grid: float, draws: Mapping[str, Floats]) -> list[float]:
    return [max(0.0, one) for one in _interval(search / grid, draws["search"] / np.maximum(draws["grid"], 1e-12))]


def coverage(blocks: Blocks, prediction: Prediction) -> dict[str, Any]:
    """How many blocks that the search has not seen lie where it says that 95 % of the blocks do."""
    scatter = blocks.search.scatter(blocks.shares)
    wide = Prediction(prediction.means, np.sqrt(prediction.sds**2 + scatter**2))
    low, high = wide.quantile((1 - CONFIDENCE) / 2), wide.quantile((1 + CONFIDENCE) / 2)
    seen = [(i, value) for i, value in enumerate(blocks.grid) if np.isfinite(value)] + list(blocks.held_out.items())
    inside = sum(bool(low[i] <= value <= high[i]) for i, value in seen)
    return {"blocks": len(seen), "inside": inside, "share": inside / max(1, len(seen))}


def cross_fitted(shares: Floats, grid: Floats, seed: int, workers: int) -> Reference:
    """The surface at each place through the grid's blocks of all folds but that of the place."""
    order = np.random.default_rng(seed).permutation(len(grid))
    folds = [fold for fold in np.array_split(order, FOLDS) if len(fold)]
    columns = np.full((3, len(grid)), np.nan)
    with ProcessPoolExecutor(workers) as pool:
        for fold, found in zip(folds, pool.map(partial(_without, shares, grid), folds), strict=True):
            columns[:, fold] = found
    return Reference(*columns)


def _without(shares: Floats, grid: Floats, fold: Floats) -> Floats:
    left = [i for i in range(len(grid)) if i not in set(fold.tolist()) and np.isfinite(grid[i])]
    if not left:
        return np.full((3, len(fold)), np.nan)
    points = [Point(shares[i, 0], shares[i, 1], (float(grid[i]),)) for i in left]
    prediction = fit(points, population=_POPULATION).at(shares[fold])
    tail = (1 - CONFIDENCE) / 2
    return np.array([prediction.mean, prediction.quantile(tail), prediction.quantile(1 - tail)])


def wrong_sides(
    grid: Floats, sides: PlaceIntervals, reference: Reference
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Places on the wrong side, among those where the reference is sure and the grid has a block."""
    sure = np.isfinite(grid) & ((reference.low > 0) | (reference.high < 0))
    side = np.sign(reference.mean)
    says = np.array([{"faster": 1, "slower": -1}.get(one, 0) for one in sides.outcomes])
    wrong = {
        "grid": sure & (np.sign(grid) != side),
        "search": sure & (np.sign(sides.above - 0.5) != side),
        "claims": sure & (says == -side),
    }
    counted = {
        "places": len(grid),
        "without_a_block": int((~np.isfinite(grid)).sum()),
        "sure": int(sure.sum()),
        "grid_wrong": int(wrong["grid"].sum()),
        "search_wrong": int(wrong["search"].sum()),
        "only_grid_wrong": int((wrong["grid"] & ~wrong["search"]).sum()),
        "only_search_wrong": int((wrong["search"] & ~wrong["grid"]).sum()),
        "search_claims_wrong": int(wrong["claims"].sum()),
    }
    return wrong, counted

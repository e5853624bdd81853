"""The map's search on surfaces that are known: what it costs against a full grid, and whether its intervals hold.

Nothing is measured: blocks are drawn, scattered as those of runs over lossy paths are. A full grid of 16 x 16 places
gets R blocks a place; the search gets a quarter.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from trifecta.analysis.mapping.likelihood import Floats, Point
from trifecta.analysis.mapping.search import BATCH, classify, first_blocks, next_batch
from trifecta.analysis.mapping.surface import POPULATION, Surface, fit

SIDE = 16
MARGIN = 0.05
CONFIDENCE = 0.95
Truth = Callable[[Floats, Floats], Floats]


def _island(x: Floats, y: Floats) -> Floats:
    return 0.4 * np.exp(-(((x - 0.6) / 0.25) ** 2) - ((y - 0.4) / 0.2) ** 2) - 0.15


def _two(x: Floats, y: Floats) -> Floats:
    one = np.exp(-(((x - 0.2) / 0.2) ** 2) - ((y - 0.75) / 0.2) ** 2)
    other = np.exp(-(((x - 0.8) / 0.2) ** 2) - ((y - 0.25) / 0.25) ** 2)
    return 0.45 * one + 0.35 * other - 0.15


SURFACES: dict[str, Truth] = {
    "plane": lambda x, y: 0.3 * (x - 0.45) + 0.35 * (y - 0.55),
    "step across the diagonal": lambda x, y: 0.3 * np.tanh(6 * (x + y - 0.95)),
    "curved": lambda x, y: 0.5 * (np.hypot(x, y) - 0.7),
    "waved": lambda x, y: 0.6 * (y - 0.5 - 0.2 * np.sin(2 * np.pi * x)),
    "island": _island,
    "two islands": _two,
    "one side only": lambda x, y: 0.06 + 0.25 * x * y,
    "alike, then not": lambda x, y: 0.45 * np.maximum(0.0, x - 0.5) * (0.3 + y),
}
"""Log speed-up over the unit square."""


def smooth_scatter(_: Floats, y: Floats) -> Floats:
    """From quiet to noisy, as with growing loss."""
    result: Floats = 0.02 * np.exp(2.5 * np.sqrt(y))
    return result


def jumping_scatter(_: Floats, y: Floats) -> Floats:
    """Quiet without loss, noisy as soon as there is any."""
    result: Floats = np.where(y < 1e-6, 0.01, 0.12 + 0.15 * y)
    return result


SCATTERS = {"smooth, normal": (smooth_scatter, np.inf), "a jump, heavy tails": (jumping_scatter, 4.0)}


def grid() -> Floats:
    """The places of the unit square, (SIDE * SIDE, 2)."""
    steps = np.linspace(0, 1, SIDE)
    return np.array([(x, y) for x in steps for y in steps])


@dataclass
class Source:
    """Draws blocks of a known surface."""

    truth: Floats
    scatter: Floats
    freedom: float
    rng: np.random.Generator

    def block(self, place: int) -> float:
        """One block: a t distribution of this standard deviation (normal for infinite freedom)."""
        score = self.rng.standard_normal()
        if np.isfinite(self.freedom):
            score *= np.sqrt((self.freedom - 2) / self.rng.chisquare(self.freedom))
        return float(self.truth[place] + self.scatter[place] * score)


def source(surface: str, scatter: str, seed: int) -> Source:
    """The blocks of a surface and a scatter by name."""
    places = grid()
    width, freedom = SCATTERS[scatter]
    truth = SURFACES[surface](places[:, 0], places[:, 1])
    return Source(truth, width(places[:, 0], places[:, 1]), freedom, np.random.default_rng(seed))


@dataclass
class Found:
    """What came out: blocks spent, share of places with the wrong side, of wrong claims, of intervals that hold."""

    blocks: int
    wrong: float
    wrong_near: float
    claims: float
    wrong_claims: float
    held: float
    decided: bool
    width: float


def _result(surface: Surface, truth: Floats, blocks: int) -> Found:
    prediction = surface.at(grid())
    sides = classify(prediction, margin=MARGIN, confidence=CONFIDENCE)
    says = np.array([{"faster": 1, "slower": -1}.get(one, 0) for one in sides.outcomes])
    claimed = says != 0
    false_same = np.array([one == "same" for one in sides.outcomes]) & (np.abs(truth) > np.log1p(MARGIN))
    return Found(
        blocks=blocks,
        wrong=float(((np.sign(sides.above - 0.5) != np.sign(truth)) & (truth != 0)).mean()),
        wrong_near=float(((np.sign(sides.above - 0.5) != np.sign(truth)) & (np.abs(truth) > 0.02)).mean()),
        claims=float((~sides.is_open()).mean()),
        wrong_claims=float(((claimed & (says != np.sign(truth))) | false_same).mean()),
        held=float(((truth >= sides.low) & (truth <= sides.high)).mean()),
        decided=not sides.is_open().any(),
        width=float(np.mean(sides.high - sides.low)),
    )


def search(
    surface: str, scatter: str, budget: int, seed: int, stop: bool = False, population: int = POPULATION
) -> Found:
    """The search within so many blocks; with ``stop`` it ends when all is decided."""
    places, blocks = grid(), source(surface, scatter, seed)
    values: dict[int, list[float]] = {}
    queue = first_blocks(places)
    spent = 0
    while True:
        for place in queue[: budget - spent]:
            values.setdefault(place, []).append(blocks.block(place))
            spent += 1
        points = [Point(places[i, 0], places[i, 1], tuple(v)) for i, v in values.items()]
        found = fit(points, population=population)
        if spent >= budget:
            return _result(found, blocks.truth, spent)
        sides = classify(found.at(places), margin=MARGIN, confidence=CONFIDENCE)
        if stop and not sides.is_open().any():
            return _result(found, blocks.truth, spent)
        wanted = sides.is_open() if sides.is_open().any() else np.ones(len(places), dtype=bool)
        queue = next_batch(found, places, wanted, size=BATCH)


def full_grid(surface: str, scatter: str, repeats: int, seed: int) -> tuple[float, float]:
    """Share of wrong sides of a full grid, each place by itself."""
    blocks = source(surface, scatter, seed)
    means = np.array([np.mean([blocks.block(i) for _ in range(repeats)]) for i in range(SIDE * SIDE)])
    wrong = (np.sign(means) != np.sign(blocks.truth)) & (blocks.truth != 0)
    return float(wrong.mean()), float((wrong & (np.abs(blocks.truth) > 0.02)).mean())


def modelled_grid(surface: str, scatter: str, repeats: int, seed: int) -> float:
    """Share of wrong sides of a full grid that is smoothed by the same surface: what the choice of places is worth."""
    places, blocks = grid(), source(surface, scatter, seed)
    points = [
        Point(places[i, 0], places[i, 1], tuple(blocks.block(i) for _ in range(repeats))) for i in range(len(places))
    ]
    return _result(fit(points, population=96), blocks.truth, len(places) * repeats).wrong


def _one(surface: str, scatter: str, repeats: int, seed: int) -> tuple[float, float, Found]:
    full, clearly = full_grid(surface, scatter, repeats, seed)
    return full, clearly, search(surface, scatter, SIDE * SIDE * repeats // 4, seed)


def _heading(modelled: bool) -> str:
    same = " grid, same model |" if modelled else ""
    columns = 9 if modelled else 8
    return (
        f"| surface | wrong side: grid | search |{same} wrong by over 2 %: grid | search | decided "
        f"| wrong claims | intervals that hold |\n{'|---' * columns}|"
    )


def _line(surface: str, out: list[tuple[float, float, Found]], modelled: float | None) -> str:
    found = [one[2] for one in out]

    def mean(name: str) -> str:
        return f"{np.mean([getattr(one, name) for one in found]):.1%}"

    full, clearly = (f"{np.mean([one[i] for one in out]):.1%}" for i in (0, 1))
    same = [] if modelled is None else [f"{modelled:.1%}"]
    parts = [surface, full, mean("wrong"), *same, clearly, mean("wrong_near"), mean("claims"), mean("wrong_claims")]
    return f"| {' | '.join(parts)} | {mean('held')} |"


def main(asked: argparse.Namespace) -> int:
    """Print the tables."""
    for given, known in ((asked.surface, SURFACES), (asked.scatter, SCATTERS)):
        if unknown := set(given or ()) - set(known):
            print(f"no {sorted(unknown)[0]!r}; choose from {', '.join(map(repr, known))}")
            return 2
    began = time.monotonic()
    with ProcessPoolExecutor(asked.workers) as pool:
        for scatter in asked.scatter or SCATTERS:
            for repeats in asked.repeats:
                blocks = SIDE * SIDE * repeats
                print(f"\nBlocks scatter: {scatter}. Grid {blocks} blocks, search {blocks // 4}.\n")
                print(_heading(asked.modelled > 0))
                for surface in asked.surface or SURFACES:
                    out = list(pool.map(partial(_one, surface, scatter, repeats), range(asked.maps)))
                    same = list(pool.map(partial(modelled_grid, surface, scatter, repeats), range(asked.modelled)))
                    print(_line(surface, out, float(np.mean(same)) if same else None), flush=True)
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0

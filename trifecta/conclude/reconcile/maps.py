"""Maps as evidence: on which part of a plane of two factors a sentence of a pair is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.analysis.conditions import Test, put
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.mapping.result import MapResult
from trifecta.analysis.reconciling import Pair
from trifecta.conclude import maps


@dataclass(frozen=True)
class Map:
    """A map and its name on the page."""

    name: str
    result: MapResult


@dataclass(frozen=True)
class Spread:
    """A sentence put to all ``places`` of a map: how many leave it ``open``, and at which (x, y) it is ``true``."""

    places: int
    open: int
    true: tuple[tuple[int, int], ...]


def read(folders: Sequence[Path]) -> list[Map]:
    """The maps of these folders; UserError when one is none."""
    return [Map(f"map-{number}", maps.load(folder)) for number, folder in enumerate(folders, 1)]


def spread(pair: Pair, result: MapResult, test: Test) -> Spread | None:
    """Where the test of a side of the pair is true; None of a map of which no block counts."""
    sides = result.sides()
    if sides is None:
        return None
    margin = max(result.margin, result.noise.floor)
    turn = -1.0 if result.plan.arm == pair.arm else 1.0  # a map has speed-ups of its arm, a pair times of its own
    truths = []
    for mean, low, high in zip(sides.mean, sides.low, sides.high, strict=True):
        ends = sorted((turn * float(low), turn * float(high)))
        truths.append(put(test, Estimate(turn * float(mean), ends[0], ends[1], result.blocks), margin))
    true = [place for place, truth in zip(result.plan.places(), truths, strict=True) if truth in ("true", "further")]
    return Spread(len(truths), truths.count("open"), tuple(true))

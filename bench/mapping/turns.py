"""The planner of the comparison: a full grid, a map's search and held-out blocks by turns, from the rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.mapping.contest import Contest
from trifecta.analysis.estimate import Row
from trifecta.analysis.mapping.planner import MapPlanner
from trifecta.analysis.planner import Decision, Stop
from trifecta.design import plan as design_plan
from trifecta.design.model import Cell, Study, Verdict

SEARCH, GRID, HELD_OUT = "search", "grid", "held out"
FIRST_NUMBER: Mapping[str, int] = {SEARCH: 0, GRID: 100_000, HELD_OUT: 200_000}
"""The block numbers of each kind begin here."""


def kind_of(row: Row) -> str:
    """Which kind of block a trial is of."""
    return max((first, kind) for kind, first in FIRST_NUMBER.items() if first <= int(row["block"]))[1]


def split(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each kind."""
    parts: dict[str, list[Row]] = {kind: [] for kind in FIRST_NUMBER}
    for row in rows:
        parts[kind_of(row)].append(row)
    return parts


def held_out_places(across: int, up: int, count: int, rng: np.random.Generator) -> list[int]:
    """Places drawn one from each tile of the plane; at most ``count``, as many tiles as a square of them has."""
    side = int(np.sqrt(count))
    columns = [part for part in np.array_split(np.arange(across), min(side, across)) if len(part)] if side else []
    lines = [part for part in np.array_split(np.arange(up), min(side, up)) if len(part)] if side else []
    places = [int(rng.choice(column) * up + rng.choice(line)) for column in columns for line in lines]
    return [places[i] for i in rng.permutation(len(places))]


@dataclass
class Turns:
    """Chooses the next block: of the kind that is furthest behind its share."""

    contest: Contest
    study: Study
    cells: Sequence[Cell]
    budget_ns: int
    _search_end: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        plan = self.contest.plan
        across, up = len(plan.x.values), len(plan.y.values)
        rng = np.random.default_rng(self.contest.seed)
        self.places = {
            GRID: [int(place) for place in rng.permutation(across * up)],
            HELD_OUT: held_out_places(across, up, self.contest.held_out, rng),
        }
        self._cells = {plan.place_of(cell): cell for cell in self.cells}
        self._search = MapPlanner(plan, self.study, self.cells)
        self._arms = len(design_plan.arms(self.study))

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """The next block; an interrupted one first."""
        if len(rows) % self._arms:
            last = rows[-1]
            place = next(cell for cell in self.cells if cell.key == last["cell"])
            return Decision(place, int(last["block"]), "an interrupted block is completed first")
        parts = split(rows)
        done = {kind: len(own) // self._arms for kind, own in parts.items()}
        wanted = {SEARCH: self.contest.plan.blocks or 0, **{kind: len(own) for kind, own in self.places.items()}}
        said = ", ".join(f"{kind} {done[kind]} of {wanted[kind]}" for kind in wanted)
        if len(rows) and elapsed_ns * (1 + self._arms / len(rows)) > self.budget_ns:
            return Stop(f"the time is spent ({said}); the same command goes on", "budget")
        for kind in sorted(wanted, key=lambda one: done[one] / max(1, wanted[one])):
            if done[kind] >= wanted[kind]:
                continue
            if kind != SEARCH:
                place = self._cells[self.places[kind][done[kind]]]
                return Decision(place, FIRST_NUMBER[kind] + done[kind], f"{kind}; {said}")
            decision = self._search.next(parts[SEARCH], 0)
            if isinstance(decision, Decision):
                return Decision(decision.cell, decision.block, f"{SEARCH}; {said}")
        return Stop(f"everything is measured: {said}", "blocks")

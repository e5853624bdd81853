"""The planner of a map: which block next. Like the planner of a study it keeps nothing that the rows do not say.

The first blocks lie where `search.first_blocks` puts them. Then blocks come in batches, each chosen from the blocks
before it alone: a map that was interrupted goes on with the batch it would have had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from trifecta.analysis.estimate import Row, pair_blocks
from trifecta.analysis.mapping.search import BATCH, Sides, classify, first_blocks, next_batch
from trifecta.analysis.mapping.surface import Floats, Point, Surface, fit
from trifecta.analysis.planner import Decision, Stop, rest_words
from trifecta.design import plan as design_plan
from trifecta.design.mapping import MapPlan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Cell, Study, Verdict

HOPELESS_BLOCKS = 2  # a place where as many blocks, all there were, failed their checks is not retried
_COSTS_FROM = 8  # blocks from which on their cost is seen as a function of the place
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Block:
    """A block that is done: its place, and its log speed-up where its trials count."""

    place: int
    value: float | None
    span_ns: int
    number: int
    arms: frozenset[str]
    trials: tuple[Row, ...]


@dataclass
class Measured:
    """All blocks of a map so far, in the order in which they began."""

    plan: MapPlan
    blocks: list[Block]
    unfinished: tuple[int, int] | None = None
    """Place and number of a block that lacks an arm."""

    def points(self, first: int | None = None) -> list[Point]:
        """The points with what the first so many blocks say."""
        shares = self.plan.shares()
        values: dict[int, list[float]] = {}
        for block in self.blocks[:first]:
            if block.value is not None:
                values.setdefault(block.place, []).append(block.value)
        return [Point(*shares[place], tuple(found)) for place, found in sorted(values.items())]

    def barred(self, first: int | None = None) -> set[int]:
        """Places where nothing counts."""
        tried: dict[int, list[bool]] = {}
        for block in self.blocks[:first]:
            tried.setdefault(block.place, []).append(block.value is not None)
        return {place for place, good in tried.items() if len(good) >= HOPELESS_BLOCKS and not any(good)}


def measured(plan: MapPlan, study: Study, rows: Sequence[Row]) -> Measured:
    """The blocks in the rows of ``trials``."""
    arms = frozenset(design_plan.arms(study))
    metric = METRICS[study.metric]
    sign = -1.0 if metric.lower_is_better else 1.0
    places = {cell.key: plan.place_of(cell) for cell in design_plan.cells(study)}
    grouped: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        grouped.setdefault((str(row["cell"]), int(row["block"])), []).append(row)
    found = Measured(plan, [])
    for (key, number), own in grouped.items():
        seen = frozenset(str(row["arm"]) for row in own)
        if not arms <= seen:
            found.unfinished = (places[key], number)
            continue
        pair = pair_blocks(key, own, metric, arm=plan.arm, reference=plan.reference, baseline=plan.reference)
        logs = pair.log_ratios()
        # Both sides censored say nothing; one of them is as bad as a surface counts.
        value = sign * float(logs[0]) if len(logs) and not np.isnan(logs[0]) else None
        span = sum(int(row["ended_ns"]) - int(row["started_ns"]) for row in own if row.get("ended_ns"))
        found.blocks.append(Block(places[key], value, span, number, seen, tuple(own)))
    return found


@dataclass
class MapPlanner:
    """Chooses the blocks of a map; the runner's ``Planner`` with another mind."""

    plan: MapPlan
    study: Study
    cells: Sequence[Cell]
    floor: float = 0.0
    _batch: tuple[int, list[int], Sides | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._cells = {self.plan.place_of(cell): cell for cell in self.cells}
        self._grid: Floats = np.array(self.plan.shares())

    def next(
        self,
        rows: Sequence[Row],
        elapsed_ns: int,
        judged: Sequence[Verdict] | None = None,
    ) -> Decision | Stop:
        """Decide from the rows of all finished trials and the wall time so far; a map needs no verdicts of cells."""
        found = measured(self.plan, self.study, rows)
        done = len(found.blocks)
        stop = self._spent(found, elapsed_ns)
        if found.unfinished is not None:
            place, number = found.unfinished
            return stop or Decision(self._cells[place], number, "an interrupted block is completed first")
        first = [place for place in first_blocks(self._grid) if place in self._cells]
        if done < len(first):
            why = f"block {done + 1} of the first {len(first)}, spread over the plane"
            return stop or self._decision(found, first[done], why)
        boundary = len(first) + BATCH * ((done - len(first)) // BATCH)
        batch, sides = self._next_batch(found, boundary)
        if sides is None:
            return Stop("no block counts: every trial failed a check", "unmeasurable")
        left = int(sides.is_open().sum())
        if not left:
            return Stop(f"all {len(self._grid)} places are decided", "decided")
        if not batch:
            return Stop(f"{left} places are open and cannot be measured", "unmeasurable")
        words = f"{left} of {len(self._grid)} places are open after {done} blocks; the border may be near here"
        return stop or self._decision(found, batch[done - boundary], words)

    def _next_batch(self, found: Measured, boundary: int) -> tuple[list[int], Sides | None]:
        if self._batch is None or self._batch[0] != boundary:
            self._batch = (boundary, *self._choose(found, boundary))
        return self._batch[1], self._batch[2]

    def _choose(self, found: Measured, boundary: int) -> tuple[list[int], Sides | None]:
        points = found.points(boundary)
        if not points:
            return [], None
        surface = fit(points)
        sides = self._sides(surface)
        barred = np.array([place not in self._cells for place in range(len(self._grid))])
        barred[list(found.barred(boundary))] = True
        if barred.all() or not sides.is_open().any():
            return [], sides
        costs = self._costs(found.blocks[:boundary])
        return next_batch(surface, self._grid, sides.is_open(), costs=costs, barred=barred), sides

    def _sides(self, surface: Surface) -> Sides:
        return classify(
            surface.at(self._grid), margin=self.study.margin, confidence=self.study.confidence, floor=self.floor
        )

    def _costs(self, blocks: Sequence[Block]) -> Floats:
        """What a block takes at each place: log-linear over the plane, within what was seen."""
        known = [block for block in blocks if block.span_ns > 0]
        if len(known) < _COSTS_FROM:
            return np.ones(len(self._grid))
        spans = np.log([block.span_ns for block in known])
        seen = np.column_stack([np.ones(len(known)), self._grid[[block.place for block in known]]])
        slopes = np.linalg.lstsq(seen, spans, rcond=None)[0]
        expected = np.column_stack([np.ones(len(self._grid)), self._grid]) @ slopes
        costs: Floats = np.exp(np.clip(expected, spans.min(), spans.max()))
        return costs

    def _decision(self, found: Measured, place: int, why: str) -> Decision:
        number = max((block.number for block in found.blocks if block.place == place), default=-1) + 1
        return Decision(self._cells[place], number, why)

    def _spent(self, found: Measured, elapsed_ns: int) -> Stop | None:
        done = len(found.blocks)
        if self.plan.blocks is not None and done >= self.plan.blocks:
            return Stop(f"{done} blocks were asked for", "blocks")
        if self.plan.budget_ns is None:
            return None
        left = self.plan.budget_ns - elapsed_ns
        busy = sum(block.span_ns for block in found.blocks)
        recent = [block.span_ns for block in found.blocks[-2 * BATCH :]]
        cost = median(recent) * max(1.0, elapsed_ns / busy) if busy else 0.0
        if left > 0 and cost <= left:
            return None
        return Stop(
            f"a block takes about {cost / _SECOND_NS:.1f} s and {rest_words(left)} of the budget is left",
            "budget",
        )

"""The planner of a map: which block next. Like the planner of a study it keeps nothing that the rows do not say.

The first blocks lie where `search.first_blocks` puts them. Then blocks come in batches, each chosen from the blocks
before it alone: a map that was interrupted goes on with the batch it would have had. On the nodes of a cluster blocks
run at the same time: there each is chosen as if those that run had been chosen before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from trifecta.analysis import node_faults
from trifecta.analysis.estimate import Row, node_of, pair_blocks
from trifecta.analysis.mapping.likelihood import Floats, Point
from trifecta.analysis.mapping.noise import noise_of
from trifecta.analysis.mapping.search import BATCH, PlaceIntervals, first_blocks, first_points, next_batch, sides_of
from trifecta.analysis.mapping.surface import Surface, fit
from trifecta.analysis.planner import Decision, Stop, rest_words
from trifecta.design import plan as design_plan
from trifecta.design.mapping import MapPlan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Cell, Study, Verdict

HOPELESS_BLOCKS = 2  # a place where as many blocks, all there were, failed their checks is not retried
_COSTS_FROM = 8  # blocks from which on their cost is seen as a function of the place


@dataclass(frozen=True)
class Block:
    """A block that is done: its place, and its log speed-up where its trials count."""

    place: int
    value: float | None
    span_ns: int
    number: int
    arms: frozenset[str]
    trials: tuple[Row, ...]
    node: str
    """Of a cluster; empty where there is none."""
    left_out: bool
    """Whether that node does not count (`node_faults`), which says nothing of the place."""


@dataclass
class MapBlocks:
    """All blocks of a map so far: of one machine in the order in which they began."""

    plan: MapPlan
    blocks: list[Block]
    unfinished: tuple[int, int] | None = None
    """Place and number of a block that lacks an arm."""

    def points(self, first: int | None = None) -> list[Point]:
        """The points with what the first so many blocks say, those of each node by themselves."""
        shares = self.plan.shares()
        values: dict[tuple[int, str], list[float]] = {}
        for block in self.blocks[:first]:
            if block.value is not None:
                values.setdefault((block.place, block.node), []).append(block.value)
        return [
            Point(*shares[place], tuple(cell_values), node) for (place, node), cell_values in sorted(values.items())
        ]

    @property
    def several(self) -> bool:
        """Whether they are of several nodes, those that do not count among them."""
        return len({block.node for block in self.blocks}) > 1

    def barred(self, first: int | None = None) -> set[int]:
        """Places where nothing counts."""
        tried: dict[int, list[bool]] = {}
        for block in self.blocks[:first]:
            if not block.left_out:
                tried.setdefault(block.place, []).append(block.value is not None)
        return {place for place, good in tried.items() if len(good) >= HOPELESS_BLOCKS and not any(good)}


def blocks_of_rows(plan: MapPlan, study: Study, rows: Sequence[Row]) -> MapBlocks:
    """The blocks in the rows of ``trials``."""
    arms = frozenset(design_plan.arms(study))
    metric = METRICS[study.metric]
    sign = -1.0 if metric.lower_is_better else 1.0
    places = {cell.key: plan.place_of(cell) for cell in design_plan.cells(study)}
    grouped: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        grouped.setdefault((str(row["cell"]), int(row["block"])), []).append(row)
    blocks = MapBlocks(plan, [])
    for (key, number), own in grouped.items():
        arms_here = frozenset(str(row["arm"]) for row in own)
        if not arms <= arms_here:
            blocks.unfinished = (places[key], number)
            continue
        pair = pair_blocks(key, own, metric, arm=plan.arm, reference=plan.reference, baseline=plan.reference)
        logs = pair.log_ratios()
        # Both sides censored say nothing; one of them is as bad as a surface counts.
        value = sign * float(logs[0]) if len(logs) and not np.isnan(logs[0]) else None
        span = sum(int(row["ended_ns"]) - int(row["started_ns"]) for row in own if row.get("ended_ns"))
        left_out = any(map(node_faults.mark, own))
        blocks.blocks.append(Block(places[key], value, span, number, arms_here, tuple(own), node_of(own[0]), left_out))
    return blocks


@dataclass(frozen=True)
class _Posterior:
    """What is known after the first so many blocks, where some of them count."""

    blocks: int
    counting: tuple[bool, ...]
    """Which of them count: blocks of a node that is left out do not any more."""
    several: bool
    surface: Surface
    sides: PlaceIntervals


@dataclass(frozen=True)
class _Batch:
    """Places that were chosen from what is known, beside the blocks that began after that."""

    posterior: _Posterior
    given: int
    """How many these were."""
    places: list[int]


@dataclass
class MapPlanner:
    """Chooses the blocks of a map; the runner's ``Planner`` with another mind."""

    plan: MapPlan
    study: Study
    cells: Sequence[Cell]
    _running: Mapping[str, Collection[int]] = field(default_factory=dict, repr=False)
    _at_once: int = 1
    _known: tuple[Sequence[Row], tuple[int, int], MapBlocks] | None = field(default=None, repr=False)
    _posterior: _Posterior | None = field(default=None, repr=False)
    _batch: _Batch | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._cells = {self.plan.place_of(cell): cell for cell in self.cells}
        self._grid: Floats = np.array(self.plan.shares())

    def beside(self, running: Mapping[str, Collection[int]], at_once: int) -> None:
        """As `SpreadPlanner.beside`."""
        self._running, self._at_once = running, at_once

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """Decide from the rows of all finished trials and the wall time so far; a map needs no verdicts of cells."""
        measured = self._measured(rows)
        run = [place for place, cell in self._cells.items() for _ in self._running.get(cell.key, ())]
        begun = len(measured.blocks) + len(run)
        stop = self._spent(measured, begun, elapsed_ns)
        if measured.unfinished is not None:
            place, number = measured.unfinished
            return stop or Decision(self._cells[place], number, "an interrupted block is completed first")
        first = self._first()
        if begun < len(first):
            place = _missing(first, [block.place for block in measured.blocks] + run)
            why = f"block {begun + 1} of the first {len(first)}, spread over the plane"
            return stop or self._decision(measured, place, why)
        step = self._at_the_border(measured, run, len(first))
        return step if isinstance(step, Stop) else stop or step

    def _at_the_border(self, blocks: MapBlocks, run: Sequence[int], first: int) -> Decision | Stop:
        """The next block beyond the first so many, beside those that run; or that there is none."""
        # Of many nodes some are free before the first blocks are all done.
        done = len(blocks.blocks)
        boundary = min(first, done)
        boundary += BATCH * ((done - boundary) // BATCH)
        posterior = self._posterior_after(blocks, boundary)
        if posterior is None:
            sentence = (
                "nothing is known before a block is done" if run else "no block counts: every trial failed a check"
            )
            return Stop(sentence, "unmeasurable")
        if not posterior.sides.is_open().any() and boundary < done and not run:
            # what came beside may say otherwise
            boundary, posterior = done, self._posterior_after(blocks, done) or posterior
        left = int(posterior.sides.is_open().sum())
        if not left:
            return Stop(f"all {len(self._grid)} places are decided", "decided")
        place = self._next_place(blocks, posterior, [*(block.place for block in blocks.blocks[boundary:]), *run])
        if place is None:
            return Stop(f"{left} places are open and cannot be measured", "unmeasurable")
        words = f"{left} of {len(self._grid)} places are open after {done} blocks; the border may be near here"
        return self._decision(blocks, place, words)

    def _measured(self, rows: Sequence[Row]) -> MapBlocks:
        """The blocks; rows are only added to, and those of a node that is left out stop counting."""
        state = (len(rows), sum(bool(row.get("valid")) for row in rows))
        if self._known is None or self._known[0] is not rows or self._known[1] != state:
            self._known = rows, state, blocks_of_rows(self.plan, self.study, rows)
        return self._known[2]

    def _first(self) -> list[int]:
        """The places of the first blocks. On a cluster the second round is shifted, or the same node may have both."""
        if self._at_once == 1:
            places = first_blocks(self._grid)
        else:
            points = first_points(self._grid)
            places = points + points[1:] + points[:1]
        return [place for place in places if place in self._cells]

    def _posterior_after(self, measured: MapBlocks, blocks: int) -> _Posterior | None:
        counting = tuple(block.value is not None for block in measured.blocks[:blocks])
        state = (counting, measured.several)
        if self._posterior is None or (self._posterior.counting, self._posterior.several) != state:
            points = measured.points(blocks)
            if not points:
                return None
            surface = fit(points, several=measured.several)
            floor = noise_of(self.study, [block.trials for block in measured.blocks[:blocks]]).floor
            sides = sides_of(surface, self._grid, self.study.margin, self.study.confidence, floor)
            self._posterior = _Posterior(blocks, *state, surface, sides)
        return self._posterior

    def _next_place(self, blocks: MapBlocks, posterior: _Posterior, since: Sequence[int]) -> int | None:
        """Where the next block is measured, beside those that began since; None where nothing can be."""
        batch = self._batch
        if batch is None or batch.posterior is not posterior or not 0 <= len(since) - batch.given < len(batch.places):
            # On one machine the batch depends on the blocks before it alone, however much of it is done.
            given = () if self._at_once == 1 and len(since) < BATCH else tuple(since)
            batch = self._batch = _Batch(posterior, len(given), self._choose(blocks, posterior, given))
        return batch.places[len(since) - batch.given] if batch.places else None

    def _choose(self, blocks: MapBlocks, posterior: _Posterior, given: Sequence[int]) -> list[int]:
        barred = np.array([place not in self._cells for place in range(len(self._grid))])
        barred[list(blocks.barred(posterior.blocks))] = True
        if barred.all():
            return []
        costs, still_open = self._costs(blocks.blocks[: posterior.blocks]), posterior.sides.is_open()
        return next_batch(posterior.surface, self._grid, still_open, costs=costs, barred=barred, given=given)

    def _costs(self, blocks: Sequence[Block]) -> Floats:
        """What a block takes at each place: log-linear over the plane, within what was seen."""
        known = [block for block in blocks if block.span_ns > 0]
        if len(known) < _COSTS_FROM:
            return np.ones(len(self._grid))
        spans = np.log([block.span_ns for block in known])
        design = np.column_stack([np.ones(len(known)), self._grid[[block.place for block in known]]])
        slopes = np.linalg.lstsq(design, spans, rcond=None)[0]
        expected = np.column_stack([np.ones(len(self._grid)), self._grid]) @ slopes
        costs: Floats = np.exp(np.clip(expected, spans.min(), spans.max()))
        return costs

    def _decision(self, blocks: MapBlocks, place: int, why: str) -> Decision:
        cell = self._cells[place]
        own = [block.number for block in blocks.blocks if block.place == place]
        return Decision(cell, max((*own, *self._running.get(cell.key, ())), default=-1) + 1, why)

    def _spent(self, blocks: MapBlocks, begun: int, elapsed_ns: int) -> Stop | None:
        if self.plan.blocks is not None and begun >= self.plan.blocks:
            return Stop(f"{begun} blocks were asked for", "blocks")
        if self.plan.budget_ns is None:
            return None
        left = self.plan.budget_ns - elapsed_ns
        busy = sum(block.span_ns for block in blocks.blocks)
        recent = [block.span_ns for block in blocks.blocks[-2 * BATCH :]]
        cost = median(recent) * max(1.0, elapsed_ns / busy) if busy else 0.0
        if left > 0 and cost <= left:
            return None
        return Stop(rest_words(cost, left), "budget")


def _missing(first: Sequence[int], begun: Sequence[int]) -> int:
    """The first of these blocks that has not begun: not always the next, where some were lost with their head."""
    had = Counter(begun)
    for place in first:
        if not had[place]:
            return place
        had[place] -= 1
    return first[-1]

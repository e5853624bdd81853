"""The planner: which block to run next, or that the study is done, and why.

It keeps no state of its own: every decision follows from the study, the rows finished so far and the time spent, so a
resumed run continues as the interrupted one would have, and each decision can be explained afterwards.

* First every cell gets ``min_blocks`` blocks, one round after the other, the cells of a round in random order; where
  the budget cannot pay for that, as many cells as it can, the cheapest first. A cell of which a block is expected to
  take more than is left is not begun.
* Then cells with an open verdict get further blocks, those first that decide the most verdicts for their time, as many
  as fit into what is left of the budget; every eighth block goes to any open cell. The cells take turns, so that a
  slow drift of the machine hits all.
* It stops when every verdict is decided, when the cells that are open have had ``max_blocks`` or cannot be measured,
  or when no block of an open cell fits into the budget.

Where captured trials do not count there are no verdicts: every cell gets its first blocks, and that is the end.

Stopping early is sound because the intervals are confidence sequences (docs/methodology.md).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol, runtime_checkable

from trifecta.analysis.estimate import Row
from trifecta.analysis.verdict import verdicts
from trifecta.design import duration, plan
from trifecta.design.arms import arm_words
from trifecta.design.model import Cell, Study, Verdict
from trifecta.design.phrases import listed, numbered

HOPELESS_BLOCKS = 3  # a comparison without a usable block in as many blocks of its cell is not retried
EVERY_NTH_FOR_ALL = 8  # forecasts from few blocks err: every so many blocks an open cell gets one regardless
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Decision:
    """Run this block of this cell next."""

    cell: Cell
    block: int
    reason: str
    first_trial: int | None = None
    """The number of its first trial, where who gave the order counts them; None: the next one."""


@dataclass(frozen=True)
class Stop:
    """Run nothing more. ``kind``: "decided", "budget", "blocks" (max_blocks), "unmeasurable" or "captured"; at a server
    elsewhere also "capped" and "refused" (`trifecta.analysis.polite_planner`)."""

    reason: str
    kind: str


class AnyPlanner(Protocol):
    """What chooses the blocks of a run."""

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """The next block, from the rows of all finished trials and the time so far; or that it is enough.

        ``judged``: the verdicts of these rows, where they are known.
        """


@runtime_checkable
class SpreadPlanner(AnyPlanner, Protocol):
    """One whose blocks may run at the same time, each on a node of its own."""

    def beside(self, running: Mapping[str, Collection[int]], at_once: int) -> None:
        """What runs while the next block is chosen, as in `Planner.running`, and how many can at a time."""


@dataclass(frozen=True)
class CellState:
    """What the planner knows of a cell: ``cost_ns`` is the wall time of one more block, overhead included.

    ``expected_ns`` is what it was taken for before anything ran (`trifecta.design.duration`). ``blocks`` are those that
    have begun, ``seen`` those of which there are rows.
    """

    cell: Cell
    blocks: int
    seen: int
    unfinished: int | None
    cost_ns: int | None
    expected_ns: int
    hopeless: bool


class Planner:
    """Chooses blocks; ``verdicts`` holds the verdicts that the last call of `next` computed."""

    def __init__(
        self,
        study: Study,
        cells: Sequence[Cell],
        now_ns: int = 0,
        *,
        most: Mapping[str, int] | None = None,
        before: Mapping[str, int] | None = None,
    ) -> None:
        """``cells`` are the cells this run can do; ``now_ns`` is when the run began (kept for the record only).

        Of a run that was extended, by a cell's key: ``most``, at most so many blocks, besides the study's
        ``max_blocks``; ``before``, blocks it had by then, after which it is tried anew though none was usable.
        """
        if not cells:
            raise ValueError("a study needs at least one cell that can be run")
        self.study = study
        self.cells = list(cells)
        self.began_ns = now_ns
        self.most = dict(most or {})
        self.before = dict(before or {})
        self.running: Mapping[str, Collection[int]] = {}
        """By a cell's key the blocks that have begun and have no rows yet: no block is chosen twice."""
        self.at_once = 1
        """How many blocks can run at a time: so many cost the time of one."""
        self.verdicts: list[Verdict] = []
        self._expected_ns = {cell.key: duration.block_ns(study, cell) for cell in self.cells}
        self._last_seen: list[str] = []
        self._known: tuple[Sequence[Row], int, _RunSoFar] | None = None

    def beside(self, running: Mapping[str, Collection[int]], at_once: int) -> None:
        """As `SpreadPlanner.beside`."""
        self.running, self.at_once = running, at_once

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """Decide from the rows of all finished trials and the wall time the run has taken (resumed parts included).

        ``judged`` are the verdicts of these rows and of this planner's cells, where they are known already.
        """
        known = verdicts(self.study, rows, self.cells, fixed=False) if judged is None else judged
        self.verdicts = list(known)
        states = self._states(rows, elapsed_ns)
        left_ns = None if self.study.budget_ns is None else self.study.budget_ns - elapsed_ns
        unfinished = [state for state in states if state.unfinished is not None]
        if unfinished and (left_ns is None or left_ns > 0):
            state = unfinished[0]
            return Decision(state.cell, state.unfinished or 0, "an interrupted block is completed first")
        early = [s for s in states if s.blocks < self._first(s.cell) and not s.hopeless]
        paid = self._payable(early, left_ns)
        affordable = [state for state in paid if _fits_budget(state, states, left_ns)]
        if paid and not (affordable or rows or self.running) and (left_ns or 0) > 0:  # one too long rather than none
            affordable = [min(paid, key=lambda state: (state.expected_ns, state.cell.key))]
        if affordable:
            every = len(affordable) == len(early)
            return self._first_round(affordable, "every cell gets" if every else "the budget gives some cells")
        if not self.study.gives_verdicts and not early:
            why = "captured trials give no verdicts (captured_trials_count is false)"
            return Stop(f"every cell has had its {numbered(self.study.min_blocks, 'block')}; {why}", "captured")
        return self._where_open(states, left_ns)

    def _most(self, cell: Cell) -> int:
        """How many blocks a cell may have."""
        return min(self.study.max_blocks, self.most.get(cell.key, self.study.max_blocks))

    def _first(self, cell: Cell) -> int:
        """How many blocks a cell gets before any is chosen by its verdicts."""
        return min(self.study.min_blocks, self._most(cell))

    def _payable(self, early: list[CellState], left_ns: int | None) -> list[CellState]:
        """The cells to give their first blocks: all, or, where the budget has not enough for all, the cheapest.

        A few blocks in every cell would decide nothing. Costs are known once every cell has had a block.
        """
        if left_ns is None or any(state.cost_ns is None for state in early):
            return early
        paid: list[CellState] = []
        left_ns *= self.at_once
        for state in sorted(early, key=lambda state: (state.cost_ns or 0, state.cell.key)):
            left_ns -= (self._first(state.cell) - state.blocks) * (state.cost_ns or 0)
            if left_ns < 0:
                break
            paid.append(state)
        return paid or early

    def _first_round(self, early: list[CellState], who: str) -> Decision:
        lowest = min(state.blocks for state in early)
        state = self._draw("first", [state for state in early if state.blocks == lowest])
        return Decision(
            state.cell,
            state.blocks,
            f"block {state.blocks + 1} of the {self.study.min_blocks} that {who} first",
        )

    def _where_open(self, states: list[CellState], left_ns: int | None) -> Decision | Stop:
        if not self.study.gives_verdicts:
            return self._stop_budget(left_ns, [_cost_ns(state, states) for state in states])
        still_open = [verdict for verdict in self.verdicts if verdict.verdict == "undecided"]
        if not still_open:
            return self._stop_decided()
        tried = {s.cell.key for s in states if s.seen - self.before.get(s.cell.key, 0) >= HOPELESS_BLOCKS}
        measurable = {verdict.cell for verdict in still_open if verdict.blocks > 0 or verdict.cell not in tried}
        if not measurable:
            return Stop(f"{self._open_text()} and cannot be decided: {self._why_lost(still_open)}", "unmeasurable")
        below = [s for s in states if s.cell.key in measurable and s.blocks < self._most(s.cell)]
        if not below:
            lost = {verdict.cell for verdict in still_open} - measurable
            return Stop(self._all_blocks_text([s for s in states if s.cell.key in lost]), "blocks")
        fitting = [state for state in below if _fits_budget(state, states, left_ns)]
        if not fitting:
            return self._stop_budget(left_ns, [_cost_ns(state, states) for state in below])
        if sum(state.blocks for state in states) % EVERY_NTH_FOR_ALL == 0:
            chosen, why = fitting, "this block goes to an open cell that has waited, whatever its forecast"
        else:
            chosen, why = self._worthwhile(fitting, left_ns)
        state = self._take_turns(chosen)
        return Decision(state.cell, state.blocks, f"{self._open_text()}; {why}")

    def _worthwhile(self, fitting: list[CellState], left_ns: int | None) -> tuple[list[CellState], str]:
        """The open cells to spend on: those that can be decided in the time left, best value first; else all."""
        ranked = []
        for state in fitting:
            needs = [v.blocks_needed for v in self.verdicts if v.cell == state.cell.key and v.verdict == "undecided"]
            values = [
                (count / (max(1, need - state.blocks) * (state.cost_ns or 1)), max(1, need - state.blocks))
                for count, need in enumerate(sorted(n for n in needs if n is not None), start=1)
                if need <= self._most(state.cell)
            ]
            if values:
                value, blocks = max(values)
                ranked.append((value, blocks * (state.cost_ns or 0), state))
        ranked.sort(key=lambda item: (-item[0], item[2].cell.key))
        chosen = []
        room = None if left_ns is None else left_ns * self.at_once
        for _, cost, state in ranked:
            if room is None or cost <= room:
                chosen.append(state)
                room = None if room is None else room - cost
        if chosen:
            return chosen, f"{len(chosen)} of {len(fitting)} open cells can be decided in the time left"
        return fitting, "none is likely to be decided in the time left, so all open cells get narrower intervals"

    def _take_turns(self, chosen: list[CellState]) -> CellState:
        """Draw among the half of the cells whose last block is longest ago."""
        order = {key: place for place, key in enumerate(self._last_seen)}
        waiting = sorted(chosen, key=lambda state: order.get(state.cell.key, -1))
        return self._draw("open", waiting[: (len(waiting) + 1) // 2])

    def _draw(self, phase: str, candidates: list[CellState]) -> CellState:
        ran = sum(state.blocks for state in candidates)
        rng = random.Random(plan.stable_seed("planner", phase, self.study.seed, ran, len(candidates)))
        return rng.choice(sorted(candidates, key=lambda state: state.cell.key))

    def _open_text(self) -> str:
        count = sum(verdict.verdict == "undecided" for verdict in self.verdicts)
        if count == len(self.verdicts) == 1:
            return "the one verdict is open"
        return f"{count} of {len(self.verdicts)} verdicts {'is' if count == 1 else 'are'} open"

    def _stop_decided(self) -> Stop:
        if not self.verdicts and len(plan.levels_of(self.study)) == 1:
            blocks = min(self.study.min_blocks, self.study.max_blocks)
            return Stop(
                f"every cell has had its {numbered(blocks, 'block')}; one protocol alone gives no verdict", "blocks"
            )
        number = len(self.verdicts)
        return Stop("the one verdict is decided" if number == 1 else f"all {number} verdicts are decided", "decided")

    def _why_lost(self, still_open: Sequence[Verdict]) -> str:
        """The arms of which no trial counts, if these cells have the same; else that no block has two usable trials."""
        lost: set[tuple[str, ...]] = set()
        for cell in {verdict.cell for verdict in still_open}:
            here = [verdict for verdict in self.verdicts if verdict.cell == cell]
            alive = {arm for one in here if one.blocks for arm in (one.arm, one.reference)}
            dead = {arm for one in here for arm in (one.arm, one.reference)} - alive
            lost.add(tuple(sorted(dead)) if alive else ())
        (arms, *others) = lost
        if others or not arms:
            return "no block had two usable trials"
        return f"no trial of {listed([arm_words(self.study.compare, arm) for arm in arms], 'or')} counts"

    def _all_blocks_text(self, lost: Sequence[CellState]) -> str:
        """``lost``: cells with an open verdict, but without a block that has two usable trials."""
        ended = sum(state.blocks < self._most(state.cell) for state in lost)
        given_up = f"; {numbered(ended, 'cell')} given up: no block had two usable trials" if ended else ""
        if self.study.min_blocks == self.study.max_blocks and not self.most:
            cells = "each of the other cells" if ended else "every cell"
            return f"{cells} has had its {numbered(self.study.max_blocks, 'block')}, as set in advance{given_up}"
        each = "each of the other open cells" if ended else "each open cell"
        if self.most:
            return f"{self._open_text()}; {each} has had the further blocks that were asked for{given_up}"
        return f"{self._open_text()}; {each} has had {numbered(self.study.max_blocks, 'block')}{given_up}"

    def _stop_budget(self, left_ns: int | None, costs_ns: list[int]) -> Stop:
        """``costs_ns``: what a block of each cell would cost that is to have more."""
        return Stop(f"{self._open_text()}, but {rest_words(min(costs_ns, default=0), left_ns)}", "budget")

    def _states(self, rows: Sequence[Row], elapsed_ns: int) -> list[CellState]:
        ran = self._ran(rows)
        self._last_seen = [key for key in ran.last_seen if key not in self.running]
        # What runs now had its turn last, and most where most of it runs.
        self._last_seen += sorted(self.running, key=lambda key: (len(self.running[key]), key))
        overhead = max(1.0, elapsed_ns / ran.busy_ns) if ran.busy_ns else 1.0
        # One protocol alone has no verdict, which is no reason to end its cells.
        usable_cells = {verdict.cell for verdict in self.verdicts if verdict.blocks > 0}
        without = {verdict.cell for verdict in self.verdicts} - usable_cells
        states = []
        for cell in self.cells:
            known = ran.cells.get(cell.key, _NOTHING)
            states.append(
                CellState(
                    cell=cell,
                    blocks=max(known.seen, max(self.running.get(cell.key, ()), default=-1) + 1),
                    seen=known.seen,
                    unfinished=known.unfinished,
                    cost_ns=None if known.span_ns is None else round(known.span_ns * overhead),
                    expected_ns=self._expected_ns[cell.key],
                    hopeless=self.study.gives_verdicts
                    and self.study.give_up
                    and known.blocks - self.before.get(cell.key, 0) >= HOPELESS_BLOCKS
                    and cell.key in without,
                )
            )
        return states

    def _ran(self, rows: Sequence[Row]) -> _RunSoFar:
        """What the rows say of blocks; of the same rows as at the last call it is known (many nodes, many calls)."""
        if self._known is None or self._known[0] is not rows or self._known[1] != len(rows):
            self._known = rows, len(rows), _ran(rows, set(plan.arms(self.study)))
        return self._known[2]


@dataclass(frozen=True)
class _CellRan:
    """What has run of a cell: one more than its last block, how many there are, the first that lacks an arm, and the
    measured time of one, in ns."""

    seen: int = 0
    blocks: int = 0
    unfinished: int | None = None
    span_ns: float | None = None


_NOTHING = _CellRan()


@dataclass(frozen=True)
class _RunSoFar:
    """What has run, by cell; the measured time of all of it; and the cells in the order of their last trials."""

    cells: Mapping[str, _CellRan]
    busy_ns: int
    last_seen: Sequence[str]


def _ran(rows: Sequence[Row], arms: Collection[str]) -> _RunSoFar:
    blocks: dict[str, dict[int, set[str]]] = {}
    for row in rows:
        blocks.setdefault(str(row["cell"]), {}).setdefault(int(row["block"]), set()).add(str(row["arm"]))
    spans = _block_spans(rows)
    cells = {
        key: _CellRan(
            seen=max(own) + 1,
            blocks=len(own),
            unfinished=min((block for block, its in own.items() if not its.issuperset(arms)), default=None),
            span_ns=median(spans[key].values()),
        )
        for key, own in blocks.items()
    }
    busy_ns = sum(span for per_block in spans.values() for span in per_block.values())
    return _RunSoFar(cells, busy_ns, list({str(row["cell"]): None for row in reversed(rows)})[::-1])


def rest_words(cost_ns: float, left_ns: int | None) -> str:
    """Why a budget ends it: what the cheapest block costs, and what is left."""
    left = f"{max(0, left_ns or 0) / _SECOND_NS:.1f} s"
    if left == "0.0 s":
        return "the budget is used up"
    return f"a block takes about {cost_ns / _SECOND_NS:.1f} s or more and only {left} of the budget is left"


def _block_spans(rows: Sequence[Row]) -> dict[str, dict[int, int]]:
    """Measured time of every block in ns, the sum of its trials, per cell."""
    spans: dict[str, dict[int, int]] = {}
    for row in rows:
        blocks = spans.setdefault(str(row["cell"]), {})
        block = int(row["block"])
        started, ended = row.get("started_ns"), row.get("ended_ns")
        blocks[block] = blocks.get(block, 0) + (int(ended) - int(started) if started and ended else 0)
    return spans


def _fits_budget(state: CellState, states: Sequence[CellState], left_ns: int | None) -> bool:
    """Whether one more block of the cell fits."""
    return left_ns is None or (left_ns > 0 and _cost_ns(state, states) <= left_ns)


def _cost_ns(state: CellState, states: Sequence[CellState]) -> int:
    """What one more block of a cell costs: where it never ran what was expected, at least what the cheapest took."""
    if state.cost_ns is not None:
        return state.cost_ns
    return max(state.expected_ns, min((other.cost_ns for other in states if other.cost_ns is not None), default=0))

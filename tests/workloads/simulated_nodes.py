"""A cluster that is none: nodes whose blocks take simulated time, and a head that keeps rows in memory."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.analysis.worlds import make_row
from trifecta.analysis.estimate import Row
from trifecta.analysis.planner import Decision, Planner, Stop
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan
from trifecta.design.model import Study, Verdict
from trifecta.workloads.cluster.dispatch import BlockFinished, Dispatch, Event, Joined, LeftOut, NodeLost, Notice, Order
from trifecta.workloads.cluster.loop import carry_on

Duration = Callable[[str, Order], float]


class SimulatedNodes:
    """`Nodes` on a clock of their own. ``lost``: after so many seconds a node is gone; it is back after ``back_s``.

    ``way_s``: how long an order is on its way to a node, and a result on its way back. ``looks_cost``: what the head
    computes between two polls takes its time here, too, and nodes wait for it.
    """

    def __init__(
        self,
        many: int,
        duration: Duration,
        lost: dict[str, list[float]] | None = None,
        *,
        back_s: float = 5.0,
        way_s: float = 0.0,
        looks_cost: bool = False,
    ):
        self._polled_s = time.process_time() if looks_cost else None
        self.now_s = 0.0
        self.offered: list[tuple[str, Order]] = []
        self.at_once: dict[str, int] = {}
        self.dismissed: list[str] = []
        self._free_s: dict[tuple[str, int], float] = {}
        self._starts: list[tuple[tuple[str, int], float, Order]] = []
        self._died_s: dict[tuple[str, int], float] = {}
        self._duration = duration
        self._back_s = back_s
        self._way_s = way_s
        self._alive = {f"n{number}": 1 for number in range(many)}
        self._due: list[tuple[float, int, Event, int]] = []
        self._count = 0
        for node in self._alive:
            self._later(0.0, Joined(node), 1)
            for at in (lost or {}).get(node, []):
                self._later(at, NodeLost(node, "it was simulated to be"), 0)

    def _later(self, at_s: float, event: Event, life: int) -> None:
        self._count += 1
        heapq.heappush(self._due, (at_s, self._count, event, life))

    def poll(self, timeout_s: float, gather_s: float = 0.0) -> Sequence[Event]:
        if self._polled_s is not None:
            self.now_s += time.process_time() - self._polled_s
        until, events = self.now_s + timeout_s, []
        while self._due and self._due[0][0] <= until:
            at_s, _, event, life = heapq.heappop(self._due)
            self.now_s = max(self.now_s, at_s)
            if isinstance(event, NodeLost):
                self._died_s[event.node, self._alive[event.node]] = self.now_s
                self._alive[event.node] += 1
                self.at_once[event.node] = 0
                self._later(self.now_s + self._back_s, Joined(event.node), self._alive[event.node])
            elif life != self._alive[event.node]:
                continue  # what a node was running when it was lost
            elif isinstance(event, BlockFinished):
                self.at_once[event.node] -= 1
            events.append(event)
            until = min(until, self.now_s + gather_s) if len(events) == 1 else until
        if not events:
            self.now_s = until
        if self._polled_s is not None:
            self._polled_s = time.process_time()
        return events

    def offer(self, node: str, order: Order) -> None:
        self.at_once[node] = self.at_once.get(node, 0) + 1
        assert self.at_once[node] <= 2, f"{node} has more than one block ahead"
        self.offered.append((node, order))
        # One that was lost has forgotten what it was to run.
        free_s = self._free_s.get((node, self._alive[node]), 0.0)
        start_s = max(self.now_s + self._way_s, free_s)
        self._starts.append(((node, self._alive[node]), start_s, order))
        at_s = start_s + self._duration(node, order)
        self._free_s[node, self._alive[node]] = at_s
        self._later(at_s + self._way_s, BlockFinished(node, order, {}), self._alive[node])

    def begun(self) -> list[tuple[str, Order]]:
        """What nodes began to run, each as often as it was begun: no order that was lost while it waited there."""
        inf = float("inf")
        return [(life[0], order) for life, at_s, order in self._starts if at_s < self._died_s.get(life, inf)]

    def dismiss(self, node: str) -> None:
        self._died_s[node, self._alive[node]] = self.now_s
        self._alive[node] += 1  # nothing comes from it any more
        self.dismissed.append(node)

    def waiting(self) -> int:
        return 0


@dataclass
class SimulatedHead:
    """`Head` with rows of invented trials: the same for a block wherever and whenever it is run."""

    study: Study
    nodes: SimulatedNodes
    sigma: float = 0.05
    judge_every: int = 1
    ratio: float = 1.0
    """HTTP/3's latency to HTTP/2's."""
    rows: list[Row] = field(default_factory=list)
    judged: list[Verdict] | None = None
    kept: list[BlockFinished] = field(default_factory=list)
    lost: list[Order] = field(default_factory=list)
    said: list[Event] = field(default_factory=list)
    bad: Mapping[str, int] = field(default_factory=dict)
    """After how many blocks in all a node does not count any more."""
    _waited: int = 0

    def __post_init__(self) -> None:
        self.cells = {cell.key: cell for cell in plan.cells(self.study)}
        self.planner = Planner(self.study, list(self.cells.values()))

    def choose(self, dispatch: Dispatch, later_ns: int = 0) -> Decision | Stop:
        self.planner.running = dispatch.running()
        self.planner.at_once = max(1, len(dispatch.busy) + len(dispatch.idle))
        return self.planner.next(self.rows, round(self.nodes.now_s * 1e9) + later_ns, self.judged)

    def keep(self, done: Sequence[BlockFinished]) -> Mapping[str, str]:
        for one in done:
            self.kept.append(one)
            self.rows += [row | {"node": one.node} for row in self.measured(one.order)]
        self._waited += len(done)
        if self.judged is None or self._waited >= self.judge_every:
            self._waited = 0
            self.judged = verdicts(self.study, self.rows, list(self.cells.values()), fixed=False)
        return {node: "it was simulated to be bad" for node in self.bad if len(self.kept) >= self.bad[node]}

    def node_event(self, event: Joined | NodeLost | LeftOut | Notice, order: Order | None) -> None:
        self.said.append(event)
        if order is not None:
            self.lost.append(order)

    def measured(self, order: Order) -> list[Row]:
        """The rows of a block, whoever runs it."""
        rng = np.random.default_rng(plan.stable_seed("simulated", order.cell, order.block))
        trials = plan.block_trials(self.study, self.cells[order.cell], order.block, order.first_trial)
        rows = []
        for trial in trials:
            mean = 1e6 * (self.ratio if trial.protocol == "h3" else 1.0)
            rows.append(make_row(trial, mean * np.exp(rng.normal(0, self.sigma)), started_ns=1, ended_ns=1 + 10**9))
        return rows


def run(study: Study, nodes: SimulatedNodes, **how: float) -> tuple[Stop, SimulatedHead]:
    """Run a study on simulated nodes to its end."""
    head = SimulatedHead(study, nodes, **how)  # type: ignore[arg-type]
    dispatch = Dispatch(len(plan.arms(study)), 0, dict.fromkeys(head.cells, 0))
    stop = carry_on(dispatch, nodes, head, lambda: False, now_s=lambda: nodes.now_s)
    assert dispatch.over
    assert not dispatch.held
    return stop, head

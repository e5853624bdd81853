"""Which block of a gate next, or that its question is decided: the planner of a study with the tests of the gate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trifecta.analysis.estimate import Row
from trifecta.analysis.gate import FAILS, OPEN, PASSES, Judged, Outcome, judge_gate
from trifecta.analysis.planner import Decision, Planner, Stop
from trifecta.design.gate import GatePlan
from trifecta.design.model import Cell, Verdict

PATIENCE = 60  # trials that failed a check, one after the other, before a cell without a usable block is given up


class GatePlanner:
    """Ends with the first test that fails, or when all have passed; until then blocks go where `Planner` puts them.

    ``family`` are the cells that the run began with; ``cells`` those that are still measured. A cell whose server has
    failed keeps its test, which stays open. Runners of a CI are disturbed at times: where trials fail their checks,
    a gate is more patient than a study.
    """

    def __init__(self, gate: GatePlan, family: Sequence[Cell], cells: Sequence[Cell], now_ns: int = 0) -> None:
        self.gate = gate
        self.family = list(family)
        self.inner = _OfTests(gate.study, cells, now_ns)

    def beside(self, running: Mapping[str, Collection[int]], at_once: int) -> None:
        """As `SpreadPlanner.beside`."""
        self.inner.beside(running, at_once)

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """Decide from the rows of all finished trials and the wall time so far; the study's verdicts are not asked."""
        gate_result = judge_gate(self.gate, rows, self.family)
        if gate_result.state in (PASSES, FAILS):
            return Stop(_decided(gate_result), "decided")
        measured = {cell.key for cell in self.inner.cells}
        tests = [self._as_verdict(one) for one in gate_result.tests if one.cell.key in measured]
        step = self.inner.next(rows, elapsed_ns, tests)
        if isinstance(step, Stop) and step.kind == "decided":
            return Stop("a server has failed in each cell that is open", "unmeasurable")
        return step

    def _as_verdict(self, outcome: Outcome) -> Verdict:
        """A test as the planner of a study reads it: open or not, and how many blocks would decide."""
        return Verdict(
            cell=outcome.cell.key,
            metric=outcome.condition.metric.name,
            arm=self.gate.candidate,
            reference=self.gate.baseline,
            verdict="undecided" if outcome.state == OPEN else "same",
            ratio=outcome.ratio,
            low=outcome.low,
            high=outcome.high,
            blocks=max(outcome.blocks, int(0 < outcome.invalid_trials < PATIENCE)),
            margin=outcome.condition.limit,
            noise_floor=None,
            e_value=None,
            blocks_needed=outcome.needed,
        )


class _OfTests(Planner):
    """The planner of a study, which calls what it decides by their name."""

    def _open_text(self) -> str:
        return super()._open_text().replace("verdict", "test")


def _decided(judged: Judged) -> str:
    """How it was decided, in words."""
    tests = len(judged.tests)
    if judged.state == PASSES:
        return f"all {tests} tests pass" if tests > 1 else "its test passes"
    return f"{judged.count(FAILS)} of {tests} tests fail" if tests > 1 else "its test fails"

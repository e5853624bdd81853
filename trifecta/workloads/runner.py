"""Runs a study: plan, lab, trials, checks, verdicts, until the planner or the user says that it is enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trifecta.analysis import checks
from trifecta.analysis.checks.path import was_delivered
from trifecta.analysis.planner import AnyPlanner, Decision, Planner, Stop
from trifecta.analysis.verdict import verdicts
from trifecta.contract.codec import plain
from trifecta.contract.run import LeftOut, RunDocument
from trifecta.contract.values import JsonObject
from trifecta.design import plan
from trifecta.design.builds import alike, not_heeded
from trifecta.design.conformance import ConformanceResult
from trifecta.design.errors import CannotError
from trifecta.design.model import Cell, CheckResult, Study, Trial, Verdict
from trifecta.design.phrases import numbered
from trifecta.design.study import to_yaml
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.registry import BROWSERS, CLIENTS, SERVERS
from trifecta.implementations.server import ServerAdapter
from trifecta.lab import sandbox
from trifecta.lab.engine import Stopped, find_engine
from trifecta.store import files, intervals
from trifecta.store.run import RunDirectory
from trifecta.workloads import aggregate, extending
from trifecta.workloads.conformance import study as conformance
from trifecta.workloads.executor import AnySession, AnyTrialRunner
from trifecta.workloads.executors import executor_of
from trifecta.workloads.extending import RunExtension
from trifecta.workloads.facts import check_same_builds, check_same_study, first_facts
from trifecta.workloads.faults import NO_FAULTS, Faults
from trifecta.workloads.judge import Judge
from trifecta.workloads.preflight import preflight
from trifecta.workloads.progress import NoProgress, Progress
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.session import Adapters, SessionContext
from trifecta.workloads.supported import Supported

PROBE_EVERY_S = 60.0  # a path that was delivered; see StudyRun._probe_when_due

NO_MORE = RunExtension()
MakePlanner = Callable[[Study, Sequence[Cell], int], AnyPlanner]


@dataclass
class StudyOutcome:
    """How a run ended."""

    run_path: Path
    verdicts: list[Verdict]
    checks: list[CheckResult]
    reason: str
    kind: str
    """``decided``, ``budget``, ``blocks``, ``unmeasurable``, ``captured``, ``capped``, ``refused`` (see the planners),
    or ``interrupted``."""
    trials: int
    valid_trials: int
    whole_trials: int
    """Those that ended as they should, whether they count or not."""
    elapsed_ns: int
    time_share: dict[str, float] = field(default_factory=dict)
    """Shares of the elapsed time, by phase; ``load`` is the time spent measuring."""

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return self.kind == "interrupted"


def run_study(
    study: Study,
    run_path: Path,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    *,
    resume: bool = False,
    adapters: Mapping[str, ServerAdapter] = SERVERS,
    clients: Mapping[str, ClientAdapter] = CLIENTS,
    browsers: Mapping[str, BrowserAdapter] = BROWSERS,
    faults: Faults = NO_FAULTS,
    more_facts: RunDocument | None = None,
    planner: MakePlanner = Planner,
    more: RunExtension = NO_MORE,
    node: str | None = None,
) -> StudyOutcome:
    """Run a study into a new run directory, or go on with one (``resume``), ``more`` than it was to be.

    Must run inside the sandbox (``trifecta.lab.sandbox.enter``, called before threads exist), but for a study whose
    executor needs no lab. ``stop`` is asked often; when it says so, the current trial is abandoned and the run ends
    with what is finished. UserError and CannotError are for the user; what goes wrong within a trial is in the trial.
    ``more_facts``: what ``run.json`` has of who asked for the run: what ``any`` stood for when the study was read, and
    what was left out then (``trifecta.implementations.survey.Finder.facts``), the question of a gate or a map, checks
    whose failures count elsewhere.
    ``planner`` makes what chooses the blocks, from the study, the cells that can run, and the time it began.
    ``node`` is what this machine is called in a cluster, for the rows.
    """
    if executor_of(study).lab and not sandbox.entered():
        raise RuntimeError("run_study needs the sandbox: call trifecta.lab.sandbox.enter() first")
    known = Adapters(adapters, clients, browsers).for_study(study)
    display = progress or NoProgress()
    run = StudyRun(study, run_path, display, stop or (lambda: False), known, faults, planner, node=node)
    with files.full_disk(run_path):
        return run.go(resume, more_facts or {}, more)


@dataclass
class StudyRun:
    """The state of one run."""

    study: Study
    path: Path
    progress: Progress
    stop: Callable[[], bool]
    adapters: Adapters
    faults: Faults
    make_planner: MakePlanner
    phase_ns: dict[str, int] = field(default_factory=dict)
    began_ns: int = field(default_factory=time.monotonic_ns)
    elapsed_before_ns: int = 0
    judged: list[Verdict] | None = None
    """The verdicts of all rows, for the planner; None where it has to judge for itself."""
    every_cell: bool = True
    """Whether the planner chooses among all cells that have verdicts: none has been given up."""
    node: str | None = None

    def go(self, resume: bool, more_facts: RunDocument, more: RunExtension) -> StudyOutcome:
        """From the first look for programs to the last verdict; arguments and errors as `run_study`."""
        checks.load()
        aggregate.load()
        engine = find_engine()
        self.executor = executor_of(self.study)
        here = self.executor.cells(self.study, engine, self.adapters)
        self.cells, left_out = here.cells, here.left_out
        if resume:
            self.run = RunDirectory.open(self.path, write=True)
            self._resume(here, more)
            facts = self.run.facts
            self.elapsed_before_ns = max((int(d["elapsed_ns"]) for d in self.run.decisions()), default=0)
            resumed: RunDocument = {
                "state": "running",
                "ended_because": "",
                "resumed": int(facts.get("resumed", 0)) + 1,
            }
            self.run.write_facts(facts | resumed)
        else:
            facts = first_facts(self.study, engine, here, self.faults, self.executor.pins()) | more_facts
            self.run = RunDirectory.create(self.path, facts, self.study.source or to_yaml(self.study))
        try:
            self.rows = self.run.rows()
            self.written = intervals.Written(self.run.path, resumed=resume)
            self.judge = Judge(self.study, self.cells, self.rows, facts["machine"], self.run.path / "samples")
            self.progress.study_started(self.study, str(self.run.path), len(self.rows))
            for item in [*left_out, *facts.get("not_found", [])]:
                self.progress.level_unsupported(item["factor"], item["level"], item["reason"])
            for line in (*alike(self.study.servers, here.servers), *not_heeded(self.study.servers)):
                self.progress.note(f"warning: {line}")
            if not resume and self.make_planner is Planner:
                expected = preflight(self.study, self.cells)  # what is left out was said just now
                for line in expected.lines():
                    self.progress.note(line)
            self.planner: AnyPlanner | None = self._planner(self.cells)
            self.progress.phase("lab")
            try:
                ending = self._carry_out(engine, here)
            except Stopped:
                ending = Stop("stopped by the user; finished trials are kept", "interrupted")
            return self._finish(ending)
        finally:
            self.run.close()

    def _resume(self, here: Supported, more: RunExtension) -> None:
        """The study as it stands now, refused where it is another than the run's."""
        try:
            self.study = extending.current(self.run, self.study)
            check_same_study(self.run.facts, self.study, here.left_out)
            check_same_builds(self.run.facts, self.study, here.servers)
            if more:
                self.study = extending.extend(self.run, self.study, self.cells, more)
            if self.make_planner is Planner:
                self.make_planner = extending.planner(self.run.facts)
        except BaseException:
            self.run.close()
            raise

    def _planner(self, cells: Sequence[Cell]) -> AnyPlanner:
        """What chooses the blocks of these cells, within what this workload may do."""
        return self.executor.within(self.make_planner(self.study, cells, self.began_ns), self.study, cells)

    def _carry_out(self, engine: Path, here: Supported) -> Stop:
        """Everything between the first phase and the last; how it ended. Stopped when the user ends it."""
        common = SessionContext(engine, self.run, self.study, self.stop, self.adapters, self.faults)
        with self.executor.session(common) as (session, make_runner):
            self._mark("lab")
            return self._measure(session, make_runner, here)

    def _measure(self, session: AnySession, make_runner: Callable[[], AnyTrialRunner], here: Supported) -> Stop:
        self._begin(session, here, {name: str(facts["version"]) for name, facts in here.servers.items()})
        self.run.write_facts(self.run.facts | session.facts())
        runner = make_runner()
        try:
            while True:
                if not self.planner:
                    return Stop("every server has failed; finished trials are kept", "unmeasurable")
                decision = self.planner.next(self.rows, self.elapsed_ns, self.judged)
                self._mark("plan")
                if isinstance(decision, Stop):
                    session.last_look()
                    return self._with_failed(decision, session)
                self._block(session, runner, decision)
        finally:
            runner.close()

    def _with_failed(self, ending: Stop, session: AnySession) -> Stop:
        """What a planner says of the cells that it had, with those that ended early because their server failed."""
        failed = sum(session.has_failed(cell) is not None for cell in self.cells)
        if not failed:
            return ending
        return Stop(f"{ending.reason}; {numbered(failed, 'cell')} ended early: the server failed", ending.kind)

    def _begin(self, session: AnySession, here: Supported, versions: Mapping[str, str]) -> None:
        """Servers up, those that do not come up given up, and what they serve compared, as deep as the study asks."""
        depth = "off" if self.run.conformance() else self.study.conformance  # of a resumed run, the first probe stands
        probed = session if self.executor.conformance and isinstance(session, RequestsSession) else None
        if probed and depth == "full":
            self.progress.phase("conformance", ", ".join(sorted(versions)))
            self._conformance(conformance.full(probed, self.adapters.clients, self.cells))
        self.progress.phase(self.executor.phase, ", ".join(sorted(versions)))
        session.begin(self.cells, versions, conformance.QUICK_SIZES)
        self._mark("servers")
        self._give_up(session)
        if probed and depth == "quick":
            self._conformance(conformance.quick(probed, self.adapters.clients, here.clients, self.cells))

    def _block(self, session: AnySession, runner: AnyTrialRunner, decision: Decision) -> None:
        self.judged = None
        self._probe_when_due(session, decision.cell)
        if not self._renew(session, decision):
            return
        for trial in self._trials_of(decision):
            if self.stop():
                raise Stopped
            down = session.down(trial.cell)
            if down is not None:
                self.progress.note(f"{down}; it is started again")
                if not self._restart(session, trial.cell):
                    break
            self.progress.trial_started(trial, len(self.rows))
            try:
                outcome = runner.run(trial)
            except Stopped:
                self.run.discard_trial(trial.trial)
                raise
            for name, duration in outcome.phase_ns.items():
                self._count(name, duration)
            self._mark(None)
            runner.start_ahead(trial)
            checks = self.judge.trial(outcome)
            self._mark("checks")
            outcome.row["node"] = self.node
            self.run.commit_trial(outcome.row, outcome.files)
            self.rows.append(outcome.row)
            self._mark("commit")
            self.progress.trial_finished(trial, outcome.row, checks)
        self._end_block({"cell": decision.cell.key, "block": decision.block}, decision.reason)

    def _end_block(self, which: JsonObject, reason: str) -> None:
        """Judge all rows now that a block has ended, and keep what comes of it."""
        for row in self.judge.distrust(self.rows):
            self.run.rewrite_row(row)
        judged = verdicts(self.study, self.rows, self.cells, fixed=False)
        self.judged = judged if self.every_cell else None
        self.run.end_block(
            judged,
            {
                **which,
                "reason": reason,
                "elapsed_ns": self.elapsed_ns,
                "trials": len(self.rows),
                "decided": sum(verdict.verdict != "undecided" for verdict in judged),
                "verdicts": len(judged),
                "intervals": self.written.fresh(judged),
            },
        )
        self._mark("verdicts")
        self.progress.block_finished(judged, self.elapsed_ns, self.study.budget_ns, reason)

    def _renew(self, session: AnySession, decision: Decision) -> bool:
        """Start the cell's servers anew for its block, where its last block says that this is cheap."""
        rows = [row for row in self.rows if row["cell"] == decision.cell.key]
        if any(row["block"] == decision.block for row in rows):
            return True  # the rest of an interrupted block: all of its servers are new already
        latest = max((row["block"] for row in rows), default=-1)  # on a node of a cluster not the one before
        last = [row for row in rows if row["block"] == latest]
        # With what lies between its trials: what is spent on a start is wall time of the run, too.
        block_ns = (
            max(int(row["ended_ns"]) for row in last) - min(int(row["started_ns"]) for row in last) if last else 0
        )
        stands = not block_ns or session.renew(decision.cell, block_ns)
        if not stands:
            self._give_up(session)
        self._mark("servers")
        return stands

    def _restart(self, session: AnySession, cell: Cell) -> bool:
        """Start a server that died again; when it does not come up, its cells are given up and the others go on."""
        stands = session.stand_up(cell)
        if not stands:
            self._give_up(session)
        self._mark("servers")
        return stands

    def _give_up(self, session: AnySession) -> None:
        """Leave out the cells of servers that do not come up; CannotError when nothing is left or was ever done."""
        reasons = {cell.key: session.has_failed(cell) for cell in self.cells}
        alive = [cell for cell in self.cells if reasons[cell.key] is None]
        if not alive and not self.rows:
            raise CannotError("; ".join(dict.fromkeys(reason for reason in reasons.values() if reason)))
        known = list(self.run.facts.get("failed", []))
        for factor, level, reason in session.failures():
            item: LeftOut = {"factor": factor, "level": level, "reason": reason}
            if item not in known:
                known.append(item)
                self.progress.level_unsupported(factor, level, reason)
        # Cells that have trials keep their verdicts; the judge holds the same list.
        cells_with_trials = {row["cell"] for row in self.rows}
        self.cells[:] = [cell for cell in self.cells if reasons[cell.key] is None or cell.key in cells_with_trials]
        # The cells are the family of the verdicts: a reader who works them out again needs them.
        self.run.write_facts(self.run.facts | {"failed": known, "cells": [cell.key for cell in self.cells]})
        self.planner = self._planner(alive) if alive else None
        self.every_cell = len(alive) == len(self.cells)
        self.judged = None

    def _conformance(self, results: list[ConformanceResult]) -> None:
        self.run.write_conformance(results)
        for one in results:
            if one.outcome == "fail" and one.object is not None:
                self.progress.note(f"conformance: {one.name} {one.protocol} {one.label} failed: {one.reason}")
        self._mark("conformance")

    def next_trial(self) -> int:
        """The number of the first trial after all that are committed."""
        return max((int(row["trial"][1:]) for row in self.rows), default=-1) + 1

    def _trials_of(self, decision: Decision) -> list[Trial]:
        """The trials of a block that are not committed yet, under the names they have in the whole block."""
        done = {
            row["arm"]: row for row in self.rows if row["cell"] == decision.cell.key and row["block"] == decision.block
        }
        first = self.next_trial() if decision.first_trial is None else decision.first_trial
        for row in done.values():
            first = int(row["trial"][1:]) - int(row["position"])
        trials = plan.block_trials(self.study, decision.cell, decision.block, first)
        return [trial for trial in trials if trial.arm not in done]

    def _probe_when_due(self, session: AnySession, cell: Cell) -> None:
        """Measure the paths of a cell once a minute, and before every block while one is not what was asked for.

        A probe that found it off speaks against the trials until the next: they should be those of one block.
        """
        distinct = {session.probe_key(one): one for one in reversed(plan.treatments_of(self.study, cell))}
        for at in reversed(distinct.values()):
            workload = plan.workload_for(self.study, at)
            summary = session.probe_of(at)
            stands = was_delivered(self.study.paths[at.path], workload, None if summary is None else plain(summary))
            if not session.probe_due(at, PROBE_EVERY_S if stands else 0.0):
                continue
            self.progress.phase("probe", at.path)
            seed = plan.stable_seed("probe", self.study.seed, at.path, len(self.rows))
            self.progress.path_probed(at.path, session.probe(at, seed))
            self._mark("probe")
            self.progress.phase("trials")

    def _finish(self, ending: Stop) -> StudyOutcome:
        self.progress.phase("finish")
        judged = verdicts(self.study, self.rows, self.cells)
        self.run.write_verdicts(judged)
        checks = self.judge.run(self.rows)
        self.run.write_checks(checks)
        self._mark("finish")
        elapsed = self.elapsed_ns - self.elapsed_before_ns
        shares = {name: duration / elapsed for name, duration in sorted(self.phase_ns.items())}
        self.run.write_facts(
            self.run.facts
            | {
                "state": ending.kind,
                "ended_because": ending.reason,
                "elapsed_ns": self.elapsed_ns,
                "time_share": shares,
                "measuring_share": shares.get("load", 0.0),
            }
        )
        # Beside what the last block left: of a block that was interrupted, or of trials that were taken back before.
        then = self.written.fresh(judged)
        self.run.log_decision(
            {"stop": ending.kind, "reason": ending.reason, "elapsed_ns": self.elapsed_ns, "intervals": then}
        )
        self.progress.finished(judged, ending.reason)
        return StudyOutcome(
            run_path=self.run.path,
            verdicts=judged,
            checks=checks,
            reason=ending.reason,
            kind=ending.kind,
            trials=len(self.rows),
            valid_trials=sum(bool(row["valid"]) for row in self.rows),
            whole_trials=sum(row["error"] is None for row in self.rows),
            elapsed_ns=self.elapsed_ns,
            time_share=shares,
        )

    @property
    def elapsed_ns(self) -> int:
        """Wall time the run has taken, earlier parts included."""
        return self.elapsed_before_ns + time.monotonic_ns() - self.began_ns

    _last_mark_ns: int | None = None

    def _mark(self, phase: str | None) -> None:
        """Count the time since the last mark for ``phase``."""
        now = time.monotonic_ns()
        if phase is not None:
            self._count(phase, now - (self._last_mark_ns or self.began_ns))
        self._last_mark_ns = now

    def _count(self, phase: str, duration_ns: int) -> None:
        self.phase_ns[phase] = self.phase_ns.get(phase, 0) + duration_ns

"""A run whose blocks are measured on the nodes of a cluster, and gathered in one ordinary folder here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trifecta.analysis import node_faults
from trifecta.analysis.planner import Decision, Planner, SpreadPlanner, Stop
from trifecta.analysis.verdict import verdicts
from trifecta.contract.run import InstalledProgram, LostBlock, NodeFacts, RunDocument
from trifecta.contract.values import JsonObject
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.model import Cell, Study
from trifecta.lab.launcher import StreamLauncher
from trifecta.store import files, node_blocks, remote_files
from trifecta.store.run import RunDirectory
from trifecta.workloads.cluster.dispatch import (
    BlockFinished,
    Dispatch,
    Joined,
    LeftOut,
    NodeLost,
    Nodes,
    Notice,
    Order,
    whole_blocks,
)
from trifecta.workloads.cluster.loop import carry_on
from trifecta.workloads.cluster.nodes import ProgramNodes
from trifecta.workloads.extending import RunExtension
from trifecta.workloads.faults import NO_FAULTS
from trifecta.workloads.progress import NoProgress, Progress
from trifecta.workloads.runner import NO_MORE, MakePlanner, StudyOutcome, StudyRun
from trifecta.workloads.session import Adapters
from trifecta.workloads.supported import Supported


def refuse(study: Study) -> None:
    """UserError for a study that cannot be spread over nodes."""
    why = None
    if study.workload.outside:
        why = "measures a server elsewhere, whose rate limit all nodes would share"
    elif study.hosts:
        why = "names its hosts"
    elif study.capture:
        why = "captures packets, whose files stay on the node that wrote them"
    if why is not None:
        raise UserError(f"option --cluster: study {study.name!r} {why}; leave --cluster out")


def run_on_cluster(
    study: Study,
    run_path: Path,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    *,
    launch: Callable[[], StreamLauncher],
    store: str | None = None,
    resume: bool = False,
    more_facts: RunDocument | None = None,
    planner: MakePlanner = Planner,
    more: RunExtension = NO_MORE,
) -> StudyOutcome:
    """As `trifecta.workloads.runner.run_study`, on every place of a launcher. No sandbox: nothing is measured here.

    ``launch`` makes the launcher, which is closed in the end. It is called late: what is looked for here is looked for
    by processes that are forked, and a launcher may have threads.

    ``store``: URL of a place in an object store, where nodes put what trials leave. Only rows come here before the end,
    when all of it does. A run that has begun with one goes on with it.
    """
    refuse(study)
    known = Adapters().for_study(study)
    display = progress or NoProgress()
    run = ClusterRun(
        study, run_path, display, stop or (lambda: False), known, NO_FAULTS, planner, launch=launch, store=store
    )
    with files.full_disk(run_path):
        outcome = run.go(resume, more_facts or {}, more)
        _gather(outcome.run_path, display)
    return outcome


def _gather(run_path: Path, progress: Progress) -> None:
    """Bring what nodes put into an object store, and put there what is missing for a whole run."""
    run = RunDirectory.open(run_path, write=True)
    try:
        if (stored := run.facts.get("stored")) is not None:
            progress.phase("files from the store", stored)
            remote_files.bring(run.path)
            remote_files.complete(run.path)
    finally:
        run.close()


@dataclass
class ClusterRun(StudyRun):
    """The state of a run on a cluster; the `trifecta.workloads.cluster.loop.Head` of its loop."""

    launch: Callable[[], StreamLauncher] = field(kw_only=True)
    store: str | None = field(kw_only=True, default=None)

    def _resume(self, here: Supported, more: RunExtension) -> None:
        try:
            self._refuse_other_store()  # before anything of the run is changed
            super()._resume(here, more)
            self._block_counts()
        except BaseException:
            self.run.close()  # which `super` may have done already
            raise

    def _block_counts(self) -> dict[str, int]:
        """How many blocks each cell has; UserError where one was begun on one machine, and lacks trials."""
        rows = self.run.rows()
        arms = set(plan.arms(self.study))
        arms_by_block: dict[tuple[str, int], set[str]] = {}
        for row in rows:
            arms_by_block.setdefault((row["cell"], row["block"]), set()).add(row["arm"])
        remedy = f"run `trifecta resume {self.run.path}` without --cluster until it is complete"
        for (cell, block), its in arms_by_block.items():
            if not arms <= its:
                sentence = f"block {block + 1} of {cell} was interrupted, and a block never leaves its machine"
                raise UserError(f"option --cluster: {sentence}; {remedy}")
        try:
            return whole_blocks([cell.key for cell in self.cells], arms_by_block)
        except ValueError as error:
            raise UserError(f"option --cluster: {error}; {remedy}") from None

    def _carry_out(self, engine: Path, here: Supported) -> Stop:
        if self.rows:
            self.judged = verdicts(self.study, self.rows, self.cells, fixed=False)
        self.run.write_facts(self.run.facts | {"failed": [], "cells": [cell.key for cell in self.cells]})
        stored = self._stored()
        launcher = self.launch()
        try:
            if launcher.shared:
                self.run.write_facts(self.run.facts | {"nodes_share_machine": True})
                self.progress.note("nodes on one machine disturb each other: do not rely on these verdicts")
            return self.carry_on(ProgramNodes(launcher, self.study.source, self.accept, stored))
        finally:
            self.progress.phase("nodes end")
            launcher.close()

    def _refuse_other_store(self) -> None:
        known = self.run.facts.get("stored")
        if known is not None and self.store is not None and not known.startswith(f"{self.store.rstrip('/')}/"):
            sentence = f"this run has begun to put its files into {known}"
            raise UserError(f"option --store {self.store}: {sentence}; leave it out")

    def _stored(self) -> str:
        """Where nodes put what trials leave, with the run's study; empty where that comes here."""
        known = self.run.facts.get("stored")
        if known is None and self.store is None:
            return ""
        place = known or remote_files.place_of(self.store or "", self.run.path)
        remote_files.prepare(place, self.study.source)  # that of a run that is given more blocks is another than before
        if known is None:
            self.run.write_facts(self.run.facts | {"stored": place})
        return place

    def carry_on(self, nodes: Nodes) -> Stop:
        """Run blocks on these nodes until it is enough."""
        self.progress.phase("trials")
        dispatch = Dispatch(len(plan.arms(self.study)), self.next_trial(), self._block_counts())
        self._keys: Mapping[str, Cell] = {cell.key: cell for cell in self.cells}
        return carry_on(dispatch, nodes, self, self.stop)

    def choose(self, dispatch: Dispatch, later_ns: int = 0) -> Decision | Stop:
        """As `Head.choose`."""
        assert isinstance(self.planner, SpreadPlanner)  # what `refuse` lets through has no other
        self.planner.beside(dispatch.running(), max(1, len(dispatch.busy) + len(dispatch.idle)))
        decision = self.planner.next(self.rows, self.elapsed_ns + later_ns, self.judged)
        self._mark("plan")
        return decision

    def keep(self, done: Sequence[BlockFinished]) -> Mapping[str, str]:
        """As `Head.keep`: commit blocks, each as a whole, and judge all rows, and by their baselines the nodes."""
        for one in done:
            self._keep(one)
        every: list[JsonObject] = [{"cell": one.order.cell, "block": one.order.block, "node": one.node} for one in done]
        which: JsonObject = every[-1] if len(every) == 1 else {**every[-1], "together_with": every[:-1]}
        self._end_block(which, done[-1].order.reason)
        return node_faults.left_out(self.study, self.rows)

    def _keep(self, finished: BlockFinished) -> None:
        order = finished.order
        trials = plan.block_trials(self.study, self._keys[order.cell], order.block, order.first_trial)
        rows = node_blocks.stage(self.run.path, trials, finished.content, finished.node, finished.stored)
        # Judged there: the checks had the evidence of that machine.
        node_blocks.finish(self.run.path, self.run.is_committed, self.run.take_trial)
        self._mark("commit")
        for trial, row in zip(trials, rows, strict=True):
            self.progress.trial_started(trial, len(self.rows))
            checks = self.judge.took(row)
            self.rows.append(row)
            self.progress.trial_finished(trial, row, checks)

    def node_event(self, event: Joined | NodeLost | LeftOut | Notice, order: Order | None) -> None:
        """As `Head.node_event`."""
        facts = self.run.facts
        if isinstance(event, Joined):
            self.progress.note(f"node {event.node} has joined")
        elif isinstance(event, Notice):
            self.progress.note(f"node {event.node}: {event.text}")
        elif isinstance(event, LeftOut):
            left = {**facts.get("nodes_left_out", {}), event.node: event.reason}
            self.run.write_facts(facts | {"nodes_left_out": left})
            self.progress.note(f"node {event.node} is left out: {event.reason}")
        else:
            self.progress.note(f"node {event.node} is lost: {event.reason}")
        if order is not None:
            assert isinstance(event, NodeLost | LeftOut)
            item: LostBlock = {
                "cell": order.cell,
                "block": order.block,
                "node": event.node,
                "reason": event.reason,
            }
            known = self.run.facts
            self.run.write_facts(known | {"lost_blocks": [*known.get("lost_blocks", []), item]})
            self.progress.note(f"block {order.block + 1} of {order.cell} was lost with it, and is run again")

    def accept(self, node: str, there: RunDocument) -> str | None:
        """Why a node is not used: it would measure something else than this run; None where it is used."""
        facts = self.run.facts
        reason = differs(facts, there) or node_faults.left_out(self.study, self.rows).get(node)
        if reason is None:
            about: NodeFacts = {
                "machine": there["machine"],
                "network": there.get("network"),
                "pins": there["pins"],
            }
            joined = {**facts.get("nodes", {}), node: about}
            left = {name: why for name, why in facts.get("nodes_left_out", {}).items() if name != node}
            changed: RunDocument = {"nodes": joined, "nodes_left_out": left}
            if "network" not in facts and (network := there.get("network")) is not None:
                changed["network"] = network  # the lab's settings, where the first block is run
            self.run.write_facts(facts | changed)
        return reason


def differs(here: RunDocument, there: RunDocument) -> str | None:
    """In what a node is another instrument than the head says that this run has; None where it is the same."""
    for name in ("trifecta", "engine", "code"):
        if here.get(name) != there.get(name):
            own, its = _words(here.get(name)), _words(there.get(name))
            return f"its {name} is {its}, this run's is {own}; install the same version there"
    for factor, known, programs_there in (
        ("server", here["servers"], there["servers"]),
        ("client", here["clients"], there["clients"]),
    ):
        for level in sorted({*known, *programs_there}):
            own, its = _identity(known.get(level)), _identity(programs_there.get(level))
            if own != its:
                return f"{factor} {level} is {its} there and {own} here; install the same on both"
    missing = [one for one in there["unsupported"] if _which(one) not in {_which(item) for item in here["unsupported"]}]
    missing += there.get("failed", [])
    if missing:
        return f"{missing[0]['factor']} {missing[0]['level']} is not possible there: {missing[0]['reason']}"
    return None


def _words(value: object) -> str:
    return ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)


def _identity(program: InstalledProgram | None) -> str:
    if program is None:
        return "missing"
    digest = program.get("sha256")
    return program.get("version", "of no version") + (f" ({digest[:12]})" if digest else "")


def _which(item: Mapping[str, object]) -> tuple[object, object]:
    return item["factor"], item["level"]

"""Runs a gate: one run of two arms, which ends as soon as the gate's question is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.contract.run import RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.design.gate import GatePlan
from trifecta.design.model import Cell, Study
from trifecta.store.run import RunDirectory

# What judges starts threads, which must not be there when the sandbox is entered.
if TYPE_CHECKING:
    from trifecta.workloads.cluster.options import Cluster
    from trifecta.workloads.progress import Progress


@dataclass(frozen=True)
class GateRun:
    """A gate's run: the gate (with its end put off, where it was), the rows of its trials, the cells that it began
    with, and its ``run.json``.
    """

    run: Path
    gate: GatePlan
    rows: list[TrialRow]
    cells: list[Cell]
    facts: RunDocument
    interrupted: bool


def run_gate(
    gate: GatePlan,
    folder: Path,
    progress: Progress,
    stop: Callable[[], bool],
    facts: RunDocument,
    *,
    resume: bool = False,
    budget_ns: int | None = None,
    cluster: Cluster | None = None,
) -> GateRun:
    """Measure a gate into a new folder, or go on with it (``budget_ns``: for so much longer); inside the sandbox, as
    `run_study`, or with ``cluster`` on the nodes of a cluster, as `run_on_cluster`. ``facts``: what ``any`` stood for,
    and what was asked, for a new one's ``run.json``.
    """
    from trifecta.analysis.gate_planner import GatePlanner
    from trifecta.workloads.extending import RunExtension
    from trifecta.workloads.run_on import runner_on

    family: list[Cell] = []
    gates: list[GatePlan] = [gate]

    def planner(study: Study, cells: Sequence[Cell], now_ns: int) -> GatePlanner:
        if not family:  # later ones lack the cells of servers that have failed, whose tests stay open
            family.extend(cells)
        gates[:] = [replace(gate, study=study)]
        return GatePlanner(gates[0], family, cells, now_ns)

    more = RunExtension(budget_ns=budget_ns, of_gate=True)
    run_it = runner_on(cluster)
    outcome = run_it(gate.study, folder, progress, stop, resume=resume, more_facts=facts, planner=planner, more=more)
    run = RunDirectory.open(outcome.run_path)
    return GateRun(outcome.run_path, gates[0], run.rows(), family, run.facts, outcome.interrupted)

"""Runs a gate: one run of two arms, which ends as soon as the gate's question is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.contract.run import RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.design.gate import GatePlan
from trifecta.design.model import Cell, Study
from trifecta.store.run import RunDirectory

# What judges starts threads, which must not be there when the sandbox is entered.
if TYPE_CHECKING:
    from trifecta.workloads.progress import Progress


@dataclass(frozen=True)
class Measured:
    """A gate's run: the rows of its trials, the cells that it began with, and its ``run.json``."""

    run: Path
    rows: list[TrialRow]
    cells: list[Cell]
    facts: RunDocument
    interrupted: bool


def run_gate(
    gate: GatePlan, folder: Path, progress: Progress, stop: Callable[[], bool], facts: RunDocument
) -> Measured:
    """Measure a gate into a new folder; inside the sandbox, as `run_study`. ``facts``: what ``any`` stood for."""
    from trifecta.analysis.gate_planner import GatePlanner
    from trifecta.workloads.runner import run_study

    family: list[Cell] = []

    def planner(_: Study, cells: Sequence[Cell], now_ns: int) -> GatePlanner:
        if not family:  # later ones lack the cells of servers that have failed, whose tests stay open
            family.extend(cells)
        return GatePlanner(gate, family, cells, now_ns)

    outcome = run_study(gate.study, folder, progress, stop, any_levels=facts, planner=planner)
    run = RunDirectory.open(outcome.run_path)
    return Measured(outcome.run_path, run.rows(), family, run.facts, outcome.interrupted)

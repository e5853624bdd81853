"""The command line with an invented lab: ``python -m tests.cli.fake_gate gate STUDY ...``, or ``resume RUN``.

FAKE_WORSE is how many times as long the candidate takes, with noise of 1 %; with FAKE_INTERRUPTED the first trials are
all that a new run gets. The rest is the command's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.analysis.gates import FACTS, simulate, times
from trifecta.cli import main, running
from trifecta.contract.run import RunDocument
from trifecta.design import plan
from trifecta.design.gate import GatePlan
from trifecta.store.run import RunDirectory
from trifecta.workloads import gate as gates
from trifecta.workloads.facts import study_digest


def run_gate(
    gate: GatePlan,
    folder: Path,
    progress: Any,
    stop: Callable[[], bool],
    facts: RunDocument,
    *,
    resume: bool = False,
    budget_ns: int | None = None,
    cluster: None = None,
) -> gates.GateRun:
    """What a lab would have measured; the run has no trials, only what says how to go on with it."""
    if not resume:
        about: RunDocument = {"study": {"sha256": study_digest(gate.study)}, "unsupported": []}
        RunDirectory.create(folder, {**FACTS, **about, **facts}, gate.study.source).close()
    longer = replace(gate.study, budget_ns=(gate.study.budget_ns or 0) + (budget_ns or 0))
    gate = replace(gate, study=longer)
    value = times(float(os.environ.get("FAKE_WORSE", "1")), 0.01, 3, gate)
    _, ending, rows = simulate(gate, value)
    ended: RunDocument = {**FACTS, **facts, "ended_because": ending.reason}
    killed = not resume and "FAKE_INTERRUPTED" in os.environ
    return gates.GateRun(folder, gate, rows[: 4 if killed else None], plan.cells(gate.study), ended, killed or stop())


if __name__ == "__main__":
    running.enter_lab = lambda studies: None
    gates.run_gate = run_gate
    sys.exit(main.run(sys.argv[1:]))

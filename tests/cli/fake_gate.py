"""The command line with an invented lab: ``python -m tests.cli.fake_gate gate STUDY ...``.

FAKE_WORSE is how many times as long the candidate takes, with noise of 1 %. The rest is the command's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.analysis.gates import FACTS, simulate, times
from trifecta.cli import main, running
from trifecta.contract.run import RunDocument
from trifecta.design import plan
from trifecta.design.gate import GatePlan
from trifecta.workloads import gate as gates


def run_gate(
    gate: GatePlan, folder: Path, progress: Any, stop: Callable[[], bool], facts: RunDocument
) -> gates.Measured:
    """What a lab would have measured."""
    value = times(float(os.environ.get("FAKE_WORSE", "1")), 0.01, 3, gate)
    _, ending, rows = simulate(gate, value)
    ended: RunDocument = {**FACTS, **facts, "ended_because": ending.reason}
    return gates.Measured(folder, rows, plan.cells(gate.study), ended, interrupted=stop())


if __name__ == "__main__":
    running.enter_lab = lambda studies: None
    gates.run_gate = run_gate
    sys.exit(main.run(sys.argv[1:]))

"""Gates on invented labs whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from tests.analysis.worlds import make_row
from trifecta.analysis.estimate import Row
from trifecta.analysis.gate import Judged, judge_gate
from trifecta.analysis.gate_planner import GatePlanner
from trifecta.analysis.planner import Decision, Stop
from trifecta.contract.machine import StaticFacts
from trifecta.contract.run import RunDocument
from trifecta.design import plan
from trifecta.design.gate import GatePlan, read_conditions, read_refs
from trifecta.design.model import Trial
from trifecta.design.study_file import parse_study

TRIAL_NS = 1_000_000_000
SPENT = {"started_ns": TRIAL_NS, "ended_ns": 2 * TRIAL_NS, "server_cpu_ns_per_request": 50_000.0}
TEXT = """study: gated
workload: {{requests: 100}}
paths: {{far: {{rtt: 80 ms}}}}
factors: {{protocol: [{protocols}], path: [far]}}
budget: {budget}
"""


def gate_of(
    fail_on: Sequence[str] = (),
    *,
    candidate: str = "caddy",
    protocols: str = "HTTP/2",
    budget: str = "90 s",
    sets: Sequence[str] = (),
) -> GatePlan:
    """A gate of a server against ``origin`` in as many cells as protocols."""
    refs = read_refs("origin", candidate)
    text = TEXT.format(protocols=protocols, budget=budget)
    study = parse_study(text, "gated.yaml", sets, change=refs.change)
    return GatePlan(study, read_conditions(fail_on, study))


def times(worse: float, sigma: float, seed: int, gate: GatePlan) -> Callable[[Trial], float]:
    """Median latencies in ns: 1 ms, the candidate's longer, with log-normal noise."""
    rng = np.random.default_rng(seed)

    def value(trial: Trial) -> float:
        return 1e6 * (worse if trial.arm == gate.candidate else 1.0) * float(rng.lognormal(0, sigma))

    return value


def simulate(gate: GatePlan, value: Callable[[Trial], float]) -> tuple[Judged, Stop, list[Row]]:
    """Run a gate to its end; a trial takes a second."""
    cells = plan.cells(gate.study)
    planner, rows = GatePlanner(gate, cells, cells), list[Row]()
    while isinstance(step := planner.next(rows, len(rows) * TRIAL_NS), Decision):
        for trial in plan.block_trials(gate.study, step.cell, step.block, len(rows)):
            rows.append(make_row(trial, value(trial), **SPENT))
    return judge_gate(gate, rows, cells), step, rows


def some_rows(gate: GatePlan, blocks: int, **columns: Callable[[Trial], float]) -> list[Row]:
    """So many blocks of every cell; ``columns`` say what stands in a column of a trial."""
    rows: list[Row] = []
    for block in range(blocks):
        for cell in plan.cells(gate.study):
            trials = plan.block_trials(gate.study, cell, block, len(rows))
            rows += [make_row(trial, 1e6, **{name: of(trial) for name, of in columns.items()}) for trial in trials]
    return rows


def load_json(octets: int, requests: int = 100) -> str:
    """What a client counted."""
    return json.dumps({"wire_bytes_in": octets * requests - 7, "wire_bytes_out": 7, "samples": requests})


MACHINE: StaticFacts = {
    "kernel": "6.1", "architecture": "x86_64", "cpu_model": "a model", "cpus": 2, "cpus_allowed": 2,
    "memory_bytes": 1, "virtual_machine": True, "clocksource": "tsc", "governor": None, "distribution": "Debian",
}  # fmt: skip
FACTS: RunDocument = {
    "trifecta": "0.1.0", "engine": {"engine": "0.1.0"}, "machine": MACHINE, "started_utc": "2026-11-25T12:00:00+00:00",
    "servers": {"origin": {"version": "0.1.0"}, "caddy": {"version": "2.10"}}, "code": {"engine": "00ff"},
    "elapsed_ns": 42_000_000_000, "ended_because": "the budget is spent",
}  # fmt: skip

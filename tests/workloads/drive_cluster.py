"""Runs a study on nodes of this machine: ``python -m tests.workloads.drive_cluster FOLDER JSON``.

JSON: {"set": [overrides], "nodes": how many, "resume": bool, "store": URL, "gate": [baseline, candidate],
"map": blocks}. Prints an event a line as JSON, the outcome last.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tests.workloads.drive import _Events
from tests.workloads.local_launcher import LocalLauncher
from trifecta import studies
from trifecta.analysis.gate import judge_gate
from trifecta.design.errors import TrifectaError
from trifecta.design.gate import GatePlan, read_conditions, read_refs
from trifecta.design.mapping import change_to_map, make_plan
from trifecta.workloads.cluster.head import run_on_cluster
from trifecta.workloads.cluster.options import Cluster
from trifecta.workloads.gate import run_gate
from trifecta.workloads.mapping import result_of, run_map
from trifecta.workloads.stopping import StopFlag


def main() -> int:
    """Run it."""
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    try:
        if "gate" in request:
            return gate(folder, request)
        if "map" in request:
            return plane(folder, request)
        study = studies.load("race", request["set"], studies.known_servers())
        with StopFlag() as stop:
            outcome = run_on_cluster(
                study,
                folder,
                _Events(),  # type: ignore[arg-type]
                stop,
                launch=lambda: LocalLauncher(request["nodes"]),
                store=request.get("store"),
                resume=request.get("resume", False),
            )
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"kind": outcome.kind, "trials": outcome.trials, "valid": outcome.valid_trials}), flush=True)
    return 130 if outcome.interrupted else 0


def gate(folder: Path, request: Any) -> int:
    """Run a gate of two levels."""
    refs = read_refs(*request["gate"])
    study = studies.load("race", request["set"], studies.known_servers(), change=refs.change)
    plan = GatePlan(study, read_conditions((), study))
    cluster = Cluster(partial(LocalLauncher, request["nodes"]), request.get("store"))
    with StopFlag() as stop:
        done = run_gate(plan, folder, _Events(), stop, {}, cluster=cluster)  # type: ignore[arg-type]
    found = judge_gate(done.gate, done.rows, done.cells)
    tests = [{"state": one.state, "blocks": one.blocks, "reason": one.reason} for one in found.tests]
    print(json.dumps({"state": found.state, "tests": tests, "ended": done.facts["ended_because"]}), flush=True)
    return 0


def plane(folder: Path, request: Any) -> int:
    """Measure a map of so many blocks."""
    plan = make_plan("rtt=5ms..50ms", "loss=0..2%", "4x4", "h3,h2", blocks=request["map"])
    changed = partial(change_to_map, plan=plan, overrides=request["set"])
    study = studies.load("objects", change=changed)
    resume = request.get("resume", False)
    with StopFlag() as stop:
        events: Any = _Events()
        cluster = Cluster(partial(LocalLauncher, request["nodes"]), request.get("store"))
        outcome = run_map(plan, study, folder, events, stop, resume=resume, cluster=cluster)
    made = result_of(folder)
    print(json.dumps({"kind": outcome.kind, "blocks": made.blocks, "nodes": made.nodes()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Probes servers that are wrong on purpose, or runs a study with them, in a process of its own.

``python -m tests.implementations.drive_bad FOLDER JSON`` with {"probe": [names], "depth": "quick"} or
{"study": [names], "set": [...]}.
The last line is the result as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def drive(folder: Path, timeout_s: float = 200, wrapper: tuple[str, ...] = (), **request: Any) -> tuple[int, Any, str]:
    """Run it to its end: exit code, what it said last (None when it failed), standard error."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-m", "tests.implementations.drive_bad", str(folder), json.dumps(request)],
        capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=timeout_s,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else None, done.stderr


def main() -> int:
    """Run it."""
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    from trifecta.lab import sandbox

    sandbox.enter()

    from tests.implementations.bad_server import BAD
    from trifecta.design.errors import TrifectaError
    from trifecta.implementations import running
    from trifecta.implementations.registry import SERVERS
    from trifecta.workloads.conformance import bench, servers

    names = request.get("probe") or request["study"]
    adapters = {name: BAD[name]() if name in BAD else SERVERS[name] for name in names}
    running.READY_TIMEOUT_S = request.get("ready_timeout_s", running.READY_TIMEOUT_S)
    servers.READY_S = request.get("ready_s", servers.READY_S)
    servers.READY_MORE_S = request.get("ready_more_s", min(servers.READY_S / 4, servers.READY_MORE_S))
    servers._ASK = dataclasses.replace(servers._ASK, timeout_ns=int(request.get("ask_s", 2) * 1e9))
    bench.DEVICE = request.get("device", bench.DEVICE)
    running.FILE_LIMIT_BYTES = request.get("file_limit_bytes", running.FILE_LIMIT_BYTES)
    try:
        said = _probe(folder, adapters, request) if "probe" in request else _study(folder, adapters, request)
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(said), flush=True)
    return 0


def _probe(folder: Path, adapters: dict[str, Any], request: dict[str, Any]) -> list[dict[str, Any]]:
    from trifecta.design.conformance import cases
    from trifecta.lab.engine import find_engine
    from trifecta.workloads.conformance.probe import Probe, Subjects, standalone_bench

    with standalone_bench(find_engine(), folder, list(adapters), lambda: False) as bench:
        results = Probe(bench, Subjects(adapters, {}, cases(request.get("depth", "full"))), lambda *_: None).run()
    return [dataclasses.asdict(one) for one in results]


def _study(folder: Path, adapters: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    from trifecta import studies
    from trifecta.workloads.runner import run_study

    study = studies.load("race", [f"server={','.join(adapters)}", *request.get("set", [])], list(adapters))
    outcome = run_study(study, folder, adapters=adapters)
    return {"kind": outcome.kind, "trials": outcome.trials, "valid": outcome.valid_trials}


if __name__ == "__main__":
    sys.exit(main())

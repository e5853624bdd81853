"""Runs a study on nodes of this machine: ``python -m tests.workloads.drive_cluster FOLDER JSON``.

JSON: {"set": [overrides], "nodes": how many, "resume": bool}. Prints an event a line as JSON, the outcome last.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.workloads.drive import _Events
from tests.workloads.local_launcher import LocalLauncher
from trifecta import studies
from trifecta.design.errors import TrifectaError
from trifecta.workloads.cluster.head import run_on_cluster
from trifecta.workloads.stopping import StopFlag


def main() -> int:
    """Run it."""
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    try:
        study = studies.load("race", request["set"], studies.known_servers())
        with StopFlag() as stop:
            outcome = run_on_cluster(
                study,
                folder,
                _Events(),  # type: ignore[arg-type]
                stop,
                launch=lambda: LocalLauncher(request["nodes"]),
                resume=request.get("resume", False),
            )
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"kind": outcome.kind, "trials": outcome.trials, "valid": outcome.valid_trials}), flush=True)
    return 130 if outcome.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())

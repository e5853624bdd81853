"""Runs a study in a process of its own: ``python -m tests.workloads.drive FOLDER JSON``.

JSON: {"study": name, "set": [overrides], "resume": bool, "more": {...}, "faults": {...},
"origin": {changes of its configuration},
"grace_s": how much longer than its requests may take the load is waited for}.
Prints an event a line as JSON, the outcome last. Exit code as the command line's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SMALL = ["path=clean", "server=origin", "connection=reused", "budget=2 min", "blocks.at_least=1", "blocks.at_most=1"]


class _Events:
    """Prints the events a test looks at."""

    def __getattr__(self, name: str) -> Any:
        def say(*values: Any) -> None:
            said: list[Any] = []
            for value in values:
                if isinstance(value, str | int | float | None):
                    said.append(value)
                elif hasattr(value, "trial"):
                    said.append(value.trial)
            print(json.dumps([name, *said]), flush=True)

        return say


def main() -> int:
    """Run it."""
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    from trifecta.lab import sandbox

    sandbox.enter()
    from tests.workloads.drive_inside import run

    return run(folder, request, _Events())


def command(folder: Path, **request: Any) -> list[str]:
    """The command that runs it."""
    return [sys.executable, "-m", "tests.workloads.drive", str(folder), json.dumps(request)]


def start(
    folder: Path, environment: dict[str, str] | None = None, wrapper: tuple[str, ...] = (), **request: Any
) -> subprocess.Popen[str]:
    """Start it."""
    return subprocess.Popen(
        [*wrapper, *command(folder, **request)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
    )


def finish(
    folder: Path,
    timeout_s: float = 120,
    environment: dict[str, str] | None = None,
    wrapper: tuple[str, ...] = (),
    **request: Any,
) -> tuple[int, list[list[Any]], dict[str, Any], str]:
    """Run it to its end: exit code, events, outcome ({} when it failed), standard error."""
    process = start(folder, environment, wrapper, **request)
    out, errors = process.communicate(timeout=timeout_s)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith(("[", "{"))]
    outcome = lines.pop() if lines and isinstance(lines[-1], dict) else {}
    return process.returncode, lines, outcome, errors


if __name__ == "__main__":
    sys.exit(main())

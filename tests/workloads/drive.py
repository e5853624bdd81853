"""Runs a study in a process of its own: ``python -m tests.workloads.drive FOLDER JSON``.

JSON: {"study": name, "set": [overrides], "resume": bool, "more": {...}, "faults": {...},
"origin": {changes of its configuration},
"origins": {another server's name: {changes of an origin that takes its place}},
"proxies": [names of servers whose place a proxy takes that is always there],
"grace_s": how much longer than its requests may take the load is waited for}.
Prints an event a line as JSON, the outcome last. Exit code as the command line's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
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


def said_last(
    started: list[subprocess.Popen[str]],
    module: str,
    *words: str,
    environment: dict[str, str] | None = None,
    timeout_s: float = 1050,
) -> Any:
    """What another program of these tests says last, as JSON; it is among ``started``, and has to end well."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.workloads.{module}", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=environment,
    )
    started.append(process)
    out, errors = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def measuring(process: subprocess.Popen[str], patience_s: float = 60) -> int:
    """The load of the first trial of a study that was started: its process, once it has a connection."""
    assert process.stdout is not None
    while not process.stdout.readline().startswith('["trial_started"'):
        assert process.poll() is None
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        for load in _loads(process.pid):
            with suppress(OSError):  # it may end meanwhile
                if any(str(each.readlink()).startswith("socket:") for each in Path(f"/proc/{load}/fd").iterdir()):
                    return load
        time.sleep(0.005)
    raise TimeoutError("no load has asked anything")


def _loads(root: int) -> list[int]:
    parents: dict[int, int] = {}
    loads = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if b"\0load\0" in (entry / "cmdline").read_bytes():
                loads.append(int(entry.name))
    return [load for load in loads if root in _ancestors(load, parents)]


def _ancestors(process: int, parents: dict[int, int]) -> set[int]:
    found = set()
    while process in parents:
        process = parents[process]
        found.add(process)
    return found


def finish(
    folder: Path,
    timeout_s: float = 280,
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

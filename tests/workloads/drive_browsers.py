"""A study of a browser in the sandbox: ``python -m tests.workloads.drive_browsers FOLDER JSON``.

JSON: {"study": text, "driver": what ``fake_browser`` is asked for (without: the real browser), "resume": bool,
"faults": {...}, "grace_s": how long a driver is waited for}. Prints an event a line, the outcome last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.workloads.drive import REPOSITORY, _Events


def main() -> int:
    """Run it."""
    from trifecta.lab import cgroups, sandbox

    sandbox.enter(cgroups.forget)
    return run(Path(sys.argv[1]), json.loads(sys.argv[2]))


def run(folder: Path, request: dict[str, Any]) -> int:
    """Inside the sandbox."""
    from trifecta.design.errors import TrifectaError
    from trifecta.design.levels import Surroundings
    from trifecta.design.study_file import parse_study
    from trifecta.implementations.browser import BrowserAdapter, RunningBrowser
    from trifecta.implementations.registry import BROWSERS
    from trifecta.workloads.faults import Faults
    from trifecta.workloads.runner import run_study
    from trifecta.workloads.stopping import StopFlag
    from trifecta.workloads.visits import programs, trial

    class FakeBrowser(BrowserAdapter):
        """Found everywhere; `fake_browser` does its work."""

        name = "chromium"
        source = "tests/workloads/fake_browser.py"

        def find(self) -> str:
            return "1"

        async def launch(self, job: Any) -> RunningBrowser:
            raise NotImplementedError

    browsers: Any = BROWSERS
    command: tuple[str, ...] = ()
    if "driver" in request:
        script = str(Path(__file__).with_name("fake_browser.py"))
        command = (sys.executable, script, json.dumps(request["driver"]))
        browsers = {"chromium": FakeBrowser()}
    trial._GRACE_S = request.get("grace_s", trial._GRACE_S)
    programs._END_S = request.get("grace_s", programs._END_S)
    try:
        study = parse_study(request["study"], "study.yaml", request.get("set", []), Surroundings())
        with StopFlag() as stop:
            outcome = run_study(
                study,
                folder,
                _Events(),
                stop,
                resume=request.get("resume", False),
                browsers=browsers,
                faults=Faults(**request.get("faults", {}), browser_driver=command),
            )
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    said = {"kind": outcome.kind, "trials": outcome.trials, "valid": outcome.valid_trials}
    print(json.dumps(said), flush=True)
    return 130 if outcome.interrupted else 0


def start(folder: Path, **request: Any) -> subprocess.Popen[str]:
    """Start it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.workloads.drive_browsers", str(folder), json.dumps(request)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ},
    )


def finish(folder: Path, **request: Any) -> tuple[int, dict[str, Any], str]:
    """Run it to its end: exit code, outcome ({} when it failed), standard error."""
    process = start(folder, **request)
    out, errors = process.communicate(timeout=120)
    lines = [json.loads(line) for line in out.splitlines()]
    return process.returncode, lines[-1] if lines and isinstance(lines[-1], dict) else {}, errors


if __name__ == "__main__":
    sys.exit(main())

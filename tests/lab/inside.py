"""Runs a piece of Python inside the sandbox, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

_ENTER = "from trifecta.lab import sandbox\nsandbox.enter()\n"


def run_inside(code: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Run ``code`` after entering the sandbox; its end and what it printed."""
    return subprocess.run(
        [sys.executable, "-c", _ENTER + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def told_inside(helpers: str, folder: Path, code: str, timeout_s: float = 280) -> Any:
    """What ``code`` prints last, as JSON; it is run after ``helpers``, and knows ``folder``. It has to end well."""
    head = f"from pathlib import Path\nfolder = Path({str(folder)!r})\n{helpers}\n"
    done = run_inside(head + textwrap.dedent(code), timeout_s)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def start_inside(code: str) -> subprocess.Popen[str]:
    """Start ``code`` inside the sandbox; it should print a line when it is there."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", _ENTER + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

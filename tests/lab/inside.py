"""Runs a piece of Python inside the sandbox, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

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


def start_inside(code: str) -> subprocess.Popen[str]:
    """Start ``code`` inside the sandbox; it should print a line when it is there."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", _ENTER + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

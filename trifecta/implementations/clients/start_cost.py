"""What it costs to start a foreign client, apart from what it then does: in a short trial that can be most of it."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess

from trifecta.implementations.client import ClientAdapter, Job
from trifecta.implementations.server import Unsupported

_TIMES = 3
_TIMEOUT_S = 20.0


def start_cpu_ns(adapter: ClientAdapter, job: Job) -> int | None:
    """CPU time (user and system) of a start without a request, median of three; None when it cannot be told."""
    try:
        command = adapter.start_only(job)
    except (Unsupported, OSError, ValueError):
        return None
    if command is None:
        return None
    used = []
    for _ in range(_TIMES):
        before = _children_cpu_ns()
        try:
            done = subprocess.run(
                [os.fspath(argument) for argument in command.arguments],
                env={**os.environ, **command.environment},
                cwd=job.state,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0:
            return None
        used.append(_children_cpu_ns() - before)
    return round(statistics.median(used))


def _children_cpu_ns() -> int:
    """Of all children that have ended (getrusage(2))."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)

"""Whether processes have ended: gone, or waiting to be read, and what they are; they may go while they are asked."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil


def ended(process: psutil.Process) -> bool:
    """Whether one has."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def command(process: psutil.Process) -> list[str]:
    """The words it was started with; none of one that has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def all_ended(processes: Sequence[psutil.Process], patience_s: float) -> bool:
    """Whether they all do within so long."""
    until = time.monotonic() + patience_s
    while not all(map(ended, processes)) and time.monotonic() < until:
        time.sleep(0.02)
    return all(map(ended, processes))


def gone(pid: int, patience_s: float = 20.0) -> bool:
    """Whether the process of a number does within so long."""
    try:
        return all_ended([psutil.Process(pid)], patience_s)
    except psutil.NoSuchProcess:
        return True

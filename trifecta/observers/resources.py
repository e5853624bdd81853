"""CPU and memory of the measured programs: before, ten times a second during, and after a trial."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from trifecta.lab import linux

_PAGE = os.sysconf("SC_PAGE_SIZE")


def rss_bytes(pid: int) -> int | None:
    """Resident memory of a process; None when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


def run_delay_ns(pid: int) -> int | None:
    """Time in ns that the threads of a process were ready to run but had no CPU (second field of schedstat).

    It can still be read from a process that has ended but was not waited for.
    """
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text(encoding="ascii").split()[1]) for thread in threads)
    except (OSError, IndexError):
        return None


class ResourceObserver:
    """Follows the processes of one trial. ``sample`` is called by whoever waits for the trial to end."""

    def __init__(self, trial: str, processes: dict[str, int]) -> None:
        """``processes``: role to process id."""
        self._trial = trial
        self._processes = dict(processes)
        self._delays: dict[str, list[int]] = {role: [] for role in processes}
        self.rows: list[dict[str, Any]] = []

    def sample(self) -> None:
        """Take one reading of every process; one that ended has none."""
        now = time.monotonic_ns()
        for role, pid in self._processes.items():
            try:
                cpu_ns = linux.process_cpu_ns(pid)
            except ProcessLookupError:
                continue
            self.rows.append(
                {"trial": self._trial, "time_ns": now, "process": role, "cpu_ns": cpu_ns, "rss_bytes": rss_bytes(pid)}
            )
            delay = run_delay_ns(pid)
            if delay is not None:
                self._delays[role].append(delay)

    def follow(self, role: str, pid: int) -> None:
        """Follow another process from now on: one that was not there when the trial began."""
        self._processes[role] = pid
        self._delays[role] = []
        self.sample()

    def cpu_used_ns(self, role: str) -> int | None:
        """CPU time between the first and the last reading of a process; None with fewer than two."""
        readings = [row["cpu_ns"] for row in self.rows if row["process"] == role]
        return readings[-1] - readings[0] if len(readings) > 1 else None

    def run_delay_ns(self, role: str) -> int | None:
        """Time without a CPU between the first and the last reading; None where the kernel does not tell."""
        delays = self._delays.get(role, [])
        return max(0, delays[-1] - delays[0]) if len(delays) > 1 else None

    def peak_rss_bytes(self, role: str) -> int | None:
        """Largest resident memory seen."""
        return max((row["rss_bytes"] for row in self.rows if row["process"] == role and row["rss_bytes"]), default=None)

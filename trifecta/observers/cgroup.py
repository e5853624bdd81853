"""A control group's memory and CPU time, of cgroup v1 and v2 alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trifecta.observers.open_files import OpenFile, hold

_MEMORY_FILES = ("memory.current", "memory.usage_in_bytes")  # v2, v1


@dataclass(frozen=True)
class CgroupReading:
    """Memory charged to the group now and its CPU time so far; None: not told."""

    memory_bytes: int | None
    cpu_ns: int | None


class CgroupReader:
    """Reads one service's control groups, with their files kept open."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """``folders``: of each controller's hierarchy (v1), or the only one (v2); what they hold tells the version."""
        self._memory: OpenFile | None = None
        self._cpuacct: OpenFile | None = None
        self._cpu_stat: OpenFile | None = None
        for folder in dict.fromkeys(folders):
            for name in _MEMORY_FILES:
                self._memory = self._memory or hold(folder / name)
            self._cpuacct = self._cpuacct or hold(folder / "cpuacct.usage")
            if self._cpu_stat is None and (folder / "cgroup.controllers").exists():  # v1 has a cpu.stat without usage
                self._cpu_stat = hold(folder / "cpu.stat")

    def take(self) -> CgroupReading:
        """One reading; a group that was removed has none."""
        return CgroupReading(_number(self._memory), self._cpu_ns())

    def close(self) -> None:
        """Close its files."""
        for file in (self._memory, self._cpuacct, self._cpu_stat):
            if file is not None:
                file.close()

    def _cpu_ns(self) -> int | None:
        if self._cpuacct is not None:
            return _number(self._cpuacct)
        if self._cpu_stat is None:
            return None
        try:
            fields = dict(line.split() for line in self._cpu_stat.read_short().splitlines())
            return int(fields[b"usage_usec"]) * 1000
        except (OSError, ValueError, KeyError):
            return None


def _number(file: OpenFile | None) -> int | None:
    if file is None:
        return None
    try:
        return int(file.read_short())
    except (OSError, ValueError):
        return None

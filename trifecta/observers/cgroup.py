"""A control group's memory and CPU time, of cgroup v1 and v2 alike; and which groups a process is in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trifecta.observers.held import HeldFile, hold

_MEMORY_FILES = ("memory.current", "memory.usage_in_bytes")  # v2, v1
_CONTROLLERS = ("memory", "cpuacct")  # of v1; v2 has one hierarchy for all


def cgroup_paths(pid: int) -> dict[str, Path]:
    """The folders of a process's control groups: ``memory`` and ``cpuacct`` (v1), ``unified`` (v2); none: empty.

    A hierarchy's root is left out: it accounts for the whole machine. So is a group that cannot be seen from here.
    """
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name: path for name, path in parse_cgroups(groups, mounts).items() if path.is_dir()}


def parse_cgroups(groups: str, mounts: str) -> dict[str, Path]:
    """Folders by the texts of /proc/PID/cgroup (cgroups(7)) and /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    where: dict[str, tuple[str, str]] = {}  # controller, or "" for v2 -> root of the mount, mount point
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if not separator or len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2":
            where[""] = (fields[3], fields[4])
        elif kinds[0] == "cgroup":
            for option in kinds[2].split(","):
                where[option] = (fields[3], fields[4])
    found = {}
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if controller in where and controller in ("", *_CONTROLLERS) and path not in ("", "/"):
                root, point = where[controller]
                if not path.startswith("/..") and path.startswith(root):
                    found[controller or "unified"] = Path(point) / path[len(root.rstrip("/")) :].lstrip("/")
    return found


@dataclass(frozen=True)
class CgroupReading:
    """Memory charged to the group now and its CPU time so far; None: not told."""

    memory_bytes: int | None
    cpu_ns: int | None


class CgroupReader:
    """Reads one service's control groups, with their files kept open."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """``folders``: of each controller's hierarchy (v1), or the only one (v2); what they hold tells the version."""
        self._memory: HeldFile | None = None
        self._cpuacct: HeldFile | None = None
        self._cpu_stat: HeldFile | None = None
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


def _number(file: HeldFile | None) -> int | None:
    if file is None:
        return None
    try:
        return int(file.read_short())
    except (OSError, ValueError):
        return None

"""Control groups, v1 and v2 alike: which a process is in, and how those of a run end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from trifecta.lab import sandbox

_CONTROLLERS = ("memory", "cpuacct")  # of v1; v2 has one hierarchy for all
_MOUNTS = Path("/proc/self/mountinfo")


def cgroup_paths(pid: int) -> dict[str, Path]:
    """The folders of a process's control groups: ``memory`` and ``cpuacct`` (v1), ``unified`` (v2); none: empty.

    A hierarchy's root is left out: it accounts for the whole machine. So is a group that cannot be seen from here.
    """
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name: path for name, path in parse_cgroups(groups, mounts).items() if path.is_dir()}


def parse_cgroups(groups: str, mounts: str) -> dict[str, Path]:
    """Folders by the texts of /proc/PID/cgroup (cgroups(7)) and /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    where = _hierarchies(mounts)
    folders = {}
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if controller in where and controller in ("", *_CONTROLLERS) and path not in ("", "/"):
                root, point = where[controller]
                if not path.startswith("/..") and path.startswith(root):
                    folders[controller or "unified"] = Path(point) / path[len(root.rstrip("/")) :].lstrip("/")
    return folders


def mounted() -> bool:
    """Whether there is any hierarchy of control groups here."""
    return bool(_hierarchies(_mountinfo()))


def mount_points() -> dict[str, Path]:
    """Where the hierarchies are mounted, by controller (v1), or "" for v2."""
    return {name: Path(point) for name, (_, point) in _hierarchies(_mountinfo()).items()}


def remove(name: str, patience_s: float = 10.0, *, kill: bool = False) -> bool:
    """Remove the group ``name`` and all below it from every hierarchy; whether nothing of it is left.

    A group with processes cannot be removed: with ``kill`` they are ended, else their end is waited for. Linux keeps
    empty groups of ended processes, so nobody else would remove them.
    """
    deadline = time.monotonic() + patience_s
    points = sorted({point for _, point in _hierarchies(_mountinfo()).values()})
    while True:
        left = [group for point in points if (group := Path(point) / name).is_dir() and not _remove(group, kill)]
        if not left or time.monotonic() > deadline:
            return not left
        time.sleep(0.01)


def forget() -> None:
    """Remove the groups of this run's containers and limited programs; for ``sandbox.enter`` where there may be any."""
    remove(sandbox.mark())


def _remove(group: Path, kill: bool) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        if kill:
            _kill(Path(folder) / "cgroup.procs")
        with suppress(OSError):  # busy: a process of it is not gone yet
            Path(folder).rmdir()
    return not group.exists()


def _kill(members: Path) -> None:
    with suppress(OSError):
        for pid in members.read_text(encoding="ascii").split():
            if pid != "0":  # a process that this process namespace does not show
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def _mountinfo() -> str:
    return _MOUNTS.read_text(encoding="utf-8", errors="replace")


def _hierarchies(mounts: str) -> dict[str, tuple[str, str]]:
    """By controller (v1), or "" for v2: the root of the mount and the mount point."""
    where: dict[str, tuple[str, str]] = {}
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
    return where

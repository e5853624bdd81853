"""Programs with a share of a core: a control group with a quota of CPU time (cgroups(7), v1 and v2 alike).

The kernel's bandwidth control (Documentation/scheduler/sched-bwc.rst) lets a group run for its quota in every period
and then not until the next. Containers with a limit of CPU time are limited so, by default in periods of 100 ms; these
are as short as the least quota of 1 ms allows. The share is kept exactly; the pieces are as coarse as the kernel's
timer (4 ms at 250 Hz), because time that was taken too much is paid back later.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.lab import cgroups, sandbox

PERIOD_US = 10_000
LEAST_QUOTA_US = 1_000  # the kernel takes none below (sched-bwc.rst)
_REMEDY = "run as root on a machine whose control groups can be written"


class CpuShare:
    """A control group of one program, or of several that share its quota."""

    def __init__(self, name: str, share: float) -> None:
        """Make the group with ``share`` of one core; CannotError where this machine does not let us."""
        self.share = share
        self._mark = sandbox.mark() or f"trifecta-{os.getpid()}"
        try:
            parent, self._unified = _parent(self._mark)
            self.folder = parent / name
            self.folder.mkdir(exist_ok=True)
            self._limit(*quota_us(share))
        except OSError as error:
            raise CannotError(
                f"the kernel does not limit CPU time here ({error.filename}: {error.strerror}); {_REMEDY}"
            ) from error

    def add(self, pid: int) -> None:
        """Limit a process: all of its threads, and what it starts from now on. One that has ended is no error."""
        with suppress(ProcessLookupError):
            (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def throttled_ns(self) -> int:
        """How long its programs were kept from running so far, because the quota was used up."""
        return parse_throttled_ns((self.folder / "cpu.stat").read_text(encoding="ascii"))

    def close(self) -> None:
        """Remove the group; its programs have ended."""
        for folder in (self.folder, self.folder.parent):
            with suppress(OSError):  # others of this run are still there; the last one removes it
                folder.rmdir()

    def _limit(self, quota: int, period: int) -> None:
        if self._unified:
            (self.folder / "cpu.max").write_text(f"{quota} {period}", encoding="ascii")
            return
        (self.folder / "cpu.cfs_period_us").write_text(str(period), encoding="ascii")
        (self.folder / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")


def quota_us(share: float) -> tuple[int, int]:
    """The quota and the period that make a share of one core, in microseconds."""
    period = max(PERIOD_US, round(LEAST_QUOTA_US / share))
    return round(period * share), period


def parse_throttled_ns(stat: str) -> int:
    """The time throttled from a group's ``cpu.stat``: ``throttled_time`` in ns (v1), ``throttled_usec`` (v2)."""
    fields = dict(line.split(None, 1) for line in stat.splitlines() if " " in line)
    if "throttled_usec" in fields:
        return int(fields["throttled_usec"]) * 1000
    return int(fields.get("throttled_time", 0))


def problem() -> str | None:
    """Why no program can be limited here; None where it can."""
    try:
        CpuShare("trial", 0.5).close()
    except CannotError as error:
        return str(error)
    return None


def _parent(mark: str) -> tuple[Path, bool]:
    """This run's group in the hierarchy that limits CPU time, made where it is missing; whether that is v2."""
    points = cgroups.mount_points()
    if "cpu" in points:
        folder = points["cpu"] / mark
        folder.mkdir(exist_ok=True)
        return folder, False
    if "" not in points:
        raise CannotError(f"no control groups that limit CPU time are mounted; {_REMEDY}")
    folder = points[""] / mark
    folder.mkdir(exist_ok=True)
    for group in (points[""], folder):  # a group has the controllers that its parent hands down
        (group / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
    return folder, True

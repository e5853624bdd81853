"""The machine around a trial: what other work it had, what the hypervisor took, how fast its clocks tick."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.machine import MachineShares, StaticFacts

_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def _read(path: str) -> str | None:
    """Text of a file of /proc or /sys; None where this kernel has none or hides it."""
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def static_facts() -> StaticFacts:
    """What does not change during a run: kernel, processor, clock, memory."""
    uname = os.uname()
    model = next(
        (line.split(":", 1)[1].strip() for line in (_read("/proc/cpuinfo") or "").splitlines() if "model name" in line),
        None,
    )
    memory = next((line.split()[1] for line in (_read("/proc/meminfo") or "").splitlines() if "MemTotal" in line), None)
    hypervisor = any("hypervisor" in line.split() for line in (_read("/proc/cpuinfo") or "").splitlines()[:40])
    return {
        "kernel": f"{uname.sysname} {uname.release}",
        "architecture": uname.machine,
        "cpu_model": model,
        "cpus": os.cpu_count(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory) * 1024 if memory else None,
        "virtual_machine": hypervisor,
        "clocksource": (_read("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "").strip()
        or None,
        "governor": (_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "").strip() or None,
        "distribution": _distribution(),
    }


def _distribution() -> str | None:
    for line in (_read("/etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.split("=", 1)[1].strip('"')
    return None


@dataclass(frozen=True)
class _Reading:
    time_ns: int
    cpu: dict[str, int] | None  # clock ticks over all CPUs
    pressure_us: dict[str, int]
    own_cpu_ns: int


class MachineObserver:
    """Reads the machine's counters before and after a trial; counters of the whole machine, not of one namespace."""

    def begin(self, time_ns: int, own_cpu_ns: int) -> None:
        """A trial begins; ``own_cpu_ns`` is the CPU time of all of our processes so far."""
        self._before = self._take(time_ns, own_cpu_ns)

    def end(self, time_ns: int, own_cpu_ns: int) -> MachineShares:
        """The trial ends: shares of one second of one CPU, over the time between."""
        after = self._take(time_ns, own_cpu_ns)
        wall_ns = max(1, after.time_ns - self._before.time_ns)
        seconds: dict[str, float] = {}
        if after.cpu is not None and self._before.cpu is not None:
            seconds = {name: (after.cpu[name] - self._before.cpu[name]) / _TICKS for name in _CPU_FIELDS}
        # Interrupts are left out: during a trial they are the trial's own packets, and no process is charged for them.
        busy_s = sum(seconds.get(name, 0.0) for name in ("user", "nice", "system"))
        own_s = (after.own_cpu_ns - self._before.own_cpu_ns) / 1e9
        load = (_read("/proc/loadavg") or "").split()
        return {
            "wall_ns": wall_ns,
            # Ticks are 10 ms, so over a short trial these shares are coarse: `resolution` says how coarse.
            "steal_share": seconds["steal"] * 1e9 / wall_ns if seconds else None,
            "other_cpu_share": max(0.0, busy_s - own_s) * 1e9 / wall_ns if seconds else None,
            "interrupt_share": (seconds["irq"] + seconds["softirq"]) * 1e9 / wall_ns if seconds else None,
            "iowait_share": seconds["iowait"] * 1e9 / wall_ns if seconds else None,
            "resolution": 1e9 / _TICKS / wall_ns,
            "pressure_share": {
                name: (value - self._before.pressure_us.get(name, value)) * 1000 / wall_ns
                for name, value in after.pressure_us.items()
            },
            "load_average_1m": float(load[0]) if load else None,
            "cpu_mhz": _frequencies(),
            "cpus": os.cpu_count(),
        }

    def _take(self, time_ns: int, own_cpu_ns: int) -> _Reading:
        first = (_read("/proc/stat") or "").split("\n", 1)[0].split()[1:]
        cpu = dict(zip(_CPU_FIELDS, map(int, first), strict=False)) if len(first) >= len(_CPU_FIELDS) else None
        return _Reading(time_ns, cpu, _pressure(("cpu", "memory", "io")), own_cpu_ns)


def _pressure(names: Iterable[str]) -> dict[str, int]:
    """Stalled time so far in us, of some task (PSI, kernel documentation accounting/psi.rst)."""
    totals = {}
    for name in names:
        for line in (_read(f"/proc/pressure/{name}") or "").splitlines():
            if line.startswith("some"):
                totals[name] = int(line.rsplit("total=", 1)[1])
    return totals


def _frequencies() -> list[float] | None:
    """Current frequency of each CPU in MHz, where it can be seen."""
    values = [
        float(line.split(":", 1)[1])
        for line in (_read("/proc/cpuinfo") or "").splitlines()
        if line.startswith("cpu MHz")
    ]
    return values or None

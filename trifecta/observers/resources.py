"""What the programs and hosts of a trial use: read before, ten times a second during, and after it.

Whoever waits for the trial's end calls ``sample``: a thread of the observer's own would take the interpreter's lock
from that waiting, and move between namespaces beside it (setns(2)), for readings at no better times. All files stay
open between readings, so that the observer itself costs below 1 % of a core (``python -m bench.sampler``).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from trifecta.contract.machine import SamplerCost
from trifecta.contract.resources import Reading
from trifecta.lab.host import Host
from trifecta.observers import devices
from trifecta.observers.cgroup import CgroupReader
from trifecta.observers.devices import TrafficReader, TrafficReading
from trifecta.observers.process import ProcessesReader, rss_bytes, run_delay_ns, total

__all__ = ["ResourceObserver", "host_row", "rss_bytes", "run_delay_ns"]


def host_row(name: str, *, loopback: bool = False) -> str:
    """The name in the column ``process`` of what a host's devices carried, or its loopback."""
    return f"host {name} lo" if loopback else f"host {name}"


class ResourceObserver:
    """Follows the processes, control groups and hosts of one trial; to be closed at the trial's end."""

    def __init__(
        self,
        trial: str,
        processes: Mapping[str, int | Sequence[int]],
        *,
        cgroups: Mapping[str, Sequence[Mapping[str, Path]]] | None = None,
        hosts: Mapping[str, Host] | None = None,
    ) -> None:
        """``processes``: role or service to process id on this machine, also of one in a container; several are one.

        ``cgroups``: role to the folders of its processes' control groups, by controller (`cgroups.cgroup_paths`).
        ``hosts``: those whose devices are read, by name. OSError when a host's devices cannot be read.
        """
        self._trial = trial
        self._processes: dict[str, ProcessesReader] = {}
        self._cgroups: dict[str, list[CgroupReader]] = {}
        self._devices: dict[int, TrafficReader] = {}  # by namespace, which a host may share with a process
        self._traffic: dict[str, int] = {}  # process -> the namespace that it has for itself
        self._delays: dict[str, list[int]] = {}
        self._samples = 0
        self._own_cpu_ns = 0
        self._began_ns = time.monotonic_ns()
        self.rows: list[Reading] = []
        before = time.thread_time_ns()
        for role, pids in processes.items():
            self._add(role, [pids] if isinstance(pids, int) else pids, (cgroups or {}).get(role, ()))
        self._hosts: dict[str, int] = {}
        for name, host in (hosts or {}).items():
            self._hosts[name] = os.fstat(host.descriptor).st_ino
            self._devices[self._hosts[name]] = devices.of_host(host)
        self._find_traffic()
        self._own_cpu_ns += time.thread_time_ns() - before

    def sample(self) -> None:
        """Take one reading of every process and host; a process that ended has none."""
        before = time.thread_time_ns()
        now = time.monotonic_ns()
        traffic = {namespace: reader.take() for namespace, reader in self._devices.items()}
        for role, process in self._processes.items():
            row: Reading = {"trial": self._trial, "time_ns": now, "process": role}
            try:
                reading = process.take()
            except ProcessLookupError:
                continue
            row |= cast(Reading, vars(reading))
            if reading.run_delay_ns is not None:
                self._delays[role].append(reading.run_delay_ns)
            if role in self._cgroups:
                groups = [group.take() for group in self._cgroups[role]]
                row["cgroup_memory_bytes"] = total(group.memory_bytes for group in groups)
                row["cgroup_cpu_ns"] = total(group.cpu_ns for group in groups)
            if role in self._traffic:
                row |= cast(Reading, vars(traffic[self._traffic[role]][0]))
            self.rows.append(row)
        for name, namespace in self._hosts.items():
            outside, loopback = traffic[namespace]
            self._add_host(now, host_row(name), outside)
            self._add_host(now, host_row(name, loopback=True), loopback)
        self._samples += 1
        self._own_cpu_ns += time.thread_time_ns() - before

    def follow(self, role: str, pid: int) -> None:
        """Follow another process from now on: one that was not there when the trial began."""
        before = time.thread_time_ns()
        self._add(role, [pid], ())
        self._find_traffic()
        self._own_cpu_ns += time.thread_time_ns() - before
        self.sample()

    def cpu_used_ns(self, role: str) -> int | None:
        """CPU time between the first and the last reading of a process; None with fewer than two."""
        readings = [cpu for row in self.rows if row["process"] == role and (cpu := row["cpu_ns"]) is not None]
        return readings[-1] - readings[0] if len(readings) > 1 else None

    def latest_cpu_ns(self) -> dict[str, int]:
        """CPU time of each process as of its last reading, from its own start on."""
        return {row["process"]: cpu for row in self.rows if (cpu := row.get("cpu_ns")) is not None}

    def run_delay_ns(self, role: str) -> int | None:
        """Time without a CPU between the first and the last reading; None where the kernel does not report."""
        delays = self._delays.get(role, [])
        return max(0, delays[-1] - delays[0]) if len(delays) > 1 else None

    def peak_rss_bytes(self, role: str) -> int | None:
        """Largest resident memory seen."""
        rss_values = (row["rss_bytes"] for row in self.rows if row["process"] == role)
        return max((rss for rss in rss_values if rss), default=None)

    def cost(self) -> SamplerCost:
        """What observing cost so far: ``samples``, ``cpu_ns``, ``wall_ns`` and ``share`` of one core."""
        wall_ns = max(1, time.monotonic_ns() - self._began_ns)
        return {
            "samples": self._samples,
            "cpu_ns": self._own_cpu_ns,
            "wall_ns": wall_ns,
            "share": self._own_cpu_ns / wall_ns,
        }

    def close(self) -> None:
        """Let go of all files; what was read stays. An open file of a host keeps its network namespace alive."""
        for process in self._processes.values():
            process.close()
        for groups in self._cgroups.values():
            for group in groups:
                group.close()
        for device in self._devices.values():
            device.close()

    def _add(self, role: str, pids: Sequence[int], cgroups: Sequence[Mapping[str, Path]]) -> None:
        if role in self._processes:
            self._processes[role].close()
        self._processes[role] = ProcessesReader(pids)
        self._delays[role] = []
        for group in self._cgroups.pop(role, ()):
            group.close()
        if any(cgroups):
            self._cgroups[role] = [CgroupReader(folders.values()) for folders in cgroups if folders]

    def _find_traffic(self) -> None:
        """A network namespace's devices tell the traffic of a process that has it for itself among those followed."""
        namespaces = {role: _network_namespaces(process.pids) for role, process in self._processes.items()}
        living = Counter(name for names in namespaces.values() for name in names)
        alone = {role: next(iter(names)) for role, names in namespaces.items() if len(names) == 1}
        self._traffic = {role: name for role, name in alone.items() if living[name] == 1}
        for role, namespace in list(self._traffic.items()):
            if namespace not in self._devices:
                reader = devices.of_process(self._processes[role].pids[0])
                if reader is None:
                    del self._traffic[role]
                else:
                    self._devices[namespace] = reader

    def _add_host(self, now: int, name: str, traffic: TrafficReading) -> None:
        row: Reading = {"trial": self._trial, "time_ns": now, "process": name}
        self.rows.append(row | cast(Reading, vars(traffic)))


def _network_namespaces(pids: Iterable[int]) -> set[int]:
    """The inodes that name the network namespaces of processes, without those that are gone or hidden."""
    namespaces = set()
    for pid in pids:
        with suppress(OSError):
            namespaces.add(Path(f"/proc/{pid}/ns/net").stat().st_ino)
    return namespaces

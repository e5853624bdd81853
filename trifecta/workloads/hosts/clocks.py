"""The clocks of two hosts: what chronyd says of each, and what the probe's packets and it say of both together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trifecta.analysis.clock_offsets import FourTimes, Offset, WallClock, by_wall_clocks, offset, one_way, tighter
from trifecta.contract.common import Quantiles
from trifecta.contract.machine import ChronyTracking, HostClock, HostFacts
from trifecta.contract.probe import MeasureSummary
from trifecta.design.errors import CannotError
from trifecta.lab.machines import ConnectedMachine
from trifecta.store import parquet
from trifecta.store.run import RunDirectory

_TIMES = ("sent_ns", "reflected_in_ns", "reflected_out_ns", "received_ns")


class Clocks:
    """Asks chronyd on the hosts; where none answered the first time it is not asked for again."""

    def __init__(self, machines: Mapping[str, ConnectedMachine]) -> None:
        """Nothing is asked yet; ``machines`` by role may still come."""
        self._machines = machines
        self._without: dict[str, ChronyTracking] = {}

    def ask(self) -> dict[str, ChronyTracking]:
        """What they say now, by role; CannotError when one is lost. Starts programs there: not while a trial runs."""
        trackings: dict[str, ChronyTracking] = {}
        for role, machine in self._machines.items():
            trackings[role] = self._without.get(role) or machine.clock()
            if trackings[role]["stratum"] is None:
                self._without[role] = trackings[role]
        return trackings

    def tell_before(self, host_facts: dict[str, HostFacts], machine_of: Mapping[str, str]) -> None:
        """Put what they say as a run begins beside what the machine of each role said of itself."""
        clocks = self.ask()
        for role, facts in host_facts.items():
            facts["clock"] = {"before": clocks[machine_of[role]]}

    def tell_after(self, run: RunDirectory, machine_of: Mapping[str, str]) -> None:
        """Write what they say as a run ends into ``run.json``; nothing where a host is lost: the run is whole."""
        try:
            clocks = self.ask()
        except CannotError:
            return
        hosts = dict(run.facts["hosts"])
        for role, machine in machine_of.items():
            clock: HostClock = {**hosts[role].get("clock", HostClock()), "after": clocks[machine]}
            hosts[role] = {**hosts[role], "clock": clock}
        run.write_facts({**run.facts, "hosts": hosts})


def across_clocks(
    summary: MeasureSummary, file: Path, near: ChronyTracking | None = None, far: ChronyTracking | None = None
) -> MeasureSummary:
    """A summary whose one-way times are without the offset of the clocks, and which has its bound beside them.

    ``file`` has the four times of each packet, and is removed. Without an offset there are no one-way times either.
    ``near`` and ``far`` are what chronyd said before the packets where they came from, and where they went.
    """
    columns = parquet.read_arrays(file, _TIMES)
    file.unlink()
    times = FourTimes(*(columns[name].tolist() for name in _TIMES))
    by_packets, by_chrony = offset(times), _by_chrony(summary, near, far)
    if by_chrony is not None:
        summary.clock_chrony_offset_ns, summary.clock_chrony_bound_ns = by_chrony.offset_ns, by_chrony.bound_ns
    if by_packets is None:
        none = Quantiles(min=None, p50=None, p90=None, p99=None, max=None)
        summary.one_way_forward_ns = summary.one_way_backward_ns = none
        return summary
    summary.clock_exchange_offset_ns, summary.clock_exchange_bound_ns = by_packets.offset_ns, by_packets.bound_ns
    apart = tighter(by_packets, by_chrony)
    summary.one_way_forward_ns, summary.one_way_backward_ns = one_way(times, apart)
    summary.clock_offset_ns, summary.clock_bound_ns = apart.offset_ns, apart.bound_ns
    return summary


def _by_chrony(summary: MeasureSummary, near: ChronyTracking | None, far: ChronyTracking | None) -> Offset | None:
    """How far the far clock is ahead of the near one by chronyd; None where it does not bound both."""
    near_ns, far_ns = (None if tracking is None else tracking["bound_ns"] for tracking in (near, far))
    far_ahead_ns, far_reading_ns = summary.far_realtime_offset_ns, summary.far_realtime_bound_ns
    if near_ns is None or far_ns is None or far_ahead_ns is None or far_reading_ns is None:
        return None
    return by_wall_clocks(
        WallClock(summary.realtime_offset_ns, near_ns + summary.realtime_bound_ns),
        WallClock(far_ahead_ns, far_ns + far_reading_ns),
    )

"""Octets and packets in and out of a network namespace, by the counters of its devices."""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.lab.host import Host
from trifecta.observers.open_files import OpenFile, hold

LOOPBACK = b"lo"
# Devices of Docker's bridge in a host: what crosses them crosses a wire or another of them too, and would count twice.
_BRIDGE = (b"docker", b"br-", b"veth")


@dataclass(frozen=True)
class TrafficReading:
    """What devices carried since they were made. A super-packet of a device with offloads counts as one packet."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int


class TrafficReader:
    """Reads the devices of one network namespace, through /proc/net/dev kept open."""

    def __init__(self, file: OpenFile) -> None:
        """``file``: /proc/net/dev as opened inside the namespace (or by way of a process in it)."""
        self._file = file

    def take(self) -> tuple[TrafficReading, TrafficReading]:
        """The wires of the namespace together, and its loopback; octets and packets so far."""
        outside, loopback = [0, 0, 0, 0], [0, 0, 0, 0]
        for line in self._file.read().splitlines()[2:]:
            name, _, numbers = line.strip().partition(b":")
            if name.startswith(_BRIDGE):
                continue
            fields = numbers.split()
            into = loopback if name == LOOPBACK else outside
            for place, column in enumerate((0, 1, 8, 9)):
                into[place] += int(fields[column])
        return TrafficReading(*outside), TrafficReading(*loopback)

    def close(self) -> None:
        """Close its file."""
        self._file.close()


def of_host(host: Host) -> TrafficReader:
    """A reader of a host's devices."""
    with host.inside():
        return TrafficReader(OpenFile("/proc/thread-self/net/dev"))


def of_process(pid: int) -> TrafficReader | None:
    """A reader of the devices in a process's network namespace; None when the process is gone."""
    file = hold(f"/proc/{pid}/net/dev")
    return None if file is None else TrafficReader(file)

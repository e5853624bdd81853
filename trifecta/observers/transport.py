"""Counters of the kernel in each host: what was dropped, retransmitted or refused during a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trifecta.lab.host import Host

# /proc/net/snmp and /proc/net/netstat: the counters that say that something was lost inside a host, not on the path.
_SNMP = {
    "Udp": ("RcvbufErrors", "SndbufErrors", "InErrors", "NoPorts", "InDatagrams", "OutDatagrams"),
    "Udp6": ("RcvbufErrors",),
    "Tcp": ("RetransSegs", "OutSegs", "InSegs", "InErrs", "AttemptFails", "EstabResets", "OutRsts"),
    "Ip": ("InDiscards", "OutDiscards", "ReasmFails"),
}
_NETSTAT = {
    "TcpExt": (
        "ListenOverflows", "ListenDrops", "TCPBacklogDrop", "TCPRcvQDrop", "TCPTimeouts", "TCPLossProbes",
        "TCPSpuriousRTOs", "TCPFastRetrans", "TCPSlowStartRetrans", "PruneCalled", "TCPMemoryPressures",
        "TCPReqQFullDrop",
    ),
}  # fmt: skip


def parse_counters(text: str) -> dict[str, dict[str, int]]:
    """The pairs of lines of /proc/net/snmp: names, then values, each with the protocol first."""
    found: dict[str, dict[str, int]] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, _, name_list = names.partition(":")
        other, _, value_list = values.partition(":")
        if protocol == other:
            found[protocol] = {
                name: int(value)
                for name, value in zip(name_list.split(), value_list.split(), strict=False)
                if value.lstrip("-").isdigit()
            }
    return found


def parse_devices(text: str) -> dict[str, dict[str, int]]:
    """Packets, errors and drops of each device in /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = [int(number) for number in numbers.split()]
        if len(fields) >= 12:
            found[name.strip()] = {
                "rx_packets": fields[1], "rx_errors": fields[2], "rx_drops": fields[3],
                "tx_packets": fields[9], "tx_errors": fields[10], "tx_drops": fields[11],
            }  # fmt: skip
    return found


def parse_softnet_drops(text: str) -> int:
    """Packets that the backlog queues of all CPUs refused (second column of /proc/net/softnet_stat)."""
    return sum(int(line.split()[1], 16) for line in text.splitlines() if line.strip())


class TransportObserver:
    """Reads the counters of the hosts before and after a trial."""

    def __init__(self, hosts: tuple[Host, ...]) -> None:
        """Watch these hosts."""
        self._hosts = hosts

    def begin(self) -> None:
        """A trial begins."""
        self._before = self._take()

    def end(self) -> dict[str, Any]:
        """The trial ends: how much each counter grew, by host; and packets dropped by the machine's backlog."""
        after = self._take()
        return _difference(self._before, after)

    def _take(self) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for host in self._hosts:
            with host.inside():
                snmp = parse_counters(_text("/proc/thread-self/net/snmp"))
                netstat = parse_counters(_text("/proc/thread-self/net/netstat"))
                devices = parse_devices(_text("/proc/thread-self/net/dev"))
            counters: dict[str, Any] = {}
            for table, wanted in ((snmp, _SNMP), (netstat, _NETSTAT)):
                for protocol, names in wanted.items():
                    for name in names:
                        if name in table.get(protocol, {}):
                            counters[f"{protocol}{name}"] = table[protocol][name]
            devices.pop("lo", None)
            taken[host.name] = {"counters": counters, "devices": devices}
        taken["softnet_drops"] = parse_softnet_drops(_text("/proc/net/softnet_stat"))
        conntrack = Path("/proc/sys/net/netfilter/nf_conntrack_count")
        taken["conntrack_entries"] = int(conntrack.read_text(encoding="ascii")) if conntrack.exists() else 0
        return taken


def _text(path: str) -> str:
    return Path(path).read_text(encoding="ascii", errors="replace")


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    grown: dict[str, Any] = {}
    for key, value in after.items():
        if isinstance(value, dict):
            grown[key] = _difference(before.get(key, {}), value)
        else:
            grown[key] = value - before.get(key, 0)
    return grown

"""Counters of the kernel in each host: what was dropped, retransmitted or refused during a trial.

The counters of protocols, devices and connection tracking belong to a network namespace, so to a host. The backlog of
received packets (softnet) belongs to a CPU: its drops are those of the whole machine and can be laid at no host's door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from trifecta.contract.machine import TransportGrowth
from trifecta.lab.host import Host
from trifecta.observers.kernel_text import (
    parse_conntrack,
    parse_counters,
    parse_devices,
    parse_pairs,
    parse_softnet_drops,
)

# /proc/net/snmp, snmp6 and netstat: the counters that say that something was lost inside a host, not on the path, and
# how much was sent over which version of IP.
_SNMP = {
    "Udp": ("RcvbufErrors", "SndbufErrors", "InErrors", "MemErrors", "NoPorts", "InDatagrams", "OutDatagrams"),
    "Tcp": ("RetransSegs", "OutSegs", "InSegs", "InErrs", "AttemptFails", "EstabResets", "OutRsts"),
    "Ip": ("InDiscards", "OutDiscards", "ReasmFails", "OutRequests"),
}
_SNMP_6 = (
    "Udp6RcvbufErrors", "Udp6SndbufErrors", "Udp6InErrors", "Udp6MemErrors", "Udp6NoPorts", "Udp6InDatagrams",
    "Udp6OutDatagrams", "Ip6InDiscards", "Ip6OutDiscards", "Ip6OutRequests",
)  # fmt: skip
_NETSTAT = {
    "TcpExt": (
        "ListenOverflows", "ListenDrops", "TCPBacklogDrop", "TCPRcvQDrop", "TCPTimeouts", "TCPLossProbes",
        "TCPSpuriousRTOs", "TCPFastRetrans", "TCPSlowStartRetrans", "PruneCalled", "TCPMemoryPressures",
        "TCPReqQFullDrop", "TCPReqQFullDoCookies", "TCPAbortOnMemory", "TCPOFODrop", "TCPZeroWindowDrop", "DelayedACKs",
    ),
}  # fmt: skip
# Of /proc/net/stat/nf_conntrack: packets of new connections that found the table full (``drop``), entries that were
# thrown out to make room (``early_drop``), entries that could not be put in (``insert_failed``).
_CONNTRACK = ("drop", "early_drop", "insert_failed", "invalid")
COUNTED = ("snmp", "netstat", "snmp6")
"""Files of /proc/net; a kernel without IPv6 lacks the last."""
_CONNTRACK_SIZE = "/proc/sys/net/netfilter/nf_conntrack_max"
_CONNTRACK_COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"


class TransportObserver:
    """Reads the counters of the hosts before and after a trial."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        """Watch these hosts."""
        self._hosts = tuple(hosts)

    def begin(self) -> None:
        """A trial begins."""
        self._before = self._take()

    def end(self) -> TransportGrowth:
        """The trial ends: how much each counter grew, by host; and packets dropped by the machine's backlog.

        A host's ``conntrack`` has what there is now besides: ``entries`` in its table, ``max`` of them, and ``limit``
        where the lab gave it a smaller table; null where this kernel tracks nothing.
        """
        after = self._take()
        grown = _difference(self._before, after)
        for host in self._hosts:
            if after[host.name]["conntrack"] is not None:
                grown[host.name]["conntrack"] |= self._table(host)
        return cast(TransportGrowth, grown)

    def _table(self, host: Host) -> dict[str, int | None]:
        with host.inside():
            entries, most = _number(_CONNTRACK_COUNT), _number(_CONNTRACK_SIZE)
        return {"entries": entries, "max": most, "limit": host.tracking.table_size if host.tracking else None}

    def _take(self) -> dict[str, Any]:
        taken: dict[str, Any] = {host.name: _take_host(host) for host in self._hosts}
        taken["softnet_drops"] = parse_softnet_drops(_text("/proc/net/softnet_stat"))
        return taken


def _take_host(host: Host) -> dict[str, Any]:
    with host.inside():
        counters = counters_of({name: _text_if_there(f"/proc/thread-self/net/{name}") for name in COUNTED})
        devices = parse_devices(_text("/proc/thread-self/net/dev"))
        _add_ipv6(devices)
        conntrack = parse_conntrack(_text_if_there("/proc/thread-self/net/stat/nf_conntrack"))
    loopback = devices.pop("lo", {})
    tracked: dict[str, int] | None = None
    if conntrack:
        tracked = {name: conntrack[name] for name in _CONNTRACK if name in conntrack}
        if host.tracking is not None and host.tracking.table_size is not None:
            tracked["refused"] = host.tracking.refused()
    return {"counters": counters, "devices": devices, "loopback": loopback, "conntrack": tracked}


def _add_ipv6(devices: dict[str, dict[str, int]]) -> None:
    """How many of the packets that each device received were of IPv6, where the kernel counts that."""
    for name, counters in devices.items():
        received = parse_pairs(_text_if_there(f"/proc/thread-self/net/dev_snmp6/{name}")).get("Ip6InReceives")
        if received is not None:
            counters["rx_ipv6_packets"] = received


def counters_of(texts: Mapping[str, str]) -> dict[str, int]:
    """The counters that the files `COUNTED` of a host hold, by the kernel's names with the protocol before them."""
    snmp, netstat = (parse_counters(texts.get(name, "")) for name in ("snmp", "netstat"))
    snmp_6 = parse_pairs(texts.get("snmp6", ""))
    counters = {name: snmp_6[name] for name in _SNMP_6 if name in snmp_6}
    for table, wanted in ((snmp, _SNMP), (netstat, _NETSTAT)):
        for protocol, names in wanted.items():
            for name in names:
                if name in table.get(protocol, {}):
                    counters[f"{protocol}{name}"] = table[protocol][name]
    return counters


def _text(path: str) -> str:
    return Path(path).read_text(encoding="ascii", errors="replace")


def _text_if_there(path: str) -> str:
    """A file that a kernel without IPv6 or connection tracking does not have."""
    try:
        return _text(path)
    except FileNotFoundError:
        return ""


def _number(path: str) -> int | None:
    text = _text_if_there(path)
    return int(text) if text else None


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    grown: dict[str, Any] = {}
    for key, value in after.items():
        if isinstance(value, dict):
            grown[key] = _difference(before.get(key) or {}, value)
        else:
            grown[key] = None if value is None else value - before.get(key, 0)
    return grown

"""Did a host itself drop packets?

## Fails when
A host or a service dropped a packet: UDP buffer, listen queue, backlog, device. What a full connection table refuses
is the check `conntrack`'s.

## Warns when
Never.

## Why
Full buffers drop packets that the path was not asked to drop, mostly those of one protocol.

## Sources
Counters of a host's network namespace; the receive backlog is counted for the whole machine.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.contract.machine import HostGrowth
from trifecta.design.impairments import kind_of
from trifecta.design.model import CheckResult
from trifecta.design.phrases import numbered

# Counters of /proc/net/snmp and netstat that say that a host itself threw a packet away, and what mends it.
_COUNTERS = {
    "UdpRcvbufErrors": "raise net.core.rmem_max and the program's UDP receive buffer",
    "Udp6RcvbufErrors": "raise net.core.rmem_max and the program's UDP receive buffer",
    "UdpSndbufErrors": "raise net.core.wmem_max",
    "Udp6SndbufErrors": "raise net.core.wmem_max",
    "UdpMemErrors": "raise net.ipv4.udp_mem",
    "Udp6MemErrors": "raise net.ipv4.udp_mem",
    "UdpInErrors": "check /proc/net/snmp: datagrams were corrupted or found no room",
    "Udp6InErrors": "check /proc/net/snmp6: datagrams were corrupted or found no room",
    "IpInDiscards": "give the machine more memory",
    "IpOutDiscards": "give the machine more memory",
    "Ip6InDiscards": "give the machine more memory",
    "Ip6OutDiscards": "give the machine more memory",
    "TcpExtListenOverflows": "raise net.core.somaxconn and the server's backlog",
    "TcpExtListenDrops": "raise net.core.somaxconn and the server's backlog",
    "TcpExtTCPBacklogDrop": "raise net.ipv4.tcp_rmem",
    "TcpExtTCPRcvQDrop": "raise net.ipv4.tcp_rmem",
    "TcpExtTCPReqQFullDrop": "raise net.ipv4.tcp_max_syn_backlog",
    "TcpExtTCPAbortOnMemory": "raise net.ipv4.tcp_mem",
}
_DAMAGE = ("UdpInErrors", "Udp6InErrors")  # grows by itself on a path that corrupts packets
_SENT_IN_VAIN = ("IpOutDiscards", "Ip6OutDiscards")  # netfilter's refusal of what a host sends counts here, too


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail on any packet that a host dropped; what the link drops because it was asked to is not counted here."""
    findings = []
    load = evidence.load or {}
    corrupting = any(kind_of(document).damages for document in (*evidence.path.forward, *evidence.path.backward))
    for whose, lost in _sockets(evidence).items():
        # A socket counts datagrams with a wrong checksum among those that it dropped (SO_RXQ_OVFL, socket(7)). Where
        # the path damages packets, the host's counters are believed alone: they distinguish the two.
        if lost and not (corrupting and evidence.transport is not None):
            text = f"{whose} UDP receive buffer overflowed: {numbered(lost, 'datagram')} lost"
            findings.append(_drop(text, lost, "raise net.core.rmem_max"))
    if evidence.foreign and evidence.transport is None:
        findings.append(Finding("unknown", f"{evidence.client} does not report whether its receive buffer overflowed"))
    if load.get("udp_receive_errors") is not None or evidence.transport:
        unseen = "the client's socket dropped no packet; drops of its host are not observable"
        text = unseen if evidence.workload.distant else "no host dropped a packet"
        findings.append(Finding("pass", text, 0.0, 0.0))
    for name, value in (evidence.transport or {}).items():
        if isinstance(value, dict):
            # Who else brings damaged datagrams to a host that is not of a lab, is not known.
            findings += _host(name, value, corrupting or bool(evidence.study.hosts))
        elif name == "softnet_drops" and value is not None and value > 0:
            packets = numbered(int(value), "packet")
            text = f"the kernel's receive backlog was full: {packets} dropped on the whole machine"
            findings.append(_drop(text, value, "raise net.core.netdev_max_backlog"))
    return worst(evidence, "drops", findings)


def _sockets(evidence: Evidence) -> dict[str, int]:
    """Datagrams that sockets dropped, as the programs themselves say."""
    drops = {"the client's": int((evidence.load or {}).get("udp_receive_errors") or 0)}
    for name, service in ((evidence.server or {}).get("services") or {}).items():
        drops[f"service {name}'s"] = int((service.get("summary") or {}).get("udp_receive_drops") or 0)
    return drops


def _host(host: str, grown: HostGrowth, corrupting: bool) -> list[Finding]:
    findings = []
    refused = _refused_by_table(grown)
    for name, remedy in _COUNTERS.items():
        count = int(grown.get("counters", {}).get(name, 0))
        if name in _SENT_IN_VAIN:
            count, refused = max(0, count - refused), max(0, refused - count)
        if count > 0 and not (corrupting and name in _DAMAGE):
            findings.append(_drop(f"host {host}: {name} grew by {count}", count, remedy))
    for device, counters in grown.get("devices", {}).items():
        count = sum(int(counters.get(field, 0)) for field in ("rx_drops", "tx_drops", "rx_errors", "tx_errors"))
        if count > 0:
            text = f"host {host}: device {device} dropped {numbered(count, 'packet')}"
            findings.append(
                _drop(
                    text,
                    count,
                    "raise the device's queue lengths (`ip link set DEV txqueuelen N`, `ethtool -G DEV rx N`)",
                )
            )
    return findings


def _refused_by_table(grown: HostGrowth) -> int:
    """Packets of new connections for which the host's connection table had no room."""
    table = grown.get("conntrack") or {}
    return int(table.get("drop") or 0) + int(table.get("refused") or 0)


def _drop(text: str, count: int, remedy: str) -> Finding:
    return Finding("fail", text, float(count), 0.0, remedy)

"""Which version of IP a trial had: by the packets that the client's host received, as its kernel counts them.

A part of the check `parity`. What was asked of the programs does not count, nor what they say that they did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trifecta.analysis.checks.evidence import Evidence, Finding
from trifecta.contract.machine import HostGrowth
from trifecta.design.ip import IPV4, IPV6, ip_document

# Of the packets, those of the other version. Over wires: the last words of connections of the trial before. Within a
# host: names that are looked up at 127.0.0.53, which are few, but so may be the packets of a small trial.
OTHER_OVER_WIRES, OTHER_WITHIN_A_HOST = 0.05, 0.5
_BRIDGE = ("docker", "br-", "veth")  # what crosses these crosses a wire, too, or not the host
_REMEDY = "check the addresses of server and client in the run's `logs`"


def findings(evidence: Evidence) -> list[Finding]:
    """Fail where the packets were of the other version than asked for; nothing where no lab of ours carried them."""
    if evidence.workload.outside or evidence.study.hosts:
        return []
    requested = ip_document(evidence.workload.ip)
    hosts = [evidence.hosts[name] for name in _of_client(evidence) if name in evidence.hosts]
    devices = [device for host in hosts for device in _wires(host)]
    limit = OTHER_OVER_WIRES
    if not devices and evidence.workload.place != "docker-bridge":  # services of one host talk over loopback
        devices = [host.get("loopback") or {} for host in hosts]
        limit = OTHER_WITHIN_A_HOST
    counted = [device for device in devices if "rx_ipv6_packets" in device]
    every = sum(int(device.get("rx_packets") or 0) for device in counted)
    if not every:
        unseen = f"the client's host counted no packet by IP version, requested: {requested}"
        return [] if requested == IPV4 else [Finding("unknown", unseen)]
    six = sum(int(device["rx_ipv6_packets"]) for device in counted)
    given = {IPV6: six, IPV4: every - six}
    other = (every - given[requested]) / every
    text = f"{given[requested]} of {every} packets that the client's host received were {requested}"
    if other > limit:
        return [Finding("fail", f"{text}, but all should be", other, limit, _REMEDY)]
    return [Finding("pass", text, other, limit)]


def _of_client(evidence: Evidence) -> Collection[str]:
    """The host of the client, or those of several."""
    services = (evidence.server or {}).get("services") or {}
    own = [str(facts.get("host", "")) for facts in services.values() if facts.get("client")]
    return own[0].split(" and ") if own else ("client",)


def _wires(host: HostGrowth) -> list[Mapping[str, int]]:
    """The devices of a host that are ends of wires."""
    return [counters for name, counters in host.get("devices", {}).items() if not name.startswith(_BRIDGE)]

"""Did every host's connection table have room?

## Fails when
A host's kernel dropped a packet of a new connection because its table was full.

## Warns when
The limit that a study gives a table dropped such packets; connections were evicted from a table, could not be inserted,
or fill 90 % of it.

## Why
Connection tracking sees a TCP connection close but keeps a UDP flow until its timeout, so a table fills with QUIC
connections that are long gone.

## Sources
nf_conntrack of Linux: 30 s after the last packet of a UDP flow, 120 s if it went both ways for 2 s.
"""

from __future__ import annotations

from collections.abc import Mapping

from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.design.model import CheckResult
from trifecta.design.phrases import numbered

FILLED_WARNING = 0.9  # share of the table; above, the next block may not fit
_NOTHING = "tracks no connections"
_REMEDY = (
    "raise nf_conntrack_max (`sysctl -w net.netfilter.nf_conntrack_max=N`), or exempt the services' ports from "
    "tracking (nft `notrack`, iptables `-j NOTRACK`; in a study `conntrack: bypass`)"
)


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail on packets that the kernel's full table dropped; warn on those of a table that the study asked for."""
    findings = []
    for name, grown in evidence.hosts.items():
        if "conntrack" in grown:
            findings += _host(name, grown["conntrack"])
    return worst(evidence, "conntrack", _condensed(findings))


def _condensed(findings: list[Finding]) -> list[Finding]:
    """Hosts that track nothing are one sentence."""
    idle = [finding for finding in findings if finding.text.endswith(_NOTHING)]
    if len(idle) < 2:
        return findings
    text = f"{len(idle)} of {len(findings)} hosts track no connections"
    return [*(finding for finding in findings if finding not in idle), Finding("pass", text, 0.0, 0.0)]


def _host(host: str, table: Mapping[str, int | None] | None) -> list[Finding]:
    if table is None:
        return [Finding("pass", f"host {host} {_NOTHING}", 0.0, 0.0)]
    entries, room = int(table.get("entries") or 0), _room(table)
    state = f"{entries} connections in it, the kernel's maximum is {table.get('max')}"
    if table.get("limit") is not None:
        state += f", the lab's limit {table['limit']}"
    # `drop`: the kernel's own table was full; `refused`: the smaller one that the lab gave the host.
    own, limit = int(table.get("drop") or 0), int(table.get("refused") or 0)
    if own or limit:
        dropped = own + limit
        text = (
            f"host {host}: its full connection table dropped {numbered(dropped, 'packet')} of new connections ({state})"
        )
        # The lab limits a table only where the study asks for it: then what it does is the result, not a fault.
        return [Finding("fail" if own else "warn", text, float(dropped), 0.0, _REMEDY)]
    findings = []
    for field, what in (("early_drop", "evicted from"), ("insert_failed", "not inserted into")):
        count = int(table.get(field) or 0)
        if count:
            text = f"host {host}: {count} connections were {what} the connection table ({state})"
            findings.append(Finding("warn", text, float(count), 0.0, _REMEDY))
    if room and entries / room >= FILLED_WARNING:
        text = f"host {host}: the connection table is nearly full ({state})"
        findings.append(Finding("warn", text, entries / room, FILLED_WARNING, _REMEDY))
    text = f"host {host}: no packet met a full connection table ({state})"
    if not entries and table.get("limit") is None:
        text = f"host {host} {_NOTHING}"
    return findings or [Finding("pass", text, 0.0, 0.0)]


def _room(table: Mapping[str, int | None]) -> int | None:
    """How many connections fit; None where that is not known. The lab's own limit is not compared with ``entries``.

    The kernel still counts what came before the limit was set; the limit does not.
    """
    return (table.get("max") or None) if table.get("limit") is None else None

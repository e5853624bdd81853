"""Did client and link have CPU time to spare?

## Fails when
Client or link used 90 % of a core (or of the share of one that the client was given), or waited for it 20 % of the
time. In an open loop: the 99th percentile of lag is above 1 ms and 5 % of the median latency, or more than 0.1 % of
slots were missed.

## Warns when
A client other than Trifecta's own, or of a closed-loop fan-in, did so; the server did so in an open loop or with a
share of a core; the server or a service waited for a core 20 % of the time; fewer slots were missed.

## Why
An instrument at its limit measures itself.
"""

from __future__ import annotations

import itertools

from trifecta.analysis.checks.cpu_utilization import client_busy, server_busy, span_ns
from trifecta.analysis.checks.evidence import Evidence, Finding, duration, worst
from trifecta.contract.stored import Load, OneLink, RanWithShare, SchedStat, Server
from trifecta.design.model import CheckResult, CheckStatus

BUSY_LIMIT = 0.9  # share of one core; above, the client or link sets the pace
WAIT_LIMIT = 0.2  # share of the time in which the client or link could run but had no core
LAG_FLOOR_NS = 1_000_000
LAG_SHARE = 0.05  # of the median latency
MISSED_LIMIT = 0.001  # share of open-loop slots


def check(evidence: Evidence) -> list[CheckResult]:
    """Client busy below 90 %, link below 90 %, neither waiting for a core, open loop on schedule."""
    findings = [] if evidence.browsing else _client(evidence)  # a browser has a check of its own
    findings += _most([_link(f"the link {name}".rstrip(), link) for name, link in evidence.links.items()])
    server = evidence.server or {}
    findings += _server(evidence, server) + _run_delay("the server", server, "warn")
    services = server.get("services") or {}
    findings += _most([_run_delay(f"service {name}", service, "warn") for name, service in services.items()])
    return worst(evidence, "headroom", findings)


def _client(evidence: Evidence) -> list[Finding]:
    findings = []
    load = evidence.load or {}
    # Many clients in a closed loop on one core take it whole, whatever they ask: that is the question of a fan-in.
    many = evidence.workload.crowd and evidence.workload.loop == "closed"
    beyond: CheckStatus = "warn" if evidence.foreign or many else "fail"
    who = evidence.client if evidence.foreign else "the client"
    busy = client_busy(load)
    if busy is not None:
        remedy = "give it more cores or reduce the load"
        if many:
            remedy = "read it as clients that share a core, or use fewer clients in an open loop"
        findings += _of_its_share(who, busy, load, span_ns(load), remedy=remedy, beyond=beyond)
    run_delay = _run_delay(who, load, beyond)
    if evidence.foreign and not run_delay:
        findings.append(Finding("unknown", f"{who} ended too soon to tell how long it waited for a core"))
    findings += run_delay
    findings += _schedule(evidence, load)
    return findings


def _server(evidence: Evidence, server: Server) -> list[Finding]:
    """Whether the server kept up with what it was asked; without a rate or a limit of its own nobody can tell."""
    load = evidence.load or {}
    busy = server_busy(server, load)
    if busy is None or (evidence.workload.loop != "open" and server.get("cpu_share") is None):
        return []
    remedy = "lower the rate, or read it as the server's maximum"
    return _of_its_share("the server", busy, server, span_ns(load), remedy=remedy, beyond="warn")


def _of_its_share(
    who: str, busy: float, summary: RanWithShare, wall_ns: int, *, remedy: str, beyond: CheckStatus
) -> list[Finding]:
    """``busy`` of a core, judged by what of it the program was given, and how long it was kept from running by that."""
    share = summary.get("cpu_share")
    if share is None:
        return [_limit(f"{who} used", busy, "of its core", remedy, beyond)]
    findings = [
        _limit(
            f"{who} used",
            busy / float(share),
            f"of the {100 * float(share):.0f} % of a core it was given",
            remedy,
            beyond,
        )
    ]
    if wall_ns > 0:
        waited = _run_delay(
            who, {"run_delay_ns": summary.get("throttled_ns"), "wall_ns": wall_ns}, beyond, "for its share"
        )
        findings += waited
    return findings


def _most(programs: list[list[Finding]]) -> list[Finding]:
    """Of the findings of several programs the largest number of each kind."""
    every = [finding for findings in programs for finding in findings]
    kinds = itertools.groupby(sorted(every, key=_kind), key=_kind)
    return [max(findings, key=lambda finding: finding.value or 0.0) for _, findings in kinds]


def _kind(finding: Finding) -> float:
    """Findings with the same limit are of a kind."""
    return -(finding.limit or 0.0)


def _link(who: str, link: OneLink) -> list[Finding]:
    findings = []
    wall_ns = link.get("wall_ns")
    if wall_ns and not link.get("netem"):  # whose work is the kernel's, in nobody's time
        busy = (link.get("cpu_user_ns", 0) + link.get("cpu_system_ns", 0)) / wall_ns
        remedy = "reduce the load or use a machine with more cores"
        findings.append(_limit(f"{who} used", busy, "of a core", remedy))
    return findings + _run_delay(who, link)


def _lag(evidence: Evidence, lag: float, limit: float) -> Finding:
    """How late requests started, and whether they waited for others to end or for the client."""
    text = f"99 % of requests started within {duration(lag)} of their schedule"
    if lag <= limit:
        return Finding("pass", text, lag, limit)
    most = evidence.workload.in_flight
    if ((evidence.samples and evidence.samples.in_flight_when_due) or 0) >= most:
        full = "the one that may be in flight was" if most == 1 else f"all {most} that may be in flight were"
        return Finding("fail", f"{text}; when the latest were due, {full}", lag, limit, _more_in_flight(evidence))
    return Finding("fail", text, lag, limit, "lower the rate, or give the client its own core")


def _more_in_flight(evidence: Evidence) -> str:
    return f"allow more requests in flight ({evidence.workload.concurrency_field}), or lower the rate"


def _limit(who: str, busy: float, of: str, remedy: str, beyond: CheckStatus = "fail") -> Finding:
    text = f"{who} {100 * busy:.0f} % {of}"
    if busy >= BUSY_LIMIT:
        return Finding(beyond, text, busy, BUSY_LIMIT, remedy)
    return Finding("pass", text, busy, BUSY_LIMIT)


def _run_delay(who: str, summary: SchedStat, beyond: CheckStatus = "fail", what: str = "for a core") -> list[Finding]:
    """Time that a program was ready to run but had no core: CPU time alone does not show a starved program."""
    delay = summary.get("run_delay_ns")
    wall = summary.get("wall_ns") or (int(summary.get("ended_ns") or 0) - int(summary.get("started_ns") or 0))
    if delay is None or wall <= 0:
        return []
    share = int(delay) / int(wall)
    text = f"{who} waited {what} {100 * share:.0f} % of the time"
    if share > WAIT_LIMIT:
        remedy = "use a machine with more cores, stop other programs, and lift limits on CPU time"
        return [Finding(beyond, text, share, WAIT_LIMIT, remedy)]
    return [Finding("pass", text, share, WAIT_LIMIT)]


def _schedule(evidence: Evidence, load: Load) -> list[Finding]:
    if evidence.workload.loop != "open":
        return []
    findings = []
    lag = (load.get("schedule_lag_ns") or {}).get("p99")
    if lag is None:
        findings.append(Finding("unknown", "the lag behind the open loop's schedule was not measured"))
    else:
        median = float(evidence.row.get("latency_p50_ns") or 0)
        limit = max(LAG_FLOOR_NS, LAG_SHARE * median)
        findings.append(_lag(evidence, float(lag), limit))
    missed = int(load.get("missed_slots") or 0)
    slots = missed + (evidence.samples.samples if evidence.samples else 0)
    if missed:
        share = missed / slots
        text = f"{missed} of {slots} slots of the schedule were missed"
        status: CheckStatus = "fail" if share > MISSED_LIMIT else "warn"
        remedy = _more_in_flight(evidence)
        findings.append(Finding(status, text, share, MISSED_LIMIT, remedy))
    return findings

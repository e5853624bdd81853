"""Did the browser have CPU time to spare, and was it the same in every arm?

## Fails when
The browser used 90 % of its cores' time during the load, on a path with a rate limit or an RTT of 5 ms; its version or
flags differ between arms.

## Warns when
It used 50 %; the path has neither; the server used half a core; names outside the page were looked up; a repeated view
resumed no session.

## Why
A load that the processor limits says nothing of a protocol.
"""

from __future__ import annotations

import statistics

from trifecta.analysis.checks.evidence import Evidence, Finding, duration, worst
from trifecta.analysis.checks.visits import Visits
from trifecta.design.model import CheckResult, PathSpec, RequestsWorkload

BUSY_WARN, BUSY_FAIL = 0.5, 0.9  # share of the cores it may use, over a visit's load time (a watch's, its wall time)
SERVER_BUSY_WARN = 0.5  # share of one core
SHAPED_RTT_NS = 5_000_000  # below, and without a rate, a load waits for the browser and not for the path
_SAME = ("version", "headless", "flags")  # of what the driver declares
_STRAY = {
    False: "remove what requests them: the lab serves none of them",
    True: "look at the page again: it names hosts that were not there when they were counted (`third_parties`)",
}


def check(evidence: Evidence) -> list[CheckResult]:
    """CPU time against load time, the server's share, look-ups of strangers, and the same program in every arm."""
    workload = evidence.workload
    if not workload.visiting:
        return []  # nothing of this check was asked for
    visits = evidence.visits
    findings = [] if visits is None else _busy(evidence, workload, visits)
    findings += _server(evidence)
    findings += _strays(evidence)
    findings += _same_program(evidence)
    findings += _resumed(workload, visits)
    if not workload.outside and not shaped(evidence.path):
        text = f"path {evidence.path.name} has an RTT below 5 ms and no rate limit: the browser sets the pace"
        remedy = "compare protocols on a path with a delay or a rate limit"
        findings.append(Finding("warn", text, float(evidence.path.rtt_ns), float(SHAPED_RTT_NS), remedy))
    return worst(evidence, "browser", findings)


def shaped(path: PathSpec) -> bool:
    """Whether the path can be what a page waits for."""
    return path.rtt_ns >= SHAPED_RTT_NS or path.rate_bits_per_s is not None


def cores(evidence: Evidence) -> int:
    """How many the browser may use: what the trial says, else all of the machine."""
    machine = evidence.machine.get("cpus") if evidence.machine else None
    return max(1, (evidence.load or {}).get("cpus") or machine or 1)


def _busy(evidence: Evidence, workload: RequestsWorkload, visits: Visits) -> list[Finding]:
    """Median over the visits: CPU time until the load event against the load time, of a watch against its length."""
    watching = workload.plays
    pairs = [(visit.cpu_ns, visit.watched_ns if watching else visit.load_ns) for visit in visits.loaded]
    known = [(cpu, wall) for cpu, wall in pairs if cpu is not None and wall]
    if not known:
        return [Finding("unknown", f"the CPU time of {evidence.client} was not measured")]
    number = cores(evidence)
    busy = statistics.median(cpu / wall / number for cpu, wall in known)
    spent = statistics.median(cpu for cpu, _ in known)
    text = (
        f"{evidence.client} used {duration(spent)} of CPU time per {'watch' if watching else 'load'}, "
        f"{100 * busy:.0f} % of {number} core{'s' if number > 1 else ''}"
    )
    remedy = "use a machine with more cores" if workload.outside else "use a machine with more cores, or a slower path"
    # Without a path the browser is the limit by design: that is said, and not held against the trial. Nor is it at a
    # page elsewhere, whose path nobody here can make slower.
    if busy >= BUSY_FAIL and shaped(evidence.path):
        return [Finding("fail", text, busy, BUSY_FAIL, remedy)]
    if busy >= BUSY_WARN:
        return [Finding("warn", text, busy, BUSY_WARN, remedy)]
    return [Finding("pass", text, busy, BUSY_WARN)]


def _server(evidence: Evidence) -> list[Finding]:
    server = evidence.server or {}
    cpu, wall = server.get("cpu_ns"), server.get("wall_ns") or (evidence.load or {}).get("wall_ns")
    if cpu is None or not wall:
        return []
    busy = int(cpu) / int(wall)
    text = f"the server used {100 * busy:.0f} % of a core"
    if busy >= SERVER_BUSY_WARN:
        return [Finding("warn", text, busy, SERVER_BUSY_WARN, "read the result as that of this server on this machine")]
    return [Finding("pass", text, busy, SERVER_BUSY_WARN)]


def _strays(evidence: Evidence) -> list[Finding]:
    load = evidence.load or {}
    number = load.get("stray_lookups")
    if not number:
        return []
    names = load.get("stray_names")
    named = f" ({', '.join(names)})" if names else ""
    text = f"{number} look-ups were for names outside the page{named}"
    return [Finding("warn", text, float(number), 0.0, _STRAY[evidence.workload.outside])]


def _same_program(evidence: Evidence) -> list[Finding]:
    def facts(of: Evidence) -> dict[str, str]:
        load = of.load or {}
        declared = {**(load.get("declared") or {}), "version": load.get("version")}
        return {name: str(declared[name]) for name in _SAME if declared.get(name) is not None}

    own = facts(evidence)
    for sibling in evidence.siblings:
        if sibling.client != evidence.client:
            continue  # browsers are what is compared
        other = facts(sibling)
        odd = [name for name in own if name in other and own[name] != other[name]]
        if odd:
            text = f"{evidence.client} has {odd[0]} {own[odd[0]]} here, {other[odd[0]]} in {sibling.trial.arm}"
            return [Finding("fail", text, None, None, "run the whole study with one installed browser")]
    return [Finding("pass", f"{evidence.client} {own['version']} in every arm")] if "version" in own else []


def _resumed(workload: RequestsWorkload, visits: Visits | None) -> list[Finding]:
    if workload.view != "repeat" or visits is None or not visits.loaded:
        return []
    resumed = [visit.resumed_connections for visit in visits.loaded if visit.resumed_connections is not None]
    if not resumed:
        return [Finding("unknown", "the browser does not report whether TLS sessions were resumed")]
    if not sum(resumed):
        text = "a repeated view was asked for, but no connection resumed a TLS session"
        return [Finding("warn", text, 0.0, None, "check that the server hands out session tickets on every protocol")]
    return [Finding("pass", f"{sum(resumed)} connections resumed a TLS session")]

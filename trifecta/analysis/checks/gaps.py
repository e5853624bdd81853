"""Did the client run without being paused?

## Fails when
The client's event loop ran late by more than 20 ms and 2 % of the measured time: the process was stopped, or had no
core. Unknown for clients other than Trifecta's own; not checked for browsers.

## Warns when
It ran late by more than 20 ms only, or the client has a share of a core or is a fan-in's.

## Why
A gap is time that no request spent on the path. A stopped process uses no CPU time and waits for no core, so `headroom`
cannot see it. The loop waits 50 ms at most: a stop of 200 ms counts as 150 to 200 ms.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, duration
from trifecta.design.model import CheckResult, CheckStatus

GAP_FLOOR_NS = 20_000_000  # what a scheduler of an ordinary machine does to a program now and then
GAP_SHARE = 0.02  # of the time measured: at most so much is then in a rate or a mean, well below the margin


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when the longest gap is beyond a share of the time measured, warn when it is beyond what machines do."""
    if evidence.browsing:  # its driver does not make the requests
        return []
    load = evidence.load or {}
    gap_ns, measured_ns = load.get("longest_gap_ns"), load.get("measured_ns")
    if gap_ns is None or not measured_ns:
        return evidence.result("gaps", "unknown", f"{evidence.client} does not report how long it was paused")
    share = gap_ns / measured_ns
    of = f"{100 * share:.1f} % of the {duration(measured_ns)} measured"
    text = f"the client was paused for at most {duration(gap_ns)}, {of}"
    if gap_ns <= GAP_FLOOR_NS:
        return evidence.result("gaps", "pass", text, value=share, limit=GAP_SHARE)
    # Less than its core was asked for, or many clients on one: then standing still is what is measured (headroom).
    pinned = evidence.workload.client_cpu is not None or evidence.workload.crowd
    remedy = "do not pause the client (debugger, frozen cgroup, suspended machine); give it its own core"
    status: CheckStatus = "fail" if share > GAP_SHARE and not pinned else "warn"
    return evidence.result("gaps", status, text, value=share, limit=GAP_SHARE, remedy=remedy)

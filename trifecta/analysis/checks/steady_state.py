"""Is the warm-up excluded, and is there no drift?

## Fails when
The median of the requests that started in the first half of a trial and that of the others differ by more than a factor
of 2, with at least 100 requests.

## Warns when
They differ by more than 1.25, or there is no warm-up.

## Why
A drift is a start-up phase (caches, windows, JIT compilation), not the steady rate. Or it is another order: a busy
server that serves one of ten connections again and again, then each in turn, is as fast, but its median differs. With
one request in flight there is no order.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, SampleFacts, duration
from trifecta.design.model import CheckResult, RequestsWorkload

DRIFT_WARN = 1.25  # median of one half against the other
DRIFT_FAIL = 2.0
ENOUGH = 100  # samples from which on a drift that large is not chance


def check(evidence: Evidence) -> list[CheckResult]:
    """Compare the medians of both halves; check that a warm-up that was asked for happened."""
    facts, workload = evidence.samples, evidence.workload
    if facts is None:
        return evidence.result("steady_state", "unknown", "no samples to compare")
    if workload.visiting:
        return _of_visits(evidence, facts.warmup_samples, workload.warmup_samples)
    return _of_requests(evidence, facts, workload)


def _of_requests(evidence: Evidence, facts: SampleFacts, workload: RequestsWorkload) -> list[CheckResult]:
    if (workload.warmup_ns or workload.warmup_requests) and not facts.warmup_samples:
        return evidence.result(
            "steady_state",
            "warn",
            "a warm-up was requested, but no request ended in it: the first requests are measured too",
            remedy="make the warm-up longer than a request takes",
        )
    first, second = facts.first_half_p50_ns, facts.second_half_p50_ns
    if not first or not second:
        return evidence.result("steady_state", "unknown", f"{facts.samples} requests are too few to see a drift")
    drift = max(first, second) / min(first, second)
    text = f"median latency {duration(first)} in the first half, {duration(second)} in the second"
    several = workload.loop == "closed" and workload.in_flight > 1
    remedy = f"make the warm-up or the trial longer{', or allow fewer requests in flight' if several else ''}"
    if drift > DRIFT_FAIL and facts.samples >= ENOUGH:
        return evidence.result("steady_state", "fail", text, value=drift, limit=DRIFT_FAIL, remedy=remedy)
    if drift > DRIFT_WARN:
        return evidence.result("steady_state", "warn", text, value=drift, limit=DRIFT_WARN, remedy=remedy)
    return evidence.result("steady_state", "pass", text, value=drift, limit=DRIFT_WARN)


def _of_visits(evidence: Evidence, warmups: int, requested: int) -> list[CheckResult]:
    """A few visits have no halves. A drift shows from block to block, where the order and the A/A pair deal with it."""
    text = f"{warmups} warm-up visits are left out; a trial of a few visits has no halves to compare"
    if warmups < requested:
        text, remedy = (
            f"the study asks for {requested} warm-up visits, {warmups} were made",
            "look at the errors of the trial",
        )
        return evidence.result("steady_state", "warn", text, value=warmups, limit=requested, remedy=remedy)
    return evidence.result("steady_state", "pass", text, value=warmups, limit=requested)

"""Packets that the link sent later than they were to leave: how many and how late, for what is compared.

A hypervisor, or another program, takes a core for some ms: a burst in which a few packets are late. It moves the tail
of a trial's requests. It moves their median only where it is as long as the study's margin of a request, or where it
comes so often that one packet in ten is late. So a study of medians allows a burst in a trial and no more; one of any
other metric (a 99th percentile, a mean, a rate) allows one packet in a hundred.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Finding, duration
from trifecta.contract.stored import Direction
from trifecta.design.metrics import METRICS
from trifecta.design.model import PathSpec

SHARE, FLOOR_NS = 0.02, 1_000_000  # of the path's RTT, whichever allows more: what counts as on time
BURST_SHARE, BURST_FLOOR_NS = 0.05, 5_000_000  # the same for a burst, under a median


def tail_is_free(metric: str) -> bool:
    """Whether a study compares a quantile of requests up to the median, which a late tail does not move."""
    quantile = METRICS[metric].quantile
    return quantile is not None and quantile <= 0.5


def of_direction(path: PathSpec, name: str, report: Direction, remedy: str, *, of_median: bool) -> list[Finding]:
    """Judge ``lateness_ns`` of one direction of a link, called ``name``; ``remedy`` helps a link that is too slow."""
    late = report.get("lateness_ns") or {}
    limit = max(FLOOR_NS, SHARE * path.rtt_ns)
    limits = [(99, late.get("p99"), limit)]
    if of_median:
        limits = [(90, late.get("p90"), limit), (99, late.get("p99"), max(BURST_FLOOR_NS, BURST_SHARE * path.rtt_ns))]
    findings = []
    for percentile, given, most in limits:
        if given is None:
            continue
        value = float(given)
        text = f"{name}: {percentile} % of packets left within {duration(value)} of schedule"
        if value > most:
            findings.append(Finding("fail", f"{text} (limit {duration(most)})", value, most, remedy))
        else:
            findings.append(Finding("pass", text, value, most))
    return findings

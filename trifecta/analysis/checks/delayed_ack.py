"""Did requests wait for a delayed acknowledgement?

## Fails when
Never.

## Warns when
The kernel's delayed-ACK timer sent at least one acknowledgement per two requests, and the median request waited 35 ms
longer for its response than the path's RTT: for all of it where it fits into an initial window of ten segments, else
for its first octet. HTTP/1.1 and HTTP/2 only; what takes over 10 ms to send at the path's rate is not judged.

## Why
Nagle's algorithm holds back the second piece of a write until the receiver's timer acknowledges the first: a property
of the program that looks like one of TCP.

## Sources
RFC 9293, 3.7.4 and 3.8.6.3; RFC 6928; TCP_DELACK_MIN of Linux.
"""

from __future__ import annotations

from trifecta.analysis.checks.cpu_utilization import client_busy
from trifecta.analysis.checks.evidence import Evidence, duration
from trifecta.design.by_protocol import one_size
from trifecta.design.model import CheckResult

WAIT_NS = 35_000_000  # beyond the path's round trip: the timer, 40 ms (TCP_DELACK_MIN), less what it may be early
SHARE_LIMIT = 0.5  # acknowledgements sent by the timer, for each request
WINDOW_BYTES = 10 * 1448  # RFC 6928
QUEUE_NS = 10_000_000  # a path on which what is asked takes longer to send makes requests wait by itself


def check(evidence: Evidence) -> list[CheckResult]:
    """Warn when requests over TCP took the timer's time longer than the path, and the timer ran for them."""
    if evidence.browsing:
        return []  # a visit is many requests
    samples, sent = evidence.samples, _by_timer(evidence)
    requests = samples.samples + samples.warmup_samples if samples is not None else 0
    if sent is None or not requests:
        return evidence.result("delayed_ack", "unknown", "delayed acknowledgements were not counted in this trial")
    if evidence.trial.protocol == "h3":
        return evidence.result("delayed_ack", "pass", "QUIC has no Nagle algorithm")
    share, wait_ns = sent / requests, _wait_ns(evidence)
    text = f"the kernel's delayed-ACK timer sent {sent} acknowledgements for {requests} requests"
    if share < SHARE_LIMIT or wait_ns is None or wait_ns < WAIT_NS:
        return evidence.result("delayed_ack", "pass", text, value=share, limit=SHARE_LIMIT)
    text += f", and the median request waited {duration(wait_ns)} longer than the path's RTT"
    if (busy := client_busy(evidence.load or {})) is not None:
        text += f", while the client was busy {100 * busy:.0f} % of the time"
    remedy = "set TCP_NODELAY, or write each request and each response in one piece"
    return evidence.result("delayed_ack", "warn", text, value=share, limit=SHARE_LIMIT, remedy=remedy)


def _by_timer(evidence: Evidence) -> int | None:
    """Acknowledgements that a host's timer sent; of the host with the most."""
    counted = [
        grown["counters"]["TcpExtDelayedACKs"]
        for grown in evidence.hosts.values()
        if "TcpExtDelayedACKs" in grown.get("counters", {})
    ]
    return max(map(int, counted), default=None)


def _wait_ns(evidence: Evidence) -> float | None:
    """How much longer than a round trip the median request waited; None where the path explains waiting."""
    row, path, workload, rtt_ns = evidence.row, evidence.path, evidence.workload, evidence.rtt_ns
    # What was sent to what came: a request that is held back was written before. Without it the whole request, on a
    # connection that stands.
    waited = row.get("wait_p50_ns")
    if waited is None and evidence.trial.connection != "new":
        waited = row.get("latency_p50_ns")
    if waited is None or rtt_ns is None or not workload.direct:
        return None  # the time of several services' calls is more than one round trip
    octets = workload.in_flight * max(one_size(workload.response_bytes), one_size(workload.request_bytes))
    # A response in two writes is held back after its first octet; one that fits into a window is not, by the path.
    if row.get("wait_p50_ns") is not None and one_size(workload.response_bytes) <= WINDOW_BYTES:
        waited += row.get("transfer_p50_ns") or 0
    if path.rate_bits_per_s and octets * 8e9 / path.rate_bits_per_s > QUEUE_NS:
        return None
    return float(waited) - rtt_ns

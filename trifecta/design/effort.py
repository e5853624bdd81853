"""How long a study takes at least, from its plan alone: what no machine can beat."""

from __future__ import annotations

import itertools
import math

from trifecta.design import plan
from trifecta.design.model import BrowserWorkload, Levelled, Study, VideoWorkload


def least_ns(study: Study) -> int:
    """The shortest time for the fewest blocks of every cell, if every request took the least its path allows."""
    return study.min_blocks * sum(
        least_trial_ns(study, plan.treatment(study, cell, arm))
        for cell, arm in itertools.product(plan.cells(study), plan.arms(study))
    )


def least_trial_ns(study: Study, at: Levelled) -> int:
    """The shortest time a trial can take: its duration, or as many round trips as its requests need."""
    workload = plan.workload_for(study, at)
    rtt_ns = study.paths[at.path].rtt_ns
    if isinstance(workload, BrowserWorkload):
        # A name, a handshake, the page and one thing that the page names; a video plays in real time.
        least = 3 * rtt_ns + workload.settle_ns
        if isinstance(workload, VideoWorkload):
            least = max(least, workload.watch_ns)
        return (workload.warmup_visits + workload.visits) * least
    if workload.requests == 0:
        return workload.warmup_ns + workload.duration_ns
    # One round trip for QUIC's handshake, two for TCP and TLS 1.3 (RFC 9001 section 4.1, RFC 8446 section 2).
    handshake = 0 if workload.resumption else 1 if at.protocol == "h3" else 2
    rounds = math.ceil((workload.warmup_requests + workload.requests) / workload.in_flight)
    trips = rounds * (1 + handshake) if at.connection == "new" else rounds + handshake
    if workload.loop == "open" and workload.rate_per_s:
        return max(trips * rtt_ns, int(workload.requests / workload.rate_per_s * 1e9))
    return min(trips * rtt_ns, workload.duration_ns) if workload.duration_ns else trips * rtt_ns

"""The table of threats: one file each, and one line here."""

from __future__ import annotations

from trifecta.threats import (
    alpn_mismatch,
    congestion_control,
    conntrack,
    cpu_bound,
    delayed_ack,
    implementation,
    jitter_reordering,
    loopback_offload,
    round_trips,
    server_timeouts,
)
from trifecta.threats.threat import Threat

THREATS: dict[str, Threat] = {
    threat.id: threat
    for threat in (
        round_trips.THREAT,
        alpn_mismatch.THREAT,
        cpu_bound.THREAT,
        delayed_ack.THREAT,
        jitter_reordering.THREAT,
        loopback_offload.THREAT,
        conntrack.THREAT,
        server_timeouts.THREAT,
        congestion_control.THREAT,
        implementation.THREAT,
    )
}  # fmt: skip

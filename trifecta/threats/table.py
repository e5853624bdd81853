"""The table of threats: one file each, and one line here, or an entry point of the group ``trifecta.threats``."""

from __future__ import annotations

from trifecta.design.errors import UserError
from trifecta.entries import Registry
from trifecta.threats import (
    alpn_mismatch,
    client_language,
    congestion_control,
    connection_leak,
    conntrack,
    cpu_bound,
    delayed_ack,
    different_work,
    era,
    implementation,
    jitter_reordering,
    loopback_offload,
    names_over_path,
    no_noise_floor,
    payload_by_protocol,
    retries_hidden,
    round_trips,
    server_timeouts,
    single_load,
    stock_quinn,
    think_time,
    tls_version,
    unverified,
    wait_before_tls,
)
from trifecta.threats.threat import Threat

_OWN = {
    threat.id: threat
    for threat in (
        round_trips.THREAT,
        tls_version.THREAT,
        alpn_mismatch.THREAT,
        cpu_bound.THREAT,
        delayed_ack.THREAT,
        jitter_reordering.THREAT,
        loopback_offload.THREAT,
        conntrack.THREAT,
        server_timeouts.THREAT,
        congestion_control.THREAT,
        stock_quinn.THREAT,
        implementation.THREAT,
        era.THREAT,
        client_language.THREAT,
        connection_leak.THREAT,
        think_time.THREAT,
        unverified.THREAT,
        wait_before_tls.THREAT,
        retries_hidden.THREAT,
        payload_by_protocol.THREAT,
        names_over_path.THREAT,
        different_work.THREAT,
        single_load.THREAT,
        no_noise_floor.THREAT,
    )
}  # fmt: skip


def _adopt(name: str, threat: Threat, _package: str) -> Threat:
    """A threat of another package: documented as our own are, and named as its entry point."""
    if threat.id != name:
        raise ValueError(f"calls itself {threat.id!r}; its id and the entry point's name must be the same")
    _ = threat.documentation
    return threat


THREATS = Registry("threat", _OWN, Threat, _adopt, error=UserError)

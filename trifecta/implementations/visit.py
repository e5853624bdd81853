"""A visit of a page as a browser told it: its times, and every fetch."""

from __future__ import annotations

from dataclasses import dataclass, field

from trifecta.contract.errors import ErrorClass


@dataclass
class Fetch:
    """One HTTP request of a visit, a row of FETCHES. Times are CLOCK_MONOTONIC; what is not known is None."""

    url: str
    started_ns: int
    method: str = "GET"
    kind: str = "other"
    initiator: str | None = None
    priority: str | None = None
    render_blocking: bool | None = None
    connection: int | str | None = None
    """Any name of the connection that is unique in the visit; the row has its ordinal."""
    connection_reused: bool | None = None
    protocol: str | None = None
    status: int | None = None
    mime: str | None = None
    dns_start_ns: int | None = None
    dns_end_ns: int | None = None
    connect_start_ns: int | None = None
    tcp_connected_ns: int | None = None
    secured_ns: int | None = None
    request_sent_ns: int | None = None
    first_byte_ns: int | None = None
    done_ns: int | None = None
    request_header_bytes: int | None = None
    header_bytes: int | None = None
    wire_bytes: int | None = None
    body_bytes: int | None = None
    decoded_bytes: int | None = None
    from_cache: bool | None = None
    resumed: bool | None = None
    zero_rtt: bool | None = None
    tls_version: str | None = None
    cipher: str | None = None
    missing: bool | None = None
    third_party: bool | None = None
    rung: int | None = None
    segment: int | None = None
    media_ns: int | None = None
    error: ErrorClass | None = None
    # Not in the row: what the HAR has besides.
    connect_end_ns: int | None = None
    send_start_ns: int | None = None
    status_text: str = ""
    request_headers: list[tuple[str, str]] = field(default_factory=list)
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    remote_address: str | None = None
    redirect_url: str = ""
    request_body_bytes: int = 0


@dataclass
class Visit:
    """One page load or one watch, a row of VISITS. Durations count from ``started_ns``, as W3C Navigation Timing 2."""

    started_ns: int
    url: str = ""
    dns_ns: int | None = None
    connect_ns: int | None = None
    tls_ns: int | None = None
    request_ns: int | None = None
    ttfb_ns: int | None = None
    response_ns: int | None = None
    dom_content_loaded_ns: int | None = None
    load_ns: int | None = None
    fcp_ns: int | None = None
    lcp_ns: int | None = None
    speed_index_ns: int | None = None
    visually_complete_ns: int | None = None
    requests: int | None = None
    failed_requests: int | None = None
    missing_requests: int | None = None
    connections: int | None = None
    tcp_connections: int | None = None
    quic_connections: int | None = None
    resumed_connections: int | None = None
    zero_rtt_connections: int | None = None
    third_party_requests: int | None = None
    third_party_connections: int | None = None
    origins: int | None = None
    wire_bytes: int | None = None
    header_bytes: int | None = None
    body_bytes: int | None = None
    decoded_bytes: int | None = None
    work: str | None = None
    browser_cpu_ns: int | None = None
    startup_ns: int | None = None
    live_latency_ns: int | None = None
    rebuffers: int | None = None
    rebuffer_ns: int | None = None
    bitrate_bits_per_s: float | None = None
    switches: int | None = None
    frames_shown: int | None = None
    frames_dropped: int | None = None
    frames_dropped_floor: int | None = None
    watched_ns: int | None = None
    played_ns: int | None = None
    segments: int | None = None
    error: ErrorClass | None = None

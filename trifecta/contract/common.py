"""What several parts of the contract are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

Protocol = Literal["h1", "h2", "h3"]
Ip = Literal["IPv4", "IPv6"]
ConnectionMode = Literal["new", "reused"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
ALL_ADAPTATIONS = ("window-validation", "padding-cut", "parameters-in-order", "no-ecn", "settings")

Word = str | bool | int | float | None
Declared = Mapping[str, Word | Sequence[str] | Mapping[str, Word]]
"""What an adapter says of its program: names of libraries and algorithms, flags; where they differ by transport."""

Unsigned = Annotated[int, msgspec.Meta(ge=0)]
"""Up to 2^64 - 1: counts, octets, times."""
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]


class StrictConfig(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A configuration: what is not a field of it is refused."""


class ProgramOutput(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line that a program writes. Fields with a default are those that only some programs, or the runner, add."""


class Tuning(StrictConfig, omit_defaults=True, frozen=True, kw_only=True):
    """What a study exchanges of the transports; None: as the engine, its libraries or the kernel have it."""

    initial_window_packets: Unsigned | None = None
    """Of QUIC."""
    pacing: bool | None = None
    stream_window_bytes: Unsigned | None = None
    connection_window_bytes: Unsigned | None = None
    idle_window_restarts: bool | None = None
    """Of QUIC."""
    packet_threshold: Unsigned | None = None
    """Of QUIC."""
    segmentation_offload: bool | None = None
    ack_delay_ns: Unsigned | None = None
    """Of QUIC, as is the number of packets."""
    ack_packets: Unsigned | None = None
    tls_record_bytes: Unsigned | None = None
    """Of plaintext, over TCP."""
    tls_wait_ns: Unsigned | None = None
    """Of a client, over TCP: from TCP's handshake to its Client Hello."""
    udp_payload_bytes: Unsigned | None = None
    """Of QUIC's largest packet."""
    udp_buffer_bytes: Unsigned | None = None
    """Of QUIC's socket, to receive."""


class Quantiles(ProgramOutput, kw_only=True):
    """Nearest-rank quantiles, None when there is nothing."""

    min: Unsigned | None
    p50: Unsigned | None
    p90: Unsigned | None
    p99: Unsigned | None
    max: Unsigned | None


class TcpSummary(ProgramOutput, kw_only=True):
    """What a summary says of TCP: windows are the largest of all connections."""

    connections: Unsigned
    min_rtt_ns: Unsigned | None
    srtt_ns: Unsigned
    retransmits: Unsigned
    congestion_window_bytes: Unsigned
    congestion_control: str | None
    mss_bytes: Unsigned
    nodelay: bool | None
    initial_window_bytes: Unsigned | None
    paced: bool | None = None
    packet_threshold: Unsigned | None = None


class QuicSummary(ProgramOutput, kw_only=True):
    """What a summary says of QUIC: windows are the largest of all connections."""

    connections: Unsigned
    min_rtt_ns: Unsigned | None
    srtt_ns: Unsigned
    lost_packets: Unsigned
    sent_packets: Unsigned
    congestion_window_bytes: Unsigned
    congestion_events: Unsigned
    congestion_control: str | None
    mtu_bytes: Unsigned
    adaptations: list[str] | None
    initial_window_bytes: Unsigned | None


class EngineVersion(ProgramOutput, kw_only=True):
    """What ``trifecta-engine --version`` says."""

    engine: str
    rustls: str | None
    quinn_proto: str | None
    aws_lc_rs: str | None
    parquet: str | None
    architecture: str
    quic_adaptations: list[str]

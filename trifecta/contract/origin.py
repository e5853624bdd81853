"""The origin and its relay: what a server is asked, and what it says."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from trifecta.contract.common import (
    ALL_ADAPTATIONS,
    ConnectionMode,
    Ip,
    Method,
    Port,
    ProgramOutput,
    Protocol,
    QuicSummary,
    StrictConfig,
    TcpSummary,
    Tuning,
    Unsigned,
)

Octets = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class Faults(StrictConfig, omit_defaults=True, frozen=True, kw_only=True):
    """Misbehaviour for the tests of the checks; what is off is left out."""

    truncate_bytes: Unsigned = 0
    stall: bool = False
    close_after_requests: Unsigned = 0
    delay_ns: Unsigned = 0
    extra_certificates: Unsigned = 0
    only: Protocol | None = None


class CallConfig(StrictConfig, frozen=True, kw_only=True):
    """One call of another service."""

    to: str
    method: Literal["same"] | Method = "same"
    path: str
    body: Literal["forward", "none"] | Octets = "forward"


class RouteConfig(StrictConfig, frozen=True, kw_only=True):
    """What a path brings about."""

    calls: tuple[CallConfig, ...] = ()
    answer: Literal["meta"] | Octets = "meta"


class ServiceConfig(StrictConfig, frozen=True, kw_only=True):
    """Where another service is, and how it is spoken to."""

    name: str
    address: str | None = None
    port: Port
    protocol: Protocol
    connection_mode: ConnectionMode
    connections: Unsigned = 1
    streams: Unsigned = 100


class RelayConfig(StrictConfig, frozen=True, kw_only=True):
    """A service that answers routes, by calling others or by itself."""

    service: str
    routes: dict[str, RouteConfig]
    services: dict[str, ServiceConfig] = msgspec.field(default_factory=dict)
    ip: Ip | None = None
    """Of the addresses that names stand for those of this version count; None: the first of IPv4, else the first."""
    ca_file: str | None = None
    tls_version: str = "1.3"
    key_exchange: str = "X25519"
    cipher: str | None = None
    connect_timeout_ns: Unsigned = 10_000_000_000
    request_timeout_ns: Unsigned = 10_000_000_000


class OriginConfig(StrictConfig, frozen=True, kw_only=True):
    """What the origin serves, where and how."""

    address: str
    port: Port
    certificate_file: str
    key_file: str
    protocols: tuple[Protocol, ...] = ("h1", "h2", "h3")
    folder: str | None = None
    replay: str | None = None
    live: str | None = None
    workers: Unsigned = 1
    congestion_control: str = "cubic"
    tcp_nodelay: bool = True
    tls_versions: tuple[str, ...] = ("1.3",)
    key_exchanges: tuple[str, ...] = ("X25519MLKEM768", "X25519", "secp256r1", "secp384r1")
    server_timing: bool = False
    alt_svc: bool = False
    zero_rtt: bool = True
    idle_timeout_ns: Unsigned = 30_000_000_000
    max_udp_payload_bytes: Unsigned = 1452
    udp_receive_buffer_bytes: Unsigned = 0
    max_concurrent_streams: Unsigned = 250
    keylog_file: str | None = None
    qlog_dir: str | None = None
    quic_adaptations: tuple[str, ...] = ALL_ADAPTATIONS
    tuning: Tuning = Tuning()
    cpus: tuple[Unsigned, ...] = ()
    faults: Faults = Faults()
    relay: RelayConfig | None = None


class FoundService(ProgramOutput, kw_only=True):
    """Where one service was found."""

    address: str
    port: Port
    protocol: Protocol


class RelayReady(ProgramOutput, kw_only=True):
    """Where the services were found that this one calls."""

    service: str
    services: dict[str, FoundService]


class OriginReady(ProgramOutput, kw_only=True):
    """The origin can be used."""

    address: str
    port: Port
    protocols: list[Protocol]
    workers: Unsigned
    tcp_congestion_control: str | None
    tcp_nodelay: bool | None
    faults: Faults
    relay: RelayReady | None


class Counts(ProgramOutput, kw_only=True):
    """A count for each protocol."""

    h1: Unsigned
    h2: Unsigned
    h3: Unsigned


class Statuses(ProgramOutput, kw_only=True):
    """Responses by status, for each protocol."""

    h1: dict[str, Unsigned]
    h2: dict[str, Unsigned]
    h3: dict[str, Unsigned]

    def total(self) -> dict[str, int]:
        """Responses by protocol."""
        by = (("h1", self.h1), ("h2", self.h2), ("h3", self.h3))
        return {protocol: sum(statuses.values()) for protocol, statuses in by}


class CallsSummary(ProgramOutput, kw_only=True):
    """The calls of one service."""

    protocol: str
    protocols_spoken: dict[str, Unsigned]
    status: dict[str, Unsigned]
    errors: dict[str, Unsigned]
    connections: Unsigned
    connections_lost_idle: Unsigned
    wire_bytes_out: Unsigned
    wire_bytes_in: Unsigned
    udp_receive_errors: Unsigned
    key_exchange: str | None
    tcp: TcpSummary | None
    quic: QuicSummary | None


class RelaySummary(ProgramOutput, kw_only=True):
    """What a relay did, over its workers."""

    service: str
    calls: dict[str, CallsSummary]
    wire_bytes_out: Unsigned
    wire_bytes_in: Unsigned
    answers_dropped: Unsigned
    unfinished: Unsigned


class OriginSummary(ProgramOutput, kw_only=True):
    """What the origin did."""

    requests: Statuses
    connections: Counts
    resumed: Counts
    tcp_accepted: Unsigned
    early_requests: Unsigned
    content_bytes_out: Unsigned
    content_bytes_in: Unsigned
    wire_bytes_out: Unsigned
    wire_bytes_in: Unsigned
    udp_receive_drops: Unsigned
    key_exchanges: dict[str, Unsigned]
    tcp_congestion_control: str | None
    tcp_nodelay: bool | None
    workers_cpu_ns: Unsigned
    errors: dict[str, Unsigned]
    relay: RelaySummary | None = None
    started_ns: Unsigned
    ended_ns: Unsigned
    cpu_user_ns: Unsigned
    cpu_system_ns: Unsigned
    max_rss_bytes: Unsigned
    faults: Faults

    def spoken(self) -> dict[str, int]:
        """Responses by protocol."""
        return self.requests.total()

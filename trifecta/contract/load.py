"""The load: what a client is asked, and what the engine's, another program's driver or a browser's says."""

from __future__ import annotations

from typing import Literal

from trifecta.contract.common import (
    ALL_ADAPTATIONS,
    ConnectionMode,
    Declared,
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


class ClosedLoop(StrictConfig, tag_field="kind", tag="closed", frozen=True, kw_only=True):
    """The next request when one has ended, and not sooner than the least gap after the one before began."""

    least_gap_ns: Unsigned = 0


class OpenLoop(StrictConfig, tag_field="kind", tag="open", frozen=True, kw_only=True):
    """Requests at times that do not depend on responses."""

    rate_per_s: float
    arrivals: Literal["constant", "poisson"] = "constant"


class Message(StrictConfig, omit_defaults=True, frozen=True, kw_only=True):
    """Where the bodies of cycles come from: octets of filler, or the files of a folder; one of both."""

    body_bytes: Unsigned | None = None
    folder: str | None = None

    def __post_init__(self) -> None:
        """Refuse both, and none."""
        if (self.body_bytes is None) == (self.folder is None):
            raise ValueError("needs body_bytes or folder, and not both")


class LoadConfig(StrictConfig, frozen=True, kw_only=True):
    """What a client is asked to do."""

    trial: str
    protocol: Protocol
    address: str | None = None
    """None: ``server_name`` is resolved."""
    ip: Ip | None = None
    """Of the addresses that it is resolved to those of this version count; None: the first of IPv4, else the first."""
    port: Port
    server_name: str
    ca_file: str
    workers: Unsigned = 1
    connections: Unsigned = 1
    streams: Unsigned = 1
    connection_mode: ConnectionMode
    loop: ClosedLoop | OpenLoop
    requests: Unsigned = 0
    requests_per_client: Unsigned = 0
    duration_ns: Unsigned = 0
    warmup_requests: Unsigned = 0
    warmup_ns: Unsigned = 0
    method: Method
    path: str
    request_body_bytes: Unsigned = 0
    message: Message | None = None
    service: str = "A"
    to: str | None = None
    expect_body_bytes: Unsigned | None = None
    expect_status: Unsigned | None = None
    end_on_statuses: tuple[Unsigned, ...] = ()
    record_fields: tuple[str, ...] = ()
    user_agent: str | None = None
    verify_content: bool | None = None
    connect_timeout_ns: Unsigned = 10_000_000_000
    request_timeout_ns: Unsigned = 10_000_000_000
    total_timeout_ns: Unsigned = 60_000_000_000
    resumption: bool = False
    zero_rtt: bool = False
    congestion_control: str | None = "cubic"
    tcp_nodelay: bool = True
    tls_version: str = "1.3"
    key_exchange: str = "X25519"
    cipher: str | None = None
    udp_receive_buffer_bytes: Unsigned = 4 << 20
    max_udp_payload_bytes: Unsigned = 1452
    tcp_receive_buffer_bytes: Unsigned = 0
    seed: Unsigned = 1
    cpu: Unsigned | None = None
    samples_file: str | None = None
    spans_file: str | None = None
    keylog_file: str | None = None
    qlog_dir: str | None = None
    quic_adaptations: tuple[str, ...] = ALL_ADAPTATIONS
    tuning: Tuning = Tuning()


class ClientConfig(LoadConfig, frozen=True, kw_only=True):
    """What the driver of another client is asked: as the load, or only what a start costs."""

    only_start: bool = False


class LoadReady(ProgramOutput, kw_only=True):
    """The load can be used."""

    protocol: Protocol
    address: str
    port: Port
    process: Unsigned


class ClientReady(ProgramOutput, kw_only=True):
    """Another client, or a browser, was started."""

    client: str
    pid: int
    browser: str | None = None
    version: str | None = None


class ClientLoaded(ProgramOutput, kw_only=True):
    """The driver of another client is loaded and waits for its configuration."""

    client: str


class StartCost(ProgramOutput, kw_only=True):
    """What a start of another client costs that requests nothing."""

    start_cpu_ns: int | None


class ClientsSummary(ProgramOutput, kw_only=True):
    """When clients began their first requests."""

    begun: Unsigned
    first_begun_ns: Unsigned
    last_begun_ns: Unsigned


class ScheduleLag(ProgramOutput, kw_only=True):
    """How late the requests of an open loop started."""

    p50: Unsigned
    p90: Unsigned
    p99: Unsigned
    max: Unsigned


class Chain(ProgramOutput, kw_only=True):
    """Connections whose server sent the same amount of certificates, in octets of DER."""

    certificates: Unsigned
    octets: Unsigned
    connections: Unsigned


class Handshakes(ProgramOutput, kw_only=True):
    """Full handshakes: certificates, and in how many flights the server's part came."""

    chains: list[Chain]
    flights: dict[str, Unsigned]


class Versions(ProgramOutput, kw_only=True):
    """Of the engine and of the libraries that speak for it."""

    engine: str
    rustls: str
    quinn_proto: str


class SeenField(ProgramOutput, kw_only=True):
    """The values that responses had in one field, with how often each came; ``others``: beyond what is kept."""

    values: dict[str, Unsigned]
    others: Unsigned


Ended = Literal["requests", "duration", "total_timeout", "no_response", "status", "signal", "stdin", "crashed"]


class LoadSummary(ProgramOutput, kw_only=True):
    """What a client did. None is what a program from outside does not tell; the engine's load tells all it can."""

    trial: str
    samples: Unsigned
    errors: Unsigned
    ended: Ended
    started_ns: Unsigned
    ended_ns: Unsigned
    measured_ns: Unsigned
    clients: ClientsSummary | None = None
    cpu_user_ns: Unsigned
    cpu_system_ns: Unsigned
    max_rss_bytes: Unsigned | None
    schedule_lag_ns: ScheduleLag | None
    missed_slots: Unsigned | None
    longest_gap_ns: Unsigned | None = None
    not_started: Unsigned | None = None
    connections_opened: Unsigned | None
    connections_lost_idle: Unsigned | None
    wire_bytes_out: Unsigned | None
    wire_bytes_in: Unsigned | None
    key_exchange: str | None
    handshakes: Handshakes | None = None
    tcp: TcpSummary | None
    quic: QuicSummary | None
    tuning: Tuning = Tuning()
    """What was set of it."""
    response_fields: dict[str, SeenField] | None = None
    """Those that were to be recorded."""
    udp_receive_errors: Unsigned | None
    versions: Versions | None = None
    busy_ratio: float
    resolved: list[str] | None = None
    dns_ns: Unsigned | None = None

    # Of other clients and browsers.
    client: str | None = None
    declared: Declared | None = None
    content_compared: bool | None = None
    exit_code: int | None = None
    program_started_ns: int | None = None
    program_ended_ns: int | None = None
    wall_ns: int | None = None
    """How long the program ran; of the engine's load, how long the runner watched it."""
    version: str | None = None
    visits: Unsigned | None = None
    left_out: dict[str, int] | None = None
    """URLs that a recording has no answer to, with their number."""
    stray_lookups: int | None = None
    requests_made: Unsigned | None = None
    """Of visits to servers elsewhere: requests over the network, those of warm-up and to third parties too."""
    octets_about: Unsigned | None = None
    """What these took, both ways, with an estimate of what a browser does not tell."""

    # What the runner adds.
    start_cpu_ns: int | None = None
    """Of a start without a request."""
    run_delay_ns: int | None = None
    """Time ready to run without a CPU."""
    cpu_share: float | None = None
    throttled_ns: int | None = None
    driver_cpu_ns: int | None = None
    cpus: int | None = None
    floor_error: str | None = None
    stray_names: dict[str, int] | None = None

    @property
    def cpu_ns(self) -> int:
        """CPU time in user and system."""
        return self.cpu_user_ns + self.cpu_system_ns

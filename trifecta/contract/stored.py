"""Documents of a trial as the columns ``load_json``, ``link_json``, ``server_json`` and ``probe_json`` hold them.

Those of load, link and probe have the fields of their lines in `contract.load`, `contract.link` and `contract.probe`
(a test compares them); what a run of an earlier version did not write, or a program did not say, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from trifecta.contract.common import Declared


class Quantiles(TypedDict, total=False):
    """Of a distribution; None where it was empty."""

    min: int | None
    p50: int | None
    p90: int | None
    p99: int | None
    max: int | None


class SchedStat(TypedDict, total=False):
    """How long a program ran, and how long it could have and had no core."""

    started_ns: int
    ended_ns: int
    wall_ns: int | None
    run_delay_ns: int | None


class RanWithShare(SchedStat, total=False):
    """Also what share of a core it was given, and how long that kept it from running."""

    cpu_share: float | None
    throttled_ns: int | None


class Transport(TypedDict, total=False):
    """What a client says of TCP or of QUIC."""

    connections: int
    min_rtt_ns: int | None
    srtt_ns: int
    congestion_window_bytes: int
    congestion_control: str | None
    initial_window_bytes: int | None
    retransmits: int
    mss_bytes: int
    nodelay: bool | None
    paced: bool | None
    packet_threshold: int | None
    lost_packets: int
    sent_packets: int
    congestion_events: int
    mtu_bytes: int
    adaptations: list[str] | None


class Chain(TypedDict):
    """Certificates that a server showed: how many, octets of DER, on how many connections."""

    certificates: int
    octets: int
    connections: int


class Handshakes(TypedDict, total=False):
    """Full handshakes: certificates, and flights of the server to connections."""

    chains: list[Chain]
    flights: dict[str, int]


class Clients(TypedDict, total=False):
    """When clients began their first requests."""

    begun: int
    first_begun_ns: int
    last_begun_ns: int


class SeenField(TypedDict):
    """The values that responses had in one field, with how often each came; ``others``: beyond what is kept."""

    values: dict[str, int]
    others: int


class Load(RanWithShare, total=False):
    """``load_json``: `contract.load.LoadSummary`."""

    trial: str
    samples: int
    errors: int
    ended: str
    measured_ns: int
    clients: Clients | None
    cpu_user_ns: int
    cpu_system_ns: int
    max_rss_bytes: int | None
    schedule_lag_ns: Quantiles | None
    missed_slots: int | None
    longest_gap_ns: int | None
    not_started: int | None
    connections_opened: int | None
    connections_lost_idle: int | None
    wire_bytes_out: int | None
    wire_bytes_in: int | None
    key_exchange: str | None
    handshakes: Handshakes | None
    tcp: Transport | None
    quic: Transport | None
    tuning: Mapping[str, int | bool]
    response_fields: dict[str, SeenField] | None
    udp_receive_errors: int | None
    versions: Mapping[str, str] | None
    busy_ratio: float
    resolved: list[str] | None
    dns_ns: int | None
    client: str | None
    declared: Declared | None
    content_compared: bool | None
    exit_code: int | None
    program_started_ns: int | None
    program_ended_ns: int | None
    version: str | None
    visits: int | None
    left_out: dict[str, int] | None
    stray_lookups: int | None
    requests_made: int | None
    octets_about: int | None
    start_cpu_ns: int | None
    driver_cpu_ns: int | None
    cpus: int | None
    floor_error: str | None
    stray_names: dict[str, int] | None


class Tally(TypedDict, total=False):
    """What an impairment of a link met and hit; ``asked`` are its fields as it read them."""

    kind: str
    asked: Mapping[str, float | int | bool | str | None]
    met: int
    hit: int
    clamped: int
    queue_peak_bytes: int | None


class Direction(TypedDict, total=False):
    """What became of the packets of one direction of a link."""

    wire_packets: int
    wire_bytes: int
    super_packets: int
    delivered: int
    delivered_bytes: int
    lost: int
    queue_dropped: int
    corrupted: int
    duplicated: int
    reordered: int
    out_of_order: int
    memory_dropped: int
    in_flight: int
    delay_asked_ns: int
    delay_given_ns: Quantiles
    delay_scheduled_ns: Quantiles
    lateness_ns: Quantiles
    loss_asked: float
    loss_given: float | None
    rate_asked_bits_per_s: int | None
    rate_given_bits_per_s: float | None
    rate_busy_ns: int
    rate_busy_periods: int
    queue_peak_bytes: int | None
    device_drops: int
    transmit_drops: int
    send_errors: int
    refused: Mapping[str, int]
    impairments: list[Tally]
    truncated: int
    timestamps_replaced: int


class Capture(TypedDict, total=False):
    """What the capture of a link holds (docs/capture.md)."""

    packets: int
    comments: int
    keys: int
    whole: bool
    client_qlog: int | None


class OneLink(SchedStat, total=False):
    """What one link did: `contract.link.LinkSummary`."""

    ended: str
    cpu_user_ns: int
    cpu_system_ns: int
    max_rss_bytes: int
    realtime: bool
    memory_locked: bool
    short_slice: bool
    spin_ns: int
    split: str
    seed: int
    netem: Mapping[str, object] | None
    a_to_b: Direction
    b_to_a: Direction
    log_rows: int | None
    log_rows_dropped: int | None
    captured_packets: int | None
    capture_missed: int | None
    realtime_offset_ns: int | None
    neighbours_a_to_b: int | None
    neighbours_b_to_a: int | None
    capture: Capture | None


class Link(OneLink, total=False):
    """``link_json``: what the link of a lab of two hosts did, or ``links`` by the name of their wire."""

    links: dict[str, OneLink]


class OneProbe(TypedDict, total=False):
    """What a probe found: `contract.probe.MeasureSummary`."""

    sent: int
    received: int
    send_errors: int
    ended: str
    loss_forward: float | None
    loss_backward: float | None
    loss: float | None
    rtt_ns: Quantiles
    one_way_forward_ns: Quantiles
    one_way_backward_ns: Quantiles
    reordered: int
    duplicates: int
    reordered_forward: int | None
    duplicates_forward: int | None
    train_received: int | None
    rate_bits_per_s: float | None
    largest_payload_bytes: int | None
    wire: str | None
    clock_offset_ns: int | None
    clock_bound_ns: int | None
    realtime_offset_ns: int
    realtime_bound_ns: int
    far_realtime_offset_ns: int | None
    far_realtime_bound_ns: int | None
    clock_exchange_offset_ns: int | None
    clock_exchange_bound_ns: int | None
    clock_chrony_offset_ns: int | None
    clock_chrony_bound_ns: int | None


class Probe(OneProbe, total=False):
    """``probe_json``: a probe, or ``links``, those of several wires by name."""

    links: dict[str, OneProbe]


class ServiceSummary(TypedDict, total=False):
    """What the checks read of what the origin of a service says at its end: `contract.origin.OriginSummary`."""

    errors: dict[str, int]
    udp_receive_drops: int


class Service(RanWithShare, total=False):
    """One service of a trial; of the client no more than where it ran and what it used."""

    host: str
    place: str
    cpu_ns: int | None
    peak_rss_bytes: int | None
    client: bool
    asked: Mapping[str, str]
    protocols_spoken: Mapping[str, int]
    running: bool
    ended: str | None
    summary: ServiceSummary | None
    probed_rtt_ns: int | None
    """Between hosts: the median round trip from the host of who calls it, as it was probed last."""
    clock_offset_ns: int | None
    """How far the clock of its host is ahead of that one's, and how far the truth can be from that."""
    clock_bound_ns: int | None


class Cycles(TypedDict):
    """Hops of the cycles of services: how many there should be, hops to cycles, failures by hop and class."""

    expected_hops: int
    hops: dict[str, int]
    failures: dict[str, dict[str, int]]


class OtherServer(TypedDict):
    """Another server of a trial, which is not the one that is measured."""

    address: str
    cpu_ns: int | None


class Server(RanWithShare, total=False):
    """``server_json``: the server, or the services, of a trial. Adapters from outside may declare more."""

    name: str
    server: str
    version: str
    restarts: int
    renewals: int
    tls_version: str
    tls_library: str | Mapping[str, str]
    congestion_control: str | Mapping[str, str | None] | None
    tcp_nodelay: bool | None
    proxy: bool
    backend: str
    backend_link: str
    backend_congestion_control: str | None
    backend_cpu_ns: int | None
    cpu_ns: int | None
    peak_rss_bytes: int | None
    load_balancer: Mapping[str, int]
    host: str
    address: str
    url: str
    resolved: list[str]
    page: str
    live_ended: str | None
    beside: Mapping[str, OtherServer]
    services: Mapping[str, Service]
    cycles: Cycles | None

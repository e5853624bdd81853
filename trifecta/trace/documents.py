"""What a dissection says, as rows: of the tables `connections` and `messages`, and of the overview that is printed."""

from __future__ import annotations

from typing import TypedDict

Families = dict[str, dict[str, dict[str, float | None]]]
"""The metrics of a connection: ``{family: {"up" | "down" | "both": {metric: value}}}``."""


class ConnectionRow(TypedDict):
    """A row of the table `connections` but for its capture (`store.trace_schema.CONNECTIONS`)."""

    connection: int
    protocol: str | None
    transport: str
    client: str
    server: str
    client_port: int
    server_port: int
    tls_version: str | None
    cipher: str | None
    alpn: str | None
    alpn_offered: str | None
    server_name: str | None
    resumed: bool | None
    zero_rtt: bool | None
    key_exchange: str | None
    quic_version: str | None
    start_ns: int
    end_ns: int
    packets: int
    wire_bytes: int
    payload_bytes: int
    largest_wire_bytes: int
    decrypted: bool | None
    migrated: bool | None
    truncated: str | None
    transport_parameters: str | None


class MessageRow(TypedDict):
    """A row of the table `messages` but for its capture (`store.trace_schema.MESSAGES`)."""

    connection: int
    protocol: str
    stream: int | None
    request: int
    method: str | None
    authority: str | None
    path: str | None
    status: int | None
    request_start_ns: int | None
    request_end_ns: int | None
    response_start_ns: int | None
    response_end_ns: int | None
    request_header_bytes: int | None
    response_header_bytes: int | None
    request_body_bytes: int | None
    response_body_bytes: int | None
    packets_up: int | None
    packets_down: int | None
    complete: bool


class CaptureSummary(TypedDict):
    """A capture: what the study ding2022 counted of each, and what its name says (None: it is none of theirs)."""

    capture: str
    endpoint: str | None
    connection_mode: str | None
    named_protocol: str | None
    packets: int
    seconds: float
    wire_bytes: int
    payload_bytes: int
    largest_wire_bytes: int
    tcp_packets: int
    requests: int


class _WithMetrics(TypedDict, total=False):
    metrics: Families


class ConnectionSummary(_WithMetrics):
    """A connection: its size, what passed until the first octet of a response, and for programs its metrics."""

    capture: str
    connection: int
    protocol: str | None
    transport: str
    client: str
    server: str
    client_port: int
    server_port: int
    tls_version: str | None
    decrypted: bool | None
    truncated: str | None
    quic_version: str | None
    cipher: str | None
    alpn: str | None
    alpn_offered: str | None
    server_name: str | None
    packets: int
    wire_bytes: int
    payload_bytes: int
    largest_wire_bytes: int
    requests: int
    round_trip_bound: int | None
    round_trips_to_response: float | None
    packets_to_response: int | None
    wire_bytes_to_response: int | None
    time_to_response_ns: int | None
    notes: list[str]

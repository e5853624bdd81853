"""One row of the samples: a request of any client, or a visit (docs/architecture.md, 1.1)."""

from __future__ import annotations

from typing import TypedDict

from trifecta.contract.errors import ErrorClass


class SampleRow(TypedDict, total=False):
    """What is known of one request; what did not happen, or is not told, is None or left out."""

    trial: str
    worker: int
    connection: int | None
    client: int | None
    stream: int | None
    request: int
    warmup: bool
    intended_ns: int | None
    started_ns: int
    connect_start_ns: int | None
    tcp_connected_ns: int | None
    secured_ns: int | None
    request_sent_ns: int | None
    first_byte_ns: int | None
    done_ns: int | None
    protocol: str | None
    tls_version: str | None
    cipher: str | None
    resumed: bool | None
    zero_rtt: bool | None
    status: int | None
    bytes_out: int | None
    bytes_in: int | None
    header_bytes_in: int | None
    error: ErrorClass | None

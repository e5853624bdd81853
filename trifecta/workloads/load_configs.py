"""The workload ``requests``: from a trial to the configuration of the engine's load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trifecta.contract.common import Method
from trifecta.contract.load import ClosedLoop, LoadConfig, OpenLoop
from trifecta.design import quinn, tuning
from trifecta.design.by_protocol import one_size
from trifecta.design.model import PathSpec, RequestsWorkload, Trial
from trifecta.lab.certificates import Certificates

CIPHER = {"1.3": "TLS_AES_128_GCM_SHA256", "1.2": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}
UDP_RECEIVE_BUFFER_BYTES = 4 << 20
MAX_UDP_PAYLOAD_BYTES = 1452  # MTU 1500 less the headers of IPv6 and UDP, on both families alike
_TIMEOUT_SLACK_NS = 5_000_000_000


def streams_of(workload: RequestsWorkload, protocol: str, connection: str) -> tuple[int, int]:
    """Connections, and streams on each, that carry the requests in flight of one arm.

    HTTP/1.1 has one request at a time on a connection; with a new connection for every request there is one request a
    connection on every protocol. UserError-free: the study was validated.
    """
    if workload.connections is not None or workload.streams is not None:
        connections, streams = workload.connections or 1, workload.streams or 1
        return (connections * streams, 1) if protocol == "h1" or connection == "new" else (connections, streams)
    if protocol == "h1" or connection == "new":
        return workload.in_flight, 1
    return 1, workload.in_flight


@dataclass(frozen=True)
class ExpectedResponse:
    """What a right answer is."""

    status: int
    body_bytes: int


def right_answer(workload: RequestsWorkload) -> ExpectedResponse:
    """HEAD and DELETE have no content in their answer (RFC 9110, 9.3)."""
    empty = workload.method in ("HEAD", "DELETE")
    return ExpectedResponse(
        204 if workload.method == "DELETE" else 200, 0 if empty else one_size(workload.response_bytes)
    )


def total_timeout_ns(workload: RequestsWorkload, path: PathSpec) -> int:
    """When a trial is given up: its duration, or a generous time for its requests, and the slack of its timeouts."""
    if workload.duration_ns:
        expected = workload.duration_ns
    elif workload.loop == "open" and workload.rate_per_s:
        expected = int(workload.requests / workload.rate_per_s * 1e9)
    else:
        rounds = -(-workload.requests // max(1, workload.in_flight))
        expected = 4 * round(workload.work_ns(path, "new", "")) + rounds * 10_000_000
        if path.rate_bits_per_s:  # which may be what is assumed of a network of which nothing is known
            expected += 4 * (workload.octets or 0) * 8 * 10**9 // path.rate_bits_per_s
    return expected + workload.connect_timeout_ns + workload.request_timeout_ns + _TIMEOUT_SLACK_NS


def load_config(
    trial: Trial,
    workload: RequestsWorkload,
    path: PathSpec,
    *,
    address: str,
    port: int,
    server_name: str,
    certificates: Certificates,
    samples_file: Path,
    keylog_file: Path | None = None,
    qlog_dir: Path | None = None,
) -> LoadConfig:
    """The configuration of the engine's load for a trial (docs/architecture.md, section 1.1).

    ``workload`` is as the trial's protocol meets it.
    """
    connection = trial.connection
    connections, streams = streams_of(workload, trial.protocol, connection)
    loop: ClosedLoop | OpenLoop = ClosedLoop()
    if workload.loop == "open":
        loop = OpenLoop(rate_per_s=workload.rate_per_s or 0.0, arrivals=workload.arrivals)
    right = right_answer(workload)
    return LoadConfig(
        trial=trial.trial,
        protocol=trial.protocol,
        address=address,
        port=port,
        server_name=server_name,
        ca_file=str(certificates.authority),
        workers=1,
        connections=connections,
        streams=streams,
        connection_mode="new" if connection == "new" else "reused",
        loop=loop,
        requests=workload.requests,
        duration_ns=workload.duration_ns,
        warmup_requests=workload.warmup_requests,
        warmup_ns=workload.warmup_ns,
        method=cast(Method, workload.method),
        path=f"/bytes/{one_size(workload.response_bytes)}",
        request_body_bytes=one_size(workload.request_bytes),
        expect_body_bytes=right.body_bytes,
        expect_status=right.status,
        connect_timeout_ns=workload.connect_timeout_ns,
        request_timeout_ns=workload.request_timeout_ns,
        total_timeout_ns=total_timeout_ns(workload, path),
        resumption=workload.resumption,
        zero_rtt=workload.zero_rtt,
        congestion_control=workload.congestion_control,
        tcp_nodelay=workload.tcp_nodelay,
        tls_version=workload.tls_version,
        key_exchange=workload.key_exchange,
        cipher=CIPHER[workload.tls_version],
        udp_receive_buffer_bytes=UDP_RECEIVE_BUFFER_BYTES,
        max_udp_payload_bytes=MAX_UDP_PAYLOAD_BYTES,
        quic_adaptations=tuple(quinn.names(workload.quinn)),
        tuning=tuning.engine(workload),
        seed=trial.seed,
        samples_file=str(samples_file),
        keylog_file=None if keylog_file is None else str(keylog_file),
        qlog_dir=None if qlog_dir is None else str(qlog_dir),
    )

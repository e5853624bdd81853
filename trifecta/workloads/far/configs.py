"""From a URL and a place to the configuration of the engine's load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trifecta import __version__
from trifecta.contract.common import Method, Protocol
from trifecta.contract.load import ClosedLoop, LoadConfig
from trifecta.design.far import RECORDED
from trifecta.design.manners import PATIENCE
from trifecta.design.model import FarBaseWorkload
from trifecta.design.stat import Target
from trifecta.workloads.load_configs import CIPHER, MAX_UDP_PAYLOAD_BYTES, UDP_RECEIVE_BUFFER_BYTES

USER_AGENT = f"trifecta/{__version__} (compares HTTP/1.1, HTTP/2 and HTTP/3; leaves off at 429 and 503)"
SMALL_UDP_PAYLOAD_BYTES = 1200  # what every path of QUIC must carry (RFC 9000, 8.1 and 14)
_SLACK_NS = 5_000_000_000


@dataclass(frozen=True)
class Request:
    """What is asked, where and over what."""

    target: Target
    address: str
    protocol: str
    authorities: Path
    udp_payload_bytes: int = MAX_UDP_PAYLOAD_BYTES
    expect_status: int | None = None


@dataclass(frozen=True)
class RequestSchedule:
    """How many requests a load makes, on which connections, and how far apart."""

    trial: str
    connection: str
    requests: int
    before: int
    gap_ns: int
    seed: int = 1


def load_config(request: Request, workload: FarBaseWorkload, course: RequestSchedule, samples: Path) -> LoadConfig:
    """The configuration of a load; ``workload`` says what is the same of all."""
    every = course.requests + course.before
    each_ns = max(course.gap_ns, workload.request_timeout_ns)
    return LoadConfig(
        trial=course.trial,
        protocol=cast(Protocol, request.protocol),
        address=request.address,
        port=request.target.port,
        server_name=request.target.host,
        ca_file=str(request.authorities.resolve()),
        connection_mode="new" if course.connection == "new" else "reused",
        loop=ClosedLoop(least_gap_ns=course.gap_ns),
        requests=course.requests,
        warmup_requests=course.before,
        method=cast(Method, workload.method),
        path=request.target.path,
        verify_content=False,
        expect_status=request.expect_status,
        end_on_statuses=PATIENCE,
        record_fields=RECORDED,
        user_agent=USER_AGENT,
        connect_timeout_ns=workload.connect_timeout_ns,
        request_timeout_ns=workload.request_timeout_ns,
        total_timeout_ns=every * (each_ns + workload.connect_timeout_ns) + _SLACK_NS,
        resumption=workload.resumption,
        congestion_control=workload.congestion_control,
        tcp_nodelay=workload.tcp_nodelay,
        key_exchange=workload.key_exchange,
        cipher=CIPHER[workload.tls_version],
        udp_receive_buffer_bytes=UDP_RECEIVE_BUFFER_BYTES,
        max_udp_payload_bytes=request.udp_payload_bytes,
        seed=course.seed,
        samples_file=str(samples),
    )

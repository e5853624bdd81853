"""From a trial to the configurations of its programs: the client's load, and a relay for every service."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from trifecta.contract.codec import convert, plain
from trifecta.contract.load import LoadConfig, Message
from trifecta.contract.origin import OriginConfig, RelayConfig, RouteConfig, ServiceConfig
from trifecta.contract.services import ProgramConfig, ServicesLoadConfig, ServicesOriginConfig
from trifecta.design import by_protocol, quinn
from trifecta.design.by_protocol import one_size
from trifecta.design.graph import Graph, Route
from trifecta.design.model import PathSpec, Protocol, ServicesWorkload, Trial
from trifecta.design.transports import over
from trifecta.implementations.services.rows import lines_of
from trifecta.lab.certificates import Certificates
from trifecta.workloads.load_configs import CIPHER, load_config

FIRST_PORT = 8443
POOL = 4  # connections that a service keeps to the next over HTTP/2 and HTTP/3; each takes up to 100 streams
STREAMS = 100
_IDLE_NS = 60_000_000_000
_DNS_TIMEOUT_NS = 5_000_000_000  # when a lost question is asked again (resolv.conf(5))
_LOSS_STALL_NS = 400_000_000  # what a lost packet may cost a call: the shortest timeouts of TCP and QUIC, a few times


def dns_name(service: str) -> str:
    """The name of a service in the lab's zone."""
    return f"{service.lower()}.lab"


def port_of(graph: Graph, service: str) -> int:
    """Every service has a port of its own, so that any of them can share a host."""
    return FIRST_PORT + graph.services.index(service)


def origin_config(
    graph: Graph,
    service: str,
    workload: ServicesWorkload,
    protocols: Mapping[tuple[str, str], Protocol],
    *,
    connection: str,
    address: str,
    certificates: Certificates,
    keylog_file: Path | None = None,
) -> OriginConfig:
    """What one service is asked to be (docs/architecture.md, section 1.2)."""
    tls_version = over(workload.tls_version, "h1")  # of TCP; QUIC has 1.3
    callees = {call.to for route in graph.routes_of(service) for call in route.calls}
    relay = RelayConfig(
        service=service,
        routes={route.path.partition("?")[0]: _route(route) for route in graph.routes_of(service)},
        services={
            callee: _service(graph, callee, workload, protocols[service, callee], connection)
            for callee in sorted(callees)
        },
        ip=workload.ip,
        ca_file=str(certificates.authority),
        tls_version=tls_version,
        key_exchange=workload.key_exchange,
        cipher=CIPHER[tls_version],
        connect_timeout_ns=int(workload.connect_timeout_ns * patience(graph, service)),
        request_timeout_ns=int(workload.request_timeout_ns * patience(graph, service)),
    )
    return OriginConfig(
        address=address,
        port=port_of(graph, service),
        certificate_file=str(certificates.chain),
        key_file=str(certificates.key),
        protocols=("h1", "h2", "h3"),
        congestion_control=workload.congestion_control,
        tcp_nodelay=workload.tcp_nodelay,
        tls_versions=(tls_version,),
        zero_rtt=False,
        quic_adaptations=tuple(quinn.names(workload.quinn)),
        idle_timeout_ns=_IDLE_NS,
        max_concurrent_streams=max(250, workload.in_flight),
        relay=relay,
        keylog_file=None if keylog_file is None else str(keylog_file),
    )


def _service(
    graph: Graph, callee: str, workload: ServicesWorkload, protocol: Protocol, connection: str
) -> ServiceConfig:
    connections, streams = pool_of(workload, protocol, connection)
    return ServiceConfig(
        name=dns_name(callee),
        address=None,
        port=port_of(graph, callee),
        protocol=protocol,
        connection_mode="new" if connection == "new" else "reused",
        connections=connections,
        streams=streams,
    )


# avast/retry-go as it is without options: https://pkg.go.dev/github.com/avast/retry-go
RETRY_ATTEMPTS = 10
RETRY_DELAY_NS = 100_000_000
LEAK_NS = 30_000_000_000  # IdleConnTimeout of the transports that bourbon2020 left behind


def program_config(workload: ServicesWorkload, protocol: Protocol, name_server: str | None = None) -> ProgramConfig:
    """The switches of a program that is not the engine's, of a trial over this protocol."""
    think_ns = workload.think_time_ns or (0,)
    return ProgramConfig(
        own_tls=bool(workload.alpn_mismatch),
        leak_ns=LEAK_NS if workload.connection_leak else 0,
        verify=not workload.unverified,
        attempts=RETRY_ATTEMPTS if workload.retries else 1,
        retry_delay_ns=RETRY_DELAY_NS if workload.retries else 0,
        think_ns=by_protocol.of(think_ns, protocol),
        name_server=name_server,
        read_timeout_ns=workload.read_timeout_ns or 0,
        write_timeout_ns=workload.write_timeout_ns or 0,
    )


def for_service(config: OriginConfig, program: ProgramConfig) -> ServicesOriginConfig:
    """The same for a service of another program."""
    return convert(ServicesOriginConfig, {**plain(config), "program": plain(program)})


def for_client(config: LoadConfig, program: ProgramConfig) -> ServicesLoadConfig:
    """The same for the client of another program, which writes lines instead of Parquet."""
    files = {name: str(lines_of(Path(str(getattr(config, name))))) for name in ("samples_file", "spans_file")}
    return convert(ServicesLoadConfig, {**plain(config), **files, "program": plain(program)})


def patience(graph: Graph, service: str) -> float:
    """Share of the client's timeouts that a service waits for its own calls: less the further in, at least a half.

    So the hop that hangs is the one that is named: with one timeout for all, the client would give up first.
    """
    levels = max(depth for _, _, depth in graph.walk())
    own = min((depth for caller, _, depth in graph.walk() if caller == service), default=levels)
    return 1 - 0.5 * own / levels if levels else 1.0


def pool_of(workload: ServicesWorkload, protocol: Protocol, connection: str) -> tuple[int, int]:
    """How many connections a service keeps to the next, and streams on each: room for every cycle in flight."""
    most = max(POOL * STREAMS, 2 * workload.in_flight)
    if protocol == "h1" or connection == "new":
        return most, 1
    return POOL if workload.in_flight > 1 else 1, STREAMS


def _route(route: Route) -> RouteConfig:
    calls = [{"to": call.to, "method": call.method, "path": call.path, "body": call.body} for call in route.calls]
    return convert(RouteConfig, {"calls": calls, "answer": route.answer})


def client_config(
    trial: Trial,
    graph: Graph,
    workload: ServicesWorkload,
    path: PathSpec,
    *,
    certificates: Certificates,
    samples_file: Path,
    spans_file: Path,
    messages: Path | None,
    keylog_file: Path | None = None,
    qlog_dir: Path | None = None,
) -> LoadConfig:
    """What the client is asked to do: its cycles are requests of the engine's load (section 1.1)."""
    workload = workload.for_protocol(trial.protocol)
    entry = graph.entry
    config = load_config(
        trial,
        workload,
        path,
        address="",
        port=port_of(graph, entry.to),
        server_name=dns_name(entry.to),
        certificates=certificates,
        samples_file=samples_file,
        keylog_file=keylog_file,
        qlog_dir=qlog_dir,
    )
    message: Message | None = None
    if entry.body == "forward" and messages is not None:
        message = Message(folder=str(messages))
    elif entry.body == "forward":
        message = Message(body_bytes=one_size(workload.request_bytes))
    config = replace(
        config,
        address=None,
        ip=workload.ip,
        method=entry.method,
        path=entry.path,
        request_body_bytes=0,
        expect_body_bytes=None,
        expect_status=200,
        message=message,
        service=graph.client,
        to=entry.to,
        spans_file=str(spans_file),
        total_timeout_ns=total_timeout_ns(graph, workload, path, workload.samples),
    )
    if not workload.crowd:
        return config
    return replace(
        config,
        requests=0,
        requests_per_client=workload.requests,
        warmup_requests=workload.warmup_samples,
    )


def total_timeout_ns(graph: Graph, workload: ServicesWorkload, path: PathSpec, requests: int) -> int:
    """When a trial is given up: a generous time for its cycles, every call of which may set up a connection."""
    calls = len(graph.walk())
    stall = _LOSS_STALL_NS if path.missing else 0
    if workload.names:
        stall += path.rtt_ns + (_DNS_TIMEOUT_NS if stall else 0)
    each = calls * (8 * path.rtt_ns + 10_000_000 + stall)
    if workload.duration_ns:
        expected = workload.duration_ns
    elif workload.loop == "open" and workload.rate_per_s:
        expected = int(requests / workload.rate_per_s * 1e9) + each
    else:
        rounds = -(-requests // max(1, workload.in_flight))
        expected = max(rounds * each, 4 * round(workload.work_ns(path, "new", "")))
    think_ns = max(workload.think_time_ns or (0,)) * (-(-requests // max(1, workload.in_flight)))
    attempts = RETRY_ATTEMPTS if workload.retries else 1
    retry_delay_ns = sum(RETRY_DELAY_NS << attempt for attempt in range(attempts - 1))
    longest_ns = attempts * (workload.connect_timeout_ns + workload.request_timeout_ns) + retry_delay_ns
    return expected + think_ns + longest_ns + 5_000_000_000

"""What every foreign client is asked in the same way, and what none of them can be asked."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract.codec import changed, convert, decode, plain
from trifecta.contract.load import ClientConfig, ClosedLoop, LoadConfig
from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.client import ClientAdapter, Job
from trifecta.implementations.server import Unsupported

_COPIED = (
    "protocol", "port", "server_name", "connections", "streams", "connection_mode", "warmup_requests", "method", "path",
    "request_body_bytes", "expect_body_bytes", "expect_status", "connect_timeout_ns", "request_timeout_ns",
    "total_timeout_ns", "tls_version", "key_exchange", "tcp_nodelay",
)  # fmt: skip
# Fields that a job has no word for: only what asks for nothing special. Content is compared with the pattern by
# every adapter that can, whatever is asked; of the seed, congestion control and buffers its adapter says in `declared`
# what is known, and the check `parity` the rest.
_ONLY: dict[str, object] = {
    "workers": 1, "duration_ns": 0, "warmup_ns": 0, "resumption": False, "zero_rtt": False, "loop": ClosedLoop(),
    "cpu": None, "tcp_receive_buffer_bytes": 0, "requests_per_client": 0, "message": None, "to": None,
    "spans_file": None, "end_on_statuses": (), "record_fields": (), "user_agent": None, "ip": None,
}  # fmt: skip
_CIPHER = "TLS_AES_128_GCM_SHA256"


def read(line: bytes, client: ClientAdapter) -> ClientConfig:
    """The load's configuration; ValueError names the field that is missing, unknown, or asks what is not possible."""
    config = decode(ClientConfig, line)
    if not config.tcp_nodelay and not client.sets_nodelay:
        raise ValueError(f"tcp_nodelay: {client.name} cannot leave Nagle's algorithm on")
    if config.protocol == "h3" and config.tls_version != "1.3":
        raise ValueError("tls_version: must be 1.3 with h3 (RFC 9001 4.2)")
    for name, only in _ONLY.items():
        value = getattr(config, name)
        if value != only:
            raise ValueError(f"{name}: {client.name} cannot do {plain(value)!r}; only {plain(only)!r}")
    if config.address is None:
        raise ValueError("address: a foreign client is not asked to resolve the name")
    if config.samples_file is None:
        raise ValueError("samples_file: is missing")
    if config.requests < 1:
        raise ValueError("requests: a foreign client needs a number of requests, 1 or more")
    return config


def job_of(config: ClientConfig, state: Path) -> Job:
    """The job that a configuration asks for."""

    def path(name: str | None) -> Path | None:
        return None if name is None else Path(name).absolute()  # the client works in another folder

    return Job(
        **{name: getattr(config, name) for name in _COPIED},
        address=str(config.address),
        ca_file=Path(config.ca_file).absolute(),
        keylog_file=path(config.keylog_file),
        qlog_dir=path(config.qlog_dir),
        requests=config.requests + config.warmup_requests,
        cipher=config.cipher or _CIPHER,
        state=state,
    )


def only_start(config: LoadConfig) -> ClientConfig:
    """The same job, of which only the start is wanted."""
    return changed(convert(ClientConfig, plain(config)), {"only_start": True})


def refuse(client: ClientAdapter, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
    """Raise Unsupported when neither any foreign client nor this one can do such work."""
    unsupported = (
        (workload.loop != "closed", "keeps no open loop's schedule; use 'loop: closed'"),
        (workload.duration_ns != 0 or not workload.requests, "counts requests, not time; give 'requests', no duration"),
        (workload.warmup_ns != 0, "has a warm-up in requests only; write for example 'warmup: 20 requests'"),
        (workload.resumption, "is not asked to resume sessions; leave out 'resumption'"),
        (workload.zero_rtt, "is not asked to send early data; leave out 'zero_rtt'"),
        (
            not workload.tcp_nodelay and not client.sets_nodelay,
            "is not asked to use Nagle's algorithm; leave out 'tcp_nodelay'",
        ),
    )
    for impossible, why in unsupported:
        if impossible:
            raise Unsupported(f"{client.name} {why}")
    if protocol not in client.protocols:
        raise Unsupported(f"{client.name} does not speak {protocol}")
    client.check_workload(workload, protocol, connection)

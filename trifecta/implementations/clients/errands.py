"""What every foreign client is asked in the same way, and what none of them can be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.client import ClientAdapter, Errand
from trifecta.implementations.server import Unsupported

_COPIED = (
    "protocol", "address", "port", "server_name", "connections", "streams", "connection_mode", "warmup_requests",
    "method", "path", "request_body_bytes", "expect_body_bytes", "expect_status", "connect_timeout_ns",
    "request_timeout_ns", "total_timeout_ns", "tls_version", "key_exchange", "cipher",
)  # fmt: skip
_NEEDED = {*_COPIED, "trial", "ca_file", "requests", "samples_file"}
# Fields of the load's configuration that an errand has no word for, with the one value that asks for nothing special.
_ONLY: dict[str, Any] = {
    "workers": 1, "duration_ns": 0, "warmup_ns": 0, "resumption": False, "zero_rtt": False,
    "loop": {"kind": "closed"}, "cpu": None, "tcp_receive_buffer_bytes": 0, "requests_per_client": 0, "message": None,
    "to": None, "spans_file": None,
}  # fmt: skip
# What a foreign client is not asked: its adapter says in `declared` what is known, and the check `parity` the rest.
# Content is compared with the pattern by every adapter that can, whatever is asked.
_IGNORED = {
    "seed", "congestion_control", "quic_adaptations", "udp_receive_buffer_bytes", "max_udp_payload_bytes",
    "verify_content", "service",
}  # fmt: skip
_OPTIONAL = {"keylog_file", "qlog_dir"}
_NODELAY = "tcp_nodelay"  # true where it is not said
ONLY_START = "only_start"
"""A field of no load: nothing is requested, the summary says what a start costs."""


def read(line: bytes, client: ClientAdapter) -> dict[str, Any]:
    """The load's configuration; ValueError names the field that is missing, unknown, or asks what is not possible."""
    try:
        config = json.loads(line)
    except ValueError as error:
        raise ValueError(f"configuration: is not JSON ({error})") from None
    if not isinstance(config, dict):
        raise ValueError("configuration: is not an object")
    missing = sorted(_NEEDED - set(config))
    if missing:
        raise ValueError(f"{missing[0]}: is missing")
    for name, value in config.items():
        if name == _NODELAY and not value and not client.sets_nodelay:
            raise ValueError(f"tcp_nodelay: {client.name} cannot leave Nagle's algorithm on")
        if name in _ONLY and value != _ONLY[name]:
            raise ValueError(f"{name}: {client.name} cannot do {value!r}; only {_ONLY[name]!r}")
        if name not in _NEEDED | set(_ONLY) | _IGNORED | _OPTIONAL | {ONLY_START, _NODELAY}:
            raise ValueError(f"{name}: is not a field of the load")
    if config["address"] is None:
        raise ValueError("address: a foreign client is not asked to resolve the name")
    if not isinstance(config["requests"], int) or config["requests"] < 1:
        raise ValueError("requests: a foreign client needs a number of requests, 1 or more")
    return config


def errand_of(config: dict[str, Any], state: Path) -> Errand:
    """The errand that a configuration asks for."""
    named = [name for name in _OPTIONAL if config.get(name)]  # the client works in another folder
    files: dict[str, Any] = dict.fromkeys(_OPTIONAL) | {name: Path(config[name]).absolute() for name in named}
    return Errand(
        **{name: config[name] for name in _COPIED},
        **files,
        ca_file=Path(config["ca_file"]).absolute(),
        requests=config["requests"] + config["warmup_requests"],
        tcp_nodelay=bool(config.get(_NODELAY, True)),
        state=state,
    )


def refuse(client: ClientAdapter, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
    """Raise Unsupported when neither any foreign client nor this one can do such work."""
    asked = (
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
    for impossible, why in asked:
        if impossible:
            raise Unsupported(f"{client.name} {why}")
    if protocol not in client.protocols:
        raise Unsupported(f"{client.name} does not speak {protocol}")
    client.check_workload(workload, protocol, connection)

"""The fields of a workload and the factors of a study: how each is written, read and written back.

A field of the workload that changes what is asked (response size, requests in flight, ...) can also be a factor: then
its levels are listed under ``factors`` and each gives cells of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trifecta.design import quantity
from trifecta.design.document import did_you_mean, one_of, parse_flag, parse_text
from trifecta.design.model import PROTOCOL_NAMES, PROTOCOLS
from trifecta.design.quantity import QuantityError

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAFE_METHODS = ("GET", "HEAD")  # those of ours that RFC 9110 section 9.2.1 calls safe
KEY_EXCHANGES = ("X25519", "X25519MLKEM768", "secp256r1", "secp384r1")
CONGESTION_CONTROLS = ("cubic", "bbr", "reno")


def parse_protocol(value: Any) -> str:
    """``HTTP/3`` or ``h3`` as ``h3``."""
    text = parse_text(value)
    names = {name.lower(): protocol for protocol, name in PROTOCOL_NAMES.items()} | {p: p for p in PROTOCOLS}
    if text.lower() not in names:
        raise QuantityError(f"{text!r} is not a protocol; {did_you_mean(text, PROTOCOL_NAMES.values())}")
    return names[text.lower()]


def _positive_count(value: Any) -> int:
    count = quantity.parse_count(value)
    if count == 0:
        raise QuantityError(f"{value!r} asks for nothing; give 1 or more")
    return count


def _positive_time(value: Any) -> int:
    time_ns = quantity.parse_time_ns(value)
    if time_ns == 0:
        raise QuantityError(f"{value!r} is no time at all; give more than 0")
    return time_ns


def _positive_frequency(value: Any) -> float:
    per_s = quantity.parse_frequency_per_s(value)
    if per_s == 0:
        raise QuantityError(f"{value!r} asks for nothing; give more than 0")
    return per_s


def _as_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """A field of the workload: its name in a file, its attribute in the model, and how it is read and written."""

    name: str
    attribute: str
    parse: Callable[[Any], Any]
    format: Callable[[Any], Any] = _as_is
    factor: bool = True  # can be a factor


_FIELDS = (
    Field("method", "method", one_of("a method", *METHODS)),
    Field("response", "response_bytes", quantity.parse_size_bytes, quantity.format_size),
    Field("request", "request_bytes", quantity.parse_size_bytes, quantity.format_size),
    Field("in_flight", "in_flight", _positive_count),
    Field("connections", "connections", _positive_count),
    Field("streams", "streams", _positive_count),
    Field("loop", "loop", one_of("a loop", "closed", "open"), factor=False),
    Field("rate", "rate_per_s", _positive_frequency, quantity.format_frequency),
    Field("arrivals", "arrivals", one_of("a kind of arrivals", "constant", "poisson")),
    Field("request_timeout", "request_timeout_ns", _positive_time, quantity.format_time, factor=False),
    Field("connect_timeout", "connect_timeout_ns", _positive_time, quantity.format_time, factor=False),
    Field("resumption", "resumption", parse_flag),
    Field("zero_rtt", "zero_rtt", parse_flag),
    Field("congestion_control", "congestion_control", one_of("a congestion control", *CONGESTION_CONTROLS)),
    Field("tcp_nodelay", "tcp_nodelay", parse_flag),
    Field("tls_version", "tls_version", one_of("a TLS version", "1.2", "1.3")),
    Field("key_exchange", "key_exchange", one_of("a key exchange", *KEY_EXCHANGES)),
    Field("keylog", "keylog", parse_flag, factor=False),
    Field("qlog", "qlog", parse_flag, factor=False),
)
WORKLOAD_FIELDS: dict[str, Field] = {field.name: field for field in _FIELDS}
LENGTH_FIELDS = ("requests", "duration", "warmup")  # how long a trial is; a path can have its own

CORE_FACTORS = ("protocol", "path", "connection", "server")  # every study has these
CLIENT_FACTOR = "client"  # in a study, and in the keys of its cells, only when it is named
DEFAULT_CLIENT = "load"  # the engine's own
CONNECTION_LEVELS = ("new", "reused")
WORKLOAD_FACTORS = tuple(field.name for field in _FIELDS if field.factor)
KNOWN_FACTORS = (*CORE_FACTORS, CLIENT_FACTOR, *WORKLOAD_FACTORS)


def parse_level(factor: str, value: Any) -> Any:
    """A level of a factor in its canonical form, which is also how it is shown and stored."""
    if factor == "protocol":
        return parse_protocol(value)
    if factor == "connection":
        return one_of("a connection mode", *CONNECTION_LEVELS)(value)
    if factor in (*CORE_FACTORS, CLIENT_FACTOR):
        return parse_text(value)
    field = WORKLOAD_FIELDS[factor]
    return field.format(field.parse(value))


def workload_changes(levels: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the workload that a cell's levels set."""
    fields = ((WORKLOAD_FIELDS[name], level) for name, level in levels.items() if name in WORKLOAD_FIELDS)
    return {field.attribute: field.parse(level) for field, level in fields}

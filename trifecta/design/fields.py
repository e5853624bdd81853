"""The fields of workloads: how each is written in a study, read, and written back.

A field that changes what is asked (response size, requests in flight, ...) can also be a factor.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trifecta.design import ip, quantity, quinn, tuning
from trifecta.design.by_protocol import BETWEEN, format_octets, one_or_three, parse_octets
from trifecta.design.document import did_you_mean, one_of, parse_flag, parse_text
from trifecta.design.protocols import METHODS, PROTOCOL_NAMES, PROTOCOLS
from trifecta.design.quantity import QuantityError
from trifecta.design.transports import one_or_two

KEY_EXCHANGES = ("X25519", "X25519MLKEM768", "secp256r1", "secp384r1")
CONGESTION_CONTROLS = ("cubic", "bbr", "reno")


def parse_protocol(value: Any) -> str:
    """``HTTP/3`` or ``h3`` as ``h3``."""
    text = parse_text(value)
    names = {name.lower(): protocol for protocol, name in PROTOCOL_NAMES.items()} | {p: p for p in PROTOCOLS}
    if text.lower() not in names:
        raise QuantityError(f"{text!r} is not a protocol; {did_you_mean(text, PROTOCOL_NAMES.values())}")
    return names[text.lower()]


def positive_count(value: Any) -> int:
    """A whole number, 1 or more."""
    count = quantity.parse_count(value)
    if count == 0:
        raise QuantityError(f"{value!r} is too small; give 1 or more")
    return count


def _positive_time(value: Any) -> int:
    time_ns = quantity.parse_time_ns(value)
    if time_ns == 0:
        raise QuantityError(f"{value!r} is zero; give more than 0")
    return time_ns


def _positive_frequency(value: Any) -> float:
    per_s = quantity.parse_frequency_per_s(value)
    if per_s == 0:
        raise QuantityError(f"{value!r} is too small; give more than 0")
    return per_s


def _time_or_none(value: Any) -> int | None:
    """A time, or ``none``."""
    return None if parse_text(value) == "none" else _positive_time(value)


def _format_time_or_none(time_ns: int | None) -> str:
    return "none" if time_ns is None else quantity.format_time(time_ns)


LEAST_CPU = 0.01


def _cpu_or_none(value: Any) -> float | None:
    """A share of one core, or ``none``."""
    if parse_text(value) == "none":
        return None
    share = quantity.parse_probability(value)
    if share < LEAST_CPU:
        raise QuantityError(f"{value!r} of a core is too little to run a program; give 1 % to 100 %, or 'none'")
    return share


def _format_cpu_or_none(share: float | None) -> str:
    return "none" if share is None else quantity.format_ratio(share)


def _flag_or_nothing(value: Any) -> bool | None:
    """True; None for false, so that the identity of studies from before the field stays."""
    return parse_flag(value) or None


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
    without: str | None = None
    """How it is where a workload has None, in the words of a study file; None where there is none."""


_SWITCHES = tuple(
    Field(one.name, one.name, one.parse, one.format, without=one.default) for one in tuning.SWITCHES.values()
)
REQUESTS_FIELDS = (
    Field("method", "method", one_of("a method", *METHODS)),
    Field("response", "response_bytes", parse_octets, format_octets),
    Field("request", "request_bytes", parse_octets, format_octets),
    Field("in_flight", "in_flight", positive_count),
    Field("connections", "connections", positive_count),
    Field("streams", "streams", positive_count),
    Field("loop", "loop", one_of("a loop", "closed", "open"), factor=False),
    Field("rate", "rate_per_s", _positive_frequency, quantity.format_frequency),
    Field("arrivals", "arrivals", one_of("a kind of arrivals", "constant", "poisson")),
    Field("request_timeout", "request_timeout_ns", _positive_time, quantity.format_time, factor=False),
    Field("connect_timeout", "connect_timeout_ns", _positive_time, quantity.format_time, factor=False),
    Field("resumption", "resumption", parse_flag),
    Field("zero_rtt", "zero_rtt", parse_flag),
    Field("congestion_control", "congestion_control", one_or_two("a congestion control", *CONGESTION_CONTROLS)),
    Field("tcp_nodelay", "tcp_nodelay", parse_flag),
    Field("tls_version", "tls_version", one_or_two("a TLS version", "1.2", "1.3")),
    Field("key_exchange", "key_exchange", one_of("a key exchange", *KEY_EXCHANGES)),
    Field("quinn", "quinn", quinn.parse),
    *_SWITCHES,
    Field("read_timeout", "read_timeout_ns", _time_or_none, _format_time_or_none),
    Field("write_timeout", "write_timeout_ns", _time_or_none, _format_time_or_none),
    Field("client_cpu", "client_cpu", _cpu_or_none, _format_cpu_or_none),
    Field("server_cpu", "server_cpu", _cpu_or_none, _format_cpu_or_none),
    Field("load_balancer", "load_balancer", _flag_or_nothing, bool),
    Field("ip", "ip", ip.parse, ip.ip_document, without=ip.IPV4),
    Field("keylog", "keylog", parse_flag, factor=False),
    Field("qlog", "qlog", parse_flag, factor=False),
)


def _parse_inside(value: Any) -> str:
    """``same``, or protocols joined by ``+``, in the model's short names."""
    text = parse_text(value)
    if text == "same":
        return text
    return "+".join(parse_protocol(part.strip()) for part in text.split("+"))


def _format_inside(value: str) -> str:
    return value if value == "same" else "+".join(PROTOCOL_NAMES[part] for part in value.split("+"))


def _parse_impaired(value: Any) -> str:
    text = parse_text(value)
    if text != "all" and not re.fullmatch(r"[A-Za-z0-9]+-[A-Za-z0-9]+", text):
        raise QuantityError(f"{text!r} names no wire; write 'all', or two services such as 'A-B'")
    return text


def _parse_depth(value: Any) -> int:
    depth = quantity.parse_count(value)
    if not 2 <= depth <= 10:
        raise QuantityError(f"{value!r} is not a depth; give 2 to 10 services, the client included")
    return depth


def _parse_clients(value: Any) -> int:
    clients = positive_count(value)
    if clients > 10_000:
        raise QuantityError(f"{value!r} clients are too many; give at most 10000")
    return clients


def _parse_client_processes(value: Any) -> str | None:
    """``each``, or how many clients are on the client's host and the rest on another; ``one``, as without, is None."""
    text = parse_text(value)
    if text in ("one", "each"):
        return None if text == "one" else text
    if not text.isdigit() or int(text) == 0:
        raise QuantityError(
            f"{text!r} is not how clients are processes; write 'one' for all, 'each' for one each, or a number: one "
            "each, so many of them on the client's host and the rest on another"
        )
    return str(int(text))


def _format_client_processes(value: str | None) -> str:
    return value or "one"


def _parse_conntrack(value: Any) -> str:
    # YAML 1.1 readers take a bare ``off`` for false.
    text = "off" if value is False else str(value).strip()
    if text in ("off", "bypass"):
        return text
    if quantity.parse_count(text) == 0:
        raise QuantityError("a table of no connections; write 'off', a number of connections, or 'bypass'")
    return text


def _parse_think_time(value: Any) -> tuple[int, ...] | None:
    """``none``, a time, or one for each of HTTP/1.1, HTTP/2 and HTTP/3, joined by ``/``."""
    return None if parse_text(value) == "none" else one_or_three(value, "time", _positive_time)


def _format_think_time(times: tuple[int, ...] | None) -> str:
    return "none" if times is None else BETWEEN.join(map(quantity.format_time, times))


def _parse_names(value: Any) -> str | None:
    """``path``; ``local``, as it is without, is None."""
    text = one_of("where names are asked for", "local", "path")(value)
    return None if text == "local" else text


def _format_names(value: str | None) -> str:
    return value or "local"


SERVICES_FIELDS = (
    Field("depth", "depth", _parse_depth),
    Field("inside", "inside", _parse_inside, _format_inside),
    Field("hosts", "hosts", positive_count),
    Field("place", "place", one_of("a place", "native", "docker-host", "docker-bridge")),
    Field("impaired", "impaired", _parse_impaired),
    Field("clients", "clients", _parse_clients),
    Field("messages", "messages", parse_text, factor=False),
    Field("conntrack", "conntrack", _parse_conntrack),
    # Of other programs than the engine's own (docs/services.md, Other programs).
    Field("alpn_mismatch", "alpn_mismatch", parse_flag),
    Field("connection_leak", "connection_leak", parse_flag),
    Field("unverified", "unverified", parse_flag),
    Field("retries", "retries", parse_flag),
    Field("think_time", "think_time_ns", _parse_think_time, _format_think_time),
    Field("client_processes", "client_processes", _parse_client_processes, _format_client_processes),
    Field("names", "names", _parse_names, _format_names),
)


def _parse_visits(least: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        count = quantity.parse_count(value)
        if not least <= count <= 1000:
            raise QuantityError(f"{value!r} is not a number of visits; give {least} to 1000")
        return count

    return parse


_RUNG = re.compile(r"(\d{2,4})p\s+(.+)")


def _parse_ladder(value: Any) -> tuple[tuple[int, int], ...]:
    """``240p 400 kbit/s + 720p 2.8 Mbit/s``: height and bit/s of each rung, the lowest first."""
    rungs = []
    for part in parse_text(value).split("+"):
        match = _RUNG.fullmatch(part.strip())
        if not match:
            raise QuantityError(f"{part.strip()!r} is not a rung of a ladder; write for example '480p 1.2 Mbit/s'")
        rungs.append((int(match[1]), quantity.parse_rate_bits_per_s(match[2])))
    if any(later[1] <= earlier[1] for earlier, later in itertools.pairwise(rungs)):
        raise QuantityError(f"the ladder {value!r} does not rise; list the rungs by rate, the lowest first")
    if any(height % 2 or not 96 <= height <= 2160 for height, _ in rungs):
        raise QuantityError(f"the ladder {value!r} has a height that no codec takes; give even ones, 96p to 2160p")
    return tuple(rungs)


def _format_ladder(rungs: tuple[tuple[int, int], ...]) -> str:
    return " + ".join(f"{height}p {quantity.format_rate(rate)}" for height, rate in rungs)


BROWSER_FIELDS = (
    Field("view", "view", one_of("a view", "cold", "warm", "repeat")),
    Field("discovery", "discovery", one_of("a way to find HTTP/3", "forced", "alt-svc")),
    Field("visits", "visits", _parse_visits(1), factor=False),
    Field("warmup_visits", "warmup_visits", _parse_visits(0), factor=False),
    Field("visit_timeout", "visit_timeout_ns", _positive_time, quantity.format_time, factor=False),
    Field("settle", "settle_ns", quantity.parse_time_ns, quantity.format_time, factor=False),
)
PAGE_FIELDS = (
    Field("page", "page", parse_text),
    Field("filmstrip", "filmstrip", parse_flag),
)
VIDEO_FIELDS = (
    Field("clip", "clip", parse_text),
    Field("mode", "mode", one_of("a mode", "on-demand", "live", "live-rtmp")),
    Field("codec", "codec", one_of("a codec", "h264", "vp9")),
    Field("ladder", "ladder", _parse_ladder, _format_ladder),
    Field("segment", "segment_ns", _positive_time, quantity.format_time),
    Field("watch", "watch_ns", _positive_time, quantity.format_time, factor=False),
)

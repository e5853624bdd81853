"""Combinations that no program can carry out, found before anything is started."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.design import browsers, services
from trifecta.design.factors import CONTENT_METHODS, SAFE_METHODS
from trifecta.design.model import BrowserWorkload, PathSpec, RequestsWorkload, ServicesWorkload, VideoWorkload
from trifecta.design.transports import apart, over


def workload_problem(workload: RequestsWorkload, protocols: Sequence[str], path: PathSpec) -> tuple[str, str] | None:
    """The field at fault and what is wrong with it and how to mend it, or None when the workload is possible."""
    if isinstance(workload, ServicesWorkload):
        found = services.problem(workload, path.impaired)
        if found is not None:
            return found
    if isinstance(workload, BrowserWorkload):
        return _browser_problem(workload, protocols, path)
    return (
        _transport_problem(workload, protocols)
        or _concurrency_problem(workload, protocols)
        or _message_problem(workload)
        or _loop_problem(workload)
    )


def _browser_problem(workload: BrowserWorkload, protocols: Sequence[str], path: PathSpec) -> tuple[str, str] | None:
    if path.trial is not None:
        return "visits", f"path {path.name!r} has a 'trial', but a browser's trial is as long as its visits; remove it"
    if workload.discovery == "alt-svc" and "h3" not in protocols:
        return "discovery", "only HTTP/3 is found by Alt-Svc (RFC 9114 section 3.1); list HTTP/3 as a protocol"
    wires = ("all", *browsers.crossed_wires(workload))
    if workload.impaired not in wires:
        where = f"{workload.impaired!r} is not a wire between the browser and its server"
        return "impaired", f"{where}; give one of: {', '.join(wires)}"
    if isinstance(workload, VideoWorkload):
        if not 1_000_000_000 <= workload.segment_ns <= 20_000_000_000:
            return "segment", "a segment plays for 1 s to 20 s; HLS players expect some seconds (RFC 8216)"
        if workload.watch_ns < 2 * workload.segment_ns:
            return "watch", "is shorter than two segments; watch longer, or make the segments shorter"
    return None


def _transport_problem(workload: RequestsWorkload, protocols: Sequence[str]) -> tuple[str, str] | None:
    if "h3" in protocols and over(workload.tls_version, "h3") == "1.2":
        text = "HTTP/3 needs TLS 1.3 (RFC 9001 section 4.2); take HTTP/3 out of factors.protocol, or give '1.2/1.3'"
        return "tls_version", f"{text} (TCP/QUIC)"
    pairs = apart(workload)
    if pairs and workload.kind != "requests":
        return pairs[0], f"one value for TCP and QUIC together: programs of the workload {workload.kind!r} speak both"
    if "1.2" in workload.tls_version and workload.key_exchange == "X25519MLKEM768":
        return "key_exchange", "X25519MLKEM768 needs TLS 1.3; use X25519"
    return _early_data_problem(workload) if workload.zero_rtt else None


def _early_data_problem(workload: RequestsWorkload) -> tuple[str, str] | None:
    if not workload.resumption:
        return "zero_rtt", "early data needs a resumed session (RFC 8446 section 2.3); add 'resumption: true'"
    if workload.tls_version != "1.3":
        return "zero_rtt", "early data needs TLS 1.3; use 'tls_version: 1.3'"
    if workload.method not in SAFE_METHODS:
        return "zero_rtt", f"{workload.method} may not be sent as early data (RFC 8470 section 3); use GET or HEAD"
    return None


def _concurrency_problem(workload: RequestsWorkload, protocols: Sequence[str]) -> tuple[str, str] | None:
    connections, streams, in_flight = workload.connections, workload.streams, workload.in_flight
    if streams is not None and streams > 1 and "h1" in protocols:
        return "streams", f"HTTP/1.1 has no {streams} streams a connection; use in_flight, or take HTTP/1.1 out"
    if connections is not None and streams is not None and connections * streams != in_flight:
        return "in_flight", f"{in_flight} is not {connections} connections x {streams} streams; leave in_flight out"
    for field, number in (("connections", connections), ("streams", streams)):
        if number is not None and in_flight % number:
            return field, f"{in_flight} requests in flight do not divide into {number} {field}; change one of the two"
    if connections is not None and connections != in_flight and "h1" in protocols:
        return "connections", f"HTTP/1.1 needs {in_flight} connections for {in_flight} requests in flight; leave it out"
    if in_flight > 10_000:
        return "in_flight", "more than 10000 requests in flight; give fewer"
    return None


def _message_problem(workload: RequestsWorkload) -> tuple[str, str] | None:
    if workload.request_bytes and workload.method not in CONTENT_METHODS:
        return "request", f"a {workload.method} carries no content here (RFC 9110 section 9.3); use POST, PUT or PATCH"
    if isinstance(workload, ServicesWorkload):
        if workload.messages is not None and workload.method not in CONTENT_METHODS:
            return "messages", f"a {workload.method} carries no message; use POST, PUT or PATCH"
    elif workload.method == "DELETE" and workload.response_bytes:
        return "response", "a DELETE is answered 204 without content (RFC 9110 section 9.3.5); use 'response: 0 B'"
    if max(workload.response_bytes, workload.request_bytes) > 10_000_000_000:
        return "response", "more than 10 GB a message; give less"
    return None


def _loop_problem(workload: RequestsWorkload) -> tuple[str, str] | None:
    if workload.loop == "open" and workload.rate_per_s is None:
        return "rate", "is missing; an open loop needs one, for example 'rate: 500/s'"
    if workload.loop == "closed" and workload.rate_per_s is not None:
        return "rate", "a closed loop sets its own pace; remove the rate, or add 'loop: open'"
    if workload.loop == "closed" and workload.arrivals != "constant":
        return "arrivals", "belongs to an open loop; remove it, or add 'loop: open'"
    return None

"""From what Firefox says of its requests (``firefox_scripts.WATCH``) to fetches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from trifecta.contract.errors import ErrorClass
from trifecta.implementations.visit import Fetch

PROTOCOLS = {"http/1.0": "h1", "http/1.1": "h1", "h2": "h2", "h3": "h3"}

# nsIContentPolicy.ExtContentPolicyType
KINDS = {
    2: "script", 3: "image", 4: "stylesheet", 6: "document", 7: "document", 11: "xhr", 14: "font", 15: "media",
    20: "fetch", 21: "image", 22: "manifest",
}  # fmt: skip

# nsITransportSecurityInfo.protocolVersion
TLS_VERSIONS = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3"}

ERRORS: dict[str, ErrorClass] = {
    "NS_ERROR_CONNECTION_REFUSED": "connect_refused",
    "NS_ERROR_NET_TIMEOUT": "connect_timeout",
    "NS_ERROR_NET_TIMEOUT_EXTERNAL": "timeout",
    "NS_ERROR_NET_RESET": "connect_reset",
    "NS_ERROR_NET_INTERRUPT": "closed",
    "NS_ERROR_NET_EMPTY_RESPONSE": "closed",
    "NS_ERROR_NET_PARTIAL_TRANSFER": "length",
    "NS_ERROR_CORRUPTED_CONTENT": "content",
    "NS_ERROR_INVALID_CONTENT_ENCODING": "content",
    "NS_ERROR_NET_HTTP2_SENT_GOAWAY": "goaway",
    "NS_ERROR_NET_HTTP3_PROTOCOL_ERROR": "quic:transport",
    "NS_ERROR_PARSING_HTTP_STATUS_LINE": "malformed:http1",
    "NS_ERROR_UNKNOWN_HOST": "browser:name",
    "NS_BINDING_ABORTED": "browser:cancelled",
    "NS_ERROR_CONTENT_BLOCKED": "browser:blocked",
    "NS_ERROR_DOM_BAD_URI": "browser:blocked",
    "NS_ERROR_DOM_CORP_FAILED": "browser:blocked",
    "NS_ERROR_OFFLINE": "unreachable",
    "NS_ERROR_HOST_IS_UNREACHABLE": "unreachable",
}
HARMLESS = {"NS_BINDING_REDIRECTED", "NS_ERROR_PARSED_DATA_CACHED", "NS_ERROR_DOCUMENT_NOT_CACHED"}
"""States in which a channel ends although nothing failed."""


class Request(TypedDict, total=False):
    """A request as ``firefox_scripts.WATCH`` tells of it: times in microseconds since 1970, sizes in octets."""

    context: int
    main: bool
    url: str
    host: str
    method: str
    type: int
    initiator: str | None
    protocol: str | None
    status: int | None
    status_text: str
    mime: str | None
    request_headers: list[tuple[str, str]]
    response_headers: list[tuple[str, str]]
    cached: bool
    remote_address: str | None
    local_port: int | None
    upload_bytes: float | None
    request_bytes: float | None
    transfer_bytes: float | None
    body_bytes: float | None
    tls_version: int | None
    cipher: str | None
    resumed: bool | None
    error: str | None
    tls_error: str | None
    refused: bool
    ended: bool
    asyncOpenTime: float
    domainLookupStartTime: float
    domainLookupEndTime: float
    connectStartTime: float
    tcpConnectEndTime: float
    secureConnectionStartTime: float
    connectEndTime: float
    requestStartTime: float
    responseStartTime: float
    responseEndTime: float


def error_class(error: str | None, tls_error: str | None, protocol: str) -> ErrorClass | None:
    """The class of docs/architecture.md, section 1.1, of an error of Firefox's; None when it is none.

    ``tls_error``: NSS's name of it. ``protocol``: the one that was forced, which tells QUIC's time-outs from TCP's.
    """
    if tls_error and tls_error.startswith(("SEC_ERROR", "MOZILLA_PKIX_ERROR")):
        return "tls:certificate"
    if tls_error:
        return "tls:alert" if tls_error.endswith("_ALERT") else "tls"
    if error is None or error in HARMLESS:
        return None
    if protocol == "h3" and error in {"NS_ERROR_NET_TIMEOUT", "NS_ERROR_CONNECTION_REFUSED"}:
        return "quic:timeout" if error == "NS_ERROR_NET_TIMEOUT" else "quic:transport"
    return ERRORS.get(error, "browser:other")


def error_of(request: Request, protocol: str) -> ErrorClass | None:
    """The error class of a request, the ``protocol`` being forced."""
    if request.get("refused"):
        return "quic" if protocol == "h3" else "tls:alpn"
    return error_class(request.get("error"), request.get("tls_error"), protocol)


def fetches(
    requests: Sequence[Request], decoded: Sequence[Sequence[Any]], *, wall_ns: int, protocol: str, now_ns: int
) -> list[Fetch]:
    """The fetches of a visit, by start.

    ``decoded``: URL and decoded octets of the page's resource timing. ``wall_ns`` is what CLOCK_REALTIME is ahead of
    CLOCK_MONOTONIC; ``now_ns`` (CLOCK_MONOTONIC) stands for the start where a request never said one.
    """
    sizes: dict[str, list[int]] = {}
    for url, octets in decoded:
        if octets:
            sizes.setdefault(str(url), []).append(int(octets))
    opened: set[str] = set()
    converted = []
    for request in sorted(requests, key=lambda each: each.get("requestStartTime") or 0):
        fetch = _fetch(request, protocol, wall_ns, now_ns, opened)
        if fetch.decoded_bytes is None and (own := sizes.get(fetch.url)):
            fetch.decoded_bytes = own.pop(0) if len(own) > 1 else own[0]
        converted.append(fetch)
    return sorted(converted, key=lambda fetch: fetch.started_ns)


def _fetch(request: Request, forced: str, wall_ns: int, now_ns: int, opened: set[str]) -> Fetch:
    def time_ns(milliseconds: float | None) -> int | None:
        return int(milliseconds) * 1000 - wall_ns if milliseconds else None

    asked_fields, answered_fields = _fields(request.get("request_headers")), _fields(request.get("response_headers"))
    answer = dict(answered_fields)
    cached = bool(request.get("cached"))
    protocol = PROTOCOLS.get(str(request.get("protocol"))) if request.get("status") else None
    sent = time_ns(request.get("requestStartTime"))
    fetch = Fetch(
        url=str(request.get("url") or ""),
        started_ns=time_ns(request.get("asyncOpenTime")) or now_ns,
        method=str(request.get("method") or "GET"),
        kind=KINDS.get(request.get("type") or 0, "other"),
        initiator=request.get("initiator") or None,
        priority=dict(asked_fields).get("priority"),
        protocol=None if cached else protocol,
        status=_number(request.get("status")),
        mime=request.get("mime") or None,
        done_ns=time_ns(request.get("responseEndTime")),
        from_cache=cached,
        missing=answer.get("x-trifecta-replay") == "missing",
        request_headers=asked_fields,
        response_headers=answered_fields,
        status_text=str(request.get("status_text") or ""),
        redirect_url=answer.get("location", ""),
        remote_address=request.get("remote_address"),
        request_body_bytes=_number(request.get("upload_bytes")) or 0,
        error=error_of(request, forced),
    )
    if fetch.error is None and not request.get("ended"):
        fetch.error = "timeout"
    if cached:
        fetch.body_bytes = fetch.wire_bytes = fetch.header_bytes = 0
        return fetch
    fetch.request_sent_ns = fetch.send_start_ns = sent
    fetch.first_byte_ns = time_ns(request.get("responseStartTime"))
    fetch.body_bytes = _number(request.get("body_bytes"))
    if "content-encoding" not in answer:
        fetch.decoded_bytes = fetch.body_bytes
    if protocol == "h1":
        # What Firefox says of the heads of HTTP/2 and HTTP/3 is their length as text, not what was sent.
        fetch.request_header_bytes = _number(request.get("request_bytes"))
        fetch.wire_bytes = _number(request.get("transfer_bytes"))
        if fetch.wire_bytes is not None and fetch.body_bytes is not None and "transfer-encoding" not in answer:
            fetch.header_bytes = fetch.wire_bytes - fetch.body_bytes
    _connection(fetch, request, protocol, time_ns, opened)
    return fetch


def _number(number: float | None) -> int | None:
    return None if number is None else int(number)


def _fields(headers: Sequence[tuple[str, str]] | None) -> list[tuple[str, str]]:
    return [(str(field).lower(), str(value)) for field, value in headers or ()]


def _connection(
    fetch: Fetch,
    request: Request,
    protocol: str | None,
    time_ns: Callable[[float | None], int | None],
    opened: set[str],
) -> None:
    """The connection: known by its own port. The first request on it has the times of its handshake, if it waited."""
    for name, value in (
        ("dns_start_ns", request.get("domainLookupStartTime")),
        ("dns_end_ns", request.get("domainLookupEndTime")),
    ):
        moment = time_ns(value)
        setattr(fetch, name, moment if moment is not None and moment >= fetch.started_ns else None)
    if fetch.dns_start_ns is None or fetch.dns_end_ns is None:
        fetch.dns_start_ns = fetch.dns_end_ns = None
    begun = time_ns(request.get("connectStartTime"))
    waited = begun is not None and begun >= fetch.started_ns
    if protocol is None:
        fetch.connect_start_ns = begun if waited else None
        return
    fetch.tls_version = TLS_VERSIONS.get(request.get("tls_version") or 0)
    fetch.cipher = request.get("cipher")
    fetch.resumed = request.get("resumed")
    if not request.get("local_port"):
        return
    name = f"{'udp' if protocol == 'h3' else 'tcp'}:{request['local_port']}:{fetch.remote_address}"
    fetch.connection = name
    fetch.connection_reused = name in opened or not waited
    opened.add(name)
    # A handshake that was waited for has a TLS part. Without it an attempt was overtaken by another connection, or the
    # request went out in 0-RTT.
    if fetch.connection_reused or not request.get("secureConnectionStartTime"):
        return
    fetch.connect_start_ns = begun
    fetch.tcp_connected_ns = None if protocol == "h3" else time_ns(request.get("tcpConnectEndTime"))
    fetch.secured_ns = fetch.connect_end_ns = time_ns(request.get("connectEndTime"))

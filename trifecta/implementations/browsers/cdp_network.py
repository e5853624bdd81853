"""From the events of the Network domain of the Chrome DevTools Protocol to fetches.

Chromium's monotonic time is CLOCK_MONOTONIC in seconds (base/time/time_now_posix.cc). Events of one request come from
two processes, so those with ``ExtraInfo`` in their name may come before or after the others; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from trifecta.implementations.browsers.cdp_errors import error_class
from trifecta.implementations.visit import Fetch

Event = Mapping[str, Any]
_PROTOCOLS = {"http/1.0": "h1", "http/1.1": "h1", "h2": "h2", "h3": "h3"}
_KINDS = {
    "Document": "document", "Stylesheet": "stylesheet", "Script": "script", "Image": "image", "Font": "font",
    "Media": "media", "XHR": "xhr", "Fetch": "fetch", "Manifest": "manifest",
}  # fmt: skip
_NOT_BLOCKING = frozenset({"NonBlocking", "NonBlockingDynamic", "PotentiallyBlocking"})


def to_ns(seconds: float) -> int:
    """A monotonic time of the protocol in ns."""
    return round(seconds * 1e9)


class NetworkLog:
    """Requests of a page from when it is made. ``handlers`` are what to call for which event."""

    def __init__(self) -> None:
        self.fetches: list[Fetch] = []
        self._open: dict[str, Fetch] = {}  # by the protocol's id; redirects share one

    def handlers(self) -> dict[str, Callable[[Event], None]]:
        """Event of the Network domain -> its handler."""
        return {
            "requestWillBeSent": self._request,
            "requestWillBeSentExtraInfo": self._request_extra,
            "responseReceived": self._response,
            "responseReceivedExtraInfo": self._response_extra,
            "resourceChangedPriority": self._priority,
            "requestServedFromCache": self._cached,
            "dataReceived": self._data,
            "loadingFinished": self._finished,
            "loadingFailed": self._failed,
        }

    def _request(self, event: Event) -> None:
        request, key = event["request"], event["requestId"]
        before = self._open.pop(key, None)
        if before is not None and "redirectResponse" in event:
            self._answered(before, event["redirectResponse"])
            before.redirect_url = request["url"]
            before.done_ns = before.done_ns or to_ns(event["timestamp"])
            sent = event["redirectResponse"].get("encodedDataLength", 0)
            before.wire_bytes = before.header_bytes = round(sent)
            before.body_bytes, before.decoded_bytes = 0, 0
        if urlsplit(request["url"]).scheme not in ("http", "https"):
            return  # data: and blob: never reach the network
        blocking = event.get("renderBlockingBehavior")
        fetch = Fetch(
            url=request["url"],
            started_ns=to_ns(event["timestamp"]),
            method=request["method"],
            kind=_KINDS.get(event.get("type", ""), "other"),
            initiator=event.get("initiator", {}).get("type"),
            priority=request.get("initialPriority"),
            render_blocking=None if blocking is None else blocking not in _NOT_BLOCKING,
            from_cache=False,
            request_headers=_pairs(request.get("headers", {})),
            request_body_bytes=len(request.get("postData", "").encode()),
        )
        self.fetches.append(fetch)
        self._open[key] = fetch

    def _request_extra(self, event: Event) -> None:
        fetch = self._open.get(event["requestId"])
        if fetch is not None:
            fetch.request_headers = _pairs(event.get("headers", {}))

    def _response_extra(self, event: Event) -> None:
        fetch = self._open.get(event["requestId"])
        if fetch is not None:
            fetch.response_headers = _pairs(event.get("headers", {}))

    def _response(self, event: Event) -> None:
        fetch = self._open.get(event["requestId"])
        if fetch is None:
            return
        fetch.kind = _KINDS.get(event.get("type", ""), fetch.kind)
        if "renderBlockingBehavior" in event:
            fetch.render_blocking = event["renderBlockingBehavior"] not in _NOT_BLOCKING
        self._answered(fetch, event["response"])
        fetch.header_bytes = round(event["response"].get("encodedDataLength", 0))

    def _answered(self, fetch: Fetch, response: Event) -> None:
        fetch.status = response["status"]
        fetch.status_text = response.get("statusText", "")
        fetch.mime = response.get("mimeType")
        fetch.protocol = _PROTOCOLS.get(response.get("protocol", ""))
        fetch.from_cache = bool(fetch.from_cache or response.get("fromDiskCache") or response.get("fromPrefetchCache"))
        fetch.connection_reused = response.get("connectionReused")
        number = response.get("connectionId", 0)
        fetch.connection = round(number) if number and not fetch.from_cache else None
        fetch.remote_address = response.get("remoteIPAddress")
        headers = {name.lower(): value for name, value in response.get("headers", {}).items()}
        fetch.missing = headers.get("x-trifecta-replay") == "missing"
        fetch.response_headers = fetch.response_headers or _pairs(response.get("headers", {}))
        security = response.get("securityDetails") or {}
        version = str(security.get("protocol", ""))
        # Of QUIC it says "QUIC", which has TLS 1.3 in it (RFC 9001).
        fetch.tls_version = "1.3" if version == "QUIC" else version.removeprefix("TLS ") or None
        fetch.cipher = security.get("cipher") or None
        timing = response.get("timing")
        if timing and not fetch.from_cache:
            _take_timing(fetch, timing)

    def _priority(self, event: Event) -> None:
        fetch = self._open.get(event["requestId"])
        if fetch is not None:
            fetch.priority = event["newPriority"]

    def _cached(self, event: Event) -> None:
        fetch = self._open.get(event["requestId"])
        if fetch is not None:
            fetch.from_cache = True

    def _data(self, event: Event) -> None:
        fetch = self._open.get(event["requestId"])
        if fetch is not None:
            fetch.decoded_bytes = (fetch.decoded_bytes or 0) + event["dataLength"]

    def _finished(self, event: Event) -> None:
        fetch = self._open.pop(event["requestId"], None)
        if fetch is None:
            return
        fetch.done_ns = to_ns(event["timestamp"])
        fetch.decoded_bytes = fetch.decoded_bytes or 0
        if not fetch.from_cache:
            fetch.wire_bytes = round(event["encodedDataLength"])
            fetch.body_bytes = _content_bytes(fetch)
            fetch.header_bytes = fetch.wire_bytes - fetch.body_bytes
        if fetch.status is not None and fetch.status >= 400:
            fetch.error = "status"

    def _failed(self, event: Event) -> None:
        fetch = self._open.pop(event["requestId"], None)
        if fetch is None:
            return
        fetch.done_ns = to_ns(event["timestamp"])
        blocked = event.get("blockedReason") or event.get("corsErrorStatus")
        fetch.error = "browser:blocked" if blocked else error_class(event.get("errorText", ""))


def _content_bytes(fetch: Fetch) -> int:
    """Octets of content as sent. What was received when the head was read may have content in it already."""
    headers = {name.lower(): value for name, value in fetch.response_headers}
    length = headers.get("content-length", "")
    wire, decoded = fetch.wire_bytes or 0, fetch.decoded_bytes or 0
    if fetch.method != "HEAD" and length.isascii() and length.isdecimal() and int(length) <= wire:
        return int(length)
    if "content-encoding" not in headers and decoded <= wire:
        return decoded
    return max(0, wire - (fetch.header_bytes or 0))


def _take_timing(fetch: Fetch, timing: Event) -> None:
    """Network.ResourceTiming: ms after ``requestTime``, -1 for what did not happen."""
    base = timing["requestTime"]

    def at(name: str) -> int | None:
        offset = timing.get(name, -1)
        return None if offset < 0 else to_ns(base + offset / 1000)

    fetch.dns_start_ns, fetch.dns_end_ns = at("dnsStart"), at("dnsEnd")
    fetch.connect_start_ns, fetch.connect_end_ns = at("connectStart"), at("connectEnd")
    fetch.secured_ns = at("sslEnd")
    # TLS begins when TCP stands; in QUIC both are one handshake.
    fetch.tcp_connected_ns = None if fetch.protocol == "h3" else at("sslStart")
    fetch.send_start_ns, fetch.request_sent_ns = at("sendStart"), at("sendEnd")
    fetch.first_byte_ns = at("receiveHeadersStart") or at("receiveHeadersEnd")


def _pairs(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Header fields; those of one name come joined by line feeds."""
    return [(name, one) for name, value in headers.items() for one in str(value).split("\n")]

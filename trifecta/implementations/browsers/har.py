"""A visit as HTTP Archive 1.2 (http://www.softwareishard.com/blog/har-12-spec/), for public viewers.

Fields not of the format begin with an underscore, named as Chrome's and WebPageTest's exports name them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import trifecta
from trifecta.contract.values import JsonObject
from trifecta.implementations.browsers.records import VisitRecord
from trifecta.implementations.visit import Fetch

_VERSIONS = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}
_PAGE = "page_1"


def document(record: VisitRecord, *, browser: str, version: str, title: str, wall_offset_ns: int) -> JsonObject:
    """The archive of one visit. ``wall_offset_ns``: CLOCK_REALTIME less CLOCK_MONOTONIC."""
    visit = record.visit
    timings: dict[str, Any] = {"onContentLoad": _ms(visit.dom_content_loaded_ns), "onLoad": _ms(visit.load_ns)}
    for name, value in (
        ("_firstContentfulPaint", visit.fcp_ns),
        ("_largestContentfulPaint", visit.lcp_ns),
        ("_speedIndex", visit.speed_index_ns),
    ):
        if value is not None:
            timings[name] = _ms(value)
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "Trifecta", "version": trifecta.__version__},
            "browser": {"name": browser, "version": version},
            "pages": [
                {
                    "startedDateTime": _date(visit.started_ns + wall_offset_ns),
                    "id": _PAGE,
                    "title": title,
                    "pageTimings": timings,
                }
            ],
            "entries": entries(record.fetches, wall_offset_ns),
        }
    }


def entries(fetches: Sequence[Fetch], wall_offset_ns: int) -> list[JsonObject]:
    """One entry a request, by start."""
    return [_entry(fetch, wall_offset_ns) for fetch in sorted(fetches, key=lambda each: each.started_ns)]


def _entry(fetch: Fetch, wall_offset_ns: int) -> dict[str, Any]:
    version = _VERSIONS.get(fetch.protocol or "", "")
    time, timings = _timings(fetch)
    content: dict[str, Any] = {"size": fetch.decoded_bytes or 0, "mimeType": fetch.mime or ""}
    if fetch.decoded_bytes is not None and fetch.body_bytes is not None:
        content["compression"] = fetch.decoded_bytes - fetch.body_bytes
    entry: dict[str, Any] = {
        "pageref": _PAGE,
        "startedDateTime": _date(fetch.started_ns + wall_offset_ns),
        "time": time,
        "request": {
            "method": fetch.method,
            "url": fetch.url,
            "httpVersion": version,
            "cookies": [],
            "headers": _headers(fetch.request_headers),
            "queryString": _query(fetch.url),
            "headersSize": _size(fetch.request_header_bytes),
            "bodySize": fetch.request_body_bytes,
        },
        "response": {
            "status": fetch.status or 0,
            "statusText": fetch.status_text,
            "httpVersion": version,
            "cookies": [],
            "headers": _headers(fetch.response_headers),
            "content": content,
            "redirectURL": fetch.redirect_url,
            "headersSize": _size(fetch.header_bytes),
            "bodySize": _size(fetch.body_bytes),
            "_transferSize": _size(fetch.wire_bytes),
        },
        "cache": {},
        "timings": timings,
        "_resourceType": fetch.kind,
        "_protocol": fetch.protocol,
        "_priority": fetch.priority,
        "_initiator": {"type": fetch.initiator},
        "_fromCache": bool(fetch.from_cache),
    }
    if fetch.connection is not None:
        entry["connection"] = str(fetch.connection)
    if fetch.remote_address:
        entry["serverIPAddress"] = fetch.remote_address.strip("[]")
    if fetch.error is not None:
        entry["response"]["_error"] = fetch.error
    return entry


def _timings(fetch: Fetch) -> tuple[float, dict[str, float]]:
    """The whole time and its parts, which add up to it: the rest is ``blocked``, and ``ssl`` is in ``connect``."""
    if fetch.done_ns is None:
        return 0, {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": 0, "receive": 0}
    total = max(0, fetch.done_ns - fetch.started_ns)
    connected = fetch.connect_end_ns or fetch.secured_ns
    dns = _part(fetch.dns_start_ns, fetch.dns_end_ns)
    connect = _part(fetch.connect_start_ns, connected)
    secure = _part(fetch.tcp_connected_ns or fetch.connect_start_ns, fetch.secured_ns)
    send = _part(fetch.send_start_ns, fetch.request_sent_ns) or 0
    wait = _part(fetch.request_sent_ns, fetch.first_byte_ns) or 0
    receive = _part(fetch.first_byte_ns, fetch.done_ns) or 0
    known = (dns or 0) + (connect or 0) + send + wait + receive
    return _exact(total), {
        "blocked": _exact(max(0, total - known)),
        "dns": -1 if dns is None else _exact(dns),
        "connect": -1 if connect is None else _exact(connect),
        "ssl": -1 if secure is None else _exact(secure),
        "send": _exact(send),
        "wait": _exact(wait),
        "receive": _exact(receive),
    }


def _part(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else max(0, end - start)


def _exact(ns: int) -> float:
    return ns / 1e6


def _ms(ns: int | None) -> float:
    return -1 if ns is None else ns / 1e6


def _size(octets: int | None) -> int:
    return -1 if octets is None else octets


def _date(wall_ns: int) -> str:
    """ISO 8601 with microseconds."""
    return dt.datetime.fromtimestamp(wall_ns / 1e9, dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _headers(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _query(url: str) -> list[dict[str, str]]:
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    except ValueError:
        return []
    return [{"name": name, "value": value} for name, value in pairs]

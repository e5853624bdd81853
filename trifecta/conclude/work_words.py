"""What was asked of servers, browsers and services, in words, from the workload that a run kept."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from trifecta.design import numbers, quantity
from trifecta.design.by_protocol import Octets, format_octets


class WorkloadDocument(TypedDict, total=False):
    """The fields of a study's workload that a report asks for; each kind has some of them (`design.model`)."""

    kind: str
    method: str
    response_bytes: Octets
    request_bytes: Octets
    in_flight: int
    loop: str
    rate_per_s: float | None
    arrivals: str
    warmup_ns: int
    connect_timeout_ns: int
    request_timeout_ns: int
    visit_timeout_ns: int
    depth: int
    clients: int
    page: str
    place: str
    clip: str
    view: str
    mode: str
    discovery: str
    watch_ns: int
    visits: int
    warmup_visits: int
    url: str
    address: str
    requests: int
    ip: str | None


def in_words(work: WorkloadDocument, factors: list[str], *, browsing: bool, closed: bool) -> str:
    """``GET of 10 kB, 10 in flight, closed loop, over IPv6``, without the ``factors``; IPv4 is not said."""
    text, over = _work_words(work, factors, browsing=browsing, closed=closed), work.get("ip")
    return f"{text}, over {over}" if over and "ip" not in factors else text


def _work_words(work: WorkloadDocument, factors: list[str], *, browsing: bool, closed: bool) -> str:
    if browsing:
        return _browser_words(work, factors)
    if work.get("kind") == "far":
        return _far_words(work, factors)
    method = "requests" if "method" in factors else str(work.get("method", "GET"))
    size = "" if "response" in factors else f" of {format_octets(work.get('response_bytes') or 0)}"
    phrases = _services_words(work, factors) or [method + size]
    if work.get("request_bytes") and "request" not in factors:
        phrases.append(f"{format_octets(work['request_bytes'])} sent with each request")
    if work.get("kind") != "fan-in" and "in_flight" not in factors:
        phrases.append(f"{work.get('in_flight', 1)} in flight")
    if closed:
        phrases.append("closed loop")
    else:
        rate = "" if "rate" in factors else f" at {quantity.format_frequency(work['rate_per_s'] or 0)}"
        phrases.append(f"open loop{rate}, {work.get('arrivals', 'constant')} arrivals")
    return ", ".join(phrases)


def _far_words(work: WorkloadDocument, factors: list[str]) -> str:
    """``GET of https://www.example.org/, one at a time, with a pause behind each``, without what is a factor."""
    method = "requests" if "method" in factors else str(work.get("method", "GET"))
    what = "several URLs" if "url" in factors else str(work.get("url"))
    return f"{method} of {what}, {work.get('requests')} a trial, one at a time, with a pause behind each"


def _browser_words(work: WorkloadDocument, factors: list[str]) -> str:
    """``cold loads of the page light, 2 a trial``, without what is a factor."""
    own = {"view": work.get("view"), "mode": work.get("mode")}
    known = {name: "" if name in factors else f"{value} " for name, value in own.items()}
    if work.get("kind") == "video":
        clip = "" if "clip" in factors else f" of the clip {work.get('clip')}"
        what = (
            f"{known['view']}{known['mode']}watches{clip}, "
            f"{numbers.without_zeros(numbers.duration(work.get('watch_ns')))} each"
        )
    else:
        page = "a page" if "page" in factors else f"the page {Path(str(work.get('page'))).name}"
        if work.get("kind") == "far-page":
            page = "several pages" if "url" in factors else f"the page {work.get('url')}"
        discovered = "" if work.get("discovery") == "forced" else ", HTTP/3 found by Alt-Svc"
        inside = "place" not in factors and work.get("place", "native") != "native"
        what = f"{known['view']}loads of {page}{', its server in a container' if inside else ''}{discovered}"
    warm = work.get("warmup_visits") or 0
    return f"{what}, {work.get('visits')} a trial{f' after {warm} not measured' if warm else ''}"


def _services_words(work: WorkloadDocument, factors: list[str]) -> list[str]:
    """What services were asked, without the numbers that are factors; nothing for other workloads."""
    kind, method = work.get("kind"), work.get("method", "POST")
    if kind == "chain":
        services = "services" if "depth" in factors else f"{work.get('depth')} services"
        return [f"cycles of {method} through a chain of {services}"]
    if kind == "fan-in":
        clients = "clients" if "clients" in factors else f"{work.get('clients')} clients"
        size = "" if "response" in factors else f" of {format_octets(work.get('response_bytes') or 0)}"
        return [f"{method}{size} by {clients} at once"]
    return ["registrations of a user equipment in a 5G core"] if kind == "sba-registration" else []

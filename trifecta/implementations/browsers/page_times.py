"""What a page itself tells of its load: Navigation Timing 2, Paint Timing and Largest Contentful Paint (W3C)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trifecta.implementations.visit import Visit

# Entries that came before the observer was made are handed over at once (``buffered``).
PAGE_TIMES = """(() => {
  const later = (type) => new Promise((resolve) => {
    const found = [];
    try {
      const observer = new PerformanceObserver((list) => found.push(...list.getEntries()));
      observer.observe({type, buffered: true});
      setTimeout(() => {
        found.push(...observer.takeRecords());
        observer.disconnect();
        resolve(found.map((entry) => entry.toJSON()));
      }, 0);
    } catch (error) { resolve([]); }
  });
  return later("largest-contentful-paint").then((lcp) => ({
    navigation: performance.getEntriesByType("navigation").map((entry) => entry.toJSON())[0] || null,
    paint: performance.getEntriesByType("paint").map((entry) => entry.toJSON()),
    lcp, now: performance.now(), origin: performance.timeOrigin,
  }));
})()"""

_MOST_MS = 1e9  # 11 days


def take_page_times(visit: Visit, times: Any, navigation_start_ns: int) -> None:
    """Put them into the visit. ``navigation_start_ns``: when the page's time origin was, CLOCK_MONOTONIC."""
    visit.started_ns = navigation_start_ns
    reported = (
        times if isinstance(times, dict) else {}
    )  # a page can put anything in the place of its browser's functions
    navigation = reported.get("navigation")
    if isinstance(navigation, dict):
        visit.dns_ns = _between(navigation, "domainLookupStart", "domainLookupEnd")
        visit.connect_ns = _between(navigation, "connectStart", "connectEnd")
        visit.tls_ns = _between(navigation, "secureConnectionStart", "connectEnd")
        visit.request_ns = _between(navigation, "requestStart", "responseStart")
        visit.response_ns = _between(navigation, "responseStart", "responseEnd")
        visit.ttfb_ns = _ns(navigation.get("responseStart"))
        visit.dom_content_loaded_ns = _ns(navigation.get("domContentLoadedEventEnd"))
        visit.load_ns = _ns(navigation.get("loadEventEnd"))
    for entry in _entries(reported.get("paint")):
        if entry.get("name") == "first-contentful-paint":
            visit.fcp_ns = _ns(entry.get("startTime"))
    candidates = _entries(reported.get("lcp"))
    if candidates:
        visit.lcp_ns = _ns(candidates[-1].get("startTime"))


def _ns(ms: Any) -> int | None:
    """A time of the page in ns; 0 stands for what has not happened."""
    return round(ms * 1e6) if isinstance(ms, (int, float)) and 0 < ms < _MOST_MS else None


def _entries(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _between(entry: Mapping[str, Any], start: str, end: str) -> int | None:
    first, last = _ns(entry.get(start)), _ns(entry.get(end))
    # Firefox says of a handshake with 0-RTT that it ended before TLS began.
    return None if first is None or last is None or last < first else last - first

"""Where the time from play to a video's first frame went: one cause for each of its instants.

Requests overlap, so their times cannot be added. The time is swept instead: while a request that the first frame needs
is under way, what it does counts (in the order of `_ORDER` where several do different things); the rest is the
player's. Needed are the playlists and the initialisation segment that were asked for before the first media segment
was there, and that segment with its failed attempts (RFC 8216, 6.3.3: nothing can be shown before).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypedDict, cast

DNS, CONNECTING, SEGMENT, PLAYLISTS, BETWEEN, PLAYER = (
    "DNS",
    "connecting, with TLS",
    "the first segment",
    "playlists",
    "the player, before it has the first segment",
    "the player after it: buffering, decoding, showing",
)
START_PARTS = (DNS, CONNECTING, PLAYLISTS, SEGMENT, BETWEEN, PLAYER)
_ORDER = (DNS, CONNECTING, SEGMENT, PLAYLISTS)

Span = tuple[float, float]


class FetchTimes(TypedDict):
    """Of a row of the view ``fetches`` when the request was, on CLOCK_MONOTONIC in ns, and what it was for."""

    started_ns: int | None
    done_ns: int | None
    dns_start_ns: int | None
    dns_end_ns: int | None
    connect_start_ns: int | None
    secured_ns: int | None
    segment: int | None
    error: str | None
    mime: str | None
    url: str


class _LateRequest(NamedTuple):
    """A request that began and ended after play."""

    started_ns: int
    done_ns: int
    fetch: FetchTimes


def start_parts(play_ns: int, first_frame_ns: int, fetches: Sequence[FetchTimes]) -> dict[str, float] | None:
    """ns by part of `START_PARTS`, which add up to the whole. None where no media segment came before the frame.

    ``fetches`` are rows of the view of that name, of one visit.
    """
    late_requests = [
        _LateRequest(row["started_ns"], row["done_ns"], row)
        for row in fetches
        if row["started_ns"] is not None and row["done_ns"] is not None and row["started_ns"] >= play_ns
    ]
    media = [one for one in late_requests if one.fetch["segment"] is not None and one.fetch["error"] is None]
    first = min(media, key=lambda one: one.started_ns, default=None)
    if first is None or first.done_ns > first_frame_ns:
        return None
    before = [one for one in late_requests if one.started_ns < first.done_ns]
    needed = [first, *(one for one in before if one.fetch["segment"] is None or one.fetch["error"] is not None)]
    there = first.done_ns
    spans = _spans(needed)
    marks = {
        play_ns,
        there,
        first_frame_ns,
        *(end for fetch_spans in spans.values() for span in fetch_spans for end in span),
    }
    ends = sorted(mark for mark in marks if play_ns <= mark <= first_frame_ns)
    start = dict.fromkeys(START_PARTS, 0.0)
    for begin, end in pairwise(ends):
        part = next((part for part in _ORDER if any(span[0] <= begin and end <= span[1] for span in spans[part])), None)
        start[part or (BETWEEN if end <= there else PLAYER)] += end - begin
    return start


def _spans(needed: Sequence[_LateRequest]) -> dict[str, list[Span]]:
    """What was under way when."""
    spans: dict[str, list[Span]] = {part: [] for part in _ORDER}
    for one in needed:
        times = cast(Mapping[str, int | None], one.fetch)
        for part, names in ((DNS, ("dns_start_ns", "dns_end_ns")), (CONNECTING, ("connect_start_ns", "secured_ns"))):
            begin, end = (times[name] for name in names)
            if begin is not None and end is not None:
                spans[part].append((begin, end))
        spans[PLAYLISTS if _is_playlist(one.fetch) else SEGMENT].append((one.started_ns, one.done_ns))
    return spans


def _is_playlist(row: FetchTimes) -> bool:
    """By its media type (RFC 8216, 4), or where that is not told by its name."""
    return "mpegurl" in str(row["mime"] or "").lower() or str(row["url"]).partition("?")[0].endswith(".m3u8")

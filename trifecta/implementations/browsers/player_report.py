"""What the player says at the end of a watch (``trifecta/video/player``), as rows and as fields of the visit.

The page's word is not trusted: whatever of it is not as it should be is left out, and the watch without it fails the
checks rather than the program.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trifecta.contract.errors import ErrorClass
from trifecta.contract.values import JsonObject
from trifecta.implementations.browsers.records import PlaybackRow

_MOST_EVENTS = 100_000
_EVENTS = ("play", "first_frame", "sample", "stall", "resume", "switch", "ended", "error")
NETWORK: Final = "video:network"
MEDIA: Final = "video:media"
PLAYER: Final = "video:player"
NOT_STARTED: Final = "video:not-started"
_ERRORS: dict[str, ErrorClass] = {"codec": "browser:codec", "network": NETWORK, "media": MEDIA}
Moment = Callable[[Any], int | None]


@dataclass(frozen=True)
class Segment:
    """A segment of a video, or an initialization section, as the player asked for it."""

    rung: int | None
    segment: int | None
    media_ns: int | None
    started_ns: int
    first_byte_ns: int | None
    done_ns: int | None
    bytes: int


@dataclass
class Report:
    """What the player saw, in the words of ``store.visits``."""

    started_ns: int | None
    """When play was pressed; None: never."""
    error: ErrorClass | None
    details: str | None
    """What the player says went wrong."""
    failed_url: str | None
    """What the player asked for in vain when it gave up."""
    visit: dict[str, Any]
    """Fields of the visit."""
    rows: list[PlaybackRow]
    segments: dict[str, Segment]
    """By URL; of one that was asked for again the last."""


@dataclass(frozen=True)
class Clock:
    """Where ``performance.now()`` lies in CLOCK_MONOTONIC."""

    offset_ns: int
    error_ns: int


def read_report(document: Any, clock: Clock) -> Report:
    """What the player says at the end; ``clock``: where its time lies in CLOCK_MONOTONIC."""
    report = record(document)

    def moment(value: Any) -> int | None:
        milliseconds = number(value)
        return None if milliseconds is None else clock.offset_ns + round(milliseconds * 1e6)

    began, ended = moment(report.get("began")), moment(report.get("ended"))
    first = moment(report.get("firstFrame"))
    events = report.get("events")
    rows = [_row(record(each), moment) for each in (events if isinstance(events, list) else [])[:_MOST_EVENTS]]
    kept_rows = sorted((row for row in rows if row is not None), key=lambda row: row.time_ns)
    failure = record(report.get("failure"))
    error: ErrorClass | None = None
    if failure:
        error = _ERRORS.get(str(failure.get("kind")), PLAYER)
    elif began is None or first is None:
        error = NOT_STARTED
    values: dict[str, Any] = {}
    if began is not None and ended is not None:
        stalls = _stalls(kept_rows, ended)
        shown, dropped = _count(report.get("shown")), _count(report.get("dropped"))
        values |= {
            "startup_ns": None if first is None else max(0, first - began),
            "rebuffers": len(stalls),
            "rebuffer_ns": sum(stalls),
            "switches": sum(row.event == "switch" for row in kept_rows),
            "bitrate_bits_per_s": _mean_bitrate(kept_rows, ended),
            "frames_shown": shown,
            "frames_dropped": dropped,
            "watched_ns": ended - began,
            "played_ns": _nanoseconds(report.get("played")),
            "live_latency_ns": _median([row.live_latency_ns for row in kept_rows if row.event == "sample"]),
        }
    segments = _segments(report.get("segments"), moment)
    values["segments"] = sum(each.segment is not None for each in segments.values())
    url = failure.get("url")
    failed_url = url if isinstance(url, str) else None
    details = str(failure.get("details"))[:300] if failure else None
    return Report(began, error, details, failed_url, values, kept_rows, segments)


def dropped_floor(rows: Sequence[PlaybackRow], floor: Sequence[float]) -> int:
    """How many frames this machine would have dropped without a network, at the rungs that were shown."""
    expected = 0.0
    before = 0
    for row in rows:
        if row.frames_shown is None or row.frames_dropped is None:
            continue
        total = row.frames_shown + row.frames_dropped
        if row.rung is not None and 0 <= row.rung < len(floor):
            expected += max(0, total - before) * floor[row.rung]
        before = total
    return round(expected)


def _stalls(rows: Sequence[PlaybackRow], ended_ns: int) -> list[int]:
    """How long each stall took; one that was open at the end until then."""
    lengths = []
    since: int | None = None
    for row in rows:
        if row.event == "stall" and since is None:
            since = row.time_ns
        elif row.event == "resume" and since is not None:
            lengths.append(row.time_ns - since)
            since = None
    if since is not None:
        lengths.append(max(0, ended_ns - since))
    return lengths


def _mean_bitrate(rows: Sequence[PlaybackRow], ended_ns: int) -> float | None:
    """The mean of what is shown, weighted by the media time that passed at each rung; None when nothing did."""
    total = weighted = 0
    for earlier, later in itertools.pairwise(rows):
        if earlier.bitrate_bits_per_s is None or earlier.position_ns is None or later.position_ns is None:
            continue
        # What the player skipped, as a live one does that is late, was not shown: no longer than the time that passed.
        passed = min(max(0, later.position_ns - earlier.position_ns), later.time_ns - earlier.time_ns)
        total += passed
        weighted += passed * earlier.bitrate_bits_per_s
    return weighted / total if total else None


def _median(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known)) if known else None


def _row(event: Mapping[str, Any], moment: Moment) -> PlaybackRow | None:
    when = moment(event.get("time"))
    if when is None or event.get("event") not in _EVENTS:
        return None
    return PlaybackRow(
        time_ns=when,
        event=event["event"],
        position_ns=_nanoseconds(event.get("position")),
        buffer_ns=_nanoseconds(event.get("buffer")),
        rung=_rung(event.get("rung")),
        bitrate_bits_per_s=_count(event.get("bitrate")),
        frames_shown=_count(event.get("shown")),
        frames_dropped=_count(event.get("dropped")),
        live_latency_ns=_nanoseconds(event.get("latency")),
    )


def _segments(raw_segments: Any, moment: Moment) -> dict[str, Segment]:
    segments: dict[str, Segment] = {}
    for each in raw_segments if isinstance(raw_segments, list) else []:
        entry = record(each)
        url, started = entry.get("url"), moment(entry.get("start"))
        if isinstance(url, str) and started is not None:
            segments[url] = Segment(
                rung=_rung(entry.get("rung")),
                segment=_count(entry.get("segment")),
                media_ns=_nanoseconds(entry.get("duration")),
                started_ns=started,
                first_byte_ns=moment(entry.get("first")),
                done_ns=moment(entry.get("end")),
                bytes=_count(entry.get("bytes")) or 0,
            )
    return segments


def record(value: Any) -> JsonObject:
    """An object of the page's, or an empty one."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    """A finite number that fits a time, or None: the page's word is not trusted."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and abs(value) < 1e12 else None


def _nanoseconds(value: Any) -> int | None:
    """Milliseconds as ns."""
    milliseconds = number(value)
    return None if milliseconds is None else round(milliseconds * 1e6)


def _count(value: Any) -> int | None:
    count = number(value)
    return None if count is None or count < 0 else round(count)


def _rung(value: Any) -> int | None:
    number = _count(value)
    return number if number is not None and number < 1000 else None

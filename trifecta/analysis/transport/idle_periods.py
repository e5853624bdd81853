"""What each moment's silence of a sender waited for: of all connections at once.

Between two events nothing changes, so each span from one event of a connection to its next has one cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trifecta.analysis.transport.columns import Connection, acks
from trifecta.analysis.transport.flight import Flight
from trifecta.analysis.transport.flow_control import BlockedSpans, Span
from trifecta.analysis.transport.group_by import joined, pair_keys
from trifecta.analysis.transport.ranges import reduce_max, running_max
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows

CAUSES = (
    "stream_window",  # every stream that had more to send was at the limit that its receiver gave it
    "connection_window",  # the connection was (HTTP/2, QUIC)
    "receiver_window",  # TCP: no room for a full segment in the window (RFC 9293, 3.8.6.2)
    "application",  # nothing was under way and no window was in the way: the sender had nothing to send
    "congestion_window",  # as much was under way as the congestion window allows
    "sender",  # no window was in the way: pacing, CPU, the application
    "unknown",
)
# An acknowledgement that a send follows within this time made room for it.
REACTION_NS = 1_000_000
_SEGMENT = 1_460
_STREAM, _CONNECTION, _RECEIVER, _APPLICATION, _CONGESTION, _SENDER, _UNKNOWN = range(len(CAUSES))
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Window:
    """A sender's congestion window over time, from TCP_INFO or qlog: octets from each time on."""

    time_ns: Ints
    octets: Ints


class Case(NamedTuple):
    """A sender whose silence is judged. ``spans``: when it was sending or was waited for, apart from one another."""

    connection: Connection
    of: Flight
    spans: list[Span]
    sending: list[Span]  # of each message
    limits: BlockedSpans


class _Events(NamedTuple):
    """Times of all cases; ``key``: a number that is ordered by case and time, as these are."""

    case: Ints
    time_ns: Ints
    key: Ints

    def last(self, key: Ints, case: Ints) -> tuple[Ints, Bools]:
        """The last event of the same case at or before each, and whether there is one."""
        at = self.key.searchsorted(key, side="right") - 1
        return at, (at >= 0) & (self.case[at] == case) if len(self.case) else at >= 0

    def following(self, key: Ints, case: Ints) -> tuple[Ints, Bools]:
        """The first event of the same case after each, and whether there is one."""
        at = np.minimum(self.key.searchsorted(key, side="right"), len(self.key) - 1)
        return at, (self.key[at] > key) & (self.case[at] == case)


def judge(cases: Sequence[Case], *, up: bool, window: Window | None = None) -> list[tuple[dict[str, int], list[Span]]]:
    """Of each case: the time in its spans by cause in ns, and when a window of the receiver was the cause."""
    if not cases:
        return []
    arrivals = [_window_updates(one, up) for one in cases]
    at_limit = [[span for some in (one.limits.streams or {}).values() for span in some] for one in cases]
    times = {
        "send": [one.of.send_ns for one in cases],
        "ack": [one.of.ack_ns for one in cases],
        "came": [_arrivals(one, up) for one in cases],
        "told": [one["time_ns"] for one in arrivals],
        "window": [_NONE if window is None else window.time_ns for _ in cases],
    }
    for name, spans in (
        ("spans", [one.spans for one in cases]),
        ("sending", [one.sending for one in cases]),
        ("connection", [one.limits.connection or [] for one in cases]),
        ("streams", at_limit),
    ):
        for place, what in enumerate(("begin", "end")):
            times[f"{name} {what}"] = [np.array([span[place] for span in some], dtype=np.int64) for some in spans]
    events = _events(times)
    case, start, end, key = _between(list(events.values()))

    def within(name: str) -> Ints:
        """In how many of these spans each moment lies."""
        begun, over = (np.sort(events[f"{name} {what}"].key) for what in ("begin", "end"))
        return begun.searchsorted(key, side="right") - over.searchsorted(key, side="right")

    sent = _total(events["send"], [one.of.sent for one in cases], key, case)
    acked = _total(events["ack"], [one.of.acked for one in cases], key, case)
    under_way = np.maximum(0, sent - acked)
    if window is None:
        cause = np.where(_clocked(events, key, case), _CONGESTION, _UNKNOWN)
    else:
        at, there = events["window"].last(key, case)
        cause = np.where(under_way + _SEGMENT > window.octets[at], _CONGESTION, _SENDER)
        cause[~there] = _UNKNOWN
    cause[under_way == 0] = _APPLICATION
    # The receiver's window had no room for a full segment.
    at, there = events["told"].last(key, case)
    right = np.concatenate([rows["right edge"] - one.of.base for rows, one in zip(arrivals, cases, strict=True)])
    largest = np.array([_largest(one, up) for one in cases], dtype=np.int64)
    if len(right):
        cause[there & (right[at] - sent < largest[case])] = _RECEIVER
    cause[within("connection") > 0] = _CONNECTION
    held = within("streams")
    cause[(held > 0) & (held >= within("sending"))] = _STREAM
    inside = within("spans") > 0
    lengths = np.zeros((len(cases), len(CAUSES)), dtype=np.int64)
    np.add.at(lengths, (case[inside], cause[inside]), (end - start)[inside])
    kept_back: list[list[Span]] = [[] for _ in cases]
    where = (inside & (cause <= _RECEIVER)).nonzero()[0]
    for whose, begin, over in zip(case[where].tolist(), start[where].tolist(), end[where].tolist(), strict=True):
        kept_back[whose].append((begin, over))
    return [
        (dict(zip(CAUSES, each, strict=True)), union(spans))
        for each, spans in zip(lengths.tolist(), kept_back, strict=True)
    ]


def _window_updates(case: Case, up: bool) -> Rows:
    """Windows of TCP as they reached the sender; those of unknown scale leave room for anything."""
    rows = acks(case.connection.arrived(up=not up)).pick("with window", lambda of: of["window"] != NULL)
    rows.derived("right edge", lambda of: running_max(of["acknowledged"] + of["window"], of["connection"]))
    return rows if case.connection.tcp else rows.where(slice(0, 0))


def _arrivals(case: Case, up: bool) -> Ints:
    return case.connection.arrived(up=not up)["time_ns"] if case.connection.tcp else _NONE


def _largest(case: Case, up: bool) -> int:
    def work(rows: Rows, starts: Ints, ends: Ints) -> list[int]:
        largest = reduce_max(rows["payload_bytes"], starts, ends)
        return [min(max(1, each), _SEGMENT) for each in largest.tolist()]

    return case.connection.sent(up=up).each("largest payload", work)


def _events(times: Mapping[str, Sequence[Ints]]) -> dict[str, _Events]:
    together = {name: joined(each) for name, each in times.items()}
    keys = pair_keys(*together.values())
    return {name: _Events(*pair, key) for (name, pair), key in zip(together.items(), keys, strict=True)}


def _between(events: Sequence[_Events]) -> tuple[Ints, Ints, Ints, Ints]:
    """Every span between two moments at which something changes: its case, start and end, and the key of its start."""
    key, first = np.unique(np.concatenate([one.key for one in events]), return_index=True)
    case, time_ns = (np.concatenate([one[field] for one in events])[first] for field in (0, 1))
    at = (case[1:] == case[:-1]).nonzero()[0]
    return case[at], time_ns[at], time_ns[at + 1], key[at]


def _total(of: _Events, totals: Sequence[Ints], key: Ints, case: Ints) -> Ints:
    """The total after the last event at or before each moment; 0 before the first."""
    at, there = of.last(key, case)
    return np.where(there, np.concatenate(totals)[at], 0) if len(of.case) else np.zeros(len(key), dtype=np.int64)


def _clocked(events: Mapping[str, _Events], key: Ints, case: Ints) -> Bools:
    """What ends the silence is an acknowledgement that something new follows at once."""
    sends, acked = events["send"], events["ack"]
    following, known = sends.following(key, case)
    ack, there = acked.last(sends.key[following], case)
    if not len(acked.case):
        return there
    before = np.maximum(following - 1, 0)
    before = np.where(sends.case[before] == case, before, following)
    late = sends.time_ns[following] - acked.time_ns[ack] <= REACTION_NS
    return known & there & late & (acked.time_ns[ack] > sends.time_ns[before])


def union(spans: Iterable[Span]) -> list[Span]:
    """The same time in spans that are apart from one another."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return merged

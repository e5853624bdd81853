"""Stalls: while messages were being sent, what each moment's silence waited for.

A response counts at its sender from the moment when its request had arrived until its last octet was sent, a request
from its first octet on. That time is cut into disjoint spans by cause; they add up to it. Where several causes hold,
the first of `CAUSES` counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.extents import extents
from trifecta.analysis.transport.flight import flight
from trifecta.analysis.transport.flow_control import Span, blocked_spans
from trifecta.analysis.transport.group_by import begins
from trifecta.analysis.transport.idle_periods import CAUSES, Case, Window, judge, union
from trifecta.analysis.transport.rows import Bools, Rows


@dataclass(frozen=True, slots=True)
class Stalls:
    """Time in which messages of one direction were being sent, by cause (ns). The causes add up to ``total_ns``.

    ``inferred``: causes that are read off the rhythm of acknowledgements, as the congestion window is not in packets.
    ``stream_held_ns``: how long each stream was at its limit, whatever others did then. ``flow_control``: when any
    window of the receiver was the cause.
    """

    connection: int
    up: bool
    total_ns: int
    causes: dict[str, int]
    inferred: frozenset[str]
    stream_held_ns: dict[int, int] | None
    connection_held_ns: int | None
    zero_windows: int | None  # TCP: segments that close the window
    blocked_frames: int | None  # QUIC: DATA_BLOCKED and STREAM_DATA_BLOCKED
    flow_control: list[Span]
    notes: list[str]


def stalls(connection: Connection, *, up: bool, window: Window | None = None) -> Stalls:
    """Of the sender of a direction. Without ``window`` the congestion window is inferred, or unknown."""
    if window is not None:
        return _stalls([connection], up, window)[0]
    return connection.with_others(("stalls", up), lambda all_of_them: _stalls(all_of_them, up))


def _stalls(connections: Sequence[Connection], up: bool, window: Window | None = None) -> list[Stalls]:
    messages = [_messages(one, up) for one in connections]
    cases: dict[int, Case] = {}
    totals: list[int] = []
    for at, (one, (sending, waiting)) in enumerate(zip(connections, messages, strict=True)):
        of, spans = flight(one, up=up), union([*sending.values(), *waiting])
        totals.append(_sum(spans))
        if one.both_sides and spans and of is not None:
            cases[at] = Case(one, of, spans, [*sending.values()], blocked_spans(one, up=up))
    judged = dict(zip(cases, judge(list(cases.values()), up=up, window=window), strict=True))
    stalls = []
    for at, (one, (sending, _)) in enumerate(zip(connections, messages, strict=True)):
        limits, total = blocked_spans(one, up=up), totals[at]
        streams = None if limits.streams is None else {stream: _sum(each) for stream, each in limits.streams.items()}
        notes = list(limits.notes)
        causes, flow_control = judged.get(at, (dict.fromkeys(CAUSES, 0), []))
        inferred: frozenset[str] = frozenset()
        if not one.both_sides:
            notes.append("only the sender knows what it waits for: with a capture of one side its stalls are unknown")
            causes["unknown"] = total
        elif not sending and one.arrived(up=up).sums("payload", _payload)["packets"]:
            notes.append("no message could be placed: when the sender had something to send is unknown")
        elif at not in cases:
            causes["unknown"] = total
        elif window is None and causes["congestion_window"]:
            inferred = frozenset({"congestion_window"})
            notes.append("the congestion window is inferred: a send right after an acknowledgement waited for it")
        stalls.append(
            Stalls(
                connection=one.number,
                up=up,
                total_ns=total,
                causes=causes,
                inferred=inferred,
                stream_held_ns=streams,
                connection_held_ns=None if limits.connection is None else _sum(limits.connection),
                zero_windows=_zero_windows(one, up),
                blocked_frames=_blocked_frames(one, up),
                flow_control=flow_control,
                notes=notes,
            )
        )
    return stalls


def _payload(rows: Rows) -> dict[str, Bools]:
    return {"packets": rows["payload_bytes"] > 0}


def _messages(connection: Connection, up: bool) -> tuple[dict[int, Span], list[Span]]:
    """From first to last octet sent of each message, by stream, and how long each had been waited for before."""
    sent = extents(connection, up=up, arrived=False)
    if up:
        return sent, []
    spans = extents(connection, up=True, arrived=True)
    waiting = [(spans[n][1], first) for n, (first, _) in sent.items() if n in spans and spans[n][1] < first]
    return sent, waiting


def _sum(spans: list[Span]) -> int:
    return sum(end - start for start, end in spans)


def _zero_windows(connection: Connection, up: bool) -> int | None:
    if not connection.tcp:
        return None
    return connection.sent(up=not up).sums("zero windows", _closing)["times"]


def _closing(rows: Rows) -> dict[str, Bools]:
    """Segments that close the window."""
    closed = (rows["window"] == 0) & (rows["rst"] != 1)
    before = ~begins(rows["connection"])
    before[1:] &= closed[:-1]
    return {"times": closed & ~before}


def _blocked_frames(connection: Connection, up: bool) -> int | None:
    if connection.tcp or not connection.row["decrypted"]:
        return None
    frames = connection.frames_of("quic", up=up)
    return len(frames.pick("blocked", lambda of: of.is_in("type", "DATA_BLOCKED", "STREAM_DATA_BLOCKED")))

"""Stalls: while messages were being sent, what each moment's silence waited for.

A response counts at its sender from the moment when its request had arrived until its last octet was sent, a request
from its first octet on. That time is cut into disjoint spans by cause; they add up to it. Where several causes hold,
the first of `CAUSES` counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.columns import NULL, Connection, acks, octets
from trifecta.analysis.transport.credit import Held, Span, held
from trifecta.analysis.transport.flight import Flight, flight
from trifecta.analysis.transport.octets import frontier
from trifecta.analysis.transport.rows import Bools, Ints, Rows

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


@dataclass(frozen=True, slots=True)
class Window:
    """A sender's congestion window over time, from TCP_INFO or qlog: octets from each time on."""

    time_ns: Ints
    octets: Ints


def stalls(connection: Connection, *, up: bool, window: Window | None = None) -> Stalls:
    """Of the sender of a direction. Without ``window`` the congestion window is inferred, or unknown."""
    limits = held(connection, up=up)
    notes = list(limits.notes)
    sending, waiting = _messages(connection, up)
    spans = _union([*sending.values(), *waiting])
    total = sum(end - start for start, end in spans)
    of = flight(connection, up=up)
    causes = dict.fromkeys(CAUSES, 0)
    inferred: frozenset[str] = frozenset()
    flow_control: list[Span] = []
    if not connection.both_sides:
        notes.append("only the sender knows what it waits for: with a capture of one side its stalls are unknown")
        causes["unknown"] = total
    elif not sending and (connection.arrived(up=up)["payload_bytes"] > 0).any():
        notes.append("no message could be placed: when the sender had something to send is unknown")
    elif of is None or not spans:
        causes["unknown"] = total
    else:
        edges = _edges(connection, of, [*spans, *sending.values()], limits, up=up, window=window)
        start, length = edges[:-1], np.diff(edges)
        inside = _covered(start, spans)
        cause, guessed = _judge(connection, of, start, up=up, window=window)
        if limits.connection is not None:
            cause[_covered(start, limits.connection)] = _CONNECTION
        if limits.streams is not None:
            at_limit = _count(start, [span for spans in limits.streams.values() for span in spans])
            active = _count(start, list(sending.values()))
            cause[(at_limit > 0) & (at_limit >= active)] = _STREAM
        lengths = np.zeros(len(CAUSES), dtype=np.int64)
        np.add.at(lengths, cause[inside], length[inside])
        causes = dict(zip(CAUSES, lengths.tolist(), strict=True))
        where = (inside & (cause <= _RECEIVER)).nonzero()[0]
        flow_control = _union([(int(edges[at]), int(edges[at + 1])) for at in where])
        if guessed and causes["congestion_window"]:
            inferred = frozenset({"congestion_window"})
            notes.append("the congestion window is inferred: a send right after an acknowledgement waited for it")
    return Stalls(
        connection=connection.number,
        up=up,
        total_ns=total,
        causes=causes,
        inferred=inferred,
        stream_held_ns=None if limits.streams is None else {n: _sum(spans) for n, spans in limits.streams.items()},
        connection_held_ns=None if limits.connection is None else _sum(limits.connection),
        zero_windows=_zero_windows(connection, up),
        blocked_frames=_blocked_frames(connection, up),
        flow_control=flow_control,
        notes=notes,
    )


def _judge(connection: Connection, of: Flight, start: Ints, *, up: bool, window: Window | None) -> tuple[Ints, bool]:
    """The cause of each span between two events, without flow control; whether the congestion window is inferred."""
    under_way = of.outstanding(start)
    cause = np.full(len(start), _UNKNOWN, dtype=np.int64)
    if window is not None:
        at = window.time_ns.searchsorted(start, side="right") - 1
        allowed = window.octets[np.maximum(at, 0)]
        cause = np.where(under_way + _SEGMENT > allowed, _CONGESTION, _SENDER)
        cause[at < 0] = _UNKNOWN
    elif len(of.ack_ns):
        # What ends the silence: an acknowledgement that something new follows at once.
        send = of.send_ns.searchsorted(start, side="right")
        known = send < len(of.send_ns)
        next_send = of.send_ns[np.minimum(send, len(of.send_ns) - 1)]
        ack = of.ack_ns.searchsorted(next_send, side="right") - 1
        last_ack = of.ack_ns[np.maximum(ack, 0)]
        last_send = of.send_ns[np.maximum(send - 1, 0)]
        clocked = known & (ack >= 0) & (next_send - last_ack <= REACTION_NS) & (last_ack > last_send)
        cause[clocked] = _CONGESTION
    cause[under_way == 0] = _APPLICATION
    if connection.tcp:
        cause[_no_room(connection, of, start, up)] = _RECEIVER
    return cause, window is None


def _no_room(connection: Connection, of: Flight, start: Ints, up: bool) -> Bools:
    """Where the receiver's window had no room for a full segment. Windows of unknown scale never have."""
    told = acks(connection.arrived(up=not up)).pick("with window", lambda of: of["window"] != NULL)
    if not len(told):
        return np.zeros(len(start), dtype=np.bool_)
    right = np.maximum.accumulate(told["acknowledged"] + told["window"]) - of.base
    at = told["time_ns"].searchsorted(start, side="right") - 1
    sent = np.concatenate(([0], of.sent))[of.send_ns.searchsorted(start, side="right")]
    largest = min(int(connection.sent(up=up)["payload_bytes"].max(initial=1)), _SEGMENT)
    no_room: Bools = (at >= 0) & (right[np.maximum(at, 0)] - sent < largest)
    return no_room


def _messages(connection: Connection, up: bool) -> tuple[dict[int, Span], list[Span]]:
    """From first to last octet sent of each message, by stream, and how long each had been waited for before."""
    sent = extents(connection, up=up, arrived=False)
    if up:
        return sent, []
    asked = extents(connection, up=True, arrived=True)
    waiting = [(asked[n][1], first) for n, (first, _) in sent.items() if n in asked and asked[n][1] < first]
    return sent, waiting


def extents(connection: Connection, *, up: bool, arrived: bool) -> dict[int, Span]:
    """First and last time of the octets of each message, by stream (HTTP/1.1: by ordinal)."""
    return connection.keep(("extents", up, arrived), lambda: _extents(connection, up, arrived))


def _extents(connection: Connection, up: bool, arrived: bool) -> dict[int, Span]:
    if not connection.tcp:
        frames = connection.frames_of("quic", up=up).pick(
            "requests", lambda of: of.is_in("type", "STREAM") & (of["stream"] % 4 == 0)
        )
        times = connection.arrivals(frames["number"], up=up) if arrived else frames["time_ns"]
        return _first_and_last(frames["stream"], times, times)

    def mask(of: Rows) -> Bools:
        placed: Bools = (of["up"] == int(up)) & (of["tcp_end"] != NULL)
        return placed & of.is_in("layer", "h1", "h2") & of.is_in("type", "HEADERS", "DATA")

    frames = connection.frames.pick(("placed messages", up), mask)
    stream = frames["stream"]
    if connection.row["protocol"] == "h1":
        stream = frames.is_in("type", "HEADERS").cumsum() - 1
    rows = octets(connection.arrived(up=up) if arrived else connection.sent(up=up))
    if not len(rows) or not len(frames):
        return {}
    ends = rows["sequence"] + rows["payload_bytes"]
    reached = frontier(rows["sequence"], ends, 1) if arrived else np.maximum.accumulate(ends)
    first = _when(reached, rows, frames["tcp_start"] + 1)
    return _first_and_last(stream, first, _when(reached, rows, frames["tcp_end"]))


def _when(reached: Ints, rows: Rows, octet: Ints) -> Ints:
    at = reached.searchsorted(octet)
    return np.where(at < len(reached), rows["time_ns"][np.minimum(at, len(reached) - 1)], NULL)


def _first_and_last(stream: Ints, first: Ints, last: Ints) -> dict[int, Span]:
    known = (first != NULL) & (last != NULL)
    stream, first, last = stream[known], first[known], last[known]
    if not len(stream):
        return {}
    order = stream.argsort(kind="stable")
    stream = stream[order]
    begins = np.append(0, (stream[1:] != stream[:-1]).nonzero()[0] + 1)
    firsts, lasts = np.minimum.reduceat(first[order], begins), np.maximum.reduceat(last[order], begins)
    return dict(zip(stream[begins].tolist(), zip(firsts.tolist(), lasts.tolist(), strict=True), strict=True))


def _edges(
    connection: Connection, of: Flight, spans: list[Span], limits: Held, *, up: bool, window: Window | None
) -> Ints:
    """Every moment at which something changes."""
    at_limit = [*(limits.connection or []), *(span for one in (limits.streams or {}).values() for span in one)]
    ends = np.array([moment for span in (*spans, *at_limit) for moment in span], dtype=np.int64)
    came = connection.arrived(up=not up)["time_ns"] if connection.tcp else of.ack_ns[:0]
    changes = () if window is None else (window.time_ns,)
    moments = np.sort(np.concatenate((of.send_ns, of.ack_ns, came, ends, *changes)))
    return moments[np.concatenate(([True], np.diff(moments) > 0))]


def _union(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined


def _count(moments: Ints, spans: list[Span]) -> Ints:
    """In how many of these spans [start, end) each moment lies."""
    starts, ends = (np.sort(np.array([span[end] for span in spans], dtype=np.int64)) for end in (0, 1))
    within: Ints = starts.searchsorted(moments, side="right") - ends.searchsorted(moments, side="right")
    return within


def _covered(moments: Ints, spans: list[Span]) -> Bools:
    inside: Bools = _count(moments, spans) > 0
    return inside


def _sum(spans: list[Span]) -> int:
    return sum(end - start for start, end in spans)


def _zero_windows(connection: Connection, up: bool) -> int | None:
    if not connection.tcp:
        return None
    rows = connection.sent(up=not up)
    closed = (rows["window"] == 0) & (rows["rst"] != 1)
    return int(closed[:1].sum() + (closed[1:] & ~closed[:-1]).sum())


def _blocked_frames(connection: Connection, up: bool) -> int | None:
    if connection.tcp or not connection.row["decrypted"]:
        return None
    return int(connection.frames_of("quic", up=up).is_in("type", "DATA_BLOCKED", "STREAM_DATA_BLOCKED").sum())

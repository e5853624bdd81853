"""Flow control: what a receiver allowed, what a sender had used of it, and when it had used all.

HTTP/2: RFC 9113, sections 5.2 and 6.9. QUIC: RFC 9000, section 4.1. Times are those at the sender's side: a limit
counts from its arrival. A sender is held by a limit from the send that used all of it until a higher one arrives, if it
sent more of the same afterwards: only then was something waiting.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from trifecta.analysis.transport.columns import Connection, octets, reached
from trifecta.analysis.transport.extents import passed_ns
from trifecta.analysis.transport.group_by import begins
from trifecta.analysis.transport.octets import by_stream, new_of_streams
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows

INITIAL_WINDOW = 65_535  # RFC 9113, section 6.9.2
Span = tuple[int, int]


@dataclass(slots=True)
class BlockedSpans:
    """Spans of time in which a sender could not send, by limit. None: the limits cannot be known."""

    connection: list[Span] | None = None
    streams: dict[int, list[Span]] | None = None
    notes: list[str] = field(default_factory=list)


def blocked_spans(connection: Connection, *, up: bool) -> BlockedSpans:
    """Of the sender of a direction. With one side only nobody knows when a limit reached the sender."""
    return connection.keep(("held", up), lambda: _blocked_spans(connection, up))


def _blocked_spans(connection: Connection, up: bool) -> BlockedSpans:
    if not connection.both_sides:
        return BlockedSpans()
    if not connection.tcp:
        return _quic(connection, up)
    if connection.row["protocol"] == "h2":
        return _h2(connection, up)
    return (
        BlockedSpans([], {})
        if connection.row["protocol"] == "h1"
        else BlockedSpans(notes=["flow control cannot be read"])
    )


def spans_at_limit(use_ns: Ints, used: Ints, limit_ns: Ints, limits: Ints) -> list[Span]:
    """Spans in which all of the limit was used. ``used`` only grows; ``limits[0]`` holds from the beginning.

    A limit that is not raised in the capture ends in nothing that is known, and a last one that was passed all the same
    was not the last.
    """
    if not len(used) or used[-1] <= limits[0]:
        return []
    values, at = np.unique(np.maximum.accumulate(limits), return_index=True)
    reached = used.searchsorted(values[:-1])
    more = used[-1] > values[:-1]
    begin = use_ns[np.minimum(reached, len(used) - 1)]
    end = limit_ns[at[1:]]
    return [(int(a), int(b)) for a, b in zip(begin[more], end[more], strict=True) if b > a]


def _h2(connection: Connection, up: bool) -> BlockedSpans:
    data = connection.frames_of("h2", up=up).pick("data", lambda of: of.is_in("type", "DATA") & (of["length"] > 0))
    other = connection.frames_of("h2", up=not up)
    if not connection.row["decrypted"] and connection.row["tls_version"]:
        return BlockedSpans(notes=["without keys the flow control of HTTP/2 cannot be read"])
    other = other.pick("windows", lambda of: of.is_in("type", "WINDOW_UPDATE", "SETTINGS"))
    if len(other.pick("unplaced", lambda of: of["tcp_end"] == NULL)):
        return BlockedSpans(notes=["when some WINDOW_UPDATE frames arrived is not known: flow control is unknown"])
    if not len(data):
        return BlockedSpans([], {})
    arrived = _delivered(connection, other, up=not up)
    came = (arrived != NULL) & (other["value"] != NULL)
    updates = (other.is_in("type", "WINDOW_UPDATE") & came).nonzero()[0]
    settings = (other.is_in("type", "SETTINGS") & came).nonzero()[0]
    of_connection = updates[other["stream"][updates] == 0]
    limits = INITIAL_WINDOW + np.concatenate(([0], other["value"][of_connection].cumsum()))
    limit_ns = np.concatenate(([0], arrived[of_connection]))
    all_spans = spans_at_limit(data["time_ns"], data["length"].cumsum(), limit_ns, limits)
    streams: dict[int, list[Span]] = {}
    for number, rows in _by_stream(data):
        times, windows = _stream_limits(arrived[settings], other["value"][settings], int(rows["time_ns"][0]))
        if int(rows["length"].sum()) <= windows.min():
            continue
        own = updates[other["stream"][updates] == number]
        # A change of the setting moves every window by the difference (RFC 9113, section 6.9.2).
        raises_ns = np.concatenate((times[1:], arrived[own]))
        raises = np.concatenate((np.diff(windows), other["value"][own]))
        order = raises_ns.argsort(kind="stable")
        total = windows[0] + np.concatenate(([0], raises[order].cumsum()))
        spans = spans_at_limit(rows["time_ns"], rows["length"].cumsum(), np.concatenate(([0], raises_ns[order])), total)
        if spans:
            streams[number] = spans
    return BlockedSpans(all_spans, streams)


def _stream_limits(times: Ints, values: Ints, first_ns: int) -> tuple[Ints, Ints]:
    """The initial window when a stream sends its first octet, and its changes later."""
    before = int(times.searchsorted(first_ns, side="right"))
    initial = int(values[before - 1]) if before else INITIAL_WINDOW
    return np.concatenate(([0], times[before:])), np.concatenate(([initial], values[before:]))


def _delivered(connection: Connection, frames: Rows, *, up: bool) -> Ints:
    """When frames over TCP could be read at the receiver's side: all octets up to their end are there."""
    rows = octets(connection.arrived(up=up))
    reached(rows)
    return frames.derived("delivered_ns", partial(_readable, rows.together))


def _readable(rows: Rows, frames: Rows) -> Ints:
    passed = passed_ns(rows, rows["reached"], frames["connection"], frames["tcp_end"])
    return np.where(frames["tcp_end"] == NULL, NULL, passed)


def _quic(connection: Connection, up: bool) -> BlockedSpans:
    data = connection.frames_of("quic", up=up).pick(
        "placed data", lambda of: of.is_in("type", "STREAM") & (of["offset"] != NULL)
    )
    other = connection.frames_of("quic", up=not up)
    # The limits for what goes up are those that the server sent.
    parameters = json.loads(connection.row["transport_parameters"] or "{}").get("down" if up else "up")
    if parameters is None or not connection.row["decrypted"]:
        return BlockedSpans(notes=["transport parameters or frames cannot be read: flow control is unknown"])
    # An endpoint that does not say a limit allows nothing (RFC 9000, section 18.2).
    first = parameters.get("initial_max_data", 0)
    used = {
        number: (most, parameters.get(_parameter(number, up), 0))
        for number, most in data.each("used", _highest_octets).items()
    }
    new = data.derived("new octets", new_of_streams)
    if all(most <= initial for most, initial in used.values()) and data.sums("new", _new)["octets"] <= first:
        return BlockedSpans([], {})
    connection.came(other, up=not up)
    raises = other.pick("limits", lambda of: (of["value"] != NULL) & of.is_in("type", "MAX_DATA", "MAX_STREAM_DATA"))
    came = (raises["arrived_ns"] != NULL).nonzero()[0]
    came = came[raises["arrived_ns"][came].argsort(kind="stable")]
    raises = raises.where(came)
    raised_ns = raises["arrived_ns"]

    def limits(initial: int, chosen: Bools) -> tuple[Ints, Ints]:
        return np.concatenate(([0], raised_ns[chosen])), np.concatenate(([initial], raises["value"][chosen]))

    of_connection = raises.is_in("type", "MAX_DATA")
    all_spans = spans_at_limit(data["time_ns"], new.cumsum(), *limits(first, of_connection))
    streams: dict[int, list[Span]] = {}
    for number, (most, initial) in used.items():
        if most <= initial:
            continue
        rows = data.where(data["stream"] == number)
        ends = np.maximum.accumulate(rows["offset"] + rows["length"])
        spans = spans_at_limit(rows["time_ns"], ends, *limits(initial, ~of_connection & (raises["stream"] == number)))
        if spans:
            streams[number] = spans
    return BlockedSpans(all_spans, streams)


def _new(data: Rows) -> dict[str, Ints]:
    return {"octets": data["new octets"]}


def _highest_octets(data: Rows, starts: Ints, ends: Ints) -> list[dict[int, int]]:
    """The highest octet of each stream."""
    of, stream = data["connection"], data["stream"]
    order = np.lexsort((stream, of))
    first = (begins(of[order]) | begins(stream[order])).nonzero()[0]
    if not len(first):
        return [{} for _ in starts]
    most = np.maximum.reduceat((data["offset"] + data["length"])[order], first)
    each = list(zip(stream[order[first]].tolist(), most.tolist(), strict=True))
    low, high = first.searchsorted(starts).tolist(), first.searchsorted(ends).tolist()
    return [dict(each[begin:end]) for begin, end in zip(low, high, strict=True)]


def _parameter(stream: int, up: bool) -> str:
    """The limit of the receiver for a stream (RFC 9000, section 18.2): local is what it opened itself."""
    if stream & 2:
        return "initial_max_stream_data_uni"
    opened_by_client = not stream & 1
    return f"initial_max_stream_data_bidi_{'remote' if opened_by_client == up else 'local'}"


def _by_stream(rows: Rows) -> list[tuple[int, Rows]]:
    parts = by_stream(rows["stream"])
    if len(parts) == 1:
        return [(int(rows["stream"][0]), rows)]
    return [(int(rows["stream"][part[0]]), rows.where(part)) for part in parts]

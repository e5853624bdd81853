"""When the octets of each stream arrived, and when they could be delivered.

Three waits part the time from arrival to delivery, each by what would have ended it:

* *own*: octets before it in its own stream had not arrived. Every reliable ordered stream has this wait.
* *record*: all of them had, but not the whole of the TLS records that hold them (RFC 8446, 5.2: a record is
  authenticated as a whole). QUIC has none: a packet arrives whole.
* *others*: all its records were there, but octets of other streams before it in the connection's order were missing
  (RFC 9293, 3.4; RFC 9114, 2). QUIC has none: its streams are ordered apart (RFC 9000, 2.2).

Compression of header fields can make streams wait for one another too (HPACK, QPACK): that is not in packets and not
counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.placing import (
    Frames,
    HttpFrames,
    Records,
    Spans,
    StreamFrames,
    overheads,
    place,
)
from trifecta.analysis.transport.ranges import NEVER, Ints, Tiles, cells_of, running_max, tilings
from trifecta.analysis.transport.ways import Way, ways

if TYPE_CHECKING:
    import pyarrow as pa

BEHIND_RECORDS = (
    "connection {}, {}: where octets lie in their records is not known; a frame counts as arrived with its records"
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Pieces of streams, each of which arrived as one. Times are those at the receiver, in ns; `NEVER`: not seen."""

    way: Way
    stream: Ints
    start: Ints  # TCP: sequence number; QUIC: offset in the stream
    octets: Ints
    arrived_ns: Ints
    own_ns: Ints  # its own stream's octets up to it are there
    records_ns: Ints  # and their records
    delivered_ns: Ints  # and all that stands before it
    tiles: Tiles  # all octets of the connection (QUIC: of all streams, one behind the other)
    carrier: Ints  # by tile: the row of `way` that brought it, -1: none
    first_sent: Ints  # by tile: the row of `way` that held it first, -1: none
    spans: Spans
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Passage:
    """What more than one metric is worked out from: computed once for a dissection.

    ``one_side``: some of its packets are of a capture of one side.
    """

    ways: dict[tuple[int, str], Way]
    deliveries: list[Delivery]
    one_side: bool


def passage(packets: pa.Table, frames: pa.Table, connections: pa.Table, *, one_side: bool | None = None) -> Passage:
    """When packets passed the link, and when octets of streams could be delivered.

    ``one_side``: of the dissection of which these tables are a part; None: they are the whole.
    """
    found = ways(packets)
    if one_side is None:
        one_side = any(not way.both_sides for way in found.values())
    return Passage(found, deliveries(frames, connections, found), one_side)


def deliveries(frames: pa.Table, connections: pa.Table, all_ways: dict[tuple[int, str], Way]) -> list[Delivery]:
    """The deliveries of all connections and directions whose frames are known."""
    of, overhead = Frames(frames), overheads(connections)
    found = []
    for (connection, direction), way in all_ways.items():
        if way.transport == "udp":
            one = _quic(way, of.quic(connection, direction))
        else:
            one = _tcp(way, of.http(connection, direction), of.records(connection, direction), overhead.get(connection))
        if one is not None:
            found.append(one)
    return found


def _tcp(way: Way, frames: HttpFrames, records: Records, overhead: int | None) -> Delivery | None:
    if not len(frames.low):
        return None
    known = ((way.payload > 0) & (way.sequence >= 0)).nonzero()[0]
    first, size = way.sequence[known], way.payload[known]
    last = first + size
    if not len(first):
        return None
    spans, exact = place(frames, records, overhead)
    notes = [] if exact else [BEHIND_RECORDS.format(way.connection, way.direction)]
    edges = np.concatenate([spans.start, spans.end, records.start, records.end])
    # Octets are cut at the same edges by when they arrived and by when they were sent.
    arrived, sent = tilings(first, last, (way.arrived_ns[known], way.sent_ns[known]), edges)
    carriers, first_sent = _rows(arrived, known), _rows(sent, known)
    # Octets from before the capture began have arrived at an unknown time, which is before it.
    arrived.times[: int(arrived.edges.searchsorted(first.min()))] = 0
    in_order = np.maximum.accumulate(arrived.times)
    whole_record = arrived.latest(records.start, records.end)
    record_end = arrived.edges.searchsorted(records.end) - 1
    if (spans.octets == spans.end - spans.start).all():
        span, cell = cells_of(arrived, spans.start, spans.end)
        start, octets, times = arrived.edges[cell], np.diff(arrived.edges)[cell], arrived.times[cell]
        in_order_until = in_order[cell]
    else:
        span = np.arange(len(spans.start))
        start, octets, times = spans.start, spans.octets, arrived.latest(spans.start, spans.end)
        in_order_until = in_order[arrived.edges.searchsorted(spans.end) - 1]
    record = spans.record[span]
    has = record >= 0
    complete, delivered = times.copy(), in_order_until.copy()
    complete[has] = whole_record[record[has]]
    delivered[has] = in_order[record_end[record[has]]]
    own, records_there = _by_stream(spans.stream[span], start, times, complete)
    delivered = np.maximum(delivered, records_there)
    return Delivery(
        way=way,
        stream=spans.stream[span],
        start=start,
        octets=octets,
        arrived_ns=times,
        own_ns=own,
        records_ns=records_there,
        delivered_ns=delivered,
        tiles=arrived,
        carrier=carriers,
        first_sent=first_sent,
        spans=spans,
        notes=notes,
    )


def _quic(way: Way, frames: StreamFrames) -> Delivery | None:
    row = way.of_numbers(frames.number)
    some = row >= 0
    stream, offset, length, row = frames.stream[some], frames.offset[some], frames.length[some], row[some]
    if not len(stream):
        return None
    stack = stacked(stream, offset, length)
    if stack is None:
        return None
    names, base, lows, ends, start = stack.names, stack.base, stack.lows, stack.ends, stack.start
    arrived, sent = tilings(start, start + length, (way.arrived_ns[row], way.sent_ns[row]))
    of = (base + ends).searchsorted(arrived.edges[:-1], side="right")
    spans = Spans(names, base + lows, base + ends, np.full(len(names), -1, dtype=np.int64), ends - lows)
    own = running_max(arrived.times, of)
    return Delivery(
        way=way,
        stream=names[of],
        start=arrived.edges[:-1] - base[of],
        octets=np.diff(arrived.edges),
        arrived_ns=arrived.times,
        own_ns=own,
        records_ns=own,
        delivered_ns=own,
        tiles=arrived,
        carrier=_rows(arrived, row),
        first_sent=_rows(sent, row),
        spans=spans,
        notes=[],
    )


@dataclass(frozen=True, slots=True)
class Stack:
    """Streams one behind the other in one range of octets: offset x of stream i stands at base[i] + x."""

    names: Ints
    base: Ints
    lows: Ints
    ends: Ints
    start: Ints  # of each piece


def stacked(stream: Ints, offset: Ints, length: Ints) -> Stack | None:
    """Put pieces of many streams into one range; None if that is larger than any transfer: not decrypted rightly."""
    if len(stream) and (stream == stream[0]).all():
        names, rank = stream[:1], np.zeros(len(stream), dtype=np.int64)
    else:
        names, rank = np.unique(stream, return_inverse=True)
    ends, lows = np.zeros(len(names), dtype=np.int64), np.full(len(names), NEVER, dtype=np.int64)
    np.maximum.at(ends, rank, offset + length)
    np.minimum.at(lows, rank, offset)
    if float((ends - lows).astype(np.float64).sum()) >= NEVER:  # an offset has 62 bits (RFC 9000, 4.5)
        return None
    base = (ends - lows).cumsum() - (ends - lows) - lows
    return Stack(names, base, lows, ends, offset + base[rank])


def _rows(tiles: Tiles, rows: Ints) -> Ints:
    """By tile the row that gave its time; -1: none did."""
    return np.where((tiles.which >= 0) & (tiles.times < NEVER), rows[tiles.which], -1)


def _by_stream(stream: Ints, start: Ints, times: Ints, complete: Ints) -> tuple[Ints, Ints]:
    """When the stream's octets up to each piece are there, and when their records are."""
    if (stream == stream[0]).all() and (start[1:] >= start[:-1]).all():
        own = np.maximum.accumulate(times)
        return own, np.maximum(np.maximum.accumulate(complete), own)
    order = np.lexsort((start, stream))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    _, dense = np.unique(stream[order], return_inverse=True)
    own = running_max(times[order], dense)[back]
    return own, np.maximum(running_max(complete[order], dense)[back], own)


def is_request(transport: str, protocol: str, stream: Ints) -> NDArray[np.bool_]:
    """Whether a stream carries a request: of HTTP/2 the client's (odd), of HTTP/3 the client's bidirectional ones."""
    if protocol == "h1":
        return np.ones(len(stream), dtype=bool)
    mine: NDArray[np.bool_] = stream % 4 == 0 if transport == "udp" else stream % 2 == 1
    return mine

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

from trifecta.analysis.transport.ranges import NEVER, Ints, Tiles, cells_of, running_max, tile
from trifecta.analysis.transport.ways import Way, equals, groups_of, texts, ways, whole

if TYPE_CHECKING:
    import pyarrow as pa

RECORD_HEADER = 5  # RFC 8446, 5.1
_WITH_NONCE = (RECORD_HEADER + 8 + 16, RECORD_HEADER + 8 + 8)
BEHIND_RECORDS = (
    "connection {}, {}: where octets lie in their records is not known; a frame counts as arrived with its records"
)


@dataclass(frozen=True, slots=True)
class Spans:
    """Octets of streams in the order of a connection, one row a span. `record` counts TLS records, -1: none."""

    stream: Ints
    start: Ints
    end: Ints
    record: Ints
    octets: Ints


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
    """What more than one metric is worked out from: computed once for a dissection."""

    ways: dict[tuple[int, str], Way]
    deliveries: list[Delivery]


def passage(packets: pa.Table, frames: pa.Table, connections: pa.Table) -> Passage:
    """When packets passed the link, and when octets of streams could be delivered."""
    found = ways(packets)
    return Passage(found, deliveries(frames, connections, found))


def deliveries(frames: pa.Table, connections: pa.Table, all_ways: dict[tuple[int, str], Way]) -> list[Delivery]:
    """The deliveries of all connections and directions whose frames are known."""
    overheads = _overheads(connections)
    found = []
    connection = whole(frames, "connection")
    layers = {name: equals(frames, "layer", name) for name in ("tls", "h1", "h2", "quic")}
    stream_frames = equals(frames, "type", "STREAM")
    # Tickets and key updates may come at any time (RFC 8446, 4.6): octets of the connection, but none of HTTP.
    layers["tls"] &= ~np.isin(texts(frames, "type"), ("handshake", "change_cipher_spec", "alert"))
    for direction in ("up", "down"):
        mine = np.flatnonzero(equals(frames, "direction", direction))
        for key, at in groups_of(connection[mine]):
            way = all_ways.get((key, direction))
            if way is None:
                continue
            rows = mine[at]
            if way.transport == "udp":
                rows = rows[(layers["quic"] & stream_frames)[rows]]
                one = _quic(way, frames.take(rows)) if len(rows) else None
            else:
                http = rows[(layers["h2"] | layers["h1"])[rows]]
                records = rows[layers["tls"][rows]]
                one = _tcp(way, frames.take(http), frames.take(records), overheads.get(key)) if len(http) else None
            if one is not None:
                found.append(one)
    return found


def _overheads(connections: pa.Table) -> dict[int, int]:
    """Octets of an encrypted record that are not plaintext, by connection.

    TLS 1.3: header, content type and tag (RFC 8446, 5.2). TLS 1.2: AES-GCM and CCM have an explicit nonce of 8 octets
    (RFC 5288, 3), ChaCha20-Poly1305 has none (RFC 7905, 2). Other suites of TLS 1.2 are not known here.
    """
    found = {}
    versions, ciphers = texts(connections, "tls_version"), texts(connections, "cipher")
    for row, connection in enumerate(whole(connections, "connection")):
        if versions[row] == "1.3":
            found[int(connection)] = RECORD_HEADER + 1 + (8 if "CCM_8" in ciphers[row] else 16)
        elif versions[row] == "1.2" and "CHACHA20" in ciphers[row]:
            found[int(connection)] = RECORD_HEADER + 16
        elif versions[row] == "1.2" and ("GCM" in ciphers[row] or "CCM" in ciphers[row]):
            found[int(connection)] = RECORD_HEADER + 8 + (8 if "CCM_8" in ciphers[row] else 16)
    return found


def _tcp(way: Way, http: pa.Table, tls: pa.Table, overhead: int | None) -> Delivery | None:
    known = (way.payload > 0) & (way.sequence >= 0)
    first, last = way.sequence[known], (way.sequence + way.payload)[known]
    if not len(first):
        return None
    records = np.stack([whole(tls, "tcp_start"), whole(tls, "tcp_end")], axis=1)
    records = np.unique(records[records[:, 0] >= 0], axis=0)
    spans, notes = _spans(way, http, records, overhead)
    if not len(spans.stream):
        return None
    edges = np.concatenate([spans.start, spans.end, records.reshape(-1)])
    arrived = tile(first, last, way.arrived_ns[known], edges)
    carriers = _rows(arrived, np.flatnonzero(known))
    # Octets are cut at the same edges by when they were sent.
    sent = _rows(tile(first, last, way.sent_ns[known], edges), np.flatnonzero(known))
    # Octets from before the capture began have arrived at an unknown time, which is before it.
    arrived.times[: int(np.searchsorted(arrived.edges, first.min()))] = 0
    in_order = np.maximum.accumulate(arrived.times)
    whole_record = arrived.latest(records[:, 0], records[:, 1]) if len(records) else np.zeros(0, dtype=np.int64)
    record_end = np.searchsorted(arrived.edges, records[:, 1]) - 1
    exact = bool((spans.octets == spans.end - spans.start).all())
    if exact:
        span, cell = cells_of(arrived, spans.start, spans.end)
        start, octets, times = arrived.edges[cell], np.diff(arrived.edges)[cell], arrived.times[cell]
        in_order_until = in_order[cell]
    else:
        span = np.arange(len(spans.start))
        start, octets, times = spans.start, spans.octets, arrived.latest(spans.start, spans.end)
        in_order_until = in_order[np.searchsorted(arrived.edges, spans.end) - 1]
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
        first_sent=sent,
        spans=spans,
        notes=notes,
    )


def _quic(way: Way, frames: pa.Table) -> Delivery | None:
    stream, offset = whole(frames, "stream"), whole(frames, "offset", 0)
    length = whole(frames, "length", 0)
    row = way.of_numbers(whole(frames, "number"))
    some = (row >= 0) & (length > 0) & (stream >= 0)
    stream, offset, length, row = stream[some], offset[some], length[some], row[some]
    if not len(stream):
        return None
    stack = stacked(stream, offset, length)
    if stack is None:
        return None
    names, base, lows, ends, start = stack.names, stack.base, stack.lows, stack.ends, stack.start
    arrived = tile(start, start + length, way.arrived_ns[row])
    sent = _rows(tile(start, start + length, way.sent_ns[row]), row)
    of = np.searchsorted(base + ends, arrived.edges[:-1], side="right")
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
        first_sent=sent,
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
    names, rank = np.unique(stream, return_inverse=True)
    ends, lows = np.zeros(len(names), dtype=np.int64), np.full(len(names), NEVER, dtype=np.int64)
    np.maximum.at(ends, rank, offset + length)
    np.minimum.at(lows, rank, offset)
    if float((ends - lows).astype(np.float64).sum()) >= NEVER:  # an offset has 62 bits (RFC 9000, 4.5)
        return None
    base = np.cumsum(ends - lows) - (ends - lows) - lows
    return Stack(names, base, lows, ends, offset + base[rank])


def _rows(tiles: Tiles, rows: Ints) -> Ints:
    """By tile the row that gave its time; -1: none did."""
    return np.where((tiles.which >= 0) & (tiles.times < NEVER), rows[tiles.which], -1)


def _by_stream(stream: Ints, start: Ints, times: Ints, complete: Ints) -> tuple[Ints, Ints]:
    """When the stream's octets up to each piece are there, and when their records are."""
    order = np.lexsort((start, stream))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    _, dense = np.unique(stream[order], return_inverse=True)
    own = running_max(times[order], dense)[back]
    return own, np.maximum(running_max(complete[order], dense)[back], own)


@dataclass(frozen=True, slots=True)
class _Frames:
    """Frames in the order of the plaintext; [low, high) are the TCP octets of their records."""

    low: Ints
    high: Ints
    size: Ints
    offset: Ints
    stream: Ints


def _spans(way: Way, http: pa.Table, records: Ints, overhead: int | None) -> tuple[Spans, list[str]]:
    """The octets of each frame in the sequence of TCP, record by record."""
    low, high, offset = whole(http, "tcp_start"), whole(http, "tcp_end"), whole(http, "offset")
    size = whole(http, "wire_length", 0)
    size = np.where(size > 0, size, whole(http, "length", 0))
    order = np.flatnonzero((low >= 0) & (high > low) & (size > 0))
    order = order[np.argsort(offset[order], kind="stable")]
    frames = _Frames(low[order], high[order], size[order], offset[order], _stream_of(http)[order])
    first = np.searchsorted(records[:, 0], frames.low)
    inside = np.minimum(first, max(len(records) - 1, 0))
    if not len(records) or not (records[inside, 0] == frames.low).all():
        # No TLS, or its records are not known: the range is the frame's own, exact without TLS.
        return Spans(frames.stream, frames.low, frames.high, np.full(len(order), -1, dtype=np.int64), frames.size), []
    exact = _placed(frames, records, overhead) if overhead is not None else None
    if exact is not None:
        return exact, []
    counts = np.searchsorted(records[:, 0], frames.high) - first
    frame = np.repeat(np.arange(len(order)), counts)
    record = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts) + first[frame]
    # All but one octet a record stand with the last one: how many they are matters for means over octets only.
    octets = np.ones(len(frame), dtype=np.int64)
    octets[np.cumsum(counts) - 1] = np.maximum(frames.size - counts + 1, 1)
    spans = Spans(frames.stream[frame], records[record, 0], records[record, 1], record, octets)
    return spans, [BEHIND_RECORDS.format(way.connection, way.direction)]


def _placed(frames: _Frames, records: Ints, overhead: int) -> Spans | None:
    """Each frame's octets where they are in the records; None where that contradicts the ranges of the frames."""
    used = np.zeros(len(records) + 1, dtype=np.int64)
    np.add.at(used, np.searchsorted(records[:, 0], frames.low), 1)
    np.add.at(used, np.searchsorted(records[:, 0], frames.high), -1)
    used_records = np.flatnonzero(np.cumsum(used)[:-1] > 0)
    text = records[used_records, 1] - records[used_records, 0] - overhead
    if not len(text) or (text <= 0).any():
        return None
    end = np.cumsum(text)
    begin = end - text
    # The plaintext of the first record begins at 0 where the capture is whole; else what follows finds it out.
    offset, last = frames.offset, frames.offset + frames.size
    first = np.searchsorted(begin, offset, side="right") - 1
    after = np.searchsorted(begin, last - 1, side="right") - 1
    if (first < 0).any() or (last > end[-1]).any():
        return None
    if (records[used_records[first], 0] != frames.low).any() or (records[used_records[after], 1] != frames.high).any():
        return None
    counts = after - first + 1
    frame = np.repeat(np.arange(len(offset)), counts)
    at = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts) + first[frame]
    # Header (and nonce) in front, tag (and content type) behind: RFC 8446, 5.2.
    front = records[used_records[at], 0] + RECORD_HEADER + (8 if overhead in _WITH_NONCE else 0) - begin[at]
    start = np.maximum(offset[frame], begin[at]) + front
    stop = np.minimum(last[frame], end[at]) + front
    return Spans(frames.stream[frame], start, stop, used_records[at], stop - start)


def _stream_of(http: pa.Table) -> Ints:
    """Streams of frames; HTTP/1.1 has none, so the ordinal of the message in its direction stands for one."""
    stream = whole(http, "stream")
    heads = equals(http, "layer", "h1") & equals(http, "type", "HEADERS")
    order = np.argsort(whole(http, "offset"), kind="stable")
    ordinal = np.empty_like(stream)
    ordinal[order] = np.maximum(np.cumsum(heads[order]) - 1, 0)
    return np.where(equals(http, "layer", "h1"), ordinal, stream)


def is_request(transport: str, protocol: str, stream: Ints) -> NDArray[np.bool_]:
    """Whether a stream carries a request: of HTTP/2 the client's (odd), of HTTP/3 the client's bidirectional ones."""
    if protocol == "h1":
        return np.ones(len(stream), dtype=bool)
    mine: NDArray[np.bool_] = stream % 4 == 0 if transport == "udp" else stream % 2 == 1
    return mine

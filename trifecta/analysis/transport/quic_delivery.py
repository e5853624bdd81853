"""When the octets of streams over QUIC arrived and could be delivered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trifecta.analysis.transport.directions import Direction
from trifecta.analysis.transport.group_by import begins, columns_of, first_rows
from trifecta.analysis.transport.pieces import Delivery, Pieces, cut, stretch
from trifecta.analysis.transport.ranges import NEVER, Ints, Row, running_max
from trifecta.analysis.transport.tcp_offsets import Spans, StreamFrames


class OverQuic(NamedTuple):
    """A direction of a connection over QUIC."""

    direction: Direction
    frames: StreamFrames


class _Streams(NamedTuple):
    """All streams of all directions: of each the direction, its name, and its octets [low, end)."""

    direction: Ints
    name: Ints
    low: Ints
    end: Ints


def over_quic(of: list[OverQuic]) -> list[Delivery]:
    """Of all at once, their streams in a row."""
    if not of:
        return []
    directions = [one.direction for one in of]
    whose, row, number, arrived_ns, sent_ns = columns_of(
        [(direction.number, direction.arrived_ns, direction.sent_ns) for direction in directions]
    )
    direction, _, *columns = columns_of([(a.number, a.stream, a.offset, a.length) for a in (one.frames for one in of)])
    packet = first_rows(whose, number, direction, columns[0])
    known = packet >= 0
    packet, direction, stream, offset, length = (each[known] for each in (packet, direction, *columns[1:]))
    streams, rank = _streams(direction, stream, offset, length)
    size = streams.end - streams.low
    total = np.bincount(streams.direction, weights=size.astype(np.float64), minlength=len(of))
    some = (total > 0) & (total < NEVER)  # an offset has 62 bits (RFC 9000, 19.8): more is not decrypted rightly
    if not some.all():
        return over_quic([one for one, there in zip(of, some.tolist(), strict=True) if there])
    if len(of) > 1 and float(total.sum()) + len(of) >= NEVER:
        half = len(of) // 2
        return over_quic(of[:half]) + over_quic(of[half:])
    begin = size.cumsum() - size + streams.direction  # what ends one direction does not begin the next
    first = begins(streams.direction).nonzero()[0]
    low = begin[first]
    in_row = Row(low, low, low + np.add.reduceat(size, first))
    start = begin[rank] + offset - streams.low[rank]
    none = start[:0]
    cells = stretch(in_row, (start, start + length), (arrived_ns[packet], sent_ns[packet]), row[packet], none)
    tiles = cells.arrived
    stream_of = begin.searchsorted(tiles.edges[:-1], side="right") - 1
    own = running_max(tiles.times, stream_of)[cells.octets]
    stream_of, edges = stream_of[cells.octets], tiles.edges[:-1][cells.octets]
    octets, times = np.diff(tiles.edges)[cells.octets], tiles.times[cells.octets]
    offsets = edges - begin[stream_of] + streams.low[stream_of]
    pieces = Pieces(cells.direction[cells.octets], streams.name[stream_of], offsets, octets, times, own, own, own)
    spans = Spans(streams.name, begin, begin + size, np.full(len(size), -1, dtype=np.int64), size, streams.direction)
    return cut(directions, cells, pieces, spans, [True] * len(directions))


def _streams(direction: Ints, stream: Ints, offset: Ints, length: Ints) -> tuple[_Streams, Ints]:
    """The streams of all directions, and which one each frame is of."""
    order = np.lexsort((stream, direction))
    new = begins(direction[order]) | begins(stream[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = new.cumsum() - 1
    first = order[new]
    low, end = np.full(len(first), NEVER, dtype=np.int64), np.zeros(len(first), dtype=np.int64)
    np.minimum.at(low, rank, offset)
    np.maximum.at(end, rank, offset + length)
    return _Streams(direction[first], stream[first], low, end), rank

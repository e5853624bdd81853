"""When the octets of streams over TCP arrived and could be delivered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trifecta.analysis.transport.directions import Direction
from trifecta.analysis.transport.group_by import begins, columns_of
from trifecta.analysis.transport.pieces import Delivery, Pieces, Stretch, cut, stretch
from trifecta.analysis.transport.ranges import NEVER, Ints, cells_of, in_a_row, running_max
from trifecta.analysis.transport.tcp_offsets import HttpFrames, Records, Spans, place


class OverTcp(NamedTuple):
    """A direction of a connection over TCP."""

    direction: Direction
    frames: HttpFrames
    records: Records
    overhead: int  # octets of a record that are not plaintext; -1: not known


def over_tcp(of: list[OverTcp]) -> list[Delivery]:
    """Of all at once, their octets in a row."""
    if not of:
        return []
    directions = [one.direction for one in of]
    whose, row, payload, sequence, arrived_ns, sent_ns = columns_of(
        [(direction.payload, direction.sequence, direction.arrived_ns, direction.sent_ns) for direction in directions]
    )
    known = ((payload > 0) & (sequence >= 0)).nonzero()[0]
    whose, first, last = whose[known], sequence[known], (sequence + payload)[known]
    some = np.bincount(whose, minlength=len(of)) > 0
    if not some.all():
        return over_tcp([one for one, there in zip(of, some.tolist(), strict=True) if there])
    direction, _, low, high, size, offset, stream = columns_of(
        [(a.low, a.high, a.size, a.offset, a.stream) for a in (one.frames for one in of)]
    )
    frames = HttpFrames(low, high, size, offset, stream, direction)
    direction, _, start, end = columns_of([(a.start, a.end) for a in (one.records for one in of)])
    records = Records(start, end, direction)
    ends = [(whose, first), (whose, last), (frames.direction, frames.low), (frames.direction, frames.high)]
    in_row = in_a_row(len(of), *ends, (records.direction, records.start), (records.direction, records.end))
    if in_row is None:
        half = len(of) // 2
        return over_tcp(of[:half]) + over_tcp(of[half:])
    frames, records = frames.moved(in_row.shift), records.moved(in_row.shift)
    spans, exact = place(frames, records, np.array([one.overhead for one in of], dtype=np.int64))
    first, last = first + in_row.shift[whose], last + in_row.shift[whose]
    edges = np.concatenate([spans.start, spans.end, records.start, records.end])
    cells = stretch(in_row, (first, last), (arrived_ns[known], sent_ns[known]), row[known], edges)
    # Octets from before the capture began have arrived at an unknown time, which is before it.
    begun = np.full(len(of), NEVER, dtype=np.int64)
    np.minimum.at(begun, whose, first)
    cells.arrived.times[cells.arrived.edges[:-1] < begun[cells.direction]] = 0
    return cut(directions, cells, _pieces(cells, spans, records), spans, exact.tolist())


def _pieces(of: Stretch, spans: Spans, records: Records) -> Pieces:
    tiles = of.arrived
    in_order = running_max(tiles.times, of.direction)
    # Where a span has fewer octets than it is long, it cannot be cut: it arrives as a whole.
    vague = np.bincount(spans.direction[spans.octets != spans.end - spans.start], minlength=len(of.row.low)) > 0
    fine, coarse = (~vague[spans.direction]).nonzero()[0], vague[spans.direction].nonzero()[0]
    at, cell = cells_of(tiles, spans.start[fine], spans.end[fine])
    begin, end = spans.start[coarse], spans.end[coarse]
    span = np.concatenate((fine[at], coarse))
    order = span.argsort(kind="stable")
    span = span[order]
    start, octets, times, delivered = (
        np.concatenate(arrays)[order]
        for arrays in (
            (tiles.edges[cell], begin),
            (np.diff(tiles.edges)[cell], spans.octets[coarse]),
            (tiles.times[cell], tiles.latest(begin, end)),
            (in_order[cell], in_order[tiles.edges.searchsorted(end) - 1]),
        )
    )
    record = spans.record[span]
    has = record >= 0
    complete = times.copy()
    complete[has] = tiles.latest(records.start, records.end)[record[has]]
    delivered[has] = in_order[(tiles.edges.searchsorted(records.end) - 1)[record[has]]]
    direction, stream = spans.direction[span], spans.stream[span]
    own, records_there = _by_stream(direction, stream, start, times, complete)
    start = start - of.row.shift[direction]
    return Pieces(direction, stream, start, octets, times, own, records_there, np.maximum(delivered, records_there))


def _by_stream(direction: Ints, stream: Ints, start: Ints, times: Ints, complete: Ints) -> tuple[Ints, Ints]:
    """When the stream's octets up to each piece are there, and when their records are."""
    order = np.lexsort((start, stream, direction))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    group = (begins(direction[order]) | begins(stream[order])).cumsum()
    own = running_max(times[order], group)[back]
    return own, np.maximum(running_max(complete[order], group)[back], own)

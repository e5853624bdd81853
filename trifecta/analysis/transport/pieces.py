"""Pieces of streams as they arrived, worked out for many connections at once and cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.directions import Direction
from trifecta.analysis.transport.ranges import NEVER, Ints, Row, Tiles, tilings
from trifecta.analysis.transport.rows import Bools
from trifecta.analysis.transport.tcp_offsets import Spans

BEHIND_RECORDS = (
    "connection {}, {}: where octets lie in their records is not known; a frame counts as arrived with its records"
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Pieces of streams, each of which arrived as one. Times are those at the receiver, in ns; `NEVER`: not seen."""

    direction: Direction
    stream: Ints
    start: Ints  # TCP: sequence number; QUIC: offset in the stream
    octets: Ints
    arrived_ns: Ints
    own_ns: Ints  # its own stream's octets up to it are there
    records_ns: Ints  # and their records
    delivered_ns: Ints  # and all that stands before it
    tiles: Tiles  # all octets of the connection (QUIC: of all streams, one behind the other)
    carrier: Ints  # by tile: the row of `direction` that brought it, -1: none
    first_sent: Ints  # by tile: the row of `direction` that held it first, -1: none
    spans: Spans
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Those of all directions, as `Delivery` has them. ``direction``: which of them, in order."""

    direction: Ints
    stream: Ints
    start: Ints
    octets: Ints
    arrived_ns: Ints
    own_ns: Ints
    records_ns: Ints
    delivered_ns: Ints


@dataclass(frozen=True, slots=True)
class Stretch:
    """The octets of all directions in a row, cut by when they arrived and, at the same edges, by when they were sent.

    ``direction``: of each tile. What is between two directions is no octet of either, and its time says nothing.
    ``packets``: of each range that was cut, the row of its packet in its direction.
    """

    row: Row
    arrived: Tiles
    sent: Tiles
    direction: Ints
    octets: Bools  # which tiles are
    packets: Ints

    def carriers(self, tiles: Tiles) -> Ints:
        """By tile the row that gave its time; -1: none did."""
        return np.where((tiles.which >= 0) & (tiles.times < NEVER), self.packets[tiles.which], -1)


def stretch(row: Row, ranges: tuple[Ints, Ints], times: tuple[Ints, Ints], packets: Ints, edges: Ints) -> Stretch:
    """Cut ranges in a row by two times: when they arrived, and when they were sent."""
    arrived, sent = tilings(*ranges, times, edges)
    direction = row.low.searchsorted(arrived.edges[:-1], side="right") - 1
    octets = arrived.edges[:-1] < row.high[direction]
    arrived.times[~octets] = times[0].min()
    return Stretch(row, arrived, sent, direction, octets, packets)


def cut(
    directions: Sequence[Direction], of: Stretch, pieces: Pieces, spans: Spans, exact: Sequence[bool]
) -> list[Delivery]:
    """What was worked out for all directions, by direction."""
    edges, shift = of.arrived.edges, of.row.shift
    carrier, first_sent = of.carriers(of.arrived), of.carriers(of.sent)
    begin, end = spans.start - shift[spans.direction], spans.end - shift[spans.direction]
    numbers = np.arange(len(directions))
    last_edge = edges.searchsorted(of.row.high, side="right") - 1
    tiles = _slices(edges.searchsorted(of.row.low), last_edge)
    pieces_of, spans_of = (
        _slices(of_direction.searchsorted(numbers), of_direction.searchsorted(numbers, side="right"))
        for of_direction in (pieces.direction, spans.direction)
    )
    deliveries = []
    for at, (direction, tile, piece, span) in enumerate(zip(directions, tiles, pieces_of, spans_of, strict=True)):
        here = edges[tile.start : tile.stop + 1] - shift[at]
        placed = (
            spans.stream[span],
            begin[span],
            end[span],
            spans.record[span],
            spans.octets[span],
            spans.direction[span],
        )
        deliveries.append(
            Delivery(
                direction=direction,
                stream=pieces.stream[piece],
                start=pieces.start[piece],
                octets=pieces.octets[piece],
                arrived_ns=pieces.arrived_ns[piece],
                own_ns=pieces.own_ns[piece],
                records_ns=pieces.records_ns[piece],
                delivered_ns=pieces.delivered_ns[piece],
                tiles=Tiles(here, of.arrived.times[tile], of.arrived.which[tile]),
                carrier=carrier[tile],
                first_sent=first_sent[tile],
                spans=Spans(*placed),
                notes=[] if exact[at] else [BEHIND_RECORDS.format(direction.connection, direction.name)],
            )
        )
    return deliveries


def _slices(begin: Ints, end: Ints) -> list[slice]:
    return [slice(*bounds) for bounds in zip(begin.tolist(), end.tolist(), strict=True)]

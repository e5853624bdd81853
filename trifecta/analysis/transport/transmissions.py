"""Pieces of octets that packets held, in the order of sending, and which of them were sent more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.delivery import stacked
from trifecta.analysis.transport.directions import DOWN, UP, Direction, coded, equals, integer_column
from trifecta.analysis.transport.ranges import NEVER, Ints, cells_of, tile
from trifecta.analysis.transport.tcp_offsets import cuts

if TYPE_CHECKING:
    import pyarrow as pa

_NONE = slice(0, 0)


@dataclass(frozen=True, slots=True)
class Sent:
    """Pieces of octets that packets hold, in the order of sending. `row` counts in the direction."""

    row: Ints
    start: Ints
    end: Ints
    packet_number: Ints  # QUIC, in its space; TCP: -1
    space: Ints


def tcp_sent(direction: Direction) -> Sent:
    """Of TCP: octets of payload."""
    rows = ((direction.payload > 0) & (direction.sequence >= 0)).nonzero()[0]
    none = np.full(len(rows), -1, dtype=np.int64)
    start = direction.sequence[rows]
    return Sent(rows, start, start + direction.payload[rows], none, none)


class QuicFrames:
    """The frames of QUIC that recovery looks at, as columns, cut by connection and direction."""

    def __init__(self, frames: pa.Table, connections: pa.Table) -> None:
        connection, up = integer_column(frames, "connection"), equals(frames, "direction", UP)
        mine = equals(frames, "layer", "quic") & (up | equals(frames, "direction", DOWN))
        kinds = {name: equals(frames, "type", name) for name in ("STREAM", "CRYPTO", "ACK")}
        key = connection * 2 + up
        length = integer_column(frames, "length")
        code, spaces = coded(frames, "packet_space")
        rank = np.empty(len(spaces), dtype=np.int64)
        rank[spaces.argsort()] = np.arange(len(spaces))
        space, number = rank[code], integer_column(frames, "number")

        def some(chosen: NDArray[np.bool_]) -> Ints:
            rows = (mine & chosen).nonzero()[0]
            return rows[key[rows].argsort(kind="stable")]

        # Initial packets open without keys (RFC 9001, 5.2): they do not report what came after them.
        shut = [not (one is None or one) for one in connections.column("decrypted").to_pylist()]
        later = ~np.isin(connection, integer_column(connections, "connection")[np.array(shut, dtype=bool)])
        later &= mine & ~equals(frames, "packet_space", "initial")
        self._known = frozenset(np.unique(key[later & np.any(list(kinds.values()), axis=0)]).tolist())
        rows = some((kinds["STREAM"] | kinds["CRYPTO"]) & (length > 0))
        # Handshake octets have offsets of their own in each packet number space (RFC 9000, 19.6).
        stream = np.where(kinds["CRYPTO"], -1 - space, integer_column(frames, "stream"))
        columns: tuple[Ints, ...] = (
            number,
            stream,
            integer_column(frames, "offset"),
            length,
            integer_column(frames, "packet_number"),
            space,
        )
        self._octets, self._octet_cuts = tuple(each[rows] for each in columns), cuts(key[rows])
        rows = some(kinds["ACK"])
        columns = (number, space, integer_column(frames, "value"))
        self._acks, self._ack_cuts = tuple(each[rows] for each in columns), cuts(key[rows])

    def known(self, direction: Direction) -> bool:
        """Whether frames of this direction could be read, beyond those of Initial packets."""
        return _key(direction) in self._known

    def sent(self, direction: Direction) -> Sent | None:
        """The octets that the packets of one direction hold; None: more than any transfer, not decrypted rightly."""
        cut = self._octet_cuts.get(_key(direction), _NONE)
        number, stream, offset, length, packet, space = (each[cut] for each in self._octets)
        row = direction.of_numbers(number)
        some = (row >= 0).nonzero()[0]
        if not len(some):
            empty = np.zeros(0, dtype=np.int64)
            return Sent(empty, empty, empty, empty, empty)
        length = length[some]
        stack = stacked(stream[some], offset[some], length)
        if stack is None:
            return None
        order = row[some].argsort(kind="stable")
        some = some[order]
        start = stack.start[order]
        return Sent(row[some], start, start + length[order], packet[some], space[some])

    def acknowledged(self, back: Direction) -> dict[int, tuple[Ints, Ints]]:
        """By packet number space: when acknowledgements reached the sender, and the largest so far."""
        cut = self._ack_cuts.get(_key(back), _NONE)
        number, space, value = (each[cut] for each in self._acks)
        row = back.of_numbers(number)
        space, value, row = space[row >= 0], value[row >= 0], row[row >= 0]
        at = back.arrived_ns[row]
        by_connection = {}
        for one in np.unique(space).tolist():
            some = (space == one) & (at < NEVER)
            order = at[some].argsort(kind="stable")
            times, largest = at[some][order], value[some][order]
            by_connection[one] = (times, np.maximum.accumulate(largest) if len(largest) else largest)
        return by_connection


def _key(direction: Direction) -> int:
    return direction.connection * 2 + (direction.name == UP)


@dataclass(frozen=True, slots=True)
class Repeats:
    """What was sent more than once. By row of the direction, by (piece, tile) pair, and by tile."""

    retransmission: NDArray[np.bool_]
    spurious: NDArray[np.bool_]  # all octets that it repeats had been in packets that arrived
    octets: int
    piece: Ints
    cell: Ints
    repeated: NDArray[np.bool_]  # by pair: had been sent before
    good: Ints  # by tile: the row that was sent first of those that arrived; `NEVER`: none did
    came_ns: Ints  # by tile: when it arrived first
    came_by: Ints  # by tile: with which piece


def repeats(direction: Direction, sent: Sent) -> Repeats:
    """Of one direction of a connection."""
    there = direction.arrived_ns[sent.row] < NEVER
    retransmission = np.zeros(len(direction.number), dtype=np.bool_)
    if _is_disjoint(sent):  # nothing was sent again: each piece is a tile
        each = np.arange(len(sent.row))
        good = np.where(there, sent.row, NEVER)
        repeated = np.zeros(len(each), dtype=np.bool_)
        return Repeats(
            retransmission, retransmission, 0, each, each, repeated, good, direction.arrived_ns[sent.row], each
        )
    edges = np.concatenate([sent.start, sent.end])
    first = tile(sent.start, sent.end, sent.row)
    good = tile(sent.start[there], sent.end[there], sent.row[there], edges).times
    arrived = tile(sent.start, sent.end, direction.arrived_ns[sent.row])
    piece, cell = cells_of(first, sent.start, sent.end)
    row = sent.row[piece]
    repeated = first.times[cell] < row
    needed = repeated & (good[cell] >= row)
    retransmission[row[repeated]] = True
    spurious = retransmission.copy()
    spurious[row[needed]] = False
    octets = int(np.diff(first.edges)[cell[repeated]].sum())
    return Repeats(retransmission, spurious, octets, piece, cell, repeated, good, arrived.times, arrived.which)


def _is_disjoint(sent: Sent) -> bool:
    """No octet is in two pieces. As sent, or (of several streams) when put in order."""
    start, end = sent.start, sent.end
    if (start[1:] >= end[:-1]).all():
        return True
    order = start.argsort(kind="stable")
    return bool((start[order[1:]] >= end[order[:-1]]).all())


def taken_for_lost(repeats: Repeats, sent: Sent, reordered: NDArray[np.bool_]) -> int:
    """Reordered packets that had arrived, or were on their way, when their octets were sent again."""
    if not repeats.repeated.any():
        return 0
    original = repeats.good[repeats.cell]
    some = repeats.repeated & (original < sent.row[repeats.piece])
    return int(reordered[np.unique(original[some])].sum())


def count_late(repeats: Repeats, sent: Sent) -> int:
    """Packets below the highest octet seen so far that brought octets not seen before."""
    if not len(sent.end):
        return 0
    top = np.append(0, np.maximum.accumulate(sent.end)[:-1])
    new = np.zeros(len(sent.row), dtype=np.bool_)
    new[repeats.piece[~repeats.repeated]] = True
    return int(((sent.start < top) & new).sum())

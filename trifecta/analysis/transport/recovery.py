"""Loss recovery: what was lost, what was sent again and whether it had to be, what told the sender, how long it took.

With both sides of the link the losses and what was needless are known, not guessed. With one side only what was seen
twice there can be counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.delivery import Passage, stacked
from trifecta.analysis.transport.ranges import NEVER, Ints, Tiles, cells_of, tile
from trifecta.analysis.transport.ways import NOTED_NS, Way, equals, groups_of, texts, ways, whole

if TYPE_CHECKING:
    import pyarrow as pa

ACKNOWLEDGEMENT, PROBE, TIMEOUT = "acknowledgement", "probe", "timeout"
FRESH_NS = 10_000_000  # how long, besides a round trip, a sender may take to act on an acknowledgement
PTO_NS = 1_000_000  # probe packets of one probe timeout (up to two, RFC 9002, 6.2.4) are sent within this
DUPLICATES = 3  # RFC 5681, 3.2
ONE_SIDE = "one side was captured: losses, needless retransmissions and what caused them cannot be known"
NO_FRAMES = "connection {}, {}: without keys nobody can say which QUIC packets repeat octets"
LARGE = "connection {}, {}: stream offsets are larger than any transfer; not decrypted rightly"


@dataclass(frozen=True, slots=True)
class Repair:
    """A lost packet whose octets were not there yet; `repaired_ns`: all of them had arrived. Null: they never did."""

    connection: int
    direction: str
    number: int
    fate: str | None
    sent_ns: int
    repaired_ns: int | None
    repaired_by: int | None  # number of the packet that brought the last of them
    transmissions: int  # how often its octets were sent, the first one counted
    cause: str | None  # what led to the packet that repaired it: acknowledgement, probe, timeout

    @property
    def took_ns(self) -> int | None:
        """From sending what was lost until its octets had arrived."""
        return None if self.repaired_ns is None else self.repaired_ns - self.sent_ns


@dataclass(frozen=True, slots=True)
class Recovery:
    """One direction of a connection. None: cannot be known."""

    connection: int
    direction: str
    transport: str
    packets: int
    carrying: int | None  # packets with octets that are repeated when lost (TCP: of payload; QUIC: STREAM, CRYPTO)
    lost: int | None  # of all packets
    lost_by_fate: dict[str, int]
    lost_carrying: int | None
    retransmissions: int | None  # packets with at least one octet that had been sent before
    retransmitted_octets: int | None
    spurious: int | None  # retransmissions whose repeated octets had all been in packets that arrived
    by_acknowledgement: int | None
    by_probe: int | None
    by_timeout: int | None
    timeouts: int | None  # times that a retransmission timeout (RTO) expired
    probes: int | None  # times that a probe timeout expired (TLP, PTO) and octets were sent again
    reordered: int | None  # arrived behind a packet that was sent later (RFC 4737, 3.3)
    reordered_taken_for_lost: int | None  # of these, sent again
    late: int  # one side: packets that filled a hole, reordered or sent again
    repairs: list[Repair] = field(default_factory=list)


def recovery(tables: Mapping[str, pa.Table], seen: Passage | None = None) -> tuple[list[Recovery], list[str]]:
    """Loss recovery of every connection and direction of a dissection, given as its tables by name, and notes."""
    packets, frames = tables["packets"], tables["frames"]
    all_ways = seen.ways if seen else ways(packets)
    notes: list[str] = []
    if any(not way.both_sides for way in all_ways.values()):
        notes.append(ONE_SIDE)
    pieces = _QuicFrames(frames)
    found = []
    for (connection, direction), way in all_ways.items():
        back = all_ways.get((connection, "down" if direction == "up" else "up"))
        if way.transport == "tcp":
            sent: _Sent | None = _tcp_sent(way)
        else:
            sent = pieces.sent(way, notes)
        found.append(_recovery(way, back, sent, packets, pieces))
    return found, notes


@dataclass(frozen=True, slots=True)
class _Sent:
    """Pieces of octets that packets hold, in the order of sending. `row` counts in the way."""

    row: Ints
    start: Ints
    end: Ints
    packet_number: Ints  # QUIC, in its space; TCP: -1
    space: Ints


def _tcp_sent(way: Way) -> _Sent:
    rows = np.flatnonzero((way.payload > 0) & (way.sequence >= 0))
    none = np.full(len(rows), -1, dtype=np.int64)
    return _Sent(rows, way.sequence[rows], way.sequence[rows] + way.payload[rows], none, none)


class _QuicFrames:
    """The frames of QUIC that recovery looks at, as arrays, looked up by connection and direction."""

    def __init__(self, frames: pa.Table) -> None:
        kinds = texts(frames, "type")
        wanted = equals(frames, "layer", "quic") & np.isin(kinds, ("STREAM", "CRYPTO", "ACK"))
        some = frames.filter(wanted)
        self.kind = kinds[wanted]
        self.direction = texts(some, "direction")
        self.space = np.unique(texts(some, "packet_space"), return_inverse=True)[1].astype(np.int64)
        columns = ("connection", "number", "stream", "offset", "length", "packet_number", "value")
        self.connection, self.number, self.stream, self.offset, self.length, self.packet, self.value = (
            whole(some, name) for name in columns
        )
        self.rows: dict[tuple[int, str], Ints] = {}
        for direction in ("up", "down"):
            mine = np.flatnonzero(self.direction == direction)
            self.rows |= {(key, direction): mine[at] for key, at in groups_of(self.connection[mine])}

    def _mine(self, way: Way) -> Ints:
        return self.rows.get((way.connection, way.direction), np.zeros(0, dtype=np.int64))

    def sent(self, way: Way, notes: list[str]) -> _Sent | None:
        """The octets that the packets of one direction hold."""
        mine = self._mine(way)
        if not len(mine):
            notes.append(NO_FRAMES.format(way.connection, way.direction))
            return None
        mine = mine[(self.kind[mine] != "ACK") & (self.length[mine] > 0)]
        row = way.of_numbers(self.number[mine])
        mine, row = mine[row >= 0], row[row >= 0]
        crypto = self.kind[mine] == "CRYPTO"
        # Handshake octets have offsets of their own in each packet number space (RFC 9000, 19.6).
        stream = np.where(crypto, -1 - self.space[mine], self.stream[mine])
        if not len(mine):
            empty = np.zeros(0, dtype=np.int64)
            return _Sent(empty, empty, empty, empty, empty)
        stack = stacked(stream, self.offset[mine], self.length[mine])
        if stack is None:
            notes.append(LARGE.format(way.connection, way.direction))
            return None
        order = np.argsort(row, kind="stable")
        start, end = stack.start[order], (stack.start + self.length[mine])[order]
        return _Sent(row[order], start, end, self.packet[mine][order], self.space[mine][order])

    def acknowledged(self, back: Way) -> dict[int, tuple[Ints, Ints]]:
        """By packet number space: when acknowledgements reached the sender, and the largest so far."""
        mine = self._mine(back)
        mine = mine[self.kind[mine] == "ACK"]
        row = back.of_numbers(self.number[mine])
        mine, row = mine[row >= 0], row[row >= 0]
        at = back.arrived_ns[row]
        found = {}
        for space in np.unique(self.space[mine]).tolist():
            some = (self.space[mine] == space) & (at < NEVER)
            order = np.argsort(at[some], kind="stable")
            times, largest = at[some][order], self.value[mine][some][order]
            found[space] = (times, np.maximum.accumulate(largest) if len(largest) else largest)
        return found


@dataclass(frozen=True, slots=True)
class _Repeats:
    """What was sent more than once. Arrays by row of the way but `cell`: (piece, tile) pairs."""

    retransmission: NDArray[np.bool_]
    spurious: NDArray[np.bool_]
    octets: int
    piece: Ints
    cell: Ints
    again: NDArray[np.bool_]  # by pair: had been sent before
    good: Tiles  # by tile: the first sent packet that arrived
    arrived: Tiles


def _repeats(way: Way, sent: _Sent) -> _Repeats:
    edges = np.concatenate([sent.start, sent.end])
    first = tile(sent.start, sent.end, sent.row)
    there = way.arrived_ns[sent.row] < NEVER
    good = tile(sent.start[there], sent.end[there], sent.row[there], edges)
    arrived = tile(sent.start, sent.end, way.arrived_ns[sent.row])
    piece, cell = cells_of(first, sent.start, sent.end)
    row = sent.row[piece]
    again = first.times[cell] < row
    needed = again & (good.times[cell] >= row)
    retransmission = np.zeros(len(way.number), dtype=bool)
    retransmission[row[again]] = True
    spurious = retransmission.copy()
    spurious[row[needed]] = False
    octets = int(np.diff(first.edges)[cell[again]].sum())
    return _Repeats(retransmission, spurious, octets, piece, cell, again, good, arrived)


def _recovery(way: Way, back: Way | None, sent: _Sent | None, packets: pa.Table, frames: _QuicFrames) -> Recovery:
    both = way.both_sides
    carrying = np.zeros(len(way.number), dtype=bool)
    repeats = None
    causes: dict[int, str] = {}
    expired: dict[str, int] = {}
    if sent is not None:
        carrying[sent.row] = True
        repeats = _repeats(way, sent)
        if both and back is not None:
            if way.transport == "tcp":
                causes, expired = _tcp_causes(way, back, sent, repeats, packets)
            else:
                causes, expired = _quic_causes(sent, repeats, way, frames.acknowledged(back))
    by = Counter(causes.values())
    reordered = _reordered(way) if both else None
    known = repeats is not None
    caused = both and known and back is not None
    return Recovery(
        connection=way.connection,
        direction=way.direction,
        transport=way.transport,
        packets=len(way.number),
        carrying=int(carrying.sum()) if known else None,
        lost=int(way.lost.sum()) if both else None,
        lost_by_fate=dict(Counter(str(fate) or "lost" for fate in way.fate[way.lost])) if both else {},
        lost_carrying=int((way.lost & carrying).sum()) if both and known else None,
        retransmissions=int(repeats.retransmission.sum()) if repeats else None,
        retransmitted_octets=repeats.octets if repeats else None,
        spurious=int(repeats.spurious.sum()) if repeats and both else None,
        by_acknowledgement=by[ACKNOWLEDGEMENT] if caused else None,
        by_probe=by[PROBE] if caused else None,
        by_timeout=by[TIMEOUT] if caused else None,
        timeouts=expired.get(TIMEOUT, 0) if caused else None,
        probes=expired.get(PROBE, 0) if caused else None,
        reordered=int(reordered.sum()) if reordered is not None else None,
        reordered_taken_for_lost=_taken_for_lost(repeats, sent, reordered),
        late=0 if both or sent is None or way.transport != "tcp" or repeats is None else _late(sent, repeats),
        repairs=_repairs(way, sent, repeats, causes) if both and sent is not None and repeats is not None else [],
    )


def _reordered(way: Way) -> NDArray[np.bool_]:
    """Packets that arrived behind one that was sent later (RFC 4737, 3.3)."""
    found = np.zeros(len(way.number), dtype=bool)
    there = np.flatnonzero(way.arrived_ns < NEVER)
    order = there[np.argsort(way.arrived_ns[there], kind="stable")]
    if len(order):
        found[order] = order < np.maximum.accumulate(order)
    return found


def _taken_for_lost(repeats: _Repeats | None, sent: _Sent | None, reordered: NDArray[np.bool_] | None) -> int | None:
    """Reordered packets that had arrived, or were on their way, when their octets were sent again."""
    if repeats is None or sent is None or reordered is None:
        return None
    row = sent.row[repeats.piece]
    original = repeats.good.times[repeats.cell]
    some = repeats.again & (original < row)
    originals = np.unique(original[some])
    return int(reordered[originals].sum())


def _late(sent: _Sent, repeats: _Repeats) -> int:
    """Packets below the highest octet seen so far that brought octets not seen before."""
    if not len(sent.end):
        return 0
    top = np.append(0, np.maximum.accumulate(sent.end)[:-1])
    new = np.zeros(len(sent.row), dtype=bool)
    new[repeats.piece[~repeats.again]] = True
    return int(((sent.start < top) & new).sum())


def _repairs(way: Way, sent: _Sent, repeats: _Repeats, causes: dict[int, str]) -> list[Repair]:
    sends = np.bincount(repeats.cell, minlength=len(repeats.arrived.times))
    found = []
    lost = way.lost[sent.row[repeats.piece]]
    rows = sent.row[repeats.piece[lost]]
    cells = repeats.cell[lost]
    at = 0
    while at < len(rows):
        row = int(rows[at])
        stop = at + int(np.searchsorted(rows[at:], row, side="right"))
        mine = cells[at:stop]
        at = stop
        times = repeats.arrived.times[mine]
        last = int(np.argmax(times))
        done = int(times[last])
        if done <= way.sent_ns[row]:
            continue  # a needless copy: nothing was missing
        carrier = int(sent.row[repeats.arrived.which[mine[last]]]) if done < NEVER else -1
        found.append(
            Repair(
                connection=way.connection,
                direction=way.direction,
                number=int(way.number[row]),
                fate=str(way.fate[row]) or None,
                sent_ns=int(way.sent_ns[row]),
                repaired_ns=done if done < NEVER else None,
                repaired_by=int(way.number[carrier]) if carrier >= 0 else None,
                transmissions=int(sends[mine].max()),
                cause=causes.get(carrier),
            )
        )
    return found


def _quic_causes(
    sent: _Sent, repeats: _Repeats, way: Way, acknowledged: dict[int, tuple[Ints, Ints]]
) -> tuple[dict[int, str], dict[str, int]]:
    """A packet is declared lost only if a later one was acknowledged (RFC 9002, 6.1); else it was a probe (6.2)."""
    causes: dict[int, str] = {}
    last: dict[int, tuple[int, int]] = {}  # by tile: packet number and space of its last transmission
    wanted = np.isin(repeats.cell, np.unique(repeats.cell[repeats.again]))
    least = int((way.arrived_ns - way.sent_ns)[way.arrived_ns < NEVER].min(initial=NOTED_NS * 2))
    slack_ns = min(NOTED_NS, least // 2)
    probes = 0
    probed_ns = -NEVER
    for piece, cell, again in zip(
        repeats.piece[wanted].tolist(), repeats.cell[wanted].tolist(), repeats.again[wanted].tolist(), strict=True
    ):
        row, number, space = int(sent.row[piece]), int(sent.packet_number[piece]), int(sent.space[piece])
        if again and cell in last and causes.get(row) != ACKNOWLEDGEMENT:
            before, its_space = last[cell]
            times, largest = acknowledged.get(its_space, (np.zeros(0), np.zeros(0)))
            at = int(np.searchsorted(times, way.sent_ns[row] + slack_ns, side="right")) - 1
            told = at >= 0 and int(largest[at]) > before
            causes[row] = ACKNOWLEDGEMENT if told else PROBE
        last[cell] = (number, space)
    for row in sorted(row for row, cause in causes.items() if cause == PROBE):
        if way.sent_ns[row] - probed_ns > PTO_NS:
            probes += 1
        probed_ns = int(way.sent_ns[row])
    return causes, {PROBE: probes}


@dataclass(slots=True)
class _Told:
    """What had reached a TCP sender, in the order of its arrival."""

    at: Ints
    acknowledged: Ints
    sacked: Ints  # the highest octet that a SACK block named so far
    duplicates: Ints  # how often this acknowledgement had come again without payload


def _told(back: Way, packets: pa.Table) -> _Told:
    there = np.flatnonzero(back.arrived_ns < NEVER)
    order = there[np.argsort(back.arrived_ns[there], kind="stable")]
    some = packets.take(back.row[order])
    acknowledged = whole(some, "acknowledged", 0)
    highest = np.zeros(len(order), dtype=np.int64)
    for at, text in enumerate(texts(some, "sack")):
        if text:
            highest[at] = max((right for _, right in json.loads(text)), default=0)
    plain = back.payload[order] == 0
    duplicates = np.zeros(len(order), dtype=np.int64)
    same = np.append(False, (acknowledged[1:] == acknowledged[:-1]) & plain[1:])
    starts = np.flatnonzero(~same)
    duplicates[:] = np.arange(len(order)) - starts[np.cumsum(~same) - 1] if len(order) else 0
    if len(order):
        acknowledged, highest = np.maximum.accumulate(acknowledged), np.maximum.accumulate(highest)
    return _Told(back.arrived_ns[order], acknowledged, highest, duplicates)


def _tcp_causes(
    way: Way, back: Way, sent: _Sent, repeats: _Repeats, packets: pa.Table
) -> tuple[dict[int, str], dict[str, int]]:
    """What told the sender: SACK or three duplicates (RFC 6675, 8985), a tail loss probe (RFC 8985, 7), the timer."""
    told = _told(back, packets)
    delays = [(one.arrived_ns - one.sent_ns)[one.arrived_ns < NEVER] for one in (way, back)]
    round_trip_ns = sum(int(one.min()) for one in delays if len(one))
    fresh_ns, slack_ns = round_trip_ns + FRESH_NS, min(NOTED_NS, round_trip_ns // 4)
    top = np.maximum.accumulate(sent.end) if len(sent.end) else sent.end
    causes: dict[int, str] = {}
    expired = {TIMEOUT: 0, PROBE: 0}
    recovery_point = probed_at = -1
    for piece in np.flatnonzero(repeats.retransmission[sent.row]).tolist():
        row, start, end = int(sent.row[piece]), int(sent.start[piece]), int(sent.end[piece])
        now = int(way.sent_ns[row])
        at = int(np.searchsorted(told.at, now + slack_ns, side="right")) - 1
        una = int(told.acknowledged[at]) if at >= 0 else 0
        fresh = at >= 0 and now - int(told.at[at]) <= fresh_ns
        evidence = at >= 0 and (int(told.sacked[at]) > start or (int(told.duplicates[at]) >= DUPLICATES))
        highest = int(top[piece - 1]) if piece else end
        if fresh and evidence:
            causes[row] = ACKNOWLEDGEMENT
        elif fresh and una < recovery_point:
            causes[row] = TIMEOUT  # what an expired timer declared lost, sent as acknowledgements come
        elif end == highest and probed_at != una and start < highest:
            causes[row], probed_at = PROBE, una
            expired[PROBE] += 1
        elif fresh:
            causes[row] = ACKNOWLEDGEMENT
        else:
            causes[row], recovery_point = TIMEOUT, highest
            expired[TIMEOUT] += 1
    return causes, expired

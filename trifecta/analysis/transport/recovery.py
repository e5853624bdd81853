"""Loss recovery: what was lost, what was sent again and whether it had to be, what told the sender, how long it took.

With both sides of the link the losses and what was needless are known, not guessed. With one side only what was seen
twice there can be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.delivery import Passage
from trifecta.analysis.transport.directions import LACKS, Direction, directions
from trifecta.analysis.transport.ranges import NEVER
from trifecta.analysis.transport.rows import count
from trifecta.analysis.transport.transmissions import (
    QuicFrames,
    Repeats,
    Sent,
    count_late,
    repeats,
    taken_for_lost,
    tcp_sent,
)
from trifecta.analysis.transport.triggers import (
    ACKNOWLEDGEMENT,
    PROBE,
    TIMEOUT,
    Words,
    quic_causes,
    tcp_causes,
)

if TYPE_CHECKING:
    import pyarrow as pa

ONE_SIDE = "one side was captured: losses, needless retransmissions and what caused them cannot be known"
NO_FRAMES = "connection {}, {}: without keys it is unknown which QUIC packets repeat octets"
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
    late: int | None  # TCP, one side: packets that filled a hole, reordered or sent again
    repairs: list[Repair] = field(default_factory=list)


def recovery(tables: Mapping[str, pa.Table], passage: Passage | None = None) -> tuple[list[Recovery], list[str]]:
    """Loss recovery of every connection and direction of a dissection, given as its tables by name, and notes."""
    packets, frames = tables["packets"], tables["frames"]
    all_directions = passage.directions if passage else directions(packets)
    one_side = passage.one_side if passage else any(not direction.both_sides for direction in all_directions.values())
    notes = [ONE_SIDE] if one_side else []
    notes += [LACKS.format(one) for one in sorted(passage.lacking)] if passage else []
    pieces, words = QuicFrames(frames, tables["connections"]), Words(packets)
    recoveries = []
    for (connection, name), direction in all_directions.items():
        sent: Sent | None = None
        if direction.transport == "tcp":
            sent = tcp_sent(direction)
        elif not pieces.known(direction):
            notes.append(NO_FRAMES.format(connection, name))
        else:
            sent = pieces.sent(direction)
            if sent is None:
                notes.append(LARGE.format(connection, name))
        back = all_directions.get((connection, "down" if name == "up" else "up"))
        recoveries.append(_recovery(direction, back, sent, pieces, words))
    return recoveries, notes


def _recovery(
    direction: Direction, back: Direction | None, sent: Sent | None, frames: QuicFrames, words: Words
) -> Recovery:
    two_sided = direction.both_sides
    carrying = np.zeros(len(direction.number), dtype=bool)
    repeated = None
    causes: dict[int, str] = {}
    expired: dict[str, int] = {}
    if sent is not None:
        carrying[sent.row] = True
        repeated = repeats(direction, sent)
        if two_sided and back is not None and repeated.repeated.any():
            if direction.transport == "tcp":
                causes, expired = tcp_causes(direction, back, sent, repeated, words)
            else:
                causes, expired = quic_causes(sent, repeated, direction, frames.acknowledged(back))
    by = Counter(causes.values())
    reordered = _reordered(direction) if two_sided else None
    caused = two_sided and repeated is not None and back is not None
    guessed = not two_sided and direction.transport == "tcp"
    return Recovery(
        connection=direction.connection,
        direction=direction.name,
        transport=direction.transport,
        packets=len(direction.number),
        carrying=count(carrying) if repeated else None,
        lost=count(direction.lost) if two_sided else None,
        lost_by_fate=dict(Counter(str(fate) or "lost" for fate in direction.fate[direction.lost])) if two_sided else {},
        lost_carrying=count(direction.lost & carrying) if two_sided and repeated else None,
        retransmissions=count(repeated.retransmission) if repeated else None,
        retransmitted_octets=repeated.octets if repeated else None,
        spurious=count(repeated.spurious) if repeated and two_sided else None,
        by_acknowledgement=by[ACKNOWLEDGEMENT] if caused else None,
        by_probe=by[PROBE] if caused else None,
        by_timeout=by[TIMEOUT] if caused else None,
        timeouts=expired.get(TIMEOUT, 0) if caused else None,
        probes=expired.get(PROBE, 0) if caused else None,
        reordered=count(reordered) if reordered is not None else None,
        reordered_taken_for_lost=taken_for_lost(repeated, sent, reordered)
        if repeated and sent and reordered is not None
        else None,
        late=count_late(repeated, sent) if repeated and sent and guessed else None,
        repairs=_repairs(direction, sent, repeated, causes) if two_sided and sent and repeated else [],
    )


def _reordered(direction: Direction) -> NDArray[np.bool_]:
    """Packets that arrived behind one that was sent later (RFC 4737, 3.3)."""
    late = np.zeros(len(direction.number), dtype=bool)
    there = (direction.arrived_ns < NEVER).nonzero()[0]
    times = direction.arrived_ns[there]
    if (times[1:] < times[:-1]).any():
        order = there[times.argsort(kind="stable")]
        late[order] = order < np.maximum.accumulate(order)
    return late


def _repairs(direction: Direction, sent: Sent, repeated: Repeats, causes: dict[int, str]) -> list[Repair]:
    repairs: list[Repair] = []
    lost = direction.lost[sent.row[repeated.piece]]
    if not lost.any():
        return repairs
    sends = np.bincount(repeated.cell, minlength=len(repeated.came_ns))
    rows = sent.row[repeated.piece[lost]]
    cells = repeated.cell[lost]
    at = 0
    while at < len(rows):
        row = int(rows[at])
        stop = at + int(rows[at:].searchsorted(row, side="right"))
        mine = cells[at:stop]
        at = stop
        times = repeated.came_ns[mine]
        last = int(np.argmax(times))
        done = int(times[last])
        if done <= direction.sent_ns[row]:
            continue  # a needless copy: nothing was missing
        carrier = int(sent.row[repeated.came_by[mine[last]]]) if done < NEVER else -1
        repairs.append(
            Repair(
                connection=direction.connection,
                direction=direction.name,
                number=int(direction.number[row]),
                fate=str(direction.fate[row]) or None,
                sent_ns=int(direction.sent_ns[row]),
                repaired_ns=done if done < NEVER else None,
                repaired_by=int(direction.number[carrier]) if carrier >= 0 else None,
                transmissions=int(sends[mine].max()),
                cause=causes.get(carrier),
            )
        )
    return repairs

"""The packets of a connection in one direction: when each was sent, and whether and when it arrived.

With both sides of a link both are known. A capture of one side has one time for both: holes are then those that were
seen there, which are the receiver's only if it was captured at the receiver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.ranges import NEVER, Ints

if TYPE_CHECKING:
    import pyarrow as pa

UP, DOWN = "up", "down"
SENDER, RECEIVER = {UP: "a", DOWN: "b"}, {UP: "b", DOWN: "a"}
LOST_FATES = ("lost", "queue_dropped", "memory_dropped", "send_error", "corrupted")
NOTED_NS = 100_000  # so much later a link of earlier versions noted that a packet had left
LACKS = "connection {}: packets are missing in its capture, so what they would count or time is not known"
_COPY = np.uint64(0x7FFF << 48)

Texts = NDArray[np.object_]


def integer_column(table: pa.Table, name: str, null: int = -1) -> Ints:
    """A column of integers; a null is `null`."""
    import pyarrow as pa_

    column: Any = table.column(name)
    return np.asarray(column.cast(pa_.int64(), safe=False).fill_null(null).to_numpy(), dtype=np.int64)


def texts(table: pa.Table, name: str) -> Texts:
    """A column of text; a null is an empty text."""
    column: Any = table.column(name)
    return np.asarray(column.fill_null("").to_numpy(), dtype=np.object_)


def coded(table: pa.Table, name: str) -> tuple[Ints, Texts]:
    """A column of text as codes, and what they stand for; a null is an empty text."""
    column: Any = table.column(name)
    encoded: Any = column.fill_null("").combine_chunks().dictionary_encode()
    if not hasattr(encoded, "indices"):  # a table without a row has no chunk either
        encoded = encoded.combine_chunks()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return codes, np.array([*encoded.dictionary.to_pylist(), None], dtype=np.object_)[:-1]


def equals(table: pa.Table, name: str, value: str) -> NDArray[np.bool_]:
    """Where a column of text has this value; never where it is null."""
    import pyarrow.compute as pc

    compute: Any = pc
    return np.asarray(compute.equal(table.column(name), value).fill_null(False).to_numpy(), dtype=np.bool_)


def lacks_packets(truncated: object) -> bool:
    """Whether the column `truncated` of a connection says that packets of it are not in the capture."""
    return "packets" in str(truncated or "").split(",")


def lacking(connections: pa.Table) -> frozenset[int]:
    """The connections whose packets are not all in the capture."""
    rows = zip(integer_column(connections, "connection").tolist(), texts(connections, "truncated"), strict=True)
    return frozenset(number for number, truncated in rows if lacks_packets(truncated))


@dataclass(frozen=True, slots=True)
class Direction:
    """Packets in the order in which they were sent; `arrived_ns` is `NEVER` where no good copy arrived."""

    connection: int
    name: str  # up or down
    transport: str
    both_sides: bool
    number: Ints  # at the sending side
    packet_id: Ints
    sent_ns: Ints
    arrived_ns: Ints
    payload: Ints
    wire: Ints  # octets with all headers; -1: not known
    sequence: Ints  # TCP: of the first octet of payload
    fate: Texts
    lost: NDArray[np.bool_]
    row: Ints  # in the table of packets

    @property
    def ends_ns(self) -> int:
        """When the last packet of this direction arrived, or was sent."""
        arrived = self.arrived_ns[self.arrived_ns < NEVER]
        last = int(arrived.max()) if len(arrived) else 0
        return max(last, int(self.sent_ns.max()) if len(self.sent_ns) else 0)

    def of_numbers(self, numbers: Ints) -> Ints:
        """Rows of the packets with these numbers; -1 where there is none."""
        own = self.number
        if not len(own):
            return np.full(len(numbers), -1, dtype=np.int64)
        order = None
        if not (own[1:] >= own[:-1]).all():
            order = own.argsort(kind="stable")
            own = own[order]
        at = np.minimum(own.searchsorted(numbers), len(own) - 1)
        rows = at if order is None else order[at]
        return np.where(own[at] == numbers, rows, -1)


def directions(packets: pa.Table) -> dict[tuple[int, str], Direction]:
    """All directions of all connections of a table of packets."""
    by_key: dict[tuple[int, str], Direction] = {}
    columns = _Columns(packets)
    for direction in (UP, DOWN):
        by_key |= _directions(columns, direction)
    return by_key


class _Columns:
    """What is looked at of each packet; text as codes into its values, with the empty text for a null."""

    def __init__(self, packets: pa.Table) -> None:
        self.number, self.packet_id, self.time_ns, self.payload, self.wire, self.sequence, self.connection = (
            integer_column(packets, name)
            for name in ("number", "packet_id", "time_ns", "payload_bytes", "wire_bytes", "sequence", "connection")
        )
        self.tcp = equals(packets, "transport", "tcp")
        self.side = {name: equals(packets, "side", name) for name in ("a", "b")}
        self.one_side: NDArray[np.bool_] = packets.column("side").is_null().to_numpy()
        self.direction = {name: equals(packets, "direction", name) for name in (UP, DOWN)}
        self.fate, self.fates = coded(packets, "fate")
        self.flag, self.flags = coded(packets, "flags")


def _directions(columns: _Columns, direction: str) -> dict[tuple[int, str], Direction]:
    """Those of one direction, worked out for all connections at once and then cut."""
    mine = (columns.direction[direction] & (columns.connection >= 0)).nonzero()[0]
    connections = np.unique(columns.connection[mine])
    if not len(connections):
        return {}
    alone = np.isin(connections, columns.connection[mine[columns.one_side[mine]]])
    sent = mine[columns.side[SENDER[direction]][mine] | columns.one_side[mine]]
    # Of equal times and numbers those of a side come first.
    by = (columns.one_side, columns.number, columns.time_ns, columns.connection)
    sent = sent[np.lexsort(tuple(each[sent] for each in by))]
    cuts = columns.connection[sent].searchsorted(np.append(connections, connections[-1] + 1)).tolist()
    group = np.repeat(np.arange(len(connections)), np.diff(cuts))
    two_sided = ~alone[group]
    sent_ns, code = columns.time_ns[sent], columns.fate[sent]
    arrived = mine[columns.side[RECEIVER[direction]][mine]]
    arrived_ns = np.where(two_sided, _arrivals(columns, sent, arrived), sent_ns)
    missing = arrived_ns == NEVER
    lost = np.isin(columns.fates, LOST_FATES)[code] & missing
    # No word of the link: what is missing on the far side is lost once something sent later is there.
    last = np.full(len(connections), -1, dtype=np.int64)
    there = (~missing).nonzero()[0]
    np.maximum.at(last, group[there], there)
    lost |= two_sided & (columns.fates == "")[code] & missing & (np.arange(len(sent)) < last[group])
    sequence = columns.sequence[sent]
    # SYN takes the octet before the first of payload (RFC 9293, 3.4).
    synchronizes = np.array(["SYN" in one for one in columns.flags], dtype=np.int64)[columns.flag[sent]]
    parts: tuple[Any, ...] = (
        columns.number[sent],
        columns.packet_id[sent],
        sent_ns,
        arrived_ns,
        columns.payload[sent],
        columns.wire[sent],
        np.where(sequence < 0, sequence, sequence + synchronizes),
        columns.fates[code],
        lost,
        sent,
    )
    directions = {}
    for at, (connection, one_side) in enumerate(zip(connections.tolist(), alone.tolist(), strict=True)):
        cut = slice(cuts[at], cuts[at + 1])
        tcp = cuts[at + 1] > cuts[at] and columns.tcp[sent[cuts[at]]]
        directions[connection, direction] = Direction(
            connection, direction, "tcp" if tcp else "udp", not one_side, *(part[cut] for part in parts)
        )
    return directions


def _arrivals(columns: _Columns, sent: Ints, arrived: Ints) -> Ints:
    """When the first good copy of each packet arrived. A corrupted one is thrown away by the receiver's checksum."""
    good = arrived[(columns.fates != "corrupted")[columns.fate[arrived]]]
    # Both in the order of connection and packet, what arrived by time, so that each finds the first of its kind.
    rows = np.concatenate([good, sent])
    wanted = np.arange(len(rows)) >= len(good)
    of, original = columns.connection[rows], _original(columns.packet_id[rows])
    order = np.lexsort((columns.time_ns[rows], wanted, original, of))
    of, original, wanted = of[order], original[order], wanted[order]
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (of[1:] != of[:-1]) | (original[1:] != original[:-1])
    first = begins.nonzero()[0][begins.cumsum() - 1]
    times = np.where(wanted[first], NEVER, columns.time_ns[rows][order][first])
    filled = np.empty(len(rows), dtype=np.int64)
    filled[order] = times
    return filled[len(good) :]


def _original(packet_id: Ints) -> NDArray[np.uint64]:
    return packet_id.astype(np.uint64) & ~_COPY

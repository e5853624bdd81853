"""The packets of a connection in one direction: when each was sent, and whether and when it arrived.

With both sides of a link both are known. A capture of one side has one time for both: holes are then those that were
seen there, which are the receiver's only if it was captured at the receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
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
_COPY = np.uint64(0x7FFF << 48)

Texts = NDArray[np.object_]


def whole(table: pa.Table, name: str, null: int = -1) -> Ints:
    """A column of integers; a null is `null`."""
    import pyarrow as pa_

    column: Any = table.column(name)
    return np.asarray(column.cast(pa_.int64(), safe=False).fill_null(null).to_numpy(), dtype=np.int64)


def texts(table: pa.Table, name: str) -> Texts:
    """A column of text; a null is an empty text."""
    column: Any = table.column(name)
    return np.asarray(column.fill_null("").to_numpy(), dtype=np.object_)


def equals(table: pa.Table, name: str, value: str) -> NDArray[np.bool_]:
    """Where a column of text has this value; never where it is null."""
    import pyarrow.compute as pc

    compute: Any = pc
    return np.asarray(compute.equal(table.column(name), value).fill_null(False).to_numpy(), dtype=np.bool_)


def groups_of(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Each key with the rows that have it, in their order."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for rows in np.split(order, cuts):
        yield int(keys[rows[0]]), rows


@dataclass(frozen=True, slots=True)
class Way:
    """Packets in the order in which they were sent; `arrived_ns` is `NEVER` where no good copy arrived."""

    connection: int
    direction: str
    transport: str
    both_sides: bool
    number: Ints  # at the sending side
    packet_id: Ints
    sent_ns: Ints
    arrived_ns: Ints
    payload: Ints
    sequence: Ints  # TCP: of the first octet of payload
    fate: Texts
    flags: Texts
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
        order = np.argsort(self.number, kind="stable")
        if not len(order):
            return np.full(len(numbers), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.number[order], numbers), len(order) - 1)
        rows = order[at]
        return np.where(self.number[rows] == numbers, rows, -1)


def ways(packets: pa.Table) -> dict[tuple[int, str], Way]:
    """All directions of all connections of a table of packets."""
    found: dict[tuple[int, str], Way] = {}
    columns: dict[str, Any] = {
        name: whole(packets, name)
        for name in ("number", "packet_id", "time_ns", "payload_bytes", "sequence", "connection")
    }
    columns |= {name: texts(packets, name) for name in ("fate", "flags")}
    columns["tcp"] = equals(packets, "transport", "tcp")
    side = {name: equals(packets, "side", name) for name in ("a", "b")}
    one_side = packets.column("side").is_null().to_numpy()
    for direction in (UP, DOWN):
        mine = np.flatnonzero(equals(packets, "direction", direction))
        for connection, at in groups_of(columns["connection"][mine]):
            rows = mine[at]
            if connection < 0:
                continue
            alone = rows[one_side[rows]]
            sent = np.concatenate([rows[side[SENDER[direction]][rows]], alone])
            arrived = rows[side[RECEIVER[direction]][rows]]
            found[connection, direction] = _way(
                (connection, direction), columns, sent, arrived, both_sides=not len(alone)
            )
    return found


def _way(key: tuple[int, str], columns: dict[str, Any], sent: Ints, arrived: Ints, *, both_sides: bool) -> Way:
    sent = sent[np.lexsort((columns["number"][sent], columns["time_ns"][sent]))]
    sent_ns = columns["time_ns"][sent]
    fate = columns["fate"][sent]
    arrived_ns = _arrivals(columns, sent, arrived) if both_sides else sent_ns.copy()
    lost = np.isin(fate, LOST_FATES) & (arrived_ns == NEVER)
    if both_sides:
        # No word of the link: what is missing on the far side is lost once something sent later is there.
        later = np.flatnonzero(arrived_ns < NEVER)
        last = int(later[-1]) if len(later) else -1
        lost |= (fate == "") & (arrived_ns == NEVER) & (np.arange(len(sent)) < last)
    sequence = columns["sequence"][sent]
    synchronizes = np.array(["SYN" in one for one in columns["flags"][sent]], dtype=np.int64)
    return Way(
        connection=key[0],
        direction=key[1],
        transport="tcp" if len(sent) and bool(columns["tcp"][sent[0]]) else "udp",
        both_sides=both_sides,
        number=columns["number"][sent],
        packet_id=columns["packet_id"][sent],
        sent_ns=sent_ns,
        arrived_ns=arrived_ns,
        payload=columns["payload_bytes"][sent],
        # SYN takes the octet before the first of payload (RFC 9293, 3.4).
        sequence=np.where(sequence < 0, sequence, sequence + synchronizes),
        fate=fate,
        flags=columns["flags"][sent],
        lost=lost,
        row=sent,
    )


def _arrivals(columns: dict[str, Any], sent: Ints, arrived: Ints) -> Ints:
    """When the first good copy of each packet arrived. A corrupted one is thrown away by the receiver's checksum."""
    good = arrived[columns["fate"][arrived] != "corrupted"]
    good = good[np.argsort(columns["time_ns"][good], kind="stable")]
    there, first = np.unique(_original(columns["packet_id"][good]), return_index=True)
    wanted = _original(columns["packet_id"][sent])
    times = np.full(len(sent), NEVER, dtype=np.int64)
    if len(there):
        at = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
        found = there[at] == wanted
        times[found] = columns["time_ns"][good][first][at[found]]
    return times


def _original(packet_id: Ints) -> NDArray[np.uint64]:
    return packet_id.astype(np.uint64) & ~_COPY

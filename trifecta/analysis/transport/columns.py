"""The tables of a dissection as numpy columns, cut by connection.

Built once for all connections, so that a million packets take no loop in Python. Null is `NULL` (-1) in every column of
integers, for nothing that is counted is negative; text is a code with its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from trifecta.analysis.transport import reading
from trifecta.analysis.transport.directions import lacks_packets
from trifecta.analysis.transport.group_by import begins, first_rows, frontiers
from trifecta.analysis.transport.rows import NULL, Bools, Group, Ints, Rows

if TYPE_CHECKING:
    import pyarrow as pa

_Any = TypeVar("_Any")
SIDE_A, SIDE_B = "a", "b"
_COPY = 0x7FFF << 48  # in a packet_id: the number of the copy (docs/architecture.md, 1.3)


@dataclass(frozen=True, eq=False)
class Connection:
    """One connection: its row of `connections`, and its rows of the other tables in the order of time."""

    number: int
    row: Mapping[str, Any]
    packets: Rows
    frames: Rows
    messages: Rows
    others: list[Connection] = field(default_factory=list, repr=False)  # the list that `connections` gives
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def tcp(self) -> bool:
        """TCP, else QUIC over UDP."""
        return bool(self.row["transport"] == "tcp")

    @cached_property
    def both_sides(self) -> bool:
        """Both sides of a link were captured."""
        return bool(len(self.packets) and self.packets["both"][0])

    @property
    def starts(self) -> bool:
        """The capture has the connection's first packet."""
        return "start" not in str(self.row["truncated"] or "").split(",")

    @property
    def lacks_packets(self) -> bool:
        """Packets of it are not in the capture: nothing that counts or times them can be known."""
        return lacks_packets(self.row["truncated"])

    def sent(self, *, up: bool) -> Rows:
        """Packets of a direction as their sender's side saw them (of one side: as that did)."""
        return self._at(up, SIDE_A if up else SIDE_B)

    def arrived(self, *, up: bool) -> Rows:
        """Packets of a direction as their receiver's side saw them (of one side: as that did)."""
        return self._at(up, SIDE_B if up else SIDE_A)

    def at_client(self) -> Rows:
        """Packets of both directions at side `a`, or at the only side."""
        return self._once(("near", SIDE_B), _not_of) if self.both_sides else self.packets

    def at_server(self) -> Rows:
        """Packets of both directions at side `b`, or at the only side."""
        return self._once(("far", SIDE_B), _of) if self.both_sides else self.packets

    def _at(self, up: bool, side: str) -> Rows:
        return self._once((up, side), _of_side)

    def frames_of(self, layer: str, *, up: bool | None = None) -> Rows:
        """Frames of a layer, of one direction if asked."""

        key = (layer, up)
        rows: Rows | None = self._known.get(key)
        if rows is None:
            rows = self._known[key] = self.frames.pick(key, partial(_of_layer, *key))
        return rows

    def _once(self, key: tuple[Any, ...], mask: Callable[..., Bools]) -> Rows:
        rows: Rows | None = self._known.get(key)
        if rows is None:
            rows = self._known[key] = self.packets.pick(key, partial(mask, *key))
        return rows

    def keep(self, key: Any, work: Callable[[], _Any]) -> _Any:
        """What ``work`` gives; worked out once for each key."""
        if key not in self._known:
            self._known[key] = work()
        return cast(_Any, self._known[key])

    def with_others(self, key: Any, work: Callable[[Sequence[Connection]], Sequence[_Any]]) -> _Any:
        """What ``work`` finds for this connection; it is asked once for all, and gives a result for each."""
        if key not in self._known:
            for one, result in zip(self.others, work(self.others), strict=True):
                one._known[key] = result
        return cast(_Any, self._known[key])

    def arrivals(self, numbers: Ints, *, up: bool) -> Ints:
        """When packets of a direction, by their number at the sender's side, reached the receiver's; NULL: never.

        With one side only this is the time at that side. Of copies that the link made, the first counts.
        """
        sent = self.sent(up=up)
        alone = (np.zeros(len(rows), dtype=np.int64) for rows in (sent, numbers))
        return _values_of_rows(self._arrivals(up), first_rows(next(alone), sent["number"], next(alone), numbers))

    def carriers(self, frames: Rows, *, up: bool) -> Ints:
        """The packets that hold these frames, by their place in `sent` of all connections together; NULL: none."""
        sent = self.sent(up=up).together
        return frames.derived(
            "packet", lambda of: first_rows(sent["connection"], sent["number"], of["connection"], of["number"])
        )

    def came(self, frames: Rows, *, up: bool) -> Ints:
        """`arrivals` of the packets that hold these frames."""
        self.carriers(frames, up=up)
        self._arrivals(up)
        sent = self.sent(up=up).together
        return frames.derived("arrived_ns", lambda of: _values_of_rows(sent["arrived_ns"], of["packet"]))

    def _arrivals(self, up: bool) -> Ints:
        arrived = self.arrived(up=up).together
        return self.sent(up=up).derived("arrived_ns", lambda of: _first_arrivals(of, arrived))


def _first_arrivals(sent: Rows, arrived: Rows) -> Ints:
    """When the first copy of each packet arrived, which are in the order of time; with one side: when it passed."""
    copies = (rows["packet_id"] & ~_COPY for rows in (arrived, sent))
    first = first_rows(arrived["connection"], next(copies), sent["connection"], next(copies))
    return np.where(sent["both"] == 0, sent["time_ns"], _values_of_rows(arrived["time_ns"], first))


def _values_of_rows(values: Ints, rows: Ints) -> Ints:
    """The values of rows; NULL where there is none."""
    return np.where(rows >= 0, values[rows], NULL) if len(values) else np.full(len(rows), NULL, dtype=np.int64)


def _of_side(up: bool, side: str, rows: Rows) -> Bools:
    of: Bools = rows["up"] == int(up)
    here: Bools = of & ((rows["both"] == 0) | rows.is_in("side", side))
    return here


def _of(_: str, side: str, rows: Rows) -> Bools:
    return rows.is_in("side", side)


def _not_of(_: str, side: str, rows: Rows) -> Bools:
    return ~rows.is_in("side", side)


def _of_layer(layer: str, up: bool | None, rows: Rows) -> Bools:
    of = rows.is_in("layer", layer)
    return of if up is None else of & (rows["up"] == int(up))


def octets(rows: Rows) -> Rows:
    """Of packets of TCP those with octets whose place is known."""
    return rows.pick("octets", lambda of: (of["payload_bytes"] > 0) & (of["sequence"] != NULL))


def reached(rows: Rows) -> Ints:
    """After each of these `octets`, as they arrived: the octet below which everything had.

    They begin with a connection's first octet where the capture has it, else with the lowest that was seen.
    """
    return rows.derived("reached", _reached)


def _reached(rows: Rows) -> Ints:
    of, start = rows["connection"], rows["sequence"]
    first = begins(of).nonzero()[0]
    least = np.minimum.reduceat(start, first) if len(first) else start
    origin = np.where(rows["from start"] == 1, 1, least.repeat(np.diff(np.append(first, len(rows)))))
    rows.add("origin", origin)
    return frontiers(of, start, start + rows["payload_bytes"], origin)


def acks(rows: Rows) -> Rows:
    """Of packets of TCP those that acknowledge something known."""
    return rows.pick("acks", lambda of: (of["ack"] == 1) & (of["acknowledged"] != NULL))


def application_acks(frames: Rows) -> Rows:
    """Of frames of QUIC the acknowledgements of 1-RTT (and 0-RTT) packets."""

    def mask(of: Rows) -> Bools:
        known: Bools = of["value"] != NULL
        return known & of.is_in("packet_space", "application") & of.is_in("type", "ACK", "ACK_ECN")

    return frames.pick("application acks", mask)


def connections(packets: pa.Table, frames: pa.Table, messages: pa.Table, table: pa.Table) -> list[Connection]:
    """Every connection of a dissection with its rows."""
    rows = table.to_pylist()
    numbers = np.array([int(row["connection"]) for row in rows], dtype=np.int64)
    begun = np.array(["start" not in str(row["truncated"] or "").split(",") for row in rows], dtype=np.bool_)
    packet_rows = _with_both(_ordered(reading.packets(packets)))
    packet_rows.add("from start", np.isin(packet_rows["connection"], numbers[begun]).astype(np.int64))
    held = _ordered(reading.frames(frames))
    two_sided = np.unique(packet_rows["connection"][packet_rows["both"] == 1])
    held.add("both", np.isin(held["connection"], two_sided).astype(np.int64))
    held.add("http1", np.isin(held["connection"], numbers[[row["protocol"] == "h1" for row in rows]]).astype(np.int64))
    of_packets, of_frames = _group(packet_rows, numbers), _group(held, numbers)
    of_messages = _group(_ordered(reading.messages(messages)), numbers)
    by_number: list[Connection] = []
    for at, row in enumerate(rows):
        by_number.append(
            Connection(int(row["connection"]), row, of_packets.of(at), of_frames.of(at), of_messages.of(at), by_number)
        )
    return by_number


def _ordered(rows: Rows) -> Rows:
    """Rows by connection, in the order of time within each (stable: rows of one time keep their order)."""
    numbers = rows["connection"]
    order = np.lexsort((rows["time_ns"], numbers) if rows.has("time_ns") else (numbers,))
    return rows if np.array_equal(order, np.arange(len(order))) else rows.where(order)


def _group(rows: Rows, numbers: Ints) -> Group:
    of = rows["connection"]
    return Group(rows, of.searchsorted(numbers), of.searchsorted(numbers, side="right"))


def _with_both(rows: Rows) -> Rows:
    """Packets with a column that tells whether both sides of a link were captured of their connection."""
    numbers = rows["connection"]
    on_side = [np.isin(numbers, np.unique(numbers[rows.is_in("side", side)])) for side in (SIDE_A, SIDE_B)]
    rows.add("both", (on_side[0] & on_side[1]).astype(np.int64))
    return rows

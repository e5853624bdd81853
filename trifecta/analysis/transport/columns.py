"""The tables of a dissection as numpy columns, cut by connection.

Built once for all connections, so that a million packets take no loop in Python. Null is `NULL` (-1) in every column of
integers, for nothing that is counted is negative; text is a code with its labels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_Any = TypeVar("_Any")
NULL = -1
SIDE_A, SIDE_B = "a", "b"
# RFC 9000 section 13.2.1: packets with other frames than these are ack-eliciting.
_NOT_ELICITING = {"ACK", "ACK_ECN", "PADDING", "CONNECTION_CLOSE"}
_PURE_ACK = {"ACK", "ACK_ECN", "PADDING"}
_COPY = 0x7FFF << 48  # in a packet_id: the number of the copy (docs/architecture.md, 1.3)


class Rows:
    """Rows of one table: columns of integers (null: -1, true: 1), and the labels of those that stand for text.

    A choice of rows costs nothing until one of its columns is asked for, and then that column alone.
    """

    __slots__ = ("_chosen", "_columns", "_length", "_parent", "labels")

    def __init__(self, columns: Mapping[str, Ints], labels: Mapping[str, Mapping[str, int]]) -> None:
        self._columns = dict(columns)
        self._parent: Rows | None = None
        self._chosen: Ints | slice = slice(None)
        self._length = len(next(iter(columns.values())))
        self.labels = labels

    def __getitem__(self, name: str) -> Ints:
        if name not in self._columns:
            if self._parent is None:
                raise KeyError(name)
            self._columns[name] = self._parent[name][self._chosen]
        return self._columns[name]

    def __len__(self) -> int:
        return self._length

    def where(self, mask: Bools | Ints | slice) -> Rows:
        """The rows that a mask, indices or a slice choose."""
        rows = Rows.__new__(Rows)
        rows._columns, rows._parent, rows.labels = {}, self, self.labels
        if isinstance(mask, slice):
            rows._chosen, rows._length = mask, len(range(*mask.indices(self._length)))
        else:
            rows._chosen = cast(Ints, np.flatnonzero(mask) if mask.dtype == np.bool_ else mask)
            rows._length = len(rows._chosen)
        return rows

    def all(self) -> dict[str, Ints]:
        """The columns that are there."""
        return dict(self._columns)

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._columns or (self._parent is not None and self._parent.has(name))

    def is_in(self, name: str, *texts: str) -> Bools:
        """Where a column of text is one of these."""
        codes = [self.labels[name][text] for text in texts if text in self.labels[name]]
        column = self[name]
        found = np.zeros(len(column), dtype=np.bool_) if not codes else cast(Bools, column == codes[0])
        for code in codes[1:]:  # few: quicker than `isin`, which sorts
            found |= column == code
        return found


@dataclass(frozen=True, eq=False)
class Connection:
    """One connection: its row of `connections`, and its rows of the other tables in the order of time."""

    number: int
    row: Mapping[str, Any]
    packets: Rows
    frames: Rows
    messages: Rows
    _known: dict[Any, Any] = field(default_factory=dict)

    @property
    def tcp(self) -> bool:
        """TCP, else QUIC over UDP."""
        return bool(self.row["transport"] == "tcp")

    @cached_property
    def both_sides(self) -> bool:
        """Both sides of a link were captured."""
        sides = self.packets
        return bool(sides.is_in("side", SIDE_A).any() and sides.is_in("side", SIDE_B).any())

    @property
    def starts(self) -> bool:
        """The capture has the connection's first packet."""
        return "start" not in str(self.row["truncated"] or "").split(",")

    def sent(self, *, up: bool) -> Rows:
        """Packets of a direction as their sender's side saw them (of one side: as that did)."""
        return self._at(up, SIDE_A if up else SIDE_B)

    def arrived(self, *, up: bool) -> Rows:
        """Packets of a direction as their receiver's side saw them (of one side: as that did)."""
        return self._at(up, SIDE_B if up else SIDE_A)

    def at_client(self) -> Rows:
        """Packets of both directions at side `a`, or at the only side."""
        return self._once("client", lambda: ~self.packets.is_in("side", SIDE_B)) if self.both_sides else self.packets

    def at_server(self) -> Rows:
        """Packets of both directions at side `b`, or at the only side."""
        return self._once("server", lambda: self.packets.is_in("side", SIDE_B)) if self.both_sides else self.packets

    def _at(self, up: bool, side: str) -> Rows:
        def mask() -> Bools:
            of: Bools = self.packets["up"] == int(up)
            return of & self.packets.is_in("side", side) if self.both_sides else of

        return self._once((up, side if self.both_sides else None), mask)

    def frames_of(self, layer: str, *, up: bool | None = None) -> Rows:
        """Frames of a layer, of one direction if asked."""

        def mask() -> Bools:
            of = self.frames.is_in("layer", layer)
            return of if up is None else of & (self.frames["up"] == int(up))

        return self._once(("frames", layer, up), mask, self.frames)

    def _once(self, key: Any, mask: Callable[[], Bools], of: Rows | None = None) -> Rows:
        return self.keep(key, lambda: (of if of is not None else self.packets).where(mask()))

    def keep(self, key: Any, work: Callable[[], _Any]) -> _Any:
        """What ``work`` gives; worked out once for each key."""
        if key not in self._known:
            self._known[key] = work()
        return cast(_Any, self._known[key])

    def arrivals(self, numbers: Ints, *, up: bool) -> Ints:
        """When packets of a direction, by their number at the sender's side, reached the receiver's; NULL: never.

        With one side only this is the time at that side. Of copies that the link made, the first counts.
        """
        sent = self.sent(up=up)
        if not len(sent) or not len(numbers):
            return np.full(len(numbers), NULL, dtype=np.int64)
        order = np.argsort(sent["number"], kind="stable")
        at = order[np.minimum(np.searchsorted(sent["number"][order], numbers), len(order) - 1)]
        known = sent["number"][at] == numbers
        if not self.both_sides:
            return np.where(known, sent["time_ns"][at], NULL)
        arrived = self.arrived(up=up)
        original = arrived["packet_id"] & ~_COPY
        first = np.lexsort((arrived["time_ns"], original))
        where = np.searchsorted(original[first], sent["packet_id"][at] & ~_COPY)
        found = first[np.minimum(where, len(first) - 1)] if len(first) else np.zeros(len(at), dtype=np.int64)
        same = known & (where < len(first))
        if len(first):
            same &= original[found] == (sent["packet_id"][at] & ~_COPY)
            return np.where(same, arrived["time_ns"][found], NULL)
        return np.full(len(numbers), NULL, dtype=np.int64)


_PACKET_TEXT = ("side",)
_PACKET_NUMBERS = (
    "number", "time_ns", "connection", "wire_bytes", "ip_header_bytes", "transport_header_bytes", "payload_bytes",
    "sequence", "acknowledged", "window", "quic_header_bytes", "retransmission", "delay_ns",
)  # fmt: skip
_FRAME_NUMBERS = (
    "number", "time_ns", "connection", "stream", "offset", "length", "wire_length", "fin", "value", "ack_delay_ns",
    "packet_number", "tcp_start", "tcp_end",
)  # fmt: skip
_MESSAGE_NUMBERS = (
    "connection", "stream", "request", "status", "request_start_ns", "request_end_ns", "response_start_ns",
    "response_end_ns", "request_header_bytes", "response_header_bytes", "request_body_bytes", "response_body_bytes",
    "complete",
)  # fmt: skip


def connections(packets: pa.Table, frames: pa.Table, messages: pa.Table, table: pa.Table) -> list[Connection]:
    """Every connection of a dissection with its rows."""
    of_packets, of_frames = _cut(_packets(packets)), _cut(_frames(frames))
    of_messages = _cut(_numbers(messages, _MESSAGE_NUMBERS, ()))
    found = []
    for row in table.to_pylist():
        number = int(row["connection"])
        found.append(Connection(number, row, of_packets(number), of_frames(number), of_messages(number)))
    return found


def _packets(table: pa.Table) -> Rows:
    rows = _numbers(table, _PACKET_NUMBERS, _PACKET_TEXT)
    columns = rows.all()
    # The highest bit of a packet_id is the direction: as a signed number the order is lost, the identity kept.
    columns["packet_id"] = _ints(pc.fill_null(table.column("packet_id"), pa.scalar(2**64 - 1, pa.uint64())))
    for name, meanings in _PACKET_MEANINGS.items():
        codes, values = _encoded(table, name)
        for column, meaning in meanings.items():
            columns[column] = _derived(codes, values, meaning)
    for name, words in (("hello_retry", "Hello Retry Request"), ("client_hello", "Client Hello")):
        said = pc.match_substring(table.column("info"), words)
        columns[name] = _ints(pc.fill_null(said, pa.scalar(False)).cast(pa.int64()))
    return Rows(columns, rows.labels)


def _frames(table: pa.Table) -> Rows:
    rows = _numbers(table, _FRAME_NUMBERS, ("side", "layer", "type", "packet_space"))
    return Rows({**rows.all(), "up": _derived(*_encoded(table, "direction"), _is_up)}, rows.labels)


def _is_up(text: str) -> int:
    return {"up": 1, "down": 0}.get(text, NULL)


def _sack_right(text: str) -> int:
    """The highest octet that a SACK option tells of, exclusive."""
    return max((int(right) for _, right in json.loads(text)), default=NULL) if text else NULL


def _has(name: str, text: str) -> int:
    return int(name in text.split(","))


def _contains(part: str, text: str) -> int:
    return int(part in text)


def _names(text: str) -> set[str]:
    return {name for packet in text.split(";") for name in packet.split(",") if name}


def _numbers(table: pa.Table, numbers: tuple[str, ...], texts: tuple[str, ...]) -> Rows:
    columns = {
        name: _ints(pc.fill_null(table.column(name).cast(pa.int64()), pa.scalar(NULL, pa.int64()))) for name in numbers
    }
    labels: dict[str, dict[str, int]] = {}
    for name in texts:
        codes, values = _encoded(table, name)
        columns[name] = codes
        labels[name] = {text: code for code, text in enumerate(values) if text is not None}
    return Rows(columns, labels)


def _encoded(table: pa.Table, name: str) -> tuple[Ints, list[str | None]]:
    """A column of text as codes into its values; null is -1."""
    encoded: Any = table.column(name).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return _ints(encoded.indices.cast(pa.int64()).fill_null(NULL)), encoded.dictionary.to_pylist()


def _derived(codes: Ints, values: list[str | None], meaning: Callable[[str], int]) -> Ints:
    """A number for each text of a column, worked out once for each different text; null stays null."""
    of_code = np.array([*(meaning(text or "") for text in values), NULL], dtype=np.int64)
    return of_code[codes]


# What the texts of packets come to, by column of the table.
_PACKET_MEANINGS: dict[str, dict[str, Callable[[str], int]]] = {
    "direction": {"up": _is_up},
    "flags": {flag.lower(): partial(_has, flag) for flag in ("SYN", "ACK", "FIN", "RST")},
    "sack": {"sack_right": _sack_right},
    "packet_type": {
        "quic_packets": lambda text: text.count(",") + 1,
        "type_initial": partial(_contains, "Initial"),
        "type_handshake": partial(_contains, "Handshake"),
        "type_retry": partial(_contains, "Retry"),
        "type_version": partial(_contains, "Version"),
    },
    "frames": {
        "eliciting": lambda text: int(bool(_names(text) - _NOT_ELICITING)),
        "pure_ack": lambda text: int(_names(text) <= _PURE_ACK and bool(_names(text) - {"PADDING"})),
        "padding": lambda text: int("PADDING" in _names(text)),
    },
    "acknowledged_ranges": {"ack_ranges": lambda text: text.count("[") - 1},
}


def _ints(column: Any) -> Ints:
    values = np.asarray(column)
    return cast(Ints, values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False))


def _cut(rows: Rows) -> Callable[[int], Rows]:
    """Rows by connection, in the order of time within each (stable: rows of one time keep their order)."""
    numbers = rows["connection"]
    by = (rows["time_ns"], numbers) if rows.has("time_ns") else (numbers,)
    order = np.lexsort(by)
    if not np.array_equal(order, np.arange(len(order))):
        rows = rows.where(order)
        numbers = rows["connection"]
    known, starts = np.unique(numbers, return_index=True)
    ends = np.append(starts[1:], len(numbers)) if len(starts) else starts
    spans = {int(number): slice(int(a), int(b)) for number, a, b in zip(known, starts, ends, strict=True)}
    return lambda number: rows.where(spans.get(number, slice(0, 0)))

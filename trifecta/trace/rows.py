"""Rows on their way into the tables: columns as lists, and what a request is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from trifecta.store.trace_schema import FRAMES, PACKETS
from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.flows import Flows
from trifecta.trace.headers import Headers
from trifecta.trace.segments import Numbers

DIRECTIONS = ("up", "down")
_KNOWN_LATER = ("capture", "number", "time_ns", "side", "direction")
# What `Part.quic` tells of packets, in this order.
QUIC_COLUMNS = (
    "header_form",
    "packet_type",
    "packet_number",
    "destination_cid",
    "source_cid",
    "quic_header_bytes",
    "frames",
    "streams",
    "acknowledged_ranges",
    "spin",
)
_COLUMNS = tuple(one for one in FRAMES.names if one not in _KNOWN_LATER)


class Frames:
    """Frame rows. `row` is the place of the packet; what follows from that is filled in by `dissect`."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.direction: list[int] = []
        self.connection: list[int] = []  # of all, where it is not among the values
        self.ack_delay_ns: dict[int, int] = {}  # by place
        self._values: list[tuple[Any, ...]] = []

    def add(self, row: int, direction: int, **values: Any) -> int:
        """One more frame; its place."""
        self.row.append(row)
        self.direction.append(direction)
        self._values.append(tuple(map(values.get, _COLUMNS)))
        return len(self.row) - 1

    def arrays(self) -> dict[str, pa.Array[Any]]:
        """The columns as Arrow arrays."""
        columns = dict(zip(_COLUMNS, zip(*self._values, strict=True), strict=True)) if self._values else {}
        if self.connection:
            columns["connection"] = tuple(self.connection)
        if self.ack_delay_ns:
            columns["ack_delay_ns"] = tuple(map(self.ack_delay_ns.get, range(len(self.row))))
        return {name: pa.array(columns.get(name, ()), FRAMES.arrow().field(name).type) for name in _COLUMNS}


@dataclass(slots=True)
class Half:
    """A request or a response. ``ranges`` are octets [start, end) of TCP, or of the QUIC stream."""

    header_bytes: int | None = None
    body_bytes: int | None = 0
    ended: bool = False  # its last octet is known
    begins: bool = True  # its first octet is known
    vague: bool = False  # the size of its fields cannot be known
    shared: bool = False  # other messages lie in its packets too, or some of these are missing: nobody can count them
    ranges: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A request with its response."""

    connection: int
    protocol: str
    stream: int | None
    method: str | None = None
    authority: str | None = None
    path: str | None = None
    status: int | None = None
    halves: tuple[Half, Half] = field(default_factory=lambda: (Half(), Half()))


@dataclass(slots=True)
class Facts:
    """What is known of a connection besides its packets."""

    protocol: str | None = None
    tls_version: str | None = None
    cipher: str | None = None
    alpn: str | None = None
    resumed: bool | None = None
    zero_rtt: bool | None = None
    key_exchange: str | None = None
    quic_version: str | None = None
    decrypted: bool = False
    secured: bool = False  # there is something to decrypt
    migrated: bool | None = None
    missing: set[str] = field(default_factory=set)
    transport_parameters: str | None = None
    server_name: str | None = None
    alpn_offered: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A capture and all that its headers tell."""

    capture: CaptureFile
    headers: Headers
    flows: Flows
    numbers: Numbers


@dataclass(slots=True)
class Part:
    """What was found in some connections of a capture. All `row` are places in `Headers`."""

    frames: Frames = field(default_factory=Frames)
    messages: list[Message] = field(default_factory=list)
    facts: dict[int, Facts] = field(default_factory=dict)
    info: dict[int, str] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)  # the packets that `quic` tells of
    quic: list[tuple[Any, ...]] = field(default_factory=list)  # of each: its connection, and `QUIC_COLUMNS`
    notes: list[str] = field(default_factory=list)
    connection_notes: list[tuple[int, str]] = field(default_factory=list)  # notes on connections


@dataclass(frozen=True, slots=True)
class Packed:
    """A part with arrays for its long lists: they are small, and go from process to process quickly."""

    frame_rows: Ints
    frame_directions: Ints
    frames: dict[str, pa.Array[Any]]
    messages: list[Message]
    facts: dict[int, Facts]
    info_rows: Ints
    info_texts: pa.Array[Any]
    quic_rows: Ints
    quic_connections: Ints
    quic: dict[str, pa.Array[Any]]
    notes: list[str]
    connection_notes: list[tuple[int, str]]


def pack(part: Part) -> Packed:
    """The same with arrays."""

    def ints(values: Iterable[int]) -> Ints:
        return np.fromiter(values, dtype=np.int64)

    empty: tuple[tuple[Any, ...], ...] = ((),) * (1 + len(QUIC_COLUMNS))
    quic = tuple(zip(*part.quic, strict=True)) or empty
    return Packed(
        ints(part.frames.row),
        ints(part.frames.direction),
        part.frames.arrays(),
        part.messages,
        part.facts,
        ints(part.info),
        pa.array(list(part.info.values()), pa.string()),
        ints(part.rows),
        ints(quic[0]),
        {
            name: pa.array(one, PACKETS.arrow().field(name).type)
            for name, one in zip(QUIC_COLUMNS, quic[1:], strict=True)
        },
        part.notes,
        part.connection_notes,
    )

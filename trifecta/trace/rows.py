"""Rows on their way into the tables: columns as lists, and what a request is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.flows import Flows
from trifecta.trace.headers import Headers
from trifecta.trace.schema import FRAMES
from trifecta.trace.segments import Numbers

DIRECTIONS = ("up", "down")
_KNOWN_LATER = ("capture", "number", "time_ns", "side", "direction")
_COLUMNS = tuple(one for one in FRAMES.names if one not in _KNOWN_LATER)


class Frames:
    """Frame rows. `row` is the place of the packet; what follows from that is filled in by `dissect`."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.way: list[int] = []
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def add(self, row: int, way: int, **values: Any) -> int:
        """One more frame; its place."""
        self.row.append(row)
        self.way.append(way)
        for name in _COLUMNS:
            self.columns[name].append(values.get(name))
        return len(self.row) - 1

    def arrays(self) -> dict[str, pa.Array[Any]]:
        """The columns as Arrow arrays."""
        return {name: pa.array(self.columns[name], FRAMES.field(name).type) for name in _COLUMNS}


@dataclass(slots=True)
class Half:
    """A request or a response. ``ranges`` are octets [start, end) of TCP, or of the QUIC stream."""

    header_bytes: int | None = None
    body_bytes: int | None = 0
    ended: bool = False  # its last octet is known
    begins: bool = True  # its first octet is known
    vague: bool = False  # the size of its fields cannot be known
    shared: bool = False  # in ``ranges`` lie other messages too
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


@dataclass(frozen=True, slots=True)
class Trace:
    """A capture and all that its headers tell."""

    capture: CaptureFile
    headers: Headers
    flows: Flows
    numbers: Numbers


def _nothing() -> tuple[Ints, Ints, dict[str, pa.Array[Any]]]:
    empty = np.zeros(0, dtype=np.int64)
    return empty, empty, Frames().arrays()


@dataclass(slots=True)
class Part:
    """What was found in some connections of a capture. All `row` are places in `Headers`."""

    frames: Frames = field(default_factory=Frames)
    messages: list[Message] = field(default_factory=list)
    facts: dict[int, Facts] = field(default_factory=dict)
    info: dict[int, str] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)  # the packets that `quic` tells of
    quic: dict[str, list[Any]] = field(default_factory=dict)  # columns of `packets`
    notes: list[str] = field(default_factory=list)
    told: list[tuple[int, str]] = field(default_factory=list)  # notes on connections
    packed: tuple[Ints, Ints, dict[str, pa.Array[Any]]] = field(default_factory=_nothing)

    def pack(self) -> None:
        """Turn long lists into arrays, which are small and go from process to process quickly."""
        to_array = (np.asarray(one, dtype=np.int64) for one in (self.frames.row, self.frames.way))
        self.packed = (*to_array, self.frames.arrays())  # type: ignore[assignment]
        self.frames = Frames()

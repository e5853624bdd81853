"""Rate over time, and gaps between packets, by direction and as the receiver saw them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.quantiles import Quantiles, quantiles
from trifecta.analysis.transport.rows import Ints

_BINS = 200  # about as many as a picture shows
_PER_DECADE = 10
_GAP_DECADES = 11  # 1 ns to 100 s
_GAP_EDGES: Ints = np.unique(np.logspace(0, _GAP_DECADES, _GAP_DECADES * _PER_DECADE + 1).astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Rate:
    """Octets that arrived in bins of equal length from ``start_ns`` on; a rate is octets over ``bin_ns``."""

    connection: int
    up: bool
    start_ns: int
    bin_ns: int
    wire_bytes: Ints
    payload_bytes: Ints  # of TCP or UDP, what was sent again included

    @property
    def peak_bits_per_s(self) -> float:
        """The fullest bin, in wire octets."""
        return float(self.wire_bytes.max(initial=0)) * 8e9 / self.bin_ns


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Times between one packet and the next of the same direction. ``counts[i]``: from ``edges_ns[i]`` to the next."""

    connection: int
    up: bool
    spread_ns: Quantiles | None
    edges_ns: Ints
    counts: Ints
    notes: list[str]


def rate(connection: Connection, *, up: bool, bin_ns: int | None = None) -> Rate:
    """Bins begin with the connection's first packet, so that both directions share them."""
    start, end = _span(connection)
    width = bin_ns if bin_ns else nice(end - start)
    rows = connection.arrived(up=up)
    at = (rows["time_ns"] - start) // width
    count = int((end - start) // width) + 1
    wire, payload = (
        np.bincount(at, weights=rows[name], minlength=count).astype(np.int64)
        for name in ("wire_bytes", "payload_bytes")
    )
    return Rate(connection.number, up, start, width, wire, payload)


def gaps(connection: Connection, *, up: bool) -> Gaps:
    """Of all packets of a direction, with or without data. In the order of arrival, so never negative."""
    between = np.diff(connection.arrived(up=up)["time_ns"])
    # Below a nanosecond belongs to the first, above the last edge to the last.
    at = _GAP_EDGES.searchsorted(np.clip(between, 1, _GAP_EDGES[-1] - 1), side="right") - 1
    counts = np.bincount(at, minlength=len(_GAP_EDGES) - 1)
    notes = []
    if connection.row["largest_wire_bytes"] and int(connection.row["largest_wire_bytes"]) > _LARGEST_WIRE:
        notes.append("frames here are larger than any packet on a wire (offloading): gaps and counts are not a wire's")
    return Gaps(connection.number, up, quantiles(between), _GAP_EDGES, counts, notes)


_LARGEST_WIRE = 9_216  # a jumbo frame, with its headers


def _span(connection: Connection) -> tuple[int, int]:
    times = connection.packets["time_ns"]
    return (int(times[0]), int(times[-1])) if len(times) else (0, 0)


def nice(length_ns: int, bins: int = _BINS) -> int:
    """A width of 1, 2 or 5 times a power of ten with at most so many bins."""
    width = 1_000
    while True:
        for factor in (1, 2, 5):
            if width * factor * bins >= length_ns:
                return width * factor
        width *= 10

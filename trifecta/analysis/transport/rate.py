"""Rate over time, and gaps between packets, by direction and as the receiver saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.grouped import begins
from trifecta.analysis.transport.quantiles import Quantiles, quantiles_of_each
from trifecta.analysis.transport.ranges import reduce_max
from trifecta.analysis.transport.rows import Ints, Rows

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
    """Times between one packet and the next of the same direction, in the order of arrival."""

    connection: int
    up: bool
    between_ns: Ints
    spread_ns: Quantiles | None
    notes: list[str]

    @property
    def edges_ns(self) -> Ints:
        """Of `counts`: what is below the first or above the last belongs to these."""
        return _GAP_EDGES

    @property
    def counts(self) -> Ints:
        """``counts[i]``: how many from ``edges_ns[i]`` to the next."""
        at = _GAP_EDGES.searchsorted(np.clip(self.between_ns, 1, _GAP_EDGES[-1] - 1), side="right") - 1
        return np.bincount(at, minlength=len(_GAP_EDGES) - 1)


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


def peak_bits_per_s(connection: Connection, *, up: bool) -> float:
    """As `Rate.peak_bits_per_s`, of all connections at once."""
    connection.packets.derived("bin", _bins)
    return connection.arrived(up=up).each("peak", _peaks)


def _bins(rows: Rows) -> Ints:
    """The bin of each packet; their widths are a column too."""
    time = rows["time_ns"]
    first = begins(rows["connection"]).nonzero()[0]
    counts = np.diff(np.append(first, len(rows)))
    widths = [nice(length) for length in (time[first + counts - 1] - time[first]).tolist()]
    rows.add("bin width", np.repeat(np.array(widths, dtype=np.int64), counts))
    return (time - time[first].repeat(counts)) // rows["bin width"]


def _peaks(rows: Rows, starts: Ints, ends: Ints) -> list[float]:
    # Packets are in the order of time: those of a bin stand together.
    first = (begins(rows["connection"]) | begins(rows["bin"])).nonzero()[0]
    if not len(first):
        return [0.0] * len(starts)
    octets = np.add.reduceat(rows["wire_bytes"], first)
    most = np.maximum(0, reduce_max(octets, first.searchsorted(starts), first.searchsorted(ends)))
    width = rows["bin width"][np.minimum(starts, len(rows) - 1)]
    return cast(list[float], (most.astype(np.float64) * 8e9 / width).tolist())


def gaps(connection: Connection, *, up: bool) -> Gaps:
    """Of all packets of a direction, with or without data. In the order of arrival, so never negative."""
    rows = connection.arrived(up=up)
    notes = []
    if connection.row["largest_wire_bytes"] and int(connection.row["largest_wire_bytes"]) > _LARGEST_WIRE:
        notes.append("frames here are larger than any packet on a wire (offloading): gaps and counts are not a wire's")
    return Gaps(connection.number, up, np.diff(rows["time_ns"]), rows.each("gaps", _spreads), notes)


def _spreads(rows: Rows, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    return quantiles_of_each(np.diff(rows["time_ns"]), starts, np.maximum(ends - 1, starts))


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

"""Rate over time, and gaps between packets, by direction and as the receiver saw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from trifecta.analysis.transport.columns import Connection
from trifecta.analysis.transport.group_by import begins
from trifecta.analysis.transport.quantiles import Quantiles, quantiles_of_each
from trifecta.analysis.transport.ranges import reduce_max
from trifecta.analysis.transport.rows import Ints, Rows

_BINS = 200  # about as many as a picture shows


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Times between one packet and the next of the same direction, in the order of arrival."""

    connection: int
    up: bool
    spread_ns: Quantiles | None
    notes: list[str]


def peak_bits_per_s(connection: Connection, *, up: bool) -> float:
    """Wire octets over time of the fullest bin. Bins begin with the connection's first packet, for both directions."""
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
    return Gaps(connection.number, up, rows.each("gaps", _spreads), notes)


def _spreads(rows: Rows, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    return quantiles_of_each(np.diff(rows["time_ns"]), starts, np.maximum(ends - 1, starts))


_LARGEST_WIRE = 9_216  # a jumbo frame, with its headers


def nice(length_ns: int, bins: int = _BINS) -> int:
    """A width of 1, 2 or 5 times a power of ten with at most so many bins."""
    width = 1_000
    while True:
        for factor in (1, 2, 5):
            if width * factor * bins >= length_ns:
                return width * factor
        width *= 10

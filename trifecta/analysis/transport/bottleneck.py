"""What a direction of a path does to the packets of a connection: the least delay, the rate, and what came late.

A link of a rate sends one packet after the other. Packets that wait behind others of their own connection show its
rate: they arrive as far apart as the link takes to send one (packet dispersion; Dovrolis, Ramanathan, Moore, "What do
packet dispersion techniques measure?", INFOCOM 2001). Where they do not, or come irregularly (jitter, a rate that
changes), no rate is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.transport.directions import Direction
from trifecta.analysis.transport.ranges import NEVER, Ints

Floats = NDArray[np.float64]

AHEAD_NS = 200_000  # a packet waited behind another one where it could have arrived by this much before that one
PIECE_NS = 1_000_000  # the rate must be the same in pieces of this length: a link hands over what is due together
LEAST_PIECES = 3
STEADY = 0.75  # so large a share of them
_SPREAD, _SPREAD_NS = 0.3, 100_000  # by which a piece may differ


@dataclass(frozen=True, slots=True)
class Path:
    """One direction. ``ns_per_octet``: at its rate, 0: none is known.

    ``late_ns`` by row of the direction: how much later a packet arrived than it would have behind the packets of its
    own connection alone, with the least delay and this rate. ``busy``: first and last moments of the times in which the
    link sent packets of this connection, as they were seen at the receiver.
    """

    least_ns: int
    ns_per_octet: float
    late_ns: Ints
    busy: tuple[list[int], list[int]]


def path_of(direction: Direction) -> Path:
    """As the packets of this direction show it."""
    there = (direction.arrived_ns < NEVER).nonzero()[0]
    late = np.zeros(len(direction.sent_ns), dtype=np.int64)
    if not len(there):
        return Path(0, 0.0, late, ([], []))
    sent, arrived = direction.sent_ns[there], direction.arrived_ns[there]
    took = arrived - sent
    least = max(int(took.min()), 0)
    octets = np.maximum(np.maximum(direction.wire[there], direction.payload[there]), 1)
    ns_per_octet = _ns_per_octet(sent, arrived, octets, least)
    if not ns_per_octet:
        late[there] = np.maximum(took - least, 0)
        return Path(least, 0.0, late, ([], []))
    service = np.rint(octets * ns_per_octet).astype(np.int64)
    least = max(int((took - service).min()), 0)
    # A packet is sent when it is there and those before it are through: first in, first out.
    ready, done = sent + least, service.cumsum()
    through = done + np.maximum.accumulate(ready - done + service)
    late[there] = np.maximum(arrived - through, 0)
    begins = np.append(0, (ready[1:] > through[:-1]).nonzero()[0] + 1)
    ends = np.append(begins[1:], len(through)) - 1
    return Path(least, ns_per_octet, late, (ready[begins].tolist(), through[ends].tolist()))


def _ns_per_octet(sent: Ints, arrived: Ints, octets: Ints, least: int) -> float:
    """0 where no packets waited behind others of the connection, or not at one rate."""
    behind = (arrived[:-1] - sent[1:] > least + AHEAD_NS).nonzero()[0]
    if len(behind) < LEAST_PIECES:
        return 0.0
    apart, size = arrived[behind + 1] - arrived[behind], octets[behind + 1]
    total = int(apart.sum())
    if total < LEAST_PIECES * PIECE_NS:
        return 0.0
    rate = total / int(size.sum())
    took, should = _pieces(apart, size, rate)
    rate *= float(np.median(took / should))
    if rate <= 0:
        return 0.0
    took, should = _pieces(apart, size, rate)
    steady = np.abs(took - should) <= _SPREAD * should + _SPREAD_NS
    if len(steady) < LEAST_PIECES or float(steady.mean()) < STEADY:
        return 0.0
    return rate * float(took[steady].sum() / should[steady].sum())


def _pieces(apart: Ints, octets: Ints, ns_per_octet: float) -> tuple[Floats, Floats]:
    """How long packets took and should have taken, in pieces of time that are as long as they should be."""
    expected = octets.astype(np.float64) * ns_per_octet
    piece = (expected.cumsum() / PIECE_NS).astype(np.int64)
    piece = np.append(0, (piece[1:] != piece[:-1]).cumsum())
    took, should = (np.bincount(piece, each).astype(np.float64) for each in (apart, expected))
    return took, should

"""What figures of packets draw: octets and rates over time, streams, the first flights of a connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Octets:
    """Octets of the responses over time: (ns, place) of what was sent, sent again, lost, and what arrived.

    A place is an octet: connections, and of QUIC streams, stand one on top of the other in the order in which they
    began. ``of`` says what is counted: ``TCP sequence``, ``stream offset`` or, without keys, ``datagrams``.
    """

    of: str
    sent: Array
    retransmitted: Array
    lost: Array
    arrived: Array
    acknowledged: Array = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True)
class Rates:
    """bit/s on the wire where packets arrive, in bins of ``bin_ns`` from the capture's first packet on."""

    bin_ns: int
    end_ns: int
    down: Array
    up: Array


@dataclass(frozen=True)
class Acknowledged:
    """Packets with data that arrived at the client by acknowledgements that it sent, in bins; NaN: it sent none.

    ``mean``: of the whole capture, None: not known. ``size``: of packets that only acknowledge, mean octets.
    """

    bin_ns: int
    end_ns: int
    each: Array
    mean: float | None
    size: float | None


@dataclass(frozen=True)
class Gaps:
    """Times between packets of a direction in ns: quantiles ``at`` these ``shares``, and the ends of those above 0."""

    count: int
    least: float | None = None
    most: float | None = None
    median: float | None = None
    shares: Array = field(default_factory=lambda: np.empty(0))
    at: Array = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class Lane:
    """A request: when it was sent, its response's first and last octet at the client, and when its octets were sent."""

    name: str
    started_ns: float
    first_ns: float | None
    done_ns: float | None
    sent_ns: Array
    lost_ns: Array


@dataclass(frozen=True)
class Flight:
    """Packets that one side sent without hearing between: (sent, arrived) of the first and the last, in ns."""

    direction: str
    packets: int
    octets: int
    sent_ns: tuple[float, float]
    arrived_ns: tuple[float, float] | None  # null: one side was captured, or all were lost
    what: str
    lost: int = 0


@dataclass(frozen=True)
class Ladder:
    """The first flights of a connection, and when the first octet of a response was there."""

    flights: list[Flight]
    round_trip_ns: int | None
    first_response_ns: float | None
    least_round_trips: int | None
    sides: bool

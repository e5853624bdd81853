"""The parts of a request's time, and what they are read from. Definitions: `attribution`, docs/packets.md."""

from __future__ import annotations

from dataclasses import dataclass

HANDSHAKE, PROPAGATION, SERVER, TRANSMISSION = "handshake", "propagation", "server", "transmission"
CONGESTION, LOSS, BLOCKING = "congestion window", "loss recovery", "head-of-line blocking"
FLOW, QUEUEING, CPU, REST = "flow control", "queueing", "cpu", "rest"
PARTS = (
    HANDSHAKE, PROPAGATION, SERVER, TRANSMISSION, CONGESTION, LOSS, BLOCKING, FLOW, QUEUEING, CPU, REST,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Interval:
    """Time with one cause, in ns of the capture's clock."""

    start_ns: int
    end_ns: int
    cause: str


@dataclass(frozen=True, slots=True)
class Stall:
    """Time in which flow control kept data of one direction back: of one stream, or (None) of all."""

    connection: int
    direction: str
    start_ns: int
    end_ns: int
    stream: int | None = None

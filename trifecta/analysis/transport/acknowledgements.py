"""Acknowledgements: how many, how large, how late.

TCP: RFC 9293, section 3.8.6.3 and RFC 5681, section 4.2 (at least one for two full segments, within 500 ms). QUIC: RFC
9000, section 13.2. A delay is from the arrival of the highest octet (packet number) that is acknowledged until the
acknowledgement leaves, both at the receiver's side; each counts once, with its first acknowledgement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trifecta.analysis.transport.columns import NULL, Connection, acks, application_acks, octets
from trifecta.analysis.transport.flight import HANDOVER_NS
from trifecta.analysis.transport.octets import frontier
from trifecta.analysis.transport.quantiles import Quantiles, quantiles
from trifecta.analysis.transport.rows import Bools, Ints, Rows, count


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """Those that go ``up`` (of data that goes down), or down. None: cannot be known."""

    connection: int
    up: bool
    count: int | None = None  # TCP: segments that do nothing else or acknowledge something new; QUIC: ACK frames
    packets: int | None = None  # packets that only acknowledge
    packets_wire_bytes: int | None = None
    mean_packet_bytes: float | None = None
    data_packets: int | None = None  # of the other direction, as they arrived: with data; QUIC: ack-eliciting
    data_packets_per_acknowledgement: float | None = None
    eliciting_share: float | None = None  # QUIC: of the other direction's packets
    with_holes: int | None = None  # that tell of a hole: SACK (RFC 2018), more than one range
    duplicates: int | None = None  # TCP: RFC 5681, section 2
    delay_ns: Quantiles | None = None
    said_delay_ns: Quantiles | None = None  # QUIC: ACK Delay, as the receiver says
    notes: list[str] = field(default_factory=list)


def acknowledgements(connection: Connection, *, up: bool) -> Acknowledgements:
    """Of one direction."""
    notes = [] if connection.both_sides else ["the delays hold only for a capture made at the end that acknowledges"]
    return (_tcp if connection.tcp else _quic)(connection, up, notes)


def moments_of(connection: Connection, *, up: bool) -> tuple[Ints, Ints] | None:
    """When packets with data arrived (QUIC: ack-eliciting ones), and when acknowledgements were sent; None: not known.

    Both at the end that acknowledges, as `Acknowledgements.data_packets` and `count` count them.
    """
    data = connection.arrived(up=not up)
    if connection.tcp:
        own, pure, raised = _tcp_acks(connection, up)
        return octets(data)["time_ns"], own["time_ns"][pure | raised]
    if not connection.row["decrypted"]:
        return None
    frames = connection.frames_of("quic", up=up)
    return data["time_ns"][data["eliciting"] == 1], frames["time_ns"][frames.is_in("type", "ACK", "ACK_ECN")]


def _tcp_acks(connection: Connection, up: bool) -> tuple[Rows, Bools, Bools]:
    """Segments with ACK; which of them do nothing else, and which acknowledge something new."""
    own = acks(connection.sent(up=up))
    pure = (own["payload_bytes"] == 0) & (own["syn"] != 1) & (own["fin"] != 1) & (own["rst"] != 1)
    highest = np.maximum.accumulate(own["acknowledged"]) if len(own) else own["acknowledged"]
    return own, pure, np.concatenate(([True], np.diff(highest) > 0)) if len(own) else pure


def _tcp(connection: Connection, up: bool, notes: list[str]) -> Acknowledgements:
    own, pure, raised = _tcp_acks(connection, up)
    same = np.zeros(len(own), dtype=np.bool_)
    same[1:] = (np.diff(own["acknowledged"]) == 0) & (np.diff(own["window"]) == 0)
    data = octets(connection.arrived(up=not up))
    delays = own["time_ns"][:0]
    if len(data):
        origin = int(data["sequence"].min()) if not connection.starts else 1
        reached = frontier(data["sequence"], data["sequence"] + data["payload_bytes"], origin)
        news = (raised & (own["acknowledged"] > origin)).nonzero()[0]
        at = reached.searchsorted(own["acknowledged"][news])
        news, at = news[at < len(reached)], at[at < len(reached)]  # the acknowledgement of a FIN is beyond the data
        delays = own["time_ns"][news] - data["time_ns"][at]
    times, packets = count(pure | raised), count(pure)
    wire = int(own["wire_bytes"][pure].sum())
    return Acknowledgements(
        connection=connection.number,
        up=up,
        count=times,
        packets=packets,
        packets_wire_bytes=wire,
        mean_packet_bytes=wire / packets if packets else None,
        data_packets=len(data),
        data_packets_per_acknowledgement=len(data) / times if times else None,
        eliciting_share=None,
        with_holes=count(own["sack_right"] != NULL),
        duplicates=count(pure & same),
        delay_ns=quantiles(_clip(delays)),
        said_delay_ns=None,
        notes=notes,
    )


def _quic(connection: Connection, up: bool, notes: list[str]) -> Acknowledgements:
    own, data = connection.sent(up=up), connection.arrived(up=not up)
    frames = connection.frames_of("quic", up=up)
    found = frames.pick("acks", lambda of: of.is_in("type", "ACK", "ACK_ECN"))
    if not connection.row["decrypted"]:
        nothing = [*notes, "without keys the acknowledgements of QUIC cannot be read"]
        return Acknowledgements(connection.number, up, notes=nothing)
    pure = own["pure_ack"] == 1
    eliciting = count(data["eliciting"] == 1)
    readable = count(data["eliciting"] != NULL)
    wire, packets = int(own["wire_bytes"][pure].sum()), count(pure)
    late = found["ack_delay_ns"]
    return Acknowledgements(
        connection=connection.number,
        up=up,
        count=len(found),
        packets=packets,
        packets_wire_bytes=wire,
        mean_packet_bytes=wire / packets if packets else None,
        data_packets=eliciting,
        data_packets_per_acknowledgement=eliciting / len(found) if len(found) else None,
        eliciting_share=eliciting / readable if readable else None,
        with_holes=count(own["ack_ranges"] > 1),
        duplicates=None,
        delay_ns=quantiles(_quic_delays(connection, up)),
        # Of Initial and Handshake packets the field means nothing (RFC 9000, section 13.2.5).
        said_delay_ns=quantiles(late[(late != NULL) & found.is_in("packet_space", "application")]),
        notes=notes,
    )


def _quic_delays(connection: Connection, up: bool) -> Ints:
    own = application_acks(connection.frames_of("quic", up=up))
    other = connection.frames_of("quic", up=not up)
    other = other.pick("numbered", lambda of: of.is_in("packet_space", "application") & (of["packet_number"] != NULL))
    if not len(own) or not len(other):
        return own["time_ns"][:0]
    highest = np.maximum.accumulate(own["value"])
    news = np.concatenate(([True], np.diff(highest) > 0))
    numbers, first = np.unique(other["packet_number"], return_index=True)
    at = np.minimum(numbers.searchsorted(highest[news]), len(numbers) - 1)
    arrived = connection.arrivals(other["number"][first[at]], up=not up)
    known = (numbers[at] == highest[news]) & (arrived != NULL)
    delays: Ints = (own["time_ns"][news] - arrived)[known]
    return _clip(delays)


def _clip(delays: Ints) -> Ints:
    """What stands a little before its reason came at once (`flight.HANDOVER_NS`); further before it is no answer."""
    return np.maximum(0, delays[delays > -HANDOVER_NS])

"""Acknowledgements: how many, how large, how late.

TCP: RFC 9293, section 3.8.6.3 and RFC 5681, section 4.2 (at least one for two full segments, within 500 ms). QUIC: RFC
9000, section 13.2. A delay is from the arrival of the highest octet (packet number) that is acknowledged until the
acknowledgement leaves, both at the receiver's side; each counts once, with its first acknowledgement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from trifecta.analysis.transport.columns import Connection, acks, application_acks, octets, reached
from trifecta.analysis.transport.flight import HANDOVER_NS
from trifecta.analysis.transport.group_by import begins, first_rows, pair_keys, rising
from trifecta.analysis.transport.quantiles import Quantiles, quantiles_of_each
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows


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
        own = acks(connection.sent(up=up))
        return octets(data)["time_ns"], own["time_ns"][_pure(own) | _raised(own)]
    if not connection.row["decrypted"]:
        return None
    frames = connection.frames_of("quic", up=up)
    return data["time_ns"][data["eliciting"] == 1], frames["time_ns"][frames.is_in("type", "ACK", "ACK_ECN")]


def _pure(own: Rows) -> Bools:
    """Segments that acknowledge and do nothing else."""
    pure: Bools = (own["payload_bytes"] == 0) & (own["syn"] != 1) & (own["fin"] != 1) & (own["rst"] != 1)
    return pure


def _raised(own: Rows) -> Bools:
    """Segments that acknowledge something new."""
    return rising(own["acknowledged"], own["connection"])


def _tcp(connection: Connection, up: bool, notes: list[str]) -> Acknowledgements:
    own, data = acks(connection.sent(up=up)), octets(connection.arrived(up=not up))
    sums = own.sums("acknowledgements", _segments)
    reached(data)
    times, packets = sums["count"], sums["packets"]
    return Acknowledgements(
        connection=connection.number,
        up=up,
        count=times,
        packets=packets,
        packets_wire_bytes=sums["octets"],
        mean_packet_bytes=sums["octets"] / packets if packets else None,
        data_packets=len(data),
        data_packets_per_acknowledgement=len(data) / times if times else None,
        eliciting_share=None,
        with_holes=sums["with holes"],
        duplicates=sums["duplicates"],
        delay_ns=own.each("delays", partial(_tcp_delays, data.together)),
        said_delay_ns=None,
        notes=notes,
    )


def _segments(own: Rows) -> dict[str, Ints | Bools]:
    pure = _pure(own)
    other = begins(own["connection"]) | begins(own["acknowledged"]) | begins(own["window"])
    return {
        "count": pure | _raised(own),
        "packets": pure,
        "octets": own["wire_bytes"] * pure,
        "with holes": own["sack_right"] != NULL,
        "duplicates": pure & ~other,
    }


def _tcp_delays(data: Rows, own: Rows, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    news = _raised(own).nonzero()[0]
    if not len(data):
        return _spread(own["time_ns"][:0], news[:0], starts, ends)
    of = own["connection"][news]
    # The acknowledgement of what came before the capture began has no arrival.
    first = np.minimum(data["connection"].searchsorted(of), len(data) - 1)
    news = news[(data["connection"][first] == of) & (own["acknowledged"][news] > data["origin"][first])]
    of = own["connection"][news]
    upto, acknowledged = pair_keys((data["connection"], data["reached"]), (of, own["acknowledged"][news]))
    at = np.minimum(upto.searchsorted(acknowledged), len(data) - 1)
    there = (upto[at] >= acknowledged) & (data["connection"][at] == of)  # that of a FIN is beyond the data
    return _spread((own["time_ns"][news] - data["time_ns"][at])[there], news[there], starts, ends)


def _quic(connection: Connection, up: bool, notes: list[str]) -> Acknowledgements:
    if not connection.row["decrypted"]:
        nothing = [*notes, "without keys the acknowledgements of QUIC cannot be read"]
        return Acknowledgements(connection.number, up, notes=nothing)
    own, data = connection.sent(up=up), connection.arrived(up=not up)
    frames, other = connection.frames_of("quic", up=up), connection.frames_of("quic", up=not up)
    ack_frames = frames.pick("acks", lambda of: of.is_in("type", "ACK", "ACK_ECN"))
    packets = own.sums("acknowledgements", _datagrams)
    came = data.sums("arrived", lambda of: {"eliciting": of["eliciting"] == 1, "readable": of["eliciting"] != NULL})
    connection.came(other, up=not up)
    other = other.pick("numbered", lambda of: of.is_in("packet_space", "application") & (of["packet_number"] != NULL))
    return Acknowledgements(
        connection=connection.number,
        up=up,
        count=len(ack_frames),
        packets=packets["count"],
        packets_wire_bytes=packets["octets"],
        mean_packet_bytes=packets["octets"] / packets["count"] if packets["count"] else None,
        data_packets=came["eliciting"],
        data_packets_per_acknowledgement=came["eliciting"] / len(ack_frames) if len(ack_frames) else None,
        eliciting_share=came["eliciting"] / came["readable"] if came["readable"] else None,
        with_holes=packets["with holes"],
        duplicates=None,
        delay_ns=application_acks(frames).each("delays", partial(_quic_delays, other.together)),
        said_delay_ns=ack_frames.each("said delays", _reported_delays),
        notes=notes,
    )


def _datagrams(own: Rows) -> dict[str, Ints | Bools]:
    pure = own["pure_ack"] == 1
    return {"count": pure, "octets": own["wire_bytes"] * pure, "with holes": own["ack_ranges"] > 1}


def _reported_delays(rows: Rows, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    """Of Initial and Handshake packets the field means nothing (RFC 9000, section 13.2.5)."""
    late = rows["ack_delay_ns"]
    some = ((late != NULL) & rows.is_in("packet_space", "application")).nonzero()[0]
    return quantiles_of_each(late[some], some.searchsorted(starts), some.searchsorted(ends))


def _quic_delays(other: Rows, own: Rows, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    news = rising(own["value"], own["connection"]).nonzero()[0]
    of = own["connection"][news]
    at = first_rows(other["connection"], other["packet_number"], of, own["value"][news])
    news, at = news[at >= 0], at[at >= 0]
    arrived = other["arrived_ns"][at]
    known = arrived != NULL
    return _spread((own["time_ns"][news] - arrived)[known], news[known], starts, ends)


def _spread(delays: Ints, rows: Ints, starts: Ints, ends: Ints) -> list[Quantiles | None]:
    """By connection, of the delays of these rows.

    What stands a little before its reason came at once (`flight.HANDOVER_NS`); further before it is no answer.
    """
    some = delays > -HANDOVER_NS
    delays, rows = np.maximum(0, delays[some]), rows[some]
    return quantiles_of_each(delays, rows.searchsorted(starts), rows.searchsorted(ends))

"""What a sender had sent and not yet seen acknowledged, over time, and its round trips.

TCP: octets of payload above the highest that was acknowledged (cumulatively or by SACK, RFC 2018). QUIC: octets of
STREAM frames in packets above the largest acknowledged packet number (RFC 9000, section 19.3). Both leave a hole below
the highest acknowledgement out: what is in it is lost or late, not under way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trifecta.analysis.transport.columns import NULL, Connection, Ints

# The link notes when a packet left after it has handed over a batch, and a kernel answers within it: what an arrival
# made its receiver send can stand before it in the capture, by less than this.
HANDOVER_NS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """Totals that only grow: octets sent after each send, octets acknowledged after each acknowledgement."""

    send_ns: Ints
    sent: Ints
    ack_ns: Ints
    acked: Ints
    base: int  # what the totals count from: TCP's sequence number of the first octet, QUIC 0

    def outstanding(self, at_ns: Ints) -> Ints:
        """Octets under way just after each time."""
        under_way: Ints = np.maximum(0, _at(self.send_ns, self.sent, at_ns) - _at(self.ack_ns, self.acked, at_ns))
        return under_way


@dataclass(frozen=True, slots=True)
class Round:
    """A packet-timed round trip (draft-ietf-ccwg-bbr): from a send to the acknowledgement of that send."""

    start_ns: int
    end_ns: int | None  # None: the acknowledgement was not seen
    window: int  # octets under way just before it ended: what the sender was allowed at least
    ended_sending: bool  # nothing was sent after it


def flight(connection: Connection, *, up: bool) -> Flight | None:
    """Of the sender of a direction, at its own side. None: no data, or numbers that cannot be read."""
    return connection.keep(("flight", up), lambda: (_tcp if connection.tcp else _quic)(connection, up))


def _tcp(connection: Connection, up: bool) -> Flight | None:
    sent = connection.sent(up=up)
    sent = sent.where((sent["payload_bytes"] > 0) & (sent["sequence"] != NULL))
    acks = connection.arrived(up=not up)
    acks = acks.where((acks["ack"] == 1) & (acks["acknowledged"] != NULL))
    if not len(sent):
        return None
    upto = np.maximum.accumulate(sent["sequence"] + sent["payload_bytes"])
    base = int(sent["sequence"][0])
    acked = np.maximum.accumulate(np.maximum(acks["acknowledged"], acks["sack_right"]))
    # An acknowledgement of a FIN is one more than what was sent.
    ack_ns = _before_answers(connection, acks["time_ns"], sent["time_ns"])
    return Flight(sent["time_ns"], upto - base, ack_ns, np.clip(acked - base, 0, upto[-1] - base), base)


def _quic(connection: Connection, up: bool) -> Flight | None:
    own = connection.frames_of("quic", up=up)
    own = own.where(own.is_in("packet_space", "application"))
    data = own.where(own.is_in("type", "STREAM"))
    other = connection.frames_of("quic", up=not up)
    acks = other.where(
        other.is_in("packet_space", "application") & other.is_in("type", "ACK", "ACK_ECN") & (other["value"] != NULL)
    )
    if not len(data):
        return None
    order = np.argsort(data["packet_number"], kind="stable")  # packet numbers only grow (RFC 9000, 12.3)
    sent = np.cumsum(data["length"][order])
    arrived = connection.arrivals(acks["number"], up=not up)
    known = np.flatnonzero(arrived != NULL)
    known = known[np.argsort(arrived[known], kind="stable")]
    largest = np.maximum.accumulate(acks["value"][known])
    below = np.searchsorted(data["packet_number"][order], largest, side="right")
    acked = np.concatenate(([0], sent))[below]
    send_ns = np.maximum.accumulate(data["time_ns"][order])
    return Flight(send_ns, sent, _before_answers(connection, arrived[known], send_ns), acked, 0)


def _before_answers(connection: Connection, ack_ns: Ints, send_ns: Ints) -> Ints:
    """Acknowledgements no later than the first send within `HANDOVER_NS` before them, where a link noted both."""
    if not connection.both_sides:
        return ack_ns
    first = np.searchsorted(send_ns, ack_ns - HANDOVER_NS, side="right")
    return np.minimum(ack_ns, np.where(first < len(send_ns), send_ns[np.minimum(first, len(send_ns) - 1)], ack_ns))


def rounds(of: Flight, start_ns: int, limit: int, until_ns: int | None = None) -> list[Round]:
    """Up to ``limit`` round trips from the first send at or after a time, that begin at ``until_ns`` at the latest."""
    found: list[Round] = []
    index = int(of.send_ns.searchsorted(start_ns))
    while index < len(of.send_ns) and len(found) < limit:
        if until_ns is not None and of.send_ns[index] > until_ns:
            break
        # The sends of one moment belong together: the round is that of the first of them.
        ack = int(of.acked.searchsorted(of.sent[index]))
        known = ack < len(of.ack_ns)
        end = int(of.ack_ns[ack]) if known else None
        after = int(of.send_ns.searchsorted(end)) if end is not None else len(of.send_ns)
        after = max(after, index + 1)
        before = int(of.acked[ack - 1]) if ack else 0
        found.append(
            Round(int(of.send_ns[index]), end, int(of.sent[after - 1]) - before, ended_sending=after >= len(of.send_ns))
        )
        index = after
    return found


def _at(times: Ints, totals: Ints, at_ns: Ints) -> Ints:
    """The total after the last event at or before each time; 0 before the first."""
    return np.concatenate(([0], totals))[np.searchsorted(times, at_ns, side="right")]

"""What a sender had sent and not yet seen acknowledged, over time, and its round trips.

TCP: octets of payload above the highest that was acknowledged (cumulatively or by SACK, RFC 2018). QUIC: octets of
STREAM frames in packets above the largest acknowledged packet number (RFC 9000, section 19.3). Both leave a hole below
the highest acknowledgement out: what is in it is lost or late, not under way.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trifecta.analysis.transport.columns import NULL, Connection, acks, application_acks, octets
from trifecta.analysis.transport.rows import Ints

# The link notes when a packet left after it has handed over a batch, and a kernel answers within it: what an arrival
# made its receiver send can stand before it in the capture, by less than this.
HANDOVER_NS = 100_000


@dataclass(frozen=True, eq=False)
class Flight:
    """Totals that only grow: octets sent after each send, octets acknowledged after each acknowledgement."""

    send_ns: Ints
    sent: Ints
    ack_ns: Ints
    acked: Ints
    base: int  # what the totals count from: TCP's sequence number of the first octet, QUIC 0

    @cached_property
    def lists(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Sends and their totals, acknowledgements and theirs: for what goes from one to the next."""
        return self.send_ns.tolist(), self.sent.tolist(), self.ack_ns.tolist(), self.acked.tolist()

    def outstanding(self, at_ns: Ints) -> Ints:
        """Octets under way just after each time."""
        under_way: Ints = np.maximum(0, _at(self.send_ns, self.sent, at_ns) - _at(self.ack_ns, self.acked, at_ns))
        return under_way


class Round(NamedTuple):
    """A packet-timed round trip (draft-ietf-ccwg-bbr): from a send to the acknowledgement of that send."""

    start_ns: int
    end_ns: int | None  # None: the acknowledgement was not seen
    window: int  # octets under way just before it ended: what the sender was allowed at least
    ended_sending: bool  # nothing was sent after it


def flight(connection: Connection, *, up: bool) -> Flight | None:
    """Of the sender of a direction, at its own side. None: no data, or numbers that cannot be read."""
    return connection.keep(("flight", up), lambda: (_tcp if connection.tcp else _quic)(connection, up))


def _tcp(connection: Connection, up: bool) -> Flight | None:
    sent = octets(connection.sent(up=up))
    if not len(sent):
        return None
    came = acks(connection.arrived(up=not up))
    upto = np.maximum.accumulate(sent["sequence"] + sent["payload_bytes"])
    base = int(sent["sequence"][0])
    acked = np.maximum.accumulate(np.maximum(came["acknowledged"], came["sack_right"]))
    # An acknowledgement of a FIN is one more than what was sent.
    ack_ns = _before_answers(connection, came["time_ns"], sent["time_ns"])
    return Flight(sent["time_ns"], upto - base, ack_ns, np.clip(acked - base, 0, upto[-1] - base), base)


def _quic(connection: Connection, up: bool) -> Flight | None:
    data = connection.frames_of("quic", up=up).pick(
        "application data", lambda of: of.is_in("packet_space", "application") & of.is_in("type", "STREAM")
    )
    if not len(data):
        return None
    came = application_acks(connection.frames_of("quic", up=not up))
    order = data["packet_number"].argsort(kind="stable")  # packet numbers only grow (RFC 9000, 12.3)
    sent = data["length"][order].cumsum()
    arrived = connection.arrivals(came["number"], up=not up)
    known = (arrived != NULL).nonzero()[0]
    known = known[arrived[known].argsort(kind="stable")]
    largest = np.maximum.accumulate(came["value"][known])
    below = data["packet_number"][order].searchsorted(largest, side="right")
    acked = np.concatenate(([0], sent))[below]
    send_ns = np.maximum.accumulate(data["time_ns"][order])
    return Flight(send_ns, sent, _before_answers(connection, arrived[known], send_ns), acked, 0)


def _before_answers(connection: Connection, ack_ns: Ints, send_ns: Ints) -> Ints:
    """Acknowledgements no later than the first send within `HANDOVER_NS` before them, where a link noted both."""
    if not connection.both_sides:
        return ack_ns
    first = send_ns.searchsorted(ack_ns - HANDOVER_NS, side="right")
    return np.minimum(ack_ns, np.where(first < len(send_ns), send_ns[np.minimum(first, len(send_ns) - 1)], ack_ns))


def rounds(of: Flight, start_ns: int, limit: int, until_ns: int | None = None) -> list[Round]:
    """Up to ``limit`` round trips from the first send at or after a time, that begin at ``until_ns`` at the latest."""
    found: list[Round] = []
    send_ns, sent, ack_ns, acked = of.lists
    count = len(send_ns)
    index = bisect_left(send_ns, start_ns)
    while index < count and len(found) < limit:
        if until_ns is not None and send_ns[index] > until_ns:
            break
        # The sends of one moment belong together: the round is that of the first of them.
        ack = bisect_left(acked, sent[index])
        end = ack_ns[ack] if ack < len(ack_ns) else None
        after = max(bisect_left(send_ns, end) if end is not None else count, index + 1)
        before = acked[ack - 1] if ack else 0
        found.append(Round(send_ns[index], end, sent[after - 1] - before, ended_sending=after >= count))
        index = after
    return found


def _at(times: Ints, totals: Ints, at_ns: Ints) -> Ints:
    """The total after the last event at or before each time; 0 before the first."""
    return np.concatenate(([0], totals))[times.searchsorted(at_ns, side="right")]

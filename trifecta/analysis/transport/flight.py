"""What a sender had sent and not yet seen acknowledged, over time, and its round trips.

TCP: octets of payload above the highest that was acknowledged (cumulatively or by SACK, RFC 2018). QUIC: octets of
STREAM frames in packets above the largest acknowledged packet number (RFC 9000, section 19.3). Both leave a hole below
the highest acknowledgement out: what is in it is lost or late, not under way.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from trifecta.analysis.transport.columns import Connection, acks, application_acks, octets
from trifecta.analysis.transport.group_by import begins, pair_keys
from trifecta.analysis.transport.ranges import running_max
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows

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


class Round(NamedTuple):
    """A packet-timed round trip (draft-ietf-ccwg-bbr): from a send to the acknowledgement of that send."""

    start_ns: int
    end_ns: int | None  # None: the acknowledgement was not seen
    window: int  # octets under way just before it ended: what the sender was allowed at least


def flight(connection: Connection, *, up: bool) -> Flight | None:
    """Of the sender of a direction, at its own side. None: no data, or numbers that cannot be read."""
    return connection.keep(("flight", up), lambda: _flight(connection, up))


def _flight(connection: Connection, up: bool) -> Flight | None:
    if connection.tcp:
        rows = acks(connection.arrived(up=not up))
        return octets(connection.sent(up=up)).each("flight", partial(_tcp, rows.together))
    frames = connection.frames_of("quic", up=not up)
    connection.came(frames, up=not up)
    data = connection.frames_of("quic", up=up).pick(
        "application data", lambda of: of.is_in("packet_space", "application") & of.is_in("type", "STREAM")
    )
    return data.each("flight", partial(_quic, application_acks(frames).together))


class _Totals(NamedTuple):
    """Octets after each event, of all connections: those of each together."""

    connection: Ints
    time_ns: Ints
    octets: Ints


def _tcp(rows: Rows, sent: Rows, starts: Ints, ends: Ints) -> list[Flight | None]:
    of, upto = sent["connection"], running_max(sent["sequence"] + sent["payload_bytes"], sent["connection"])
    if not len(of):
        return [None] * len(starts)
    first = begins(of).nonzero()[0]
    bases, largest = sent["sequence"][first], upto[np.append(first[1:], len(of)) - 1]
    highest = running_max(np.maximum(rows["acknowledged"], rows["sack_right"]), rows["connection"])
    whose = np.minimum(of[first].searchsorted(rows["connection"]), len(first) - 1)
    base = bases[whose]
    # An acknowledgement of a FIN is one more than what was sent.
    acked = np.clip(highest - base, 0, largest[whose] - base)
    sends = _Totals(of, sent["time_ns"], upto - bases.repeat(np.diff(np.append(first, len(of)))))
    came = _before_answers(sends, _Totals(rows["connection"], rows["time_ns"], acked), rows["both"] == 1)
    return _flights(sends, came, starts, ends, bases)


def _quic(rows: Rows, data: Rows, starts: Ints, ends: Ints) -> list[Flight | None]:
    of = data["connection"]
    order = np.lexsort((data["packet_number"], of))  # packet numbers only grow (RFC 9000, 12.3)
    upto = data["length"][order].cumsum()
    first = begins(of).nonzero()[0]
    sent = upto - (upto - data["length"][order])[first].repeat(np.diff(np.append(first, len(of))))
    came = (rows["arrived_ns"] != NULL).nonzero()[0]
    came = came[np.lexsort((rows["arrived_ns"][came], rows["connection"][came]))]
    whose, largest = rows["connection"][came], running_max(rows["value"][came], rows["connection"][came])
    numbers, wanted = pair_keys((of, data["packet_number"][order]), (whose, largest))
    below = numbers.searchsorted(wanted, side="right") - 1
    known = (below >= 0) & (of[below] == whose) if len(of) else below >= 0
    acked = np.where(known, sent[below], 0) if len(of) else below
    sends = _Totals(of, running_max(data["time_ns"][order], of), sent)
    events = _Totals(whose, rows["arrived_ns"][came], acked)
    return _flights(sends, _before_answers(sends, events, rows["both"][came] == 1), starts, ends)


def _flights(sends: _Totals, came: _Totals, starts: Ints, ends: Ints, bases: Ints | None = None) -> list[Flight | None]:
    """Cut by connection; ``bases``: of those that sent, in their order."""
    numbers = sends.connection[begins(sends.connection)]
    low, high = (came.connection.searchsorted(numbers, side=side).tolist() for side in ("left", "right"))
    flights: list[Flight | None] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start == end:
            flights.append(None)
            continue
        at = int(numbers.searchsorted(sends.connection[start]))
        mine, heard = slice(start, end), slice(low[at], high[at])
        base = 0 if bases is None else int(bases[at])
        flights.append(Flight(sends.time_ns[mine], sends.octets[mine], came.time_ns[heard], came.octets[heard], base))
    return flights


def _before_answers(sends: _Totals, came: _Totals, mask: Bools) -> _Totals:
    """Acknowledgements no later than the first send within `HANDOVER_NS` before them, where a link noted both."""
    if not len(sends.time_ns):
        return came
    sent, wanted = pair_keys((sends.connection, sends.time_ns), (came.connection, came.time_ns - HANDOVER_NS))
    first = np.minimum(sent.searchsorted(wanted, side="right"), len(sent) - 1)
    answer = mask & (sends.connection[first] == came.connection) & (sent[first] > wanted)
    return came._replace(time_ns=np.where(answer, np.minimum(came.time_ns, sends.time_ns[first]), came.time_ns))


def rounds(of: Flight, start_ns: int, limit: int, until_ns: int | None = None) -> list[Round]:
    """Up to ``limit`` round trips from the first send at or after a time, that begin at ``until_ns`` at the latest."""
    flight_rounds: list[Round] = []
    send_ns, sent, ack_ns, acked = of.lists
    count = len(send_ns)
    index = bisect_left(send_ns, start_ns)
    while index < count and len(flight_rounds) < limit:
        if until_ns is not None and send_ns[index] > until_ns:
            break
        # The sends of one moment belong together: the round is that of the first of them.
        ack = bisect_left(acked, sent[index])
        end = ack_ns[ack] if ack < len(ack_ns) else None
        after = max(bisect_left(send_ns, end) if end is not None else count, index + 1)
        before = acked[ack - 1] if ack else 0
        flight_rounds.append(Round(send_ns[index], end, sent[after - 1] - before))
        index = after
    return flight_rounds

"""The critical path of a request, walked backwards: from its last octet to what that waited for, until it began.

The walk goes over two messages, the response and then the request. Of each it asks first what the packet that brought
its last octets met on the path, then what its sender did from the moment when it could begin with the message until it
sent that packet: what sent it last waited for an acknowledgement, that for a packet which had arrived, and so on. What
a sender did shows at the receiver by the least delay later. There, what the link spent on sending packets of the
connection is taken out first: while it was busy nothing else held the message up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trifecta.analysis.transport.bottleneck import Path, path_of
from trifecta.analysis.transport.delivery import is_request
from trifecta.analysis.transport.directions import DOWN, NOTED_NS, UP
from trifecta.analysis.transport.parts import (
    BLOCKING,
    CONGESTION,
    CPU,
    FLOW,
    LOSS,
    PROPAGATION,
    QUEUEING,
    REST,
    SERVER,
    TRANSMISSION,
    Interval,
    Stall,
)
from trifecta.analysis.transport.pieces import Delivery
from trifecta.analysis.transport.ranges import NEVER, Ints

OPENED_NS = 1_000_000  # a sender uses a window that was opened within this
LATELY_NS = 1_000_000
PAUSE_NS = 1_000_000  # up to this a host is taken to be busy with what it got, or with sending
BURST_SEGMENTS = 10  # may be sent at once whatever the pace (RFC 9002, 7.7 and 7.2; RFC 6928)
LEAST_SEGMENTS = 2  # no congestion window is smaller before a loss (RFC 5681, 3.1; RFC 9002, 7.2)
STEADY_ROUNDS = 8  # in which no window stays as it is: it grows by a segment in each (RFC 5681, 3.1; RFC 9002, 7.3.3)
STEADY_SEGMENTS = 3
STEPS = 1_000_000  # of a walk; a request of more round trips is given up


@dataclass(slots=True)
class _Trail:
    """The intervals found so far, from the last to the first, and where the walk stands."""

    began: int
    at: int
    found: list[Interval]

    @property
    def done(self) -> bool:
        return self.at <= self.began

    def cut(self, start: int, cause: str) -> None:
        """Give the time since `start` to a cause; no earlier than it all began."""
        start = max(start, self.began)
        if start >= self.at:
            return
        end = self.found.pop().end_ns if self.found and self.found[-1].cause == cause else self.at
        self.found.append(Interval(start, end, cause))
        self.at = start

    def cut_idle(self, start: int, cause: str, busy: tuple[list[int], list[int]]) -> None:
        """The same, but for the times in which the link was busy: those are transmission."""
        begins, ends = busy
        index = bisect_left(begins, self.at) - 1
        while index >= 0 and ends[index] > start:
            self.cut(max(ends[index], start), cause)
            self.cut(max(begins[index], start), TRANSMISSION)
            index -= 1
        self.cut(start, cause)


@dataclass(frozen=True, slots=True)
class _Message:
    """One of both messages, at its sender, in ns: it could begin, it sent its first octet."""

    direction: str
    stream: int
    floor: int
    first: int
    flight_until: int  # before this nothing could tell the sender that any of it had arrived


class _Side:
    """One direction of a connection, as lists: a walk goes from one packet to the next."""

    def __init__(self, delivery: Delivery) -> None:
        self.one, direction = delivery, delivery.direction
        self.path: Path = path_of(direction)
        self.sent: list[int] = direction.sent_ns.tolist()
        there = (direction.arrived_ns < NEVER).nonzero()[0]
        rows = there[direction.arrived_ns[there].argsort(kind="stable")]
        self.rows: list[int] = rows.tolist()
        self.arrived: list[int] = direction.arrived_ns[rows].tolist()

    @cached_property
    def octets(self) -> list[int]:
        """Octets of payload that were sent before each packet; one more than there are packets."""
        return np.append(0, self.one.direction.payload.cumsum()).tolist()

    @cached_property
    def segment(self) -> int:
        """The largest payload."""
        return int(self.one.direction.payload.max(initial=1))

    @cached_property
    def lost_ns(self) -> list[int]:
        """When what was lost had been sent."""
        lost: list[int] = self.one.direction.sent_ns[self.one.direction.lost].tolist()
        return lost

    @cached_property
    def pieces_ns(self) -> Ints:
        """When each piece of a stream was sent first; -1: nobody knows."""
        one = self.one
        rows = one.first_sent[one.tiles.edges.searchsorted(_positions(one), side="right") - 1]
        return np.where(rows >= 0, one.direction.sent_ns[rows], -1)

    @cached_property
    def first_sent(self) -> list[int]:
        """By packet the one that held first what it was the first to bring; `NEVER`: nobody knows."""
        one = self.one
        earliest = np.full(len(one.direction.sent_ns), NEVER, dtype=np.int64)
        known = (one.carrier >= 0) & (one.first_sent >= 0)
        np.minimum.at(earliest, one.carrier[known], one.first_sent[known])
        return earliest.tolist()

    def carrier(self, at: int) -> int:
        """The packet that arrived at a time; of several the last with octets. -1: none did."""
        some = self.rows[bisect_left(self.arrived, at) : bisect_right(self.arrived, at)]
        payload = self.one.direction.payload
        return next((row for row in reversed(some) if payload[row] > 0), some[-1] if some else -1)


class Walk:
    """The walks of one connection's requests. ``lost``: by direction, sent and repaired; ``held``: by flow control."""

    def __init__(
        self,
        up: Delivery,
        down: Delivery,
        lost: dict[str, list[tuple[int, int]]],
        held: dict[str, list[Stall]],
        protocol: str,
    ) -> None:
        self.sides = {UP: _Side(up), DOWN: _Side(down)}
        self.lost, self.held = lost, held
        self.steady_octets: int | None = None  # so much was under way in round after round, without a loss
        self.round_trip_ns = sum(side.path.least_ns for side in self.sides.values())
        self.slack_ns = min(NOTED_NS, self.round_trip_ns // 4)
        # When the server sent octets of each response first, in the order of sending.
        sent = self.sides[DOWN].pieces_ns
        mine = (sent >= 0) & is_request(down.direction.transport, protocol, down.stream)
        order = sent[mine].argsort(kind="stable")
        self.data_stream = down.stream[mine][order]
        self.data_ns: list[int] = sent[mine][order].tolist()

    def request(self, stream: int, began: int) -> list[Interval] | None:
        """The intervals of a request that began then, from the last to the first; None if it was not seen whole."""
        down, up = self.sides[DOWN].one, self.sides[UP].one
        mine, upstream = down.stream == stream, up.stream == stream
        if not mine.any() or not upstream.any():
            return None
        end, own = int(down.delivered_ns[mine].max()), int(down.records_ns[mine].max())
        arrived = int(up.delivered_ns[upstream].max())
        if end >= NEVER or arrived >= NEVER or end <= began:
            return None
        trail = _Trail(began, end, [])
        trail.cut(own, BLOCKING)
        replies = (self.data_stream == stream).nonzero()[0]
        replied = max(self.data_ns[replies[0]] if len(replies) else own, arrived)
        until = self._flight_until(int(down.arrived_ns[mine].min()))
        if not self._message(trail, _Message(DOWN, stream, arrived, replied, until), own, SERVER):
            return None
        asks = self.sides[UP].pieces_ns[upstream]
        asks = asks[asks >= began]
        first = int(asks.min()) if len(asks) else began
        if not self._message(trail, _Message(UP, stream, began, first, began), arrived, CPU):
            return None
        return trail.found if trail.done else None

    def _message(self, trail: _Trail, message: _Message, arrived: int, before: str) -> bool:
        """One message, from the arrival of its last octets back to when its sender could begin with it.

        ``before``: what the sender did until then. False: what brought them was not seen.
        """
        side = self.sides[message.direction]
        row = side.carrier(arrived)
        if row < 0:
            return trail.done
        sent, least, busy = side.sent[row], side.path.least_ns, side.path.busy
        sender = _Trail(message.floor, sent, [])
        first = side.first_sent[row]
        if first < NEVER:
            sender.cut(side.sent[first], LOSS)
        self._rounds(sender, message)
        # What the sender did shows by the least delay later; the delay itself comes first.
        trail.cut_idle(sent + least, QUEUEING, busy)
        for one in sender.found:
            trail.cut_idle(one.start_ns + least, one.cause, busy)
        trail.cut(sender.at, PROPAGATION)
        trail.cut(message.floor, before)
        return True

    def _rounds(self, sender: _Trail, message: _Message) -> None:
        """What a sender waited for, round trip by round trip, back to its first flight, of which it is the end."""
        direction, down = message.direction, message.direction == DOWN
        windows: list[int] = []
        for _ in range(STEPS):
            if sender.done:
                return
            for stall in self.held[direction]:
                mine = stall.stream is None or stall.stream == message.stream
                if mine and stall.start_ns < sender.at <= stall.end_ns + OPENED_NS:
                    sender.cut(stall.start_ns, FLOW)
            came, acknowledging = self._before(direction, sender.at)
            if came <= message.floor or (down and self._first_flight(sender.at, message)):
                self._sending(sender, direction, max(message.first, message.floor))
                return
            before = sender.at
            self._host(sender, direction, came)
            windows.append(self._round_trip(sender, direction, acknowledging))
            if len(windows) >= STEADY_ROUNDS:
                some = windows[-STEADY_ROUNDS:]
                if min(some) > 0 and max(some) - min(some) <= STEADY_SEGMENTS * self.sides[direction].segment:
                    self.steady_octets = max(some)
            if sender.at >= before:  # times that make no sense
                sender.cut(message.floor, REST)

    def _host(self, sender: _Trail, direction: str, came: int) -> None:
        """A sender between an arrival and what it sent then."""
        side = self.sides[direction]
        index = bisect_left(side.sent, came)
        answered = min(side.sent[index], sender.at) if index < len(side.sent) else sender.at
        self._sending(sender, direction, answered)
        sender.cut(came, CPU if answered - came < PAUSE_NS else self._paused(direction, index, came))

    def _sending(self, sender: _Trail, direction: str, start: int) -> None:
        """A sender that sends one packet after the other, without hearing anything in between."""
        side = self.sides[direction]
        if sender.at - start >= PAUSE_NS:
            low, high = bisect_left(side.sent, start), bisect_left(side.sent, sender.at)
            times = np.array([*side.sent[low:high], sender.at], dtype=np.int64)
            for at in (np.diff(times) >= PAUSE_NS).nonzero()[0][::-1].tolist():
                sender.cut(int(times[at + 1]), REST)
                sender.cut(int(times[at]), self._paused(direction, low + at + 1, int(times[at])))
        sender.cut(start, REST)

    def _paused(self, direction: str, index: int, since: int) -> str:
        """Why a sender paused before its packet of this index, since a time when it could have sent it.

        A pace is not slower than a window a round trip (RFC 9002, 7.7): a pause that is no longer than that makes it
        after what had been sent at once is a pace, and the pace is the congestion window's.
        """
        side = self.sides[direction]
        if 0 < index < len(side.sent):
            last = side.sent[index - 1]
            window = side.octets[index] - side.octets[bisect_left(side.sent, last - self.round_trip_ns)]
            at = index - 1
            while at > 0 and side.sent[at] - side.sent[at - 1] < PAUSE_NS:
                at -= 1
            pace_ns = (side.octets[index] - side.octets[at]) * self.round_trip_ns
            if window >= BURST_SEGMENTS * side.segment and (side.sent[index] - last) * window <= pace_ns:
                return CONGESTION
        until = side.sent[index] if index < len(side.sent) else since
        losses = self.sides[UP if direction == DOWN else DOWN].lost_ns
        unheard = bisect_left(losses, since) < bisect_left(losses, until)  # a timer stands in for an acknowledgement
        lost = unheard or any(start <= since and until <= stop for start, stop in self.lost[direction])
        return LOSS if lost else CPU

    def _round_trip(self, sender: _Trail, direction: str, acknowledging: int) -> int:
        """From the arrival of an acknowledgement back to the sending of the packet that it answers.

        Gives how much was under way before it, or 0 if no congestion window was waited for, or after a loss.
        """
        side, opposite = self.sides[direction], UP if direction == DOWN else DOWN
        back = self.sides[opposite]
        end = bisect_left(side.sent, sender.at)
        acknowledged = back.sent[acknowledging]
        arrived, row = self._before(opposite, acknowledged)
        # Less than two segments under way are no window, but Nagle's algorithm (RFC 9293, 3.7.4), or an application.
        flight = bisect_left(side.sent, side.sent[row] - self.round_trip_ns // 2) if row >= 0 else end
        octets = side.octets[end] - side.octets[min(flight, end)]
        lossy = bisect_left(side.lost_ns, sender.at) > 0
        limited = octets >= LEAST_SEGMENTS * side.segment or lossy
        waited = CONGESTION if limited else REST
        sender.cut(max(sender.at - int(back.path.late_ns[acknowledging]), acknowledged), QUEUEING)
        sender.cut(acknowledged, waited)
        if row < 0:
            return 0
        sender.cut(arrived, CPU if acknowledged - arrived < PAUSE_NS else waited)
        sender.cut(max(sender.at - int(side.path.late_ns[row]), side.sent[row]), QUEUEING)
        sender.cut(side.sent[row], waited)
        return self._under_way(direction, acknowledging, end) if limited and not lossy else 0

    def _under_way(self, direction: str, acknowledging: int, end: int) -> int:
        """Octets of the packets before this one that the acknowledgements before that one had not answered."""
        side, opposite = self.sides[direction], UP if direction == DOWN else DOWN
        back = self.sides[opposite]
        before = bisect_left(back.arrived, int(back.one.direction.arrived_ns[acknowledging])) - 1
        answered = self._before(opposite, back.sent[back.rows[before]])[1] if before >= 0 else -1
        return max(side.octets[end] - side.octets[answered + 1], 0)

    def _first_flight(self, at: int, message: _Message) -> bool:
        """Sent before the server could know that any of the response had arrived, and nothing else kept it busy."""
        if at >= message.flight_until:
            return False
        low, high = bisect_left(self.data_ns, message.floor), bisect_left(self.data_ns, message.first)
        return low >= high or bool((self.data_stream[low:high] == message.stream).all())

    def _flight_until(self, arrived: int) -> int:
        """When the first packet came back to the server that the client sent after this."""
        up = self.sides[UP].one.direction
        later = up.arrived_ns[up.sent_ns >= arrived]
        return int(later.min()) if len(later) else NEVER

    def _before(self, direction: str, at: int) -> tuple[int, int]:
        """The last arrival at the sender of a direction before a time: when, and which row of the other one.

        A link of earlier versions noted when a packet had left after it had handed it over, and so could note the
        answer first: where nothing had come lately, what is noted right afterwards is taken for the cause.
        """
        other = self.sides[UP if direction == DOWN else DOWN]
        times = other.arrived
        following = bisect_left(times, at)
        index = following - 1
        lately = index >= 0 and at - times[index] <= LATELY_NS
        if not lately and following < len(times) and times[following] - at <= self.slack_ns:
            return at, other.rows[following]
        return (times[index], other.rows[index]) if index >= 0 else (-1, -1)


def _positions(delivery: Delivery) -> Ints:
    """Where each piece stands in the tiles."""
    if delivery.direction.transport == "tcp":
        return delivery.start
    index = delivery.spans.stream.searchsorted(delivery.stream)
    starts = delivery.tiles.edges.searchsorted(delivery.spans.start)
    base = delivery.spans.start - delivery.start[starts]
    positions: Ints = delivery.start + base[index]
    return positions

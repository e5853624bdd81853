"""Where the time of a request went: its critical path, cut into disjoint intervals by cause.

The path is walked backwards from the moment at which the last octet of the response could be delivered, from what
happened to what it waited for, until the request began. Each step of the walk is an interval with one cause, the next
begins where it ends, so the parts add up to the whole. In the order in which they are looked for:

1. `handshake`: from the connection's first packet to the request's first, of the first request of a connection that
   was opened for it. All that happens in it counts here.
2. `head-of-line blocking`: its own octets and their records were there, octets of other streams were not.
3. `loss recovery`: from the first sending of the octets that came last until they were sent again; and while a sender
   sent nothing although told nothing new, with a loss not yet repaired.
4. `flow control`: the sender had data and a window of the receiver kept it back (`credit`).
5. `server`: from the arrival of the whole request until the first octet of its response was sent, where the server sent
   no other response's data meanwhile.
6. `queueing`: what a packet on the path took longer than the fastest of its direction: queues, rate, jitter.
7. `cpu`: a host had what it needed, was not held back by any of these and sent nothing.
8. `rest`: the least time on the path (propagation), once for each round trip that the request took, the waiting for
   acknowledgements to be sent, and the time that a sender took to send a flight.

A packet counts as caused by the last arrival at its sender before it was sent. That is right for what is clocked by
acknowledgements; it is a model, like every critical path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trifecta.analysis.transport.columns import Connection, connections
from trifecta.analysis.transport.credit import held
from trifecta.analysis.transport.delivery import Delivery, Passage, is_request, passage
from trifecta.analysis.transport.ranges import NEVER, Ints
from trifecta.analysis.transport.recovery import Recovery, recovery
from trifecta.analysis.transport.ways import DOWN, NOTED_NS, UP, Way, texts, whole

if TYPE_CHECKING:
    import pyarrow as pa

HANDSHAKE, SERVER, QUEUEING, LOSS = "handshake", "server", "queueing", "loss recovery"
BLOCKING, FLOW, CPU, REST = "head-of-line blocking", "flow control", "cpu", "rest"
PARTS = (HANDSHAKE, SERVER, QUEUEING, LOSS, BLOCKING, FLOW, CPU, REST)
OPENED_NS = 1_000_000  # a sender uses a window that was opened within this
LATELY_NS = 1_000_000
STEPS = 1_000_000  # of a walk; a request of more round trips is given up
ONE_SIDE = "one side was captured: a request's time cannot be split"
INCOMPLETE = "connection {}, stream {}: the response was not seen whole; its time is not split"
NO_LIMITS = "connection {}, {}: flow control cannot be read; time that it took counts as rest"
UNKNOWN = "connection {}: requests or their octets are not known (no keys?)"


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


@dataclass(frozen=True, slots=True)
class RequestTime:
    """One request: its intervals in order, without gaps, from `start_ns` to `end_ns`, and their sums by cause."""

    capture: str
    connection: int
    protocol: str
    stream: int | None
    request: int
    start_ns: int
    end_ns: int
    intervals: tuple[Interval, ...]

    @property
    def whole_ns(self) -> int:
        """The load time."""
        return self.end_ns - self.start_ns

    @property
    def parts(self) -> dict[str, int]:
        """ns by part; they add up to `whole_ns`."""
        found = dict.fromkeys(PARTS, 0)
        for one in self.intervals:
            found[one.cause] += one.end_ns - one.start_ns
        return found


def attribute(
    tables: Mapping[str, pa.Table],
    stalls: Sequence[Stall] | None = None,
    *,
    setup: bool | None = None,
    seen: Passage | None = None,
    recovered: Sequence[Recovery] | None = None,
    of: Sequence[Connection] | None = None,
) -> tuple[list[RequestTime], list[str]]:
    """Split the time of every request, and notes. `setup`: whether the first request of a connection waited for its
    handshake; None: where the connection had this request only. `stalls`: found by `flow_control` where not given.
    `seen`, `recovered`, `of`: of the same tables, where they are there.
    """
    table = tables["connections"]
    seen = seen or passage(tables["packets"], tables["frames"], table)
    recovered = recovery(tables, seen)[0] if recovered is None else recovered
    notes = [ONE_SIDE] if seen.one_side else []
    if stalls is None:
        stalls, unknown = flow_control(tables, of)
        notes += unknown
    held_back: dict[tuple[int, str], list[Stall]] = {}
    for stall in stalls:
        held_back.setdefault((stall.connection, stall.direction), []).append(stall)
    found = {(one.way.connection, one.way.direction): one for one in seen.deliveries}
    repairs = {(one.connection, one.direction): one.repairs for one in recovered}
    numbers = whole(table, "connection").tolist()
    protocols = dict(zip(numbers, texts(table, "protocol"), strict=True))
    starts = dict(zip(numbers, whole(table, "start_ns").tolist(), strict=True))
    requests: list[RequestTime] = []
    by_connection: dict[int, list[dict[str, int | str | None]]] = {}
    wanted = ["capture", "connection", "stream", "request", "request_start_ns", "response_end_ns"]
    for row in tables["messages"].select(wanted).to_pylist():
        by_connection.setdefault(row["connection"], []).append(row)
    for connection, rows in by_connection.items():
        down, up = found.get((connection, DOWN)), found.get((connection, UP))
        if down is None or up is None:
            notes.append(UNKNOWN.format(connection))
            continue
        if not (down.way.both_sides and up.way.both_sides):
            continue
        lost = {
            way: [(one.sent_ns, one.repaired_ns or NEVER) for one in repairs[connection, way]] for way in (UP, DOWN)
        }
        kept = {way: held_back.get((connection, way), []) for way in (UP, DOWN)}
        walk = _Walk(up, down, lost, kept, str(protocols.get(connection, "")))
        for row in rows:
            name = row["stream"] if row["stream"] is not None else row["request"]
            began = row["request_start_ns"]
            intervals = walk.request(int(name or 0), int(began)) if began is not None else None
            if intervals is None:
                notes.append(INCOMPLETE.format(connection, name))
                continue
            first = starts.get(connection, -1)
            waited = len(rows) == 1 if setup is None else setup
            if waited and row["request"] == 0 and 0 <= first < int(began or 0):
                intervals.append(Interval(first, int(began or 0), HANDSHAKE))
            intervals.reverse()
            requests.append(
                RequestTime(
                    capture=str(row["capture"]),
                    connection=connection,
                    protocol=str(protocols.get(connection, "")),
                    stream=int(row["stream"]) if row["stream"] is not None else None,
                    request=int(row["request"] or 0),
                    start_ns=intervals[0].start_ns,
                    end_ns=intervals[-1].end_ns,
                    intervals=tuple(intervals),
                )
            )
    return requests, notes


def flow_control(
    tables: Mapping[str, pa.Table], of: Sequence[Connection] | None = None
) -> tuple[list[Stall], list[str]]:
    """When senders had used all that a receiver allowed, and for which connections nobody can know."""
    found, notes = [], []
    if of is None:
        of = connections(*(tables[name] for name in ("packets", "frames", "messages", "connections")))
    for connection in of:
        for way in (UP, DOWN):
            limits = held(connection, up=way == UP)
            if limits.connection is None and limits.streams is None and connection.both_sides:
                notes.append(NO_LIMITS.format(connection.number, way))
            spans: list[tuple[int | None, Sequence[tuple[int, int]]]] = [(None, limits.connection or [])]
            spans += list((limits.streams or {}).items())
            found += [
                Stall(connection.number, way, start, end, stream) for stream, some in spans for start, end in some
            ]
    return found, notes


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
        """Give the time since `start` to a cause; no earlier than the request began."""
        start = max(start, self.began)
        if start >= self.at:
            return
        end = self.found.pop().end_ns if self.found and self.found[-1].cause == cause else self.at
        self.found.append(Interval(start, end, cause))
        self.at = start


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a server did with a request, in ns: it had arrived, the response's first octet was sent."""

    stream: int
    asked: int
    replied: int
    flight_until: int  # before this nothing could tell the server that any of the response had arrived


class _Walk:
    """The walks of one connection's requests."""

    def __init__(
        self,
        up: Delivery,
        down: Delivery,
        lost: dict[str, list[tuple[int, int]]],
        held: dict[str, list[Stall]],
        protocol: str,
    ) -> None:
        self.of = {UP: up, DOWN: down}
        self.lost, self.held, self.protocol = lost, held, protocol
        self.least = {way: _least(one.way) for way, one in self.of.items()}
        self.slack_ns = min(NOTED_NS, sum(self.least.values()) // 4)
        self.arrivals: dict[str, tuple[Ints, Ints]] = {}
        for way, one in self.of.items():
            there = (one.way.arrived_ns < NEVER).nonzero()[0]
            rows = there[one.way.arrived_ns[there].argsort(kind="stable")]
            self.arrivals[way] = (one.way.arrived_ns[rows], rows)
        self._response_rows()

    def _response_rows(self) -> None:
        """When the server sent octets of each response first, in the order of sending."""
        down = self.of[DOWN]
        tiles = down.tiles.edges.searchsorted(_positions(down), side="right") - 1
        rows = down.first_sent[tiles]
        mine = (rows >= 0) & is_request(down.way.transport, self.protocol, down.stream)
        self.data_ns = down.way.sent_ns[rows[mine]]
        self.data_stream = down.stream[mine]
        order = self.data_ns.argsort(kind="stable")
        self.data_ns, self.data_stream = self.data_ns[order], self.data_stream[order]

    def request(self, stream: int, began: int) -> list[Interval] | None:
        """The intervals of a request that began then, from the last to the first; None if it was not seen whole."""
        down, up = self.of[DOWN], self.of[UP]
        mine, asked = down.stream == stream, up.stream == stream
        if not mine.any() or not asked.any():
            return None
        end, own = int(down.delivered_ns[mine].max()), int(down.records_ns[mine].max())
        arrived = int(up.delivered_ns[asked].max())
        if end >= NEVER or arrived >= NEVER or end <= began:
            return None
        trail = _Trail(began, end, [])
        trail.cut(own, BLOCKING)
        sent = self.data_ns[self.data_stream == stream]
        replied = int(sent[0]) if len(sent) else own
        self._walk(trail, _Reply(stream, arrived, replied, self._flight_until(int(down.arrived_ns[mine].min()))))
        return trail.found if trail.at == began else None

    def _walk(self, trail: _Trail, reply: _Reply) -> None:
        way = DOWN
        row = self._carrier(way, trail.at)
        critical = True  # the octets of this packet were waited for, not only its coming
        for _ in range(STEPS):
            if row < 0 or trail.done:
                return
            one = self.of[way]
            sent = int(one.way.sent_ns[row])
            trail.cut(max(trail.at - self.least[way], sent), REST)
            trail.cut(sent, QUEUEING)
            first = self._first_sent(one, row) if critical else -1
            if first >= 0:
                row = first
                trail.cut(int(one.way.sent_ns[row]), LOSS)
            for stall in self.held[way]:
                mine = stall.stream is None or stall.stream == reply.stream
                if mine and stall.start_ns < trail.at <= stall.end_ns + OPENED_NS:
                    trail.cut(stall.start_ns, FLOW)
            came, cause = self._before(way, trail.at)
            critical = False
            if way == DOWN and trail.at >= reply.asked and (came <= reply.asked or self._first_flight(trail.at, reply)):
                # What the server took until it replied, then how long it took to send its first flight.
                trail.cut(max(reply.replied, reply.asked), REST)
                trail.cut(reply.asked, SERVER)
                way, row, critical = UP, self._carrier(UP, reply.asked), True
                continue
            if came <= trail.began:
                # Nothing had come since it began: the client's own time, or what the server was at before.
                trail.cut(trail.began, CPU if way == UP else REST)
                return
            self._host(trail, way, row, came)
            way, row = (UP if way == DOWN else DOWN), cause

    def _host(self, trail: _Trail, way: str, row: int, came: int) -> None:
        """A host between an arrival and the sending of a packet."""
        packets = self.of[way].way
        if packets.transport == "tcp" and packets.payload[row] == 0:
            trail.cut(came, REST)  # an acknowledgement may wait (RFC 9293, 3.8.6.3)
            return
        next_send = int(packets.sent_ns[packets.sent_ns.searchsorted(came)])
        trail.cut(next_send, REST)
        waits = any(start <= came and trail.at <= stop for start, stop in self.lost[way])
        trail.cut(came, LOSS if waits else CPU)

    def _first_flight(self, at: int, reply: _Reply) -> bool:
        """Sent before the server could know that any of the response had arrived, and nothing else kept it busy."""
        low, high = self.data_ns.searchsorted([reply.asked, reply.replied])
        return at < reply.flight_until and bool((self.data_stream[low:high] == reply.stream).all())

    def _flight_until(self, arrived: int) -> int:
        """When the first packet came back to the server that the client sent after this."""
        up = self.of[UP].way
        later = up.arrived_ns[up.sent_ns >= arrived]
        return int(later.min()) if len(later) else NEVER

    def _before(self, way: str, at: int) -> tuple[int, int]:
        """The last arrival at the sender of a direction before a time: when, and which row of the other one.

        A link of earlier versions noted when a packet had left after it had handed it over, and so could note the
        answer first: where nothing had come lately, what is noted right afterwards is taken for the cause.
        """
        times, rows = self.arrivals[UP if way == DOWN else DOWN]
        index = int(times.searchsorted(at, side="left")) - 1
        following = index + 1
        lately = index >= 0 and at - int(times[index]) <= LATELY_NS
        if not lately and following < len(times) and int(times[following]) - at <= self.slack_ns:
            return at, int(rows[following])
        return (int(times[index]), int(rows[index])) if index >= 0 else (-1, -1)

    def _carrier(self, way: str, at: int) -> int:
        """The packet that arrived at a time; of several the last with octets."""
        times, rows = self.arrivals[way]
        low, high = times.searchsorted(at, side="left"), times.searchsorted(at, side="right")
        some = rows[low:high]
        carrying = some[self.of[way].way.payload[some] > 0]
        return int((carrying if len(carrying) else some)[-1]) if len(some) else -1

    def _first_sent(self, one: Delivery, row: int) -> int:
        """The packet that held first what this one was the first to bring."""
        firsts = one.first_sent[one.carrier == row]
        firsts = firsts[firsts >= 0]
        return int(firsts.min()) if len(firsts) else -1


def _positions(one: Delivery) -> Ints:
    """Where each piece stands in the tiles."""
    if one.way.transport == "tcp":
        return one.start
    index = one.spans.stream.searchsorted(one.stream)
    starts = one.tiles.edges.searchsorted(one.spans.start)
    base = one.spans.start - one.start[starts]
    positions: Ints = one.start + base[index]
    return positions


def _least(way: Way) -> int:
    """The least time of a packet of this direction on the path, in ns."""
    there = way.arrived_ns < NEVER
    return int((way.arrived_ns - way.sent_ns)[there].min()) if there.any() else 0

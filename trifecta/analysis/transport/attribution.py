"""Where the time of a request went: its critical path, cut into disjoint intervals by cause.

The path is walked backwards from the moment at which the last octet of the response could be delivered, from what
happened to what it waited for, until the request began (`critical_path`). Each step of the walk is an interval with
one cause, the next begins where it ends, so the parts add up to the whole. In the order in which they are looked for,
the first that holds counts:

1. `handshake`: from the connection's first packet to the request's first, of the first request of a connection that
   was opened for it. All that happens in it counts here.
2. `head-of-line blocking`: its own octets and their records were there, octets of other streams were not.
3. `transmission`: the link sent packets of this connection, at its rate (`bottleneck`).
4. `loss recovery`: from the first sending of the octets that came last until they were sent again; and while a sender
   sent nothing although told nothing new, with a loss not yet repaired, or while an acknowledgement was lost.
5. `flow control`: the sender had data and a window of the receiver kept it back (`flow_control`).
6. `queueing`: what a packet on the path took longer than the fastest of its direction, and behind the packets of its
   own connection: queues of others, jitter, a rate that is not known.
7. `congestion window`: the sender had data, none of these kept it back, and it waited for acknowledgements: round
   trips of slow start, of congestion avoidance and of the smaller window after a loss; pauses of its pace.
8. `propagation`: the least time on the path, once for the request and once for the response.
9. `server`: from the arrival of the whole request until the first octet of its response was sent, where the server sent
   no other response's data meanwhile.
10. `cpu`: a host had what it needed, was not held back by any of these and sent nothing.
11. `rest`: the time that a sender took to send a flight, one packet after the other; waiting for acknowledgements with
    less than two segments under way.

A packet counts as caused by the last arrival at its sender before it was sent. That is right for what is clocked by
acknowledgements; it is a model, like every critical path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trifecta.analysis.transport.columns import Connection, connections
from trifecta.analysis.transport.critical_path import Walk
from trifecta.analysis.transport.delivery import Passage, passage
from trifecta.analysis.transport.directions import DOWN, LACKS, UP, integer_column, texts
from trifecta.analysis.transport.flow_control import blocked_spans
from trifecta.analysis.transport.parts import HANDSHAKE, PARTS, Interval, Stall
from trifecta.analysis.transport.ranges import NEVER
from trifecta.analysis.transport.recovery import Recovery, recovery

if TYPE_CHECKING:
    import pyarrow as pa

ONE_SIDE = "one side was captured: a request's time cannot be split"
INCOMPLETE = "connection {}, stream {}: the response was not seen whole; its time is not split"
NO_LIMITS = "connection {}, {}: flow control cannot be read; its time counts as another part"
STEADY = (
    "connection {}: {} octets were under way in round trip after round trip, without a loss: no window stays as it is, "
    "so a send buffer may be what the sender waited for, which counts as its congestion window"
)
UNKNOWN = "connection {}: requests or their octets are not known (no keys?)"


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
        durations = dict.fromkeys(PARTS, 0)
        for one in self.intervals:
            durations[one.cause] += one.end_ns - one.start_ns
        return durations


def attribute(
    tables: Mapping[str, pa.Table],
    stalls: Sequence[Stall] | None = None,
    *,
    setup: bool | None = None,
    known_passage: Passage | None = None,
    recovered: Sequence[Recovery] | None = None,
    of: Sequence[Connection] | None = None,
) -> tuple[list[RequestTime], list[str]]:
    """Split the time of every request, and notes. `setup`: whether the first request of a connection waited for its
    handshake; None: where the connection had this request only. `stalls`: found by `flow_control` where not given.
    `seen`, `recovered`, `of`: of the same tables, where they are there.
    """
    table = tables["connections"]
    known_passage = known_passage or passage(tables["packets"], tables["frames"], table)
    recovered = recovery(tables, known_passage)[0] if recovered is None else recovered
    notes = [ONE_SIDE] if known_passage.one_side else []
    if stalls is None:
        stalls, unknown = flow_control(tables, of)
        notes += unknown
    held_back: dict[tuple[int, str], list[Stall]] = {}
    for stall in stalls:
        held_back.setdefault((stall.connection, stall.direction), []).append(stall)
    deliveries = {(one.direction.connection, one.direction.name): one for one in known_passage.deliveries}
    repairs = {(one.connection, one.direction): one.repairs for one in recovered}
    numbers = integer_column(table, "connection").tolist()
    protocols = dict(zip(numbers, texts(table, "protocol"), strict=True))
    starts = dict(zip(numbers, integer_column(table, "start_ns").tolist(), strict=True))
    requests: list[RequestTime] = []
    by_connection: dict[int, list[dict[str, int | str | None]]] = {}
    wanted = ["capture", "connection", "stream", "request", "request_start_ns", "response_end_ns"]
    for row in tables["messages"].select(wanted).to_pylist():
        by_connection.setdefault(row["connection"], []).append(row)
    for connection, rows in by_connection.items():
        if connection in known_passage.lacking:
            notes.append(LACKS.format(connection))
            continue
        down, up = deliveries.get((connection, DOWN)), deliveries.get((connection, UP))
        if down is None or up is None:
            notes.append(UNKNOWN.format(connection))
            continue
        if not (down.direction.both_sides and up.direction.both_sides):
            continue
        lost = {
            direction: [(one.sent_ns, one.repaired_ns or NEVER) for one in repairs[connection, direction]]
            for direction in (UP, DOWN)
        }
        stalls_by_direction = {direction: held_back.get((connection, direction), []) for direction in (UP, DOWN)}
        walk = Walk(up, down, lost, stalls_by_direction, str(protocols.get(connection, "")))
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
        if walk.steady_octets is not None:
            notes.append(STEADY.format(connection, walk.steady_octets))
    return requests, notes


def flow_control(
    tables: Mapping[str, pa.Table], of: Sequence[Connection] | None = None
) -> tuple[list[Stall], list[str]]:
    """When senders had used all that a receiver allowed, and for which connections nobody can know."""
    stalls, notes = [], []
    if of is None:
        of = connections(*(tables[name] for name in ("packets", "frames", "messages", "connections")))
    for connection in of:
        for direction in (UP, DOWN):
            limits = blocked_spans(connection, up=direction == UP)
            if limits.connection is None and limits.streams is None and connection.both_sides:
                notes.append(NO_LIMITS.format(connection.number, direction))
            spans: list[tuple[int | None, Sequence[tuple[int, int]]]] = [(None, limits.connection or [])]
            spans += list((limits.streams or {}).items())
            stalls += [
                Stall(connection.number, direction, start, end, stream) for stream, some in spans for start, end in some
            ]
    return stalls, notes

"""Head-of-line blocking, measured: how long octets lay received and could not be delivered, and because of what.

What the waits are is in `delivery`; what stands here is by request and by hole. All times are at the receiver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trifecta.analysis.transport.delivery import Passage, is_request, passage
from trifecta.analysis.transport.directions import DOWN, LACKS, integer_column, texts
from trifecta.analysis.transport.group_by import begins, columns_of
from trifecta.analysis.transport.pieces import Delivery
from trifecta.analysis.transport.ranges import NEVER, Ints, covered

if TYPE_CHECKING:
    import pyarrow as pa

ONE_SIDE = "one side was captured: octets count as received where they passed the capture; true at the receiver only"
NO_FRAMES = "connection {}, {}: frames are not known (no keys?), so it is unknown which stream waited"
OPEN = "connection {}, {}: a hole was not filled before the capture ended; waits up to its end are counted"


@dataclass(frozen=True, slots=True)
class RequestBlocking:
    """What one request waited in one direction, in ns. Each is the length of a union of intervals: time, not octets.

    `by_others`, `by_records`, `by_own`: while at least one octet waited for that reason. `blocked`: for any of them.
    `end_by_others`: how much later the last octet was delivered than without other streams. `share`: by_others by the
    load time. `octet_wait_*_ns`: the mean over octets.
    """

    connection: int
    protocol: str
    direction: str
    stream: int
    request: int | None
    octets: int
    blocked_ns: int
    by_others_ns: int
    by_records_ns: int
    by_own_ns: int
    end_by_others_ns: int
    octet_wait_others_ns: float
    octet_wait_own_ns: float
    load_ns: int | None
    share: float | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Hole:
    """Octets [start, end) that were missing while later ones had arrived, of TCP or of a QUIC stream."""

    connection: int
    direction: str
    number: int | None  # of the packet that held them first
    fate: str | None  # of that packet on the link
    streams: tuple[int, ...]  # whose octets these are
    start: int
    end: int
    opened_ns: int  # the first later octet arrived
    filled_ns: int | None
    filled_by: int | None  # number of the packet
    waited: tuple[int, ...]  # streams with octets behind it that had arrived
    waiting_octets: int  # when it was filled


@dataclass(frozen=True, slots=True)
class Blocking:
    """All requests and all holes."""

    requests: list[RequestBlocking]
    holes: list[Hole]
    notes: list[str]


def blocking(tables: Mapping[str, pa.Table], known_passage: Passage | None = None) -> Blocking:
    """Head-of-line blocking of every request of a dissection, given as its tables by name."""
    messages, connections = tables["messages"], tables["connections"]
    known_passage = known_passage or passage(tables["packets"], tables["frames"], connections)
    all_directions, deliveries = known_passage.directions, known_passage.deliveries
    protocols = dict(
        zip(integer_column(connections, "connection").tolist(), texts(connections, "protocol"), strict=True)
    )
    notes = [note for one in deliveries for note in one.notes]
    if known_passage.one_side:
        notes.append(ONE_SIDE)
    notes += [LACKS.format(one) for one in sorted(known_passage.lacking)]
    known = {(one.direction.connection, one.direction.name) for one in deliveries}
    notes += [
        NO_FRAMES.format(*key)
        for key, direction in all_directions.items()
        if key not in known and (direction.payload > 0).any()
    ]
    loads = _loads(messages)
    requests: list[RequestBlocking] = []
    holes: list[Hole] = []
    spoken = [str(protocols.get(one.direction.connection, "")) for one in deliveries]
    for one, some in zip(deliveries, _requests(deliveries, spoken, loads), strict=True):
        if any(not each.complete for each in some):
            notes.append(OPEN.format(one.direction.connection, one.direction.name))
        requests += some
        holes += _holes(one)
    return Blocking(requests, holes, notes)


def _loads(messages: pa.Table) -> dict[tuple[int, int], tuple[int, int | None]]:
    """(Ordinal, load time in ns) of each request, by connection and stream (HTTP/1.1: its ordinal)."""
    columns = [
        integer_column(messages, name)
        for name in ("connection", "stream", "request", "request_start_ns", "response_end_ns")
    ]
    loads = {}
    for connection, stream, request, start, end in zip(*(one.tolist() for one in columns), strict=True):
        load = end - start if start >= 0 and end >= 0 else None
        loads[connection, stream if stream >= 0 else request] = (request, load)
    return loads


def _requests(
    deliveries: list[Delivery], protocols: list[str], loads: dict[tuple[int, int], tuple[int, int | None]]
) -> list[list[RequestBlocking]]:
    """Those of each direction, worked out for all at once."""
    if not deliveries:
        return []
    of, _, stream, octets, *times = columns_of(
        [(one.stream, one.octets, one.arrived_ns, one.own_ns, one.records_ns, one.delivered_ns) for one in deliveries]
    )
    asks = [
        is_request(one.direction.transport, protocol, one.stream)
        for one, protocol in zip(deliveries, protocols, strict=True)
    ]
    mine = np.concatenate(asks).nonzero()[0]
    mine = mine[np.lexsort((stream[mine], of[mine]))]
    of, stream, octets = of[mine], stream[mine], octets[mine]
    open_ended = times[-1][mine] == NEVER
    ends_ns = np.array([one.direction.ends_ns for one in deliveries], dtype=np.int64)[of]
    arrived, own, records, delivered = (np.minimum(each[mine], ends_ns) for each in times)
    new = begins(of) | begins(stream)
    group, first = new.cumsum() - 1, new.nonzero()[0]

    def united(start: Ints, end: Ints) -> list[Any]:
        return [*covered(start, end, group, len(first)).tolist()]

    def mean(start: Ints, end: Ints) -> list[Any]:
        return [*(_sums(octets * (end - start), group, len(first)) / total).tolist()]

    total = _sums(octets, group, len(first))
    columns: dict[str, list[Any]] = {
        "octets": total.tolist(),
        "blocked_ns": united(arrived, delivered),
        "by_others_ns": united(records, delivered),
        "by_records_ns": united(own, records),
        "by_own_ns": united(arrived, own),
        "end_by_others_ns": (_last(delivered, group, len(first)) - _last(records, group, len(first))).tolist(),
        "octet_wait_others_ns": mean(records, delivered),
        "octet_wait_own_ns": mean(arrived, own),
        "complete": (_sums(open_ended.astype(np.int64), group, len(first)) == 0).tolist(),
    }
    blockings: list[list[RequestBlocking]] = [[] for _ in deliveries]
    for at, name, *values in zip(of[first].tolist(), stream[first].tolist(), *columns.values(), strict=True):
        direction, protocol, measured = deliveries[at].direction, protocols[at], dict(zip(columns, values, strict=True))
        request, load = loads.get((direction.connection, name), (None, None))
        if protocol == "h1" and request is None:
            request = name
        blockings[at].append(
            RequestBlocking(
                connection=direction.connection,
                protocol=protocol,
                direction=direction.name,
                stream=name,
                request=request,
                load_ns=load,
                share=measured["by_others_ns"] / load if load and direction.name == DOWN else None,
                **measured,
            )
        )
    return blockings


def _sums(values: Ints, group: Ints, count: int) -> Ints:
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, group, values)
    return total


def _last(values: Ints, group: Ints, count: int) -> Ints:
    last = np.zeros(count, dtype=np.int64)
    np.maximum.at(last, group, values)
    return last


def _holes(delivery: Delivery) -> list[Hole]:
    if delivery.direction.transport == "tcp":
        return _holes_of(delivery, 0, len(delivery.tiles.times), None, 0)
    holes = []
    for at, name in enumerate(delivery.spans.stream.tolist()):
        low, high = delivery.tiles.edges.searchsorted([delivery.spans.start[at], delivery.spans.end[at]])
        start = int(delivery.start[low]) - int(
            delivery.tiles.edges[low]
        )  # from the common range to the stream's offsets
        holes += _holes_of(delivery, int(low), int(high), name, start)
    return holes


def _holes_of(delivery: Delivery, low: int, high: int, stream: int | None, shift: int) -> list[Hole]:
    """Holes in the tiles [low, high), which are ordered among themselves."""
    direction, times = delivery.direction, delivery.tiles.times[low:high]
    carrier, edges = delivery.carrier[low:high], delivery.tiles.edges[low : high + 1]
    if len(times) < 2:
        return []
    # The first arrival of anything behind each tile.
    behind = np.append(np.minimum.accumulate(times[::-1])[::-1][1:], NEVER)
    missing = times > behind
    if not missing.any():
        return []
    first_sent = delivery.first_sent[low:high]
    # How far the octets reach that had arrived before each time: the last tile with an earlier arrival.
    begins = missing.copy()
    begins[1:] &= ~(missing[:-1] & (times[1:] == times[:-1]) & (first_sent[1:] == first_sent[:-1]))
    starts = begins.nonzero()[0]
    # A hole ends before the next one begins, or where nothing is missing.
    next_hole = np.append(starts[1:], len(times))
    order = times.argsort(kind="stable")
    reach, ordered = np.maximum.accumulate(order), times[order]
    arrived = int((times < NEVER).sum())
    stream_of = _stream_by_tile(delivery)[low:high] if stream is None else None
    holes = []
    for start, limit in zip(starts.tolist(), next_hole.tolist(), strict=True):
        stop = start + 1
        while stop < limit and missing[stop]:
            stop += 1
        filled = int(times[start])
        earlier = (int(ordered.searchsorted(filled)) if filled < NEVER else arrived) - 1
        last = int(reach[earlier]) + 1 if earlier >= 0 else stop
        waiting = np.arange(stop, max(last, stop))
        waiting = waiting[times[waiting] < filled]
        sender, filler = int(first_sent[start]), int(carrier[start])
        whose: tuple[int, ...]
        waited: tuple[int, ...]
        if stream_of is None:
            whose, waited = (stream or 0,), (stream or 0,)
        else:
            whose, waited = _names(stream_of[start:stop]), _names(stream_of[waiting])
        holes.append(
            Hole(
                connection=direction.connection,
                direction=direction.name,
                number=int(direction.number[sender]) if sender >= 0 else None,
                fate=(str(direction.fate[sender]) or None) if sender >= 0 else None,
                streams=whose,
                start=int(edges[start]) + shift,
                end=int(edges[stop]) + shift,
                opened_ns=int(behind[start]),
                filled_ns=filled if filled < NEVER else None,
                filled_by=int(direction.number[filler]) if filler >= 0 and filled < NEVER else None,
                waited=waited,
                waiting_octets=int((edges[waiting + 1] - edges[waiting]).sum()),
            )
        )
    return holes


def _names(streams: Ints) -> tuple[int, ...]:
    return tuple(np.unique(streams[streams >= 0]).tolist())


def _stream_by_tile(delivery: Delivery) -> Ints:
    """The stream of each tile; -1: octets of no stream (record headers, tags, handshake)."""
    order = delivery.spans.start.argsort(kind="stable")
    start, end = delivery.spans.start[order], delivery.spans.end[order]
    if not len(end):  # frames are known, the octets that hold them are not
        return np.full(len(delivery.tiles.edges) - 1, -1, dtype=np.int64)
    at = start.searchsorted(delivery.tiles.edges[:-1], side="right") - 1
    inside = (at >= 0) & (delivery.tiles.edges[:-1] < end[np.maximum(at, 0)])
    return np.where(inside, delivery.spans.stream[order][np.maximum(at, 0)], -1)

"""Head-of-line blocking, measured: how long octets lay received and could not be delivered, and because of what.

What the waits are is in `delivery`; what stands here is by request and by hole. All times are at the receiver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trifecta.analysis.transport.delivery import Passage, is_request, passage
from trifecta.analysis.transport.directions import DOWN, LACKS, texts, whole
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


def blocking(tables: Mapping[str, pa.Table], seen: Passage | None = None) -> Blocking:
    """Head-of-line blocking of every request of a dissection, given as its tables by name."""
    messages, connections = tables["messages"], tables["connections"]
    seen = seen or passage(tables["packets"], tables["frames"], connections)
    all_directions, found = seen.directions, seen.deliveries
    protocols = dict(zip(whole(connections, "connection").tolist(), texts(connections, "protocol"), strict=True))
    notes = [note for one in found for note in one.notes]
    if seen.one_side:
        notes.append(ONE_SIDE)
    notes += [LACKS.format(one) for one in sorted(seen.lacking)]
    known = {(one.direction.connection, one.direction.name) for one in found}
    notes += [
        NO_FRAMES.format(*key)
        for key, direction in all_directions.items()
        if key not in known and (direction.payload > 0).any()
    ]
    loads = _loads(messages)
    requests: list[RequestBlocking] = []
    holes: list[Hole] = []
    spoken = [str(protocols.get(one.direction.connection, "")) for one in found]
    for one, some in zip(found, _requests(found, spoken, loads), strict=True):
        if any(not each.complete for each in some):
            notes.append(OPEN.format(one.direction.connection, one.direction.name))
        requests += some
        holes += _holes(one)
    return Blocking(requests, holes, notes)


def _loads(messages: pa.Table) -> dict[tuple[int, int], tuple[int, int | None]]:
    """(Ordinal, load time in ns) of each request, by connection and stream (HTTP/1.1: its ordinal)."""
    columns = [
        whole(messages, name) for name in ("connection", "stream", "request", "request_start_ns", "response_end_ns")
    ]
    found = {}
    for connection, stream, request, start, end in zip(*(one.tolist() for one in columns), strict=True):
        load = end - start if start >= 0 and end >= 0 else None
        found[connection, stream if stream >= 0 else request] = (request, load)
    return found


def _requests(
    found: list[Delivery], protocols: list[str], loads: dict[tuple[int, int], tuple[int, int | None]]
) -> list[list[RequestBlocking]]:
    """Those of each direction, worked out for all at once."""
    if not found:
        return []
    of, _, stream, octets, *times = columns_of(
        [(one.stream, one.octets, one.arrived_ns, one.own_ns, one.records_ns, one.delivered_ns) for one in found]
    )
    asks = [
        is_request(one.direction.transport, protocol, one.stream)
        for one, protocol in zip(found, protocols, strict=True)
    ]
    mine = np.concatenate(asks).nonzero()[0]
    mine = mine[np.lexsort((stream[mine], of[mine]))]
    of, stream, octets = of[mine], stream[mine], octets[mine]
    open_ended = times[-1][mine] == NEVER
    ends_ns = np.array([one.direction.ends_ns for one in found], dtype=np.int64)[of]
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
    told: list[list[RequestBlocking]] = [[] for _ in found]
    for at, name, *values in zip(of[first].tolist(), stream[first].tolist(), *columns.values(), strict=True):
        direction, protocol, measured = found[at].direction, protocols[at], dict(zip(columns, values, strict=True))
        request, load = loads.get((direction.connection, name), (None, None))
        if protocol == "h1" and request is None:
            request = name
        told[at].append(
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
    return told


def _sums(values: Ints, group: Ints, count: int) -> Ints:
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, group, values)
    return total


def _last(values: Ints, group: Ints, count: int) -> Ints:
    last = np.zeros(count, dtype=np.int64)
    np.maximum.at(last, group, values)
    return last


def _holes(one: Delivery) -> list[Hole]:
    if one.direction.transport == "tcp":
        return _holes_of(one, 0, len(one.tiles.times), None, 0)
    found = []
    for at, name in enumerate(one.spans.stream.tolist()):
        low, high = one.tiles.edges.searchsorted([one.spans.start[at], one.spans.end[at]])
        start = int(one.start[low]) - int(one.tiles.edges[low])  # from the common range to the stream's offsets
        found += _holes_of(one, int(low), int(high), name, start)
    return found


def _holes_of(one: Delivery, low: int, high: int, stream: int | None, shift: int) -> list[Hole]:
    """Holes in the tiles [low, high), which are ordered among themselves."""
    direction, times = one.direction, one.tiles.times[low:high]
    carrier, edges = one.carrier[low:high], one.tiles.edges[low : high + 1]
    if len(times) < 2:
        return []
    # The first arrival of anything behind each tile.
    behind = np.append(np.minimum.accumulate(times[::-1])[::-1][1:], NEVER)
    missing = times > behind
    if not missing.any():
        return []
    first_sent = one.first_sent[low:high]
    # How far the octets reach that had arrived before each time: the last tile with an earlier arrival.
    begins = missing.copy()
    begins[1:] &= ~(missing[:-1] & (times[1:] == times[:-1]) & (first_sent[1:] == first_sent[:-1]))
    starts = begins.nonzero()[0]
    # A hole ends before the next one begins, or where nothing is missing.
    next_hole = np.append(starts[1:], len(times))
    order = times.argsort(kind="stable")
    reach, ordered = np.maximum.accumulate(order), times[order]
    arrived = int((times < NEVER).sum())
    stream_of = _stream_by_tile(one)[low:high] if stream is None else None
    found = []
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
        found.append(
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
    return found


def _names(streams: Ints) -> tuple[int, ...]:
    return tuple(np.unique(streams[streams >= 0]).tolist())


def _stream_by_tile(one: Delivery) -> Ints:
    """The stream of each tile; -1: octets of no stream (record headers, tags, handshake)."""
    order = one.spans.start.argsort(kind="stable")
    start, end = one.spans.start[order], one.spans.end[order]
    if not len(end):  # frames are known, the octets that hold them are not
        return np.full(len(one.tiles.edges) - 1, -1, dtype=np.int64)
    at = start.searchsorted(one.tiles.edges[:-1], side="right") - 1
    inside = (at >= 0) & (one.tiles.edges[:-1] < end[np.maximum(at, 0)])
    return np.where(inside, one.spans.stream[order][np.maximum(at, 0)], -1)

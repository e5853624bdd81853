"""The rows of the table `messages`: when the client saw a request and its response, and in how many packets."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trifecta.trace.capture_file import Ints
from trifecta.trace.correlation import CorrelatedTrace
from trifecta.trace.documents import MessageRow
from trifecta.trace.headers import TCP
from trifecta.trace.rows import Half
from trifecta.trace.segments import Coverage, Stream, assemble

Seen = tuple[int | None, int | None, int | None]  # first and last time in ns, packets


def messages(joined: CorrelatedTrace, frames: dict[str, pa.Array[Any]], lacking: Set[int]) -> list[MessageRow]:
    """A row a request, in the order of their beginnings. ``lacking``: connections whose packets nobody can count."""
    rows: list[MessageRow] = []
    quic = _quic_streams(joined, frames)
    arrivals: dict[tuple[int, int], tuple[Stream, Stream]] = {}
    rows_of = _rows_by_direction(joined)
    for part, numbers in zip(joined.parts, joined.numbers, strict=True):
        ordinals: dict[int, int] = {}
        for message in part.messages:
            connection = numbers[message.connection]
            ordinal = ordinals[connection] = ordinals.get(connection, -1) + 1
            sides: list[Seen] = []
            for direction, half in enumerate(message.halves):
                if message.protocol == "h3":
                    sides.append(quic.get((connection, direction, message.stream or 0), (None, None, None)))
                else:
                    key = (message.connection, direction)
                    if key not in arrivals:
                        arrivals[key] = _streams(joined, message.connection, rows_of(*key))
                    sides.append(_tcp_times(joined, arrivals[key], half))
            up, down = message.halves
            counted = connection not in lacking
            rows.append(
                {
                    "connection": connection,
                    "protocol": message.protocol,
                    "stream": message.stream,
                    "request": ordinal,
                    "method": message.method,
                    "authority": message.authority,
                    "path": message.path,
                    "status": message.status,
                    "request_start_ns": sides[0][0] if up.begins else None,
                    "request_end_ns": sides[0][1] if up.ended else None,
                    "response_start_ns": sides[1][0] if down.begins else None,
                    "response_end_ns": sides[1][1] if down.ended else None,
                    "request_header_bytes": up.header_bytes,
                    "response_header_bytes": down.header_bytes,
                    "request_body_bytes": up.body_bytes if up.ended else None,
                    "response_body_bytes": down.body_bytes if down.ended else None,
                    "packets_up": sides[0][2] if counted and not up.shared else None,
                    "packets_down": sides[1][2] if counted and not down.shared else None,
                    "complete": up.begins and up.ended and down.begins and down.ended and sides[1][1] is not None,
                }
            )
    return rows


def _rows_by_direction(joined: CorrelatedTrace) -> Callable[[int, int], Ints]:
    """The packets of a TCP connection and direction, in the order of the file."""
    flows = joined.trace.flows
    tcp = np.flatnonzero(joined.trace.headers.transport == TCP)
    key = flows.connection[tcp] * 2 + flows.direction[tcp]
    order = np.argsort(key, kind="stable")
    rows, key = tcp[order], key[order]

    def of(connection: int, direction: int) -> Ints:
        first, last = np.searchsorted(key, [connection * 2 + direction, connection * 2 + direction + 1])
        return rows[first:last]

    return of


def _streams(joined: CorrelatedTrace, connection: int, mine: Ints) -> tuple[Stream, Stream]:
    """The octets of a direction as they came to the client's side, and as they were sent."""
    flows, headers = joined.trace.flows, joined.trace.headers
    from_start = bool(flows.begins[connection])
    near = mine[flows.side[mine] <= 0]
    # In the order of their times: of octets that came twice the first count.
    near = near[np.argsort(joined.time_ns[near], kind="stable")]
    sent = mine[flows.view[mine]]
    numbers = joined.trace.numbers
    return (
        assemble(headers, numbers, near, from_start=from_start),
        assemble(headers, numbers, sent, from_start=from_start),
    )


def _tcp_times(joined: CorrelatedTrace, streams: tuple[Stream, Stream], half: Half) -> Seen:
    near, sent = streams
    if not half.ranges:
        return None, None, None
    start, end = min(one[0] for one in half.ranges), max(one[1] for one in half.ranges)
    packets: set[int] = set()
    for low, high in half.ranges:
        packets.update(sent.row[sent.piece(low) : sent.piece(high - 1) + 1].tolist())
    first, last = near.piece(start), near.piece(end - 1)
    begin = int(joined.time_ns[near.row[first]]) if first < len(near.row) and near.start[first] <= start else None
    until = None
    if last < len(near.row):
        until = max(
            int(joined.time_ns[near.row[near.piece(low) : near.piece(high - 1) + 1]].max()) for low, high in half.ranges
        )
    return begin, until, len(packets)


def _quic_streams(joined: CorrelatedTrace, frames: dict[str, pa.Array[Any]]) -> dict[tuple[int, int, int], Seen]:
    """First and last new octets of every stream and direction at the client, and the packets that hold them."""
    layers, types = pa.array(["quic"]), pa.array(["STREAM"])
    mine: Any = pc.and_(pc.is_in(frames["layer"], layers), pc.is_in(frames["type"], types))
    part = {
        name: frames[name].filter(mine).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("connection", "direction_index", "stream", "offset", "length", "row")
    }
    indices = joined.seen_by_client(part["row"], part["direction_index"])
    time = np.where(indices >= 0, joined.time_ns[np.maximum(indices, 0)], np.iinfo(np.int64).max)
    order = np.lexsort((time, part["stream"], part["direction_index"], part["connection"]))
    keys = np.stack([part[name][order] for name in ("connection", "direction_index", "stream")], axis=1)
    edges = np.flatnonzero((np.diff(keys, axis=0) != 0).any(axis=1)) + 1
    spans: dict[tuple[int, int, int], Seen] = {}
    for rows in np.split(order, edges):
        if not len(rows):
            continue
        key = (int(part["connection"][rows[0]]), int(part["direction_index"][rows[0]]), int(part["stream"][rows[0]]))
        begin, until = _last_new(part["offset"][rows], part["length"][rows], time[rows], indices[rows])
        spans[key] = begin, until, len(np.unique(part["row"][rows]))
    return spans


def _last_new(offset: Ints, length: Ints, time: Ints, indices: Ints) -> tuple[int | None, int | None]:
    there, end = indices >= 0, int((offset + length).max())
    if not bool(there.any()):
        return None, None
    offset, length, time = offset[there], length[there], time[there]
    following = np.concatenate([[0], np.cumsum(length)[:-1]])
    begin = int(time[0]) if bool((offset == 0).any()) else None
    if bool((offset == following).all()):
        return begin, int(time[-1]) if int(following[-1] + length[-1]) == end else None
    coverage, until = Coverage(), int(time[0])
    for low, size, when in zip(offset.tolist(), length.tolist(), time.tolist(), strict=True):
        if coverage.add(low, low + size) or size == 0:
            until = when
    return begin, until if not coverage.later and coverage.end == end else None

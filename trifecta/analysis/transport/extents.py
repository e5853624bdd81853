"""When the octets of each message passed: from its first to its last."""

from __future__ import annotations

from functools import partial

import numpy as np

from trifecta.analysis.transport.columns import Connection, octets
from trifecta.analysis.transport.group_by import begins, frontiers, pair_keys
from trifecta.analysis.transport.ranges import running_max
from trifecta.analysis.transport.rows import NULL, Bools, Ints, Rows

Span = tuple[int, int]


def extents(connection: Connection, *, up: bool, arrived: bool) -> dict[int, Span]:
    """First and last time of the octets of each message, by stream (HTTP/1.1: by ordinal)."""
    if not connection.tcp:
        frames = connection.frames_of("quic", up=up)
        if arrived:
            connection.came(frames, up=up)
        frames = frames.pick("requests", lambda of: of.is_in("type", "STREAM") & (of["stream"] % 4 == 0))
        return frames.each(("extents", arrived), partial(_quic, arrived))

    def mask(of: Rows) -> Bools:
        placed: Bools = (of["up"] == int(up)) & (of["tcp_end"] != NULL)
        return placed & of.is_in("layer", "h1", "h2") & of.is_in("type", "HEADERS", "DATA")

    frames = connection.frames.pick(("placed messages", up), mask)
    rows = octets(connection.arrived(up=up) if arrived else connection.sent(up=up))
    return frames.each(("extents", arrived), partial(_tcp, rows.together, arrived))


def _quic(arrived: bool, frames: Rows, starts: Ints, ends: Ints) -> list[dict[int, Span]]:
    times = frames["arrived_ns" if arrived else "time_ns"]
    return _by_stream(frames["connection"], frames["stream"], (times, times), starts, ends)


def _tcp(rows: Rows, arrived: bool, frames: Rows, starts: Ints, ends: Ints) -> list[dict[int, Span]]:
    of = frames["connection"]
    heads = frames.is_in("type", "HEADERS").cumsum()
    first = begins(of).nonzero()[0]
    before = (heads - frames.is_in("type", "HEADERS"))[first].repeat(np.diff(np.append(first, len(of))))
    # HTTP/1.1 has no streams: the ordinal of the message in its direction stands for one.
    stream = np.where(frames["http1"] == 1, heads - before - 1, frames["stream"])
    upto = rows.derived("all below", _all_below) if arrived else rows.derived("highest", _highest)
    times = [passed_ns(rows, upto, of, octet) for octet in (frames["tcp_start"] + 1, frames["tcp_end"])]
    return _by_stream(of, stream, (times[0], times[1]), starts, ends)


def _all_below(rows: Rows) -> Ints:
    """After each packet: the octet below which all from the connection's first on had arrived."""
    start, first = rows["sequence"], np.ones(len(rows), dtype=np.int64)
    return frontiers(rows["connection"], start, start + rows["payload_bytes"], first)


def _highest(rows: Rows) -> Ints:
    """After each packet: up to which octet any had been sent."""
    return running_max(rows["sequence"] + rows["payload_bytes"], rows["connection"])


def passed_ns(rows: Rows, upto: Ints, whose: Ints, octet: Ints) -> Ints:
    """When so many octets had passed, for octets of these connections; NULL: never.

    ``upto``: after each row, within its connection.
    """
    if not len(rows):
        return np.full(len(octet), NULL, dtype=np.int64)
    passed, wanted = pair_keys((rows["connection"], upto), (whose, octet))
    at = np.minimum(passed.searchsorted(wanted), len(rows) - 1)
    there = (passed[at] >= wanted) & (rows["connection"][at] == whose)
    return np.where(there, rows["time_ns"][at], NULL)


def _by_stream(whose: Ints, stream: Ints, times: tuple[Ints, Ints], starts: Ints, ends: Ints) -> list[dict[int, Span]]:
    first, last = times
    known = ((first != NULL) & (last != NULL)).nonzero()[0]
    order = known[np.lexsort((stream[known], whose[known]))]
    new = (begins(whose[order]) | begins(stream[order])).nonzero()[0]
    if not len(new):
        return [{} for _ in starts]
    spans = list(
        zip(
            stream[order[new]].tolist(),
            zip(
                np.minimum.reduceat(first[order], new).tolist(),
                np.maximum.reduceat(last[order], new).tolist(),
                strict=True,
            ),
            strict=True,
        )
    )
    low, high = (new.searchsorted(known.searchsorted(bounds)).tolist() for bounds in (starts, ends))
    return [dict(spans[begin:end]) for begin, end in zip(low, high, strict=True)]

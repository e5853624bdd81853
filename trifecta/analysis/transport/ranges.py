"""Arithmetic of octet ranges and of intervals of time, for many at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NEVER = 2**62  # the time of what did not happen
_CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Tiles:
    """Ranges cut at all their edges: tile i is [edges[i], edges[i + 1]), without gaps.

    `times` is the earliest time of a range that covers the tile (`NEVER`: none does), `which` the index of that range.
    """

    edges: Ints
    times: Ints
    which: Ints

    def index(self, position: Ints) -> Ints:
        """The tile that begins at an edge, or that holds a position."""
        return np.searchsorted(self.edges, position, side="right").astype(np.int64) - 1

    def latest(self, starts: Ints, ends: Ints) -> Ints:
        """The latest time in each range [start, end); its ends must be edges. Of an empty range: 0."""
        return _reduce_max(self.times, np.searchsorted(self.edges, starts), np.searchsorted(self.edges, ends))


def cells_of(tiles: Tiles, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """(Range, tile) for every tile in each range [start, end), whose ends must be edges."""
    low, high = np.searchsorted(tiles.edges, starts), np.searchsorted(tiles.edges, ends)
    counts = np.maximum(high - low, 0)
    piece = np.repeat(np.arange(len(starts)), counts)
    return piece, np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts) + low[piece]


def tile(starts: Ints, ends: Ints, times: Ints, more_edges: Ints | None = None) -> Tiles:
    """Cut ranges into tiles with the earliest time of each octet. Of equal times the range given first counts."""
    parts = [starts, ends] if more_edges is None else [starts, ends, more_edges]
    edges = distinct(np.concatenate(parts).astype(np.int64))
    cells = max(len(edges) - 1, 0)
    which = np.full(cells, -1, dtype=np.int64)
    # Written from the latest to the earliest: what is written last stays.
    order = np.argsort(times, kind="stable")[::-1]
    order = order[ends[order] > starts[order]]
    # Equal times: the reversed order has the later range first, so the one given first is written last.
    low, high = np.searchsorted(edges, starts[order]), np.searchsorted(edges, ends[order])
    counts = high - low
    total = np.cumsum(counts)
    begin = 0
    while begin < len(order):
        done = int(total[begin - 1]) if begin else 0
        stop = max(int(np.searchsorted(total, done + _CELLS_AT_ONCE, side="right")), begin + 1)
        some = counts[begin:stop]
        first = np.repeat(np.cumsum(some) - some, some)
        cell = np.arange(int(some.sum())) - first + np.repeat(low[begin:stop], some)
        which[cell] = np.repeat(order[begin:stop], some)
        begin = stop
    found = np.full(cells, NEVER, dtype=np.int64)
    found[which >= 0] = times[which[which >= 0]]
    return Tiles(edges, found, which)


def _reduce_max(values: Ints, low: Ints, high: Ints) -> Ints:
    result = np.zeros(len(low), dtype=np.int64)
    some = high > low
    if some.any():
        padded = np.append(values, 0)  # so that `high` may be the end
        pairs = np.stack([low[some], high[some]], axis=1).reshape(-1)
        result[some] = np.maximum.reduceat(padded, pairs)[::2]
    return result


def distinct(values: Ints) -> Ints:
    """Each value once, in order. Values come in long runs that are in order, which this sort is quick with."""
    ordered = np.sort(values, kind="stable")
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def running_max(values: Ints, groups: Ints) -> Ints:
    """The largest value so far within each group; rows of a group stand together, their numbers grow."""
    if not len(values):
        return values.copy()
    # Values are ranked, so that a group's offset cannot overflow however far apart the times are.
    ranked = distinct(values)
    size = len(ranked)
    top = np.maximum.accumulate(np.searchsorted(ranked, values) + groups.astype(np.int64) * size)
    return ranked[top - groups * size]


def covered(starts: Ints, ends: Ints, groups: Ints, count: int) -> Ints:
    """How long the union of the intervals [start, end) of each group is, by group 0 .. count - 1."""
    some = ends > starts
    starts, ends, groups = starts[some], ends[some], groups[some]
    order = np.lexsort((starts, groups))
    starts, ends, groups = starts[order], ends[order], groups[order]
    if not len(starts):
        return np.zeros(count, dtype=np.int64)
    top = running_max(ends, _dense(groups))
    before = np.empty_like(top)
    before[0] = starts[0]
    before[1:] = top[:-1]
    new = np.append(True, groups[1:] != groups[:-1])
    before[new] = starts[new]
    length = np.maximum(ends - np.maximum(starts, before), 0)
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, groups, length)
    return total


def _dense(groups: Ints) -> Ints:
    return np.cumsum(np.append(0, (groups[1:] != groups[:-1]).astype(np.int64)))

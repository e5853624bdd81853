"""Arithmetic of octet ranges and of intervals of time, for many at once."""

from __future__ import annotations

from collections.abc import Sequence
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
        return self.edges.searchsorted(position, side="right").astype(np.int64) - 1

    def latest(self, starts: Ints, ends: Ints) -> Ints:
        """The latest time in each range [start, end); its ends must be edges. Of an empty range: 0."""
        return reduce_max(self.times, self.edges.searchsorted(starts), self.edges.searchsorted(ends))


def cells_of(tiles: Tiles, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """(Range, tile) for every tile in each range [start, end), whose ends must be edges."""
    low, high = tiles.edges.searchsorted(starts), tiles.edges.searchsorted(ends)
    return each_cell(low, np.maximum(high - low, 0))


def each_cell(low: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """(Range, cell) for so many cells of each range from `low` on."""
    piece = np.arange(len(low)).repeat(counts)
    return piece, np.arange(len(piece)) + (low - counts.cumsum() + counts)[piece]


def tile(starts: Ints, ends: Ints, times: Ints, more_edges: Ints | None = None) -> Tiles:
    """Cut ranges into tiles with the earliest time of each octet. Of equal times the range given first counts."""
    return tilings(starts, ends, (times,), more_edges)[0]


def tilings(starts: Ints, ends: Ints, times: Sequence[Ints], more_edges: Ints | None = None) -> list[Tiles]:
    """`tile` of the same ranges by more than one kind of time: at the same edges."""
    parts = [starts, ends] if more_edges is None else [starts, ends, more_edges]
    edges = distinct(np.concatenate(parts).astype(np.int64, copy=False))
    cells = max(len(edges) - 1, 0)
    low, high = edges.searchsorted(starts), edges.searchsorted(ends)
    counts = high - low
    tiles = []
    if len(starts) and (counts >= 0).all() and (starts[1:] >= ends[:-1]).all():
        # One behind the other, as of a transfer without loss: no octet has more than one time.
        piece, cell = each_cell(low, counts)
        alone = np.full(cells, -1, dtype=np.int64)
        alone[cell] = piece
        for each in times:
            at = np.full(cells, NEVER, dtype=np.int64)
            at[cell] = each[piece]
            tiles.append(Tiles(edges, at, alone))
        return tiles
    for each in times:
        which = _earliest(low, counts, each, cells)
        at = np.full(cells, NEVER, dtype=np.int64)
        at[which >= 0] = each[which[which >= 0]]
        tiles.append(Tiles(edges, at, which))
    return tiles


def _earliest(low: Ints, counts: Ints, times: Ints, cells: int) -> Ints:
    """The range with the earliest time in each cell; -1: none covers it."""
    which = np.full(cells, -1, dtype=np.int64)
    # Written from the latest to the earliest: what is written last stays.
    # Equal times: the reversed order has the later range first, so the one given first is written last.
    order = times.argsort(kind="stable")[::-1]
    order = order[counts[order] > 0]
    low, counts = low[order], counts[order]
    total = counts.cumsum()
    begin = 0
    while begin < len(order):
        done = int(total[begin - 1]) if begin else 0
        stop = max(int(total.searchsorted(done + _CELLS_AT_ONCE, side="right")), begin + 1)
        piece, cell = each_cell(low[begin:stop], counts[begin:stop])
        which[cell] = order[begin:stop][piece]
        begin = stop
    return which


def reduce_max(values: Ints, low: Ints, high: Ints) -> Ints:
    """The largest of the values [low, high) of each range; of none: 0."""
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
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def running_max(values: Ints, groups: Ints) -> Ints:
    """The largest value so far within each group; rows of a group stand together, their numbers grow."""
    if not len(values):
        return values.copy()
    if groups[0] == groups[-1]:
        return np.maximum.accumulate(values)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span * (int(groups[-1]) + 1) < NEVER:
        shift = groups.astype(np.int64) * span - low
        return np.maximum.accumulate(values + shift) - shift
    # Values are ranked, so that a group's offset cannot overflow however far apart the times are.
    ranked = distinct(values)
    size = len(ranked)
    top = np.maximum.accumulate(ranked.searchsorted(values) + groups.astype(np.int64) * size)
    return ranked[top - groups * size]


def covered(starts: Ints, ends: Ints, groups: Ints, count: int) -> Ints:
    """How long the union of the intervals [start, end) of each group is, by group 0 .. count - 1."""
    some = ends > starts
    if not some.any():
        return np.zeros(count, dtype=np.int64)
    starts, ends, groups = starts[some], ends[some], groups[some]
    if count == 1:
        order = starts.argsort(kind="stable")
        starts, ends = starts[order], ends[order]
        starts[1:] = np.maximum(starts[1:], np.maximum.accumulate(ends)[:-1])
        union: Ints = np.maximum(ends - starts, 0).sum(keepdims=True)
        return union
    order = np.lexsort((starts, groups))
    starts, ends, groups = starts[order], ends[order], groups[order]
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
    return np.append(0, (groups[1:] != groups[:-1]).astype(np.int64)).cumsum()


@dataclass(frozen=True, slots=True)
class Row:
    """Ranges of many owners one behind the other: position x of owner i is at shift[i] + x, in [low[i], high[i]]."""

    shift: Ints
    low: Ints
    high: Ints


def in_a_row(count: int, *parts: tuple[Ints, Ints]) -> Row | None:
    """Put the positions (owner, position) of so many owners apart; None if they are too far apart for one row."""
    low, high = np.full(count, NEVER, dtype=np.int64), np.full(count, -NEVER, dtype=np.int64)
    for owner, position in parts:
        np.minimum.at(low, owner, position)
        np.maximum.at(high, owner, position)
    if count > 1 and float((high.astype(np.float64) - low).sum()) + 2 * count >= NEVER:
        return None
    size = high - low + 1  # what ends one does not begin the next
    start = size.cumsum() - size
    return Row(start - low, start, start + high - low)

"""Ranges of octets: what is sent for the first time, and up to where all has arrived.

TCP's sequence numbers and QUIC's stream offsets are treated alike: packets are [start, end) in the order of time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trifecta.analysis.transport.ranges import running_max
from trifecta.analysis.transport.rows import Ints, Rows


def fresh(start: Ints, end: Ints) -> Ints:
    """Octets of each range that no earlier one had."""
    if not len(start):
        return np.zeros(0, dtype=np.int64)
    before = np.concatenate(([start.min()], np.maximum.accumulate(end)[:-1]))
    new: Ints = np.maximum(0, end - np.maximum(start, before))
    hole = (start > before).nonzero()[0]
    if len(hole) and (start[hole[0] :] < before[hole[0] :]).any():  # something may fill a hole
        _fill(start, end, new, int(hole[0]))
    return new


def _fill(start: Ints, end: Ints, new: Ints, first: int) -> None:
    """From the first hole on one after the other. Holes that stay (octets that were not captured) cost nothing."""
    lefts: list[int] = []
    rights: list[int] = []  # holes in the order of octets
    highest = int(end[:first].max()) if first else int(start.min())
    for index, (a, b) in enumerate(zip(start[first:].tolist(), end[first:].tolist(), strict=True), first):
        count = 0
        if a < highest and a < b:
            low, high = bisect_right(rights, a), bisect_left(lefts, b)
            if low < high:
                count, *left = _close(lefts[low:high], rights[low:high], a, b)
                lefts[low:high], rights[low:high] = left
        if a > highest:
            lefts.append(highest)
            rights.append(a)
        if b > highest:
            count += b - max(a, highest)
            highest = b
        new[index] = count


def _close(lefts: list[int], rights: list[int], a: int, b: int) -> tuple[int, list[int], list[int]]:
    """Octets of [a, b) in holes, and what is left of these."""
    count = 0
    pieces: list[tuple[int, int]] = []
    for left, right in zip(lefts, rights, strict=True):
        low, high = max(left, a), min(right, b)
        count += high - low
        pieces += [piece for piece in ((left, low), (high, right)) if piece[0] < piece[1]]
    return count, [piece[0] for piece in pieces], [piece[1] for piece in pieces]


def fresh_by_group(keys: Sequence[Ints], start: Ints, end: Ints) -> Ints:
    """`fresh` of each group alone: neighbours with the same keys are one. What stands alone is new as it is."""
    if not len(start):
        return np.zeros(0, dtype=np.int64)
    first = np.ones(len(start), dtype=np.bool_)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    group, begins = first.cumsum() - 1, first.nonzero()[0]
    before = np.empty_like(end)
    before[1:] = running_max(end, group)[:-1]
    before[begins] = np.minimum.reduceat(start, begins)
    new: Ints = np.maximum(0, end - np.maximum(start, before))
    ends = np.append(begins[1:], len(start))
    alone = begins[ends - begins == 1]
    new[alone] = (end - start)[alone]
    hole = start > before
    if hole.any():
        holes = hole.cumsum()
        late = (holes - (holes - hole)[begins][group] > 0) & (start < before)
        for at in np.unique(group[late]).tolist():  # something may fill a hole
            mine = slice(begins[at], ends[at])
            new[mine] = fresh(start[mine], end[mine])
    return new


def fresh_by_stream(connection: Ints, stream: Ints, start: Ints, end: Ints) -> Ints:
    """`fresh` for each stream of each connection alone."""
    new = np.zeros(len(start), dtype=np.int64)
    order = np.lexsort((stream, connection))
    new[order] = fresh_by_group((connection[order], stream[order]), start[order], end[order])
    return new


def new_of_streams(frames: Rows) -> Ints:
    """Octets of STREAM frames that no earlier one had."""
    start = frames["offset"]
    return fresh_by_stream(frames["connection"], frames["stream"], start, start + frames["length"])


def by_stream(stream: Ints) -> list[Ints]:
    """The rows of each stream, in their order; streams by their number."""
    if not len(stream):
        return []
    if (stream == stream[0]).all():
        return [np.arange(len(stream))]
    order = stream.argsort(kind="stable")
    ordered = stream[order]
    cuts = [0, *((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), len(order)]
    return [order[begin:end] for begin, end in pairwise(cuts)]


def frontier(start: Ints, end: Ints, origin: int) -> Ints:
    """After each range: the octet below which everything from `origin` on has arrived."""
    reached = np.maximum(origin, np.maximum.accumulate(end)) if len(end) else np.zeros(0, dtype=np.int64)
    before = np.concatenate(([origin], reached[:-1])) if len(end) else reached
    hole = (start > before).nonzero()[0]
    if not len(hole):
        return reached
    waiting: list[tuple[int, int]] = []
    upto = int(before[hole[0]])
    for index in range(int(hole[0]), len(start)):
        a, b = int(start[index]), int(end[index])
        if a > upto:
            waiting.append((a, b))
        elif b > upto:
            upto = b
            if waiting:
                waiting.sort()
                while waiting and waiting[0][0] <= upto:
                    upto = max(upto, waiting.pop(0)[1])
        reached[index] = upto
    return reached

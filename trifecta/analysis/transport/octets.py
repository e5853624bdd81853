"""Ranges of octets: what is sent for the first time, and up to where all has arrived.

TCP's sequence numbers and QUIC's stream offsets are treated alike: packets are [start, end) in the order of time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from trifecta.analysis.transport.columns import Ints


def fresh(start: Ints, end: Ints) -> Ints:
    """Octets of each range that no earlier one had."""
    if not len(start):
        return np.zeros(0, dtype=np.int64)
    before = np.concatenate(([start.min()], np.maximum.accumulate(end)[:-1]))
    new: Ints = np.maximum(0, end - np.maximum(start, before))
    hole = np.flatnonzero(start > before)
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


def fresh_by_stream(stream: Ints, start: Ints, end: Ints) -> Ints:
    """`fresh` for each stream alone."""
    new = np.zeros(len(start), dtype=np.int64)
    order = np.argsort(stream, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(stream[order])) + 1):
        if len(chosen) == 1:
            new[chosen[0]] = end[chosen[0]] - start[chosen[0]]
        elif len(chosen):
            new[chosen] = fresh(start[chosen], end[chosen])
    return new


def frontier(start: Ints, end: Ints, origin: int) -> Ints:
    """After each range: the octet below which everything from `origin` on has arrived."""
    reached = np.maximum(origin, np.maximum.accumulate(end)) if len(end) else np.zeros(0, dtype=np.int64)
    before = np.concatenate(([origin], reached[:-1])) if len(end) else reached
    hole = np.flatnonzero(start > before)
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

"""Arithmetic for all connections at once: columns of which rows with the same group belong together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trifecta.analysis.transport.octets import frontier
from trifecta.analysis.transport.ranges import NEVER, distinct, each_cell, running_max
from trifecta.analysis.transport.rows import Bools, Ints


def pair_keys(*pairs: tuple[Ints, Ints]) -> list[Ints]:
    """A number for each (group, value): ordered by the group, then by the value; the same for all these arrays.

    What is sorted by group and value can so be searched within each group, with one search for all.
    """
    some = [(groups, values) for groups, values in pairs if len(groups)]
    if not some:
        return [values for _, values in pairs]
    low = min(int(values.min()) for _, values in some)
    span = max(int(values.max()) for _, values in some) - low + 1
    most = max(max(abs(int(groups.min())), abs(int(groups.max()))) for groups, _ in some)
    if span * (most + 1) < NEVER:
        return [groups * span + (values - low) for groups, values in pairs]
    # Values (and groups) are ranked, so that a group's offset cannot overflow however far apart they are.
    ranks = distinct(np.concatenate([values for _, values in some]))
    known = distinct(np.concatenate([groups for groups, _ in some]))
    return [known.searchsorted(groups) * len(ranks) + ranks.searchsorted(values) for groups, values in pairs]


def first_rows(groups: Ints, values: Ints, wanted_groups: Ints, wanted: Ints) -> Ints:
    """The first row with each wanted value of the same group; -1: there is none."""
    if not len(values):
        return np.full(len(wanted), -1, dtype=np.int64)
    keys, wanted_keys = pair_keys((groups, values), (wanted_groups, wanted))
    order = None
    if not (keys[1:] >= keys[:-1]).all():
        order = keys.argsort(kind="stable")
        keys = keys[order]
    at = np.minimum(keys.searchsorted(wanted_keys), len(keys) - 1)
    return np.where(keys[at] == wanted_keys, at if order is None else order[at], -1)


def joined(parts: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Arrays one behind the other, and which of them each value is of."""
    if not parts:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.arange(len(parts)).repeat([len(one) for one in parts]), np.concatenate(parts)


def columns_of(parts: Sequence[Sequence[Ints]]) -> list[Ints]:
    """Columns of which each group has a part, one part behind the other.

    Before them stand the group of each row, and which row of its group it is.
    """
    lengths = np.array([len(part[0]) for part in parts], dtype=np.int64)
    group, row = each_cell(np.zeros(len(parts), dtype=np.int64), lengths)
    return [group, row, *(np.concatenate(column) for column in zip(*parts, strict=True))]


def repeated(groups: Ints, mask: Bools) -> Bools:
    """Which of the rows that a mask chooses have another one of their group before them."""
    chosen = mask.nonzero()[0]
    repeats = np.zeros(len(mask), dtype=np.bool_)
    repeats[chosen[1:]] = groups[chosen[1:]] == groups[chosen[:-1]]
    return repeats


def first_of_each(*keys: Ints) -> Bools:
    """The first row with each combination of keys."""
    order = np.lexsort(keys[::-1])
    mask = np.ones(len(order), dtype=np.bool_)
    mask[order[1:]] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    return mask


def sums_by(place: Ints, count: int, values: Ints) -> Ints:
    """The sum of the values at each of so many places; what has none (-1) does not count."""
    known = place >= 0
    if not known.all():
        place, values = place[known], values[known]
    total: Ints = np.bincount(place, weights=values, minlength=count).astype(np.int64)
    return total


def begins(groups: Ints) -> Bools:
    """The first row of each group; its rows stand together."""
    mask = np.ones(len(groups), dtype=np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=mask[1:])
    return mask


def rising(values: Ints, groups: Ints) -> Bools:
    """Which are larger than all before them of their group."""
    mask = begins(groups)
    highest = running_max(values, groups)
    mask[1:] |= highest[1:] > highest[:-1]
    return mask


def frontiers(groups: Ints, start: Ints, end: Ints, origin: Ints) -> Ints:
    """`frontier` of each group alone; of ``origin`` that of a group's first row counts."""
    reached = np.maximum(origin, running_max(end, groups))
    first = begins(groups)
    before = np.empty_like(reached)
    before[1:] = reached[:-1]
    before[first] = origin[first]
    hole = start > before
    if hole.any():
        bounds = np.append(first.nonzero()[0], len(groups))
        for at in np.unique(first.cumsum()[hole] - 1).tolist():  # one after the other: octets may fill it later
            mine = slice(bounds[at], bounds[at + 1])
            reached[mine] = frontier(start[mine], end[mine], int(origin[bounds[at]]))
    return reached

"""Rows of a table as numpy columns, and the same choice of rows made for all connections at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NULL = -1
_Any = TypeVar("_Any")


def count(mask: Bools) -> int:
    """How many are true: quicker than a sum of few."""
    return int(np.count_nonzero(mask))


class Rows:
    """Rows of one table: columns of integers (null: -1, true: 1), and the labels of those that stand for text.

    A choice of rows costs nothing until one of its columns is asked for, and then that column alone.
    """

    __slots__ = ("_at", "_chosen", "_columns", "_group", "_length", "_parent", "labels")

    def __init__(self, columns: Mapping[str, Ints], labels: Mapping[str, Mapping[str, int]]) -> None:
        self._columns = dict(columns)
        self._parent: Rows | None = None
        self._chosen: Ints | slice = slice(None)
        self._length = len(next(iter(columns.values())))
        self._group: Group | None = None
        self._at = 0
        self.labels = labels

    def __getitem__(self, name: str) -> Ints:
        indices = self._columns.get(name)
        if indices is None:
            if self._parent is None:
                raise KeyError(name)
            indices = self._columns[name] = self._parent[name][self._chosen]
        return indices

    def __len__(self) -> int:
        return self._length

    def where(self, mask: Bools | Ints | slice) -> Rows:
        """The rows that a mask, indices or a slice choose."""
        rows = Rows.__new__(Rows)
        rows._columns, rows._parent, rows._group, rows.labels = {}, self, None, self.labels
        if isinstance(mask, slice):
            rows._chosen, rows._length = mask, len(range(*mask.indices(self._length)))
        else:
            rows._chosen = cast(Ints, mask.nonzero()[0] if mask.dtype == np.bool_ else mask)
            rows._length = len(rows._chosen)
        return rows

    def pick(self, name: Hashable, mask: Callable[[Rows], Bools]) -> Rows:
        """The rows that a mask chooses which looks at each row alone.

        Where these are a connection's of a `Group`, it is worked out once for all connections and kept by its name.
        """
        return self.where(mask(self)) if self._group is None else self._group.pick(name, mask).of(self._at)

    def derived(self, name: str, work: Callable[[Rows], Ints]) -> Ints:
        """A column that is worked out from others row by row: of a `Group` once for all connections."""
        if not self.has(name):
            of = self if self._group is None else self._group.rows
            of.add(name, work(of))
        return self[name]

    @property
    def together(self) -> Rows:
        """The same choice of all connections: itself where it is not of a `Group`."""
        return self if self._group is None else self._group.rows

    def each(self, name: Hashable, work: Callable[[Rows, Ints, Ints], Sequence[_Any]]) -> _Any:
        """What ``work`` finds for this connection; of a `Group` it is worked out once for all, and kept by its name.

        It is given the rows of all connections, and those of each from its start to its end: a result for each.
        """
        if self._group is None:
            return work(self, np.zeros(1, dtype=np.int64), np.full(1, self._length, dtype=np.int64))[0]
        return cast(_Any, self._group.each(name, work)[self._at])

    def sums(self, name: Hashable, work: Callable[[Rows], Mapping[str, Ints | Bools]]) -> dict[str, int]:
        """The sums of columns that are worked out from others row by row."""
        return self.each(("sums", name), lambda rows, starts, ends: _sums(work(rows), starts, ends))

    def least(self, name: str) -> int | None:
        """The least value of a column; None without rows."""
        return self.each(("least", name), lambda rows, starts, ends: _least(rows[name], starts, ends))

    def add(self, name: str, column: Ints) -> None:
        """One more column, worked out from the others."""
        self._columns[name] = column

    def all(self) -> dict[str, Ints]:
        """The columns that are there."""
        return dict(self._columns)

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._columns or (self._parent is not None and self._parent.has(name))

    def is_in(self, name: str, *texts: str) -> Bools:
        """Where a column of text is one of these."""
        codes = [self.labels[name][text] for text in texts if text in self.labels[name]]
        column = self[name]
        mask = np.zeros(len(column), dtype=np.bool_) if not codes else cast(Bools, column == codes[0])
        for code in codes[1:]:  # few: quicker than `isin`, which sorts
            mask |= column == code
        return mask


class Group:
    """Rows of all connections, those of each together."""

    def __init__(self, rows: Rows, starts: Ints, ends: Ints) -> None:
        self.rows = rows
        self._starts, self._ends = starts, ends
        self._spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        self._picked: dict[Hashable, Group] = {}
        self._each: dict[Hashable, Sequence[Any]] = {}

    def of(self, at: int) -> Rows:
        """Those of the connection at a place."""
        start, end = self._spans[at]
        rows = Rows.__new__(Rows)
        rows._columns, rows._parent, rows.labels = {}, self.rows, self.rows.labels
        rows._chosen, rows._length, rows._group, rows._at = slice(start, end), end - start, self, at
        return rows

    def pick(self, name: Hashable, mask: Callable[[Rows], Bools]) -> Group:
        """The rows of all connections that a mask chooses."""
        group = self._picked.get(name)
        if group is None:
            chosen = mask(self.rows).nonzero()[0]
            starts, ends = chosen.searchsorted(self._starts), chosen.searchsorted(self._ends)
            group = self._picked[name] = Group(self.rows.where(chosen), starts, ends)
        return group

    def each(self, name: Hashable, work: Callable[[Rows, Ints, Ints], Sequence[Any]]) -> Sequence[Any]:
        """What ``work`` finds for each connection."""
        cached = self._each.get(name)
        if cached is None:
            cached = self._each[name] = work(self.rows, self._starts, self._ends)
        return cached


def _sums(columns: Mapping[str, Ints | Bools], starts: Ints, ends: Ints) -> list[dict[str, int]]:
    totals = []
    for column in columns.values():
        upto = np.concatenate(([0], column.cumsum(dtype=np.int64)))
        totals.append((upto[ends] - upto[starts]).tolist())
    return [dict(zip(columns, each, strict=True)) for each in zip(*totals, strict=True)]


def _least(column: Ints, starts: Ints, ends: Ints) -> list[int | None]:
    smallest: list[int | None] = [None] * len(starts)
    some = (ends > starts).nonzero()[0]
    if len(some):
        padded = np.append(column, 0)  # so that an end may be that of all
        bounds = np.stack([starts[some], ends[some]], axis=1).reshape(-1)
        for at, least in zip(some.tolist(), np.minimum.reduceat(padded, bounds)[::2].tolist(), strict=True):
            smallest[at] = least
    return smallest

"""Rows of a table as numpy columns, and the same choice of rows made for all connections at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
        found = self._columns.get(name)
        if found is None:
            if self._parent is None:
                raise KeyError(name)
            found = self._columns[name] = self._parent[name][self._chosen]
        return found

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
        found = np.zeros(len(column), dtype=np.bool_) if not codes else cast(Bools, column == codes[0])
        for code in codes[1:]:  # few: quicker than `isin`, which sorts
            found |= column == code
        return found


class Group:
    """Rows of all connections, those of each together."""

    def __init__(self, rows: Rows, starts: Ints, ends: Ints) -> None:
        self.rows = rows
        self._starts, self._ends = starts, ends
        self._spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        self._picked: dict[Hashable, Group] = {}

    def of(self, at: int) -> Rows:
        """Those of the connection at a place."""
        start, end = self._spans[at]
        rows = Rows.__new__(Rows)
        rows._columns, rows._parent, rows.labels = {}, self.rows, self.rows.labels
        rows._chosen, rows._length, rows._group, rows._at = slice(start, end), end - start, self, at
        return rows

    def pick(self, name: Hashable, mask: Callable[[Rows], Bools]) -> Group:
        """The rows of all connections that a mask chooses."""
        found = self._picked.get(name)
        if found is None:
            chosen = mask(self.rows).nonzero()[0]
            starts, ends = chosen.searchsorted(self._starts), chosen.searchsorted(self._ends)
            found = self._picked[name] = Group(self.rows.where(chosen), starts, ends)
        return found

"""A run opened to be reported on: the page and the terminal that a command shows rest on the same conclusions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from trifecta.conclude import facts, queries
from trifecta.conclude.facts import RunFacts

T = TypeVar("T")


class OpenRun:
    """What a run says of itself, its views, and what was derived from them so far: each once, when first asked for."""

    def __init__(self, path: Path, about: RunFacts, opened: ExitStack) -> None:
        """Of `opened`."""
        self.path = path
        self.about = about
        self._opened = opened
        self._derived: dict[str, Any] = {}
        self.attached: set[str] = set()
        """Views that have the rows derived here, and no longer those that a former report left."""

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The run's views."""
        return self._opened.enter_context(queries.connect(self.path))

    def derived(self, section: str, derive: Callable[[], T]) -> T:
        """What the section of this name rests on, worked out by ``derive`` unless it was before."""
        if section not in self._derived:
            self._derived[section] = derive()
        known: T = self._derived[section]
        return known


@contextmanager
def opened(run: Path | OpenRun) -> Iterator[OpenRun]:
    """Open a run, unless it is open; within, arms are called as levels of what it compares.

    UserError when the folder is no run.
    """
    if isinstance(run, OpenRun):
        yield run
        return
    about = facts.read(run)
    with ExitStack() as stack:
        stack.enter_context(about.naming())
        yield OpenRun(run, about, stack)

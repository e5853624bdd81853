"""The views of an invented run with their rows in memory: tests ask many queries of a run, each of which opens every
file of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.queries import Row
from trifecta.store import views

_VIEWS = ("trials", "checks", "samples", "request_sums", "link")
State = frozenset[tuple[str, int, int, int]]


@contextmanager
def opened(run: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The views that a user has, those of the most rows held in memory."""
    with views.connect(run) as connection:
        for name in _VIEWS:
            queries.hold(connection, name)
        yield connection


def asked(run: Path, sql: str) -> list[Row]:
    """The rows of a query. The run stays open, until it changes or others are asked."""
    return rows_of(_open(run, _state(run)), sql)


def rows_of(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    """The rows of a query, by column."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@lru_cache(maxsize=2)
def _open(run: Path, state: State) -> duckdb.DuckDBPyConnection:
    return views.connect(run)


os.register_at_fork(before=_open.cache_clear)  # a child has not its threads, and would hang when it ends


def _state(run: Path) -> State:
    found = ((str(path), path.stat()) for path in run.rglob("*"))
    return frozenset((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found)

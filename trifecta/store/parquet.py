"""Parquet files by DuckDB: written from rows, read as rows or as arrays.

The same library answers the SQL of a run, so that a plain install needs no second one.
"""
# Statements are put together from column names of schemas and from quoted paths.
# ruff: noqa: S608

from __future__ import annotations

import errno
import functools
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from trifecta.design.tables import BOOL, DOUBLE, INTEGERS, TEXT, Schema

_NUMBER = re.compile(r'\\?"errno\\?":\s*\\?"(\d+)')
_AS_THEY_ARE = str.maketrans({character: f"[{character}]" for character in "*?["})
_changing = Lock()
_overlapping: dict[duckdb.DuckDBPyConnection, tuple[int, int]] = {}  # threads before the first of them, and how many
_SAID = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT)


class Table:
    """Rows of one schema, held by column."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], schema: Schema) -> None:
        """Take rows; a column that a row lacks is null there. ValueError when a value has not its column's type."""
        every = list(rows)
        self.schema = schema
        self.num_rows = len(every)
        self.columns = {name: [_typed(row.get(name), name, kind) for row in every] for name, kind in schema.columns}

    def write(self, path: Path) -> None:
        """Write a file; OSError when the disk refuses."""
        # Of one row, as a trial is, DuckDB takes half the time to write plain values.
        single = self.num_rows == 1
        form = "?::{}" if single else "unnest(?::{}[])"
        selected = ", ".join(f"{form.format(kind)} AS {name_of(name)}" for name, kind in self.schema.columns)
        values = [column[0] if single else column for column in self.columns.values()]
        options = "FORMAT parquet, COMPRESSION snappy, USE_TMP_FILE false"
        try:
            with _cursor() as cursor:
                cursor.execute(f"COPY (SELECT {selected}) TO {quoted(str(path))} ({options})", values)
        except duckdb.IOException as error:
            raise os_error(error, path) from error


def write(rows: Iterable[Mapping[str, Any]], schema: Schema, path: Path) -> None:
    """Write rows as a file. ValueError when a value has not its column's type, OSError when the disk refuses."""
    Table(rows, schema).write(path)


def read(path: Path, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a file, or these columns of them, in order; duckdb.Error when it is no whole Parquet file."""
    return select(f"SELECT {_chosen(names)} FROM {scan([path])}")


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """By name these columns of a file; one with nulls is a masked array. duckdb.Error as `read`."""
    with _cursor() as cursor:
        arrays: dict[str, NDArray[Any]] = cursor.execute(f"SELECT {_chosen(names)} FROM {scan([path])}").fetchnumpy()
    return arrays


def select(statement: str) -> list[dict[str, Any]]:
    """The rows that a SELECT gives."""
    with _cursor() as cursor:
        answer = cursor.execute(statement)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def types_of(path: Path) -> dict[str, str]:
    """By name the type of a file's columns; duckdb.Error, or ValueError of a name that is no UTF-8, when damaged."""
    with _cursor() as cursor:
        described = cursor.execute(f"DESCRIBE SELECT * FROM {scan([path])}").fetchall()
    return {name: kind for name, kind, *_ in described}


def alike(paths: Sequence[Path]) -> list[list[Path]]:
    """Files together whose columns have the same names and types, by one query; duckdb.Error when one is damaged."""
    fields = "name, type, repetition_type, num_children, converted_type, logical_type, duckdb_type"
    groups = select(
        f"SELECT list(file_name ORDER BY file_name) AS files FROM (SELECT file_name, list(row({fields}) "
        f"ORDER BY column_id) AS layout FROM parquet_schema({sql_list(paths)}) GROUP BY file_name) GROUP BY layout"
    )
    return [[Path(name) for name in row["files"]] for row in groups]


def warm_up() -> None:
    """Load what the first file would have to wait for."""
    select("SELECT 1")


def scan(paths: Sequence[Path], *, union: bool = False) -> str:
    """The files in SQL, one after the other; with ``union`` a column that some of them lack is null there."""
    return f"read_parquet({sql_list(paths)}, hive_partitioning = false, union_by_name = {str(union).lower()})"


def sql_list(paths: Sequence[Path]) -> str:
    """A list of paths in SQL."""
    return "[" + ", ".join(quoted(no_glob(str(path))) for path in paths) + "]"


def name_of(column: str) -> str:
    """The name of a column in SQL."""
    return '"' + column.replace('"', '""') + '"'


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def no_glob(path: str) -> str:
    """Keep characters of a folder's name from acting as a pattern."""
    return path.translate(_AS_THEY_ARE)


def _chosen(names: Sequence[str] | None) -> str:
    return "*" if names is None else ", ".join(name_of(name) for name in names)


def _typed(value: Any, name: str, kind: str) -> Any:
    """A value as its column takes it; ValueError when it is of another type or out of range."""
    if value is None:
        return None
    if kind == TEXT and isinstance(value, str):
        value.encode()  # a lone surrogate is no text: UnicodeEncodeError, a ValueError
        return value
    if kind == BOOL and isinstance(value, bool | np.bool_):
        return bool(value)
    if not isinstance(value, bool | np.bool_):
        if kind == DOUBLE and isinstance(value, int | float | np.number):
            return float(value)
        if kind in INTEGERS and (number := _as_int(value)) is not None:
            low, high = INTEGERS[kind]
            if low <= number <= high:
                return number
    raise ValueError(f"column {name}: {value!r} is no {kind}")


def _as_int(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        return None


def _cursor() -> duckdb.DuckDBPyConnection:
    """A connection for one statement. They share a database: to open one costs more than to write most files."""
    cursor = _database().cursor()
    without_progress(cursor)  # each has its own
    return cursor


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """In memory. Files are replaced under it, so it keeps nothing of them."""
    opened = duckdb.connect(":memory:", config={"threads": 1})
    opened.execute("SET enable_external_file_cache = false")
    return opened


# A child of a fork has not its threads: it could neither use it nor close it, and would hang when it ends.
os.register_at_fork(before=_database.cache_clear)


@contextmanager
def one_thread(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """The whole database has one thread, who runs a statement, until the last of those that overlap has ended.

    Of many small files two threads take twice the time of one to open them.
    """
    with _changing:
        threads, users = _overlapping.get(connection, (0, 0))
        if not users:
            ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
            connection.execute("SET threads = 1")
        _overlapping[connection] = threads, users + 1
    try:
        yield
    finally:
        with _changing:
            threads, users = _overlapping.pop(connection)
            if users > 1:
                _overlapping[connection] = threads, users - 1
            else:
                connection.execute(f"SET threads = {int(threads)}")


def without_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """No progress bar, which would be printed into what a command says.

    In a notebook of Jupyter without ipywidgets there is none, and DuckDB refuses to be told so.
    """
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        connection.execute("SET enable_progress_bar = false")


def os_error(error: duckdb.IOException, path: Path) -> OSError:
    """What the system said, which DuckDB has in its message only."""
    match = _NUMBER.search(str(error))
    number = int(match[1]) if match else next((one for one in _SAID if os.strerror(one) in str(error)), errno.EIO)
    return OSError(number, os.strerror(number), str(path))

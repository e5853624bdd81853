"""tables as comma-separated values

## Writes
A file `TABLE.csv` for each of the run's tables that has rows, named and ordered as `trifecta sql RUN` lists them.

Large ones take a third less time where Polars and PyArrow are installed (extra `notebook`), and are the same.

## For
Spreadsheets, R, and whatever reads no Parquet.
"""
# Statements are put together from names of our own views and columns, in quotes.
# ruff: noqa: S608

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from trifecta.design.extras import LazyModule
from trifecta.store import parquet
from trifecta.store.exports import tables
from trifecta.store.exports.tables import Table

polars: Any = LazyModule("polars")
plugins: Any = LazyModule("polars.io.plugins")

_FASTER = ("polars", "pyarrow")  # of the extra `notebook`; without, DuckDB writes
_MANY = 100_000  # rows, from which on Polars is worth its import
_ROWS = 8192  # at a time: fewer cost calls, more the processor's cache
_OPTIONS = "FORMAT csv, HEADER true, COMMENT ''"  # no comments: no text is in quotes for a # in it
# What both write alike. Any other column, and one of floats, is made text by DuckDB first.
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_ALIKE = frozenset(("BOOLEAN", "VARCHAR", *_SIGNED, *(f"U{kind}" for kind in _SIGNED)))
_NUMBER = re.compile(r"\(os error (\d+)\)")


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """A file a table; times stay integers of nanoseconds. A null is nothing, an empty text ``""``."""
    written = []
    faster = all(map(find_spec, _FASTER))
    for table in tables.tables(connection):
        path = folder / f"{table.name}.csv"
        if faster and _has_many(connection, table):
            _by_polars(connection, table, path)
        else:
            tables.copy(connection, f"SELECT * {tables.rows(table.name)}", path, _OPTIONS)
        written.append(path)
    return written


def _has_many(connection: duckdb.DuckDBPyConnection, table: Table) -> bool:
    query = f"SELECT 1 FROM {parquet.name_of(table.name)} LIMIT 1 OFFSET {_MANY - 1}"
    return bool(connection.execute(query).fetchall())


def _by_polars(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> None:
    """The same octets in half the processor's time: DuckDB reads, Polars writes; OSError when the disk refuses."""
    columns = ", ".join(
        name if kind in _ALIKE else f"{name}::VARCHAR AS {name}"
        for name, kind in ((parquet.name_of(name), kind) for name, kind in table.columns)
    )
    reader = connection.sql(f"SELECT {columns} {tables.rows(table.name)}").to_arrow_reader(_ROWS)
    schema = polars.from_arrow(reader.schema.empty_table()).schema

    def batches(*_: object) -> Iterator[Any]:
        yield from map(polars.from_arrow, reader)

    try:
        plugins.register_io_source(batches, schema=schema).sink_csv(path)
    except OSError as error:
        match = _NUMBER.search(str(error))  # which Polars has in its message only
        number = error.errno or (int(match[1]) if match else errno.EIO)
        raise OSError(number, os.strerror(number), str(path)) from error

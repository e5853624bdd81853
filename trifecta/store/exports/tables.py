"""What exports ask of a run: which tables have rows, their columns in types that other programs have, and parts."""
# Statements are put together from names of views and columns, in quotes.
# ruff: noqa: S608

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from trifecta.design.errors import UserError
from trifecta.store import facts, parquet, trace_schema
from trifecta.store.derived import DERIVED
from trifecta.store.visits import BROWSER_TABLES

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
# Read file by file, row by row, so that their rows have an order: it costs to sort millions of them.
_AS_THEY_LIE = frozenset(("trials", "samples", "spans", "resources", "link_packets", "verdicts", "conformance",
                          *BROWSER_TABLES, *DERIVED, *trace_schema.SCHEMAS))  # fmt: skip
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
WALL = "epoch_ms(rtrim(left(t.wall_started_utc, 23), 'Z')::TIMESTAMP) * 1000000"
"""When a trial ``t`` began, in SQL: ns of the wall clock, known to a millisecond. Null where it is not told."""
PORTABLE: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "INTEGER",
    "SMALLINT": "INTEGER",
    "INTEGER": "INTEGER",
    "BIGINT": "BIGINT",
    "UTINYINT": "INTEGER",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "BIGINT",
    "HUGEINT": "BIGINT",
    "UHUGEINT": "BIGINT",
    "FLOAT": "DOUBLE",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "VARCHAR",
}
"""By DuckDB's type what every store has: few have unsigned integers, or ones beyond 64 bits. A value that does not fit
ends the export with an error; what is not named here (lists, structs) is text in JSON."""


@dataclass(frozen=True)
class Table:
    """A view of a run that has rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Name and DuckDB's type."""

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [name for name, _ in self.columns]


def names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """All views, and tables that stand in the place of one."""
    query = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
    return [str(name) for (name,) in connection.execute(query).fetchall()]


def tables(connection: duckdb.DuckDBPyConnection) -> list[Table]:
    """The views that have rows, by name; what is added up from every sample is a table from then on."""
    _hold_sums(connection)
    return [table for name in names(connection) if (table := filled(connection, name)) is not None]


def _hold_sums(connection: duckdb.DuckDBPyConnection) -> None:
    """Whether there are any, how many a trial has, and which, is asked one after the other: each reads all samples."""
    if connection.execute("SELECT 1 FROM duckdb_views() WHERE view_name = 'request_sums'").fetchall():
        connection.execute("CREATE TABLE held AS FROM request_sums")
        connection.execute("DROP VIEW request_sums")
        connection.execute("ALTER TABLE held RENAME TO request_sums")


def filled(connection: duckdb.DuckDBPyConnection, name: str) -> Table | None:
    """The view of this name; None where it has no rows. To look at every one takes a second of a long run."""
    view = parquet.name_of(name)
    if not connection.execute(f"SELECT 1 FROM {view} LIMIT 1").fetchall():
        return None
    described = connection.execute(f"DESCRIBE SELECT * FROM {view}").fetchall()
    return Table(name, tuple((column, kind) for column, kind, *_ in described))


def rows(table: str, where: str = "true") -> str:
    """What a SELECT of a view goes on with, so that its rows come in the same order every time."""
    order = "" if table in _AS_THEY_LIE else " ORDER BY ALL"
    return f"FROM {parquet.name_of(table)} WHERE {where}{order}"


def portable_type(kind: str) -> str:
    """What a column of DuckDB's type becomes: BOOLEAN, INTEGER, BIGINT, DOUBLE or VARCHAR."""
    return "DOUBLE" if kind.startswith("DECIMAL") else PORTABLE.get(kind, "VARCHAR")


def portable(column: str, kind: str) -> str:
    """A column in SQL, in its portable type."""
    name = parquet.name_of(column)
    wanted = portable_type(kind)
    if wanted == kind:
        return name
    if wanted == "VARCHAR":
        return f"to_json({name})::VARCHAR"
    return f"{name}::{wanted}"


def refuse_untimed(connection: duckdb.DuckDBPyConnection) -> None:
    """UserError where trials lack the time of the wall clock: a store of series has no place for them."""
    ((without,),) = connection.execute("SELECT count(*) FROM trials WHERE wall_started_utc IS NULL").fetchall()
    if without:
        raise UserError(f"{without} trials do not say when they began (wall_started_utc); export csv instead")


def parts(
    connection: duckdb.DuckDBPyConnection, table: Table, rows: int, *, split_by: str | None = None
) -> Iterator[str]:
    """Conditions in SQL that part a table into pieces of about so many rows, trial by trial, the same every time.

    A trial with more is one piece, unless a column of integers is named by which it is split; rows that are equal
    there stay together.
    """
    view = parquet.name_of(table.name)
    if "trial" not in table.names:
        yield "true"
        return
    counts = connection.execute(f"SELECT trial, count(*) FROM {view} GROUP BY trial ORDER BY trial NULLS FIRST")
    first = last = ""
    held = 0
    for trial, count in counts.fetchall():
        if trial is None:
            yield "trial IS NULL"
            continue
        if held and held + count > rows:
            yield _between(first, last)
            held = 0
        if split_by is not None and count > rows:
            pieces = -(-count // rows)
            name = parquet.name_of(split_by)
            one = f"trial = {parquet.quoted(trial)} AND coalesce({name}, 0) % {pieces}"
            yield from (f"{one} = {piece}" for piece in range(pieces))
            continue
        first, last, held = trial if held == 0 else first, trial, held + count
    if held:
        yield _between(first, last)


def _between(first: str, last: str) -> str:
    return f"trial BETWEEN {parquet.quoted(first)} AND {parquet.quoted(last)}"


def copy(connection: duckdb.DuckDBPyConnection, select: str, path: Path, options: str) -> int:
    """Write what a SELECT gives to a file, by DuckDB, in the order of the rows, and say how many; OSError when the disk
    refuses.
    """
    copied = f"COPY ({select}) TO {parquet.quoted(str(path))} ({options}, USE_TMP_FILE false)"
    try:
        ((rows,),) = connection.execute(copied).fetchall()
    except duckdb.IOException as error:
        failure = parquet.os_error(error, path)
        if failure.errno in _DISK:
            raise failure from error
        raise
    return int(rows)


@dataclass(frozen=True)
class Identity:
    """What a run is called where runs of many folders and machines lie together; safe in a path and in SQL."""

    study: str
    run: str


def identity(run: Path) -> Identity:
    """The name of a run's study, and of its folder with what tells it from another of that name.

    It stays the same when a run is resumed, copied or concluded anew; not when its folder gets another name.
    """
    document = facts.read(run)
    name = str(document.get("study", {}).get("name", "study"))
    text = f"{document.get('seed')} {document.get('started_utc')} {name}"
    short = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Identity(_safe(name), f"{_safe(run.name)}-{short}")


def _safe(name: str) -> str:
    return _NO_NAME.sub("-", name).strip("-.") or "run"

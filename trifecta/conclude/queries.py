"""Runs the catalogue over a run's views and keeps each answer together with the SQL that gives it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb

from trifecta.conclude import results
from trifecta.conclude.query import Query
from trifecta.design import percentiles
from trifecta.design.metric import Metric
from trifecta.store import parquet, schema, views
from trifecta.store.derived import DERIVED

Row = dict[str, Any]
R = TypeVar("R")
Views = Mapping[str, Sequence[Mapping[str, object]]]
"""Rows of derived views."""


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query and the query."""

    query: Query
    rows: list[Row]

    def where(self, **wanted: Any) -> list[Row]:
        """Rows whose columns have these values."""
        return [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]

    def of(self, kind: type[R], **wanted: Any) -> list[R]:
        """The same as ``kind``, a TypedDict of columns of the query; TypeError names one that the query lacks."""
        matching = self.where(**wanted)
        return _as_kind(kind, list(matching[0]) if matching else None, matching)

    def values(self, column: str) -> list[Any]:
        """A column, nulls and NaN left out."""
        present = (row[column] for row in self.rows)
        return [
            value for value in present if value is not None and not (isinstance(value, float) and math.isnan(value))
        ]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)


def connect(run: Path) -> duckdb.DuckDBPyConnection:
    """Open the run's views, the same that ``trifecta sql`` offers, with the small ones held in memory.

    ``trials`` and ``checks`` lie in one file a trial and are read by nearly every query: once is enough. Verdicts that
    are not the run's are those that the trials give.
    """
    connection = views.connect(run)
    tables = results.attach(connection, run)
    with parquet.one_thread(connection):
        for name in ("trials", "checks") if tables.checks is None else ("trials",):
            hold(connection, name)
    return connection


def hold(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Keep the rows of a view in memory, where several queries read it: what it costs is paid once."""
    connection.execute(f"CREATE TABLE held AS SELECT * FROM {name}")  # noqa: S608 - a view's name
    connection.execute(f"DROP VIEW {name}")
    connection.execute(f"ALTER TABLE held RENAME TO {name}")


def keep(connection: duckdb.DuckDBPyConnection, query: Query) -> None:
    """Keep the answer of a query as a table of its name, for queries that are asked of it."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {query.name} AS {query.text()}")


def ask(connection: duckdb.DuckDBPyConnection, query: Query, cell: str | None = None) -> QueryResult:
    """Run a query of the catalogue for one cell, or for all of them."""
    cursor = connection.cursor()
    try:
        result = cursor.execute(query.text(cell))
        return QueryResult(query, _rows(result)[1])
    finally:
        cursor.close()


def trial_value(metric: Metric) -> str:
    """SQL for a metric of a row ``t`` of ``trials``.

    A trial without the percentile, because too many of its requests failed, counts as infinitely long, as it does in
    verdicts.
    """
    value = f"t.{metric.name}"
    if metric.quantile is None or not metric.over_failures:
        return value
    return (
        f"CASE WHEN t.samples < {percentiles.needed(metric.quantile)} THEN NULL "
        f"WHEN t.success_rate < {metric.quantile:g} OR ({value} IS NULL AND t.success_rate < 1) "
        f"THEN CAST('Infinity' AS DOUBLE) ELSE {value} END"
    )


def select(
    connection: duckdb.DuckDBPyConnection, kind: type[R], sql: str, parameters: Sequence[object] = ()
) -> list[R]:
    """The rows of a SELECT as ``kind``, a TypedDict of its columns; TypeError names one that it does not select."""
    return _as_kind(kind, *_rows(connection.execute(sql, list(parameters))))


def _rows(answer: duckdb.DuckDBPyConnection) -> tuple[list[str], list[Row]]:
    """The columns of an answer, and its rows."""
    names = [column[0] for column in answer.description or ()]
    return names, [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def _as_kind(kind: type[R], columns: Sequence[str] | None, rows: Sequence[object]) -> list[R]:
    """Rows of these columns (None: there are none to look at) as the TypedDict that names them."""
    wanted = sorted(vars(kind).get("__required_keys__", ()))
    lacking = [name for name in wanted if columns is not None and name not in columns]
    if lacking:
        raise TypeError(f"{kind.__name__}: not among the columns: {', '.join(lacking)}")
    return cast(list[R], list(rows))


def attach(connection: duckdb.DuckDBPyConnection, derived: Views) -> None:
    """Put rows in place of what a former report, perhaps of another version, left in the run's folder, by view."""
    for name, rows in derived.items():
        connection.execute(f"CREATE TABLE fresh AS {schema.empty_select(DERIVED[name])}")
        if rows:
            columns = list(rows[0])
            connection.executemany(
                f"INSERT INTO fresh ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608 - fields
                [[row[column] for column in columns] for row in rows],
            )
        connection.execute(f"DROP VIEW {name}")
        connection.execute(f"ALTER TABLE fresh RENAME TO {name}")

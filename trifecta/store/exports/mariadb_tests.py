"""The tests of a run as views, a table a test as bourbon2020 had it ("Each test (A1, B, etc.) generates a table").

The sentence is in its section 4.10. Of services, each row is a cycle and each call has ``elapsedXY`` (from X's call
until Y had it), ``elapsedYX`` (from Y's answer until X had it) and ``elapsedXYX``, their sum (4.10.1): what the callee
works is not in it. Several calls of one pair in a cycle are summed. The study reports ms; these are ns, as the names
say.
"""
# Statements are put together from numbers and from names that are cleaned here.
# ruff: noqa: S608

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import duckdb

_NO_NAME = re.compile(r"[^A-Za-z0-9]+")
_LONG = 20  # of a service's name in a column's
Statement = tuple[str, tuple[object, ...]]


def views(connection: duckdb.DuckDBPyConnection, there: Collection[str], run: int) -> Iterator[Statement]:
    """Statements, with their parameters, that make the views of a run's tests and list them in ``tests``."""
    if "trials" not in there:
        return
    yield "DELETE FROM tests WHERE run_id = %s", (run,)
    query = "SELECT DISTINCT treatment FROM trials WHERE treatment IS NOT NULL ORDER BY treatment"
    treatments = connection.execute(query).fetchall()
    calls = _calls(connection) if "spans" in there else []
    for number, (treatment,) in enumerate(treatments, 1):
        name = f"test_{run}_{number}"
        if calls:
            yield f"CREATE OR REPLACE VIEW `{name}` AS {_of_services(calls)}", _values(calls, run, treatment)
        elif "samples" in there:
            rows = "SELECT s.* FROM samples AS s JOIN trials AS t ON t.run_id = s.run_id AND t.trial = s.trial"
            where = "WHERE s.run_id = %s AND t.treatment = %s"
            yield f"CREATE OR REPLACE VIEW `{name}` AS {rows} {where}", (run, treatment)
        else:
            return
        yield "INSERT INTO tests VALUES (%s, %s, %s)", (run, name, treatment)


def _calls(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Caller and callee of each call that a cycle of the run has, in order."""
    query = "SELECT caller, callee FROM spans WHERE callee IS NOT NULL GROUP BY ALL"
    pairs = f"{query} ORDER BY min(ordinal), caller, callee"
    return [(str(caller), str(callee)) for caller, callee in connection.execute(pairs).fetchall()]


def _of_services(calls: list[tuple[str, str]]) -> str:
    columns: dict[str, str] = {}
    of_pair = "CASE WHEN h.caller = %s AND h.callee = %s THEN {} END"
    there, back = "h.arrived_ns - h.started_ns", "h.returned_ns - h.replied_ns"
    for caller, callee in calls:
        x, y = _clean(caller), _clean(callee)
        for name, value in ((f"{x}{y}", there), (f"{y}{x}", back), (f"{x}{y}{x}", f"{there} + {back}")):
            column = f"elapsed{name}_ns"
            while column.lower() in map(str.lower, columns):  # A calls B, and B calls A
                column += "_"
            columns[column] = f"SUM({of_pair.format(value)}) AS `{column}`"
    elapsed = "MAX(CASE WHEN h.ordinal = 0 THEN h.returned_ns - h.started_ns END) AS `elapsed_ns`"
    return (
        f"SELECT h.trial, h.request, MAX(h.warmup) AS warmup, {elapsed}, {', '.join(columns.values())} FROM spans AS h "
        "JOIN trials AS t ON t.run_id = h.run_id AND t.trial = h.trial WHERE h.run_id = %s AND t.treatment = %s "
        "GROUP BY h.trial, h.request"
    )


def _values(calls: list[tuple[str, str]], run: int, treatment: str) -> tuple[object, ...]:
    pairs = [name for call in calls for _ in range(3) for name in call]
    return (*pairs, run, treatment)


def _clean(name: str) -> str:
    return _NO_NAME.sub("", name)[:_LONG]

"""The answer to a query, as text, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from trifecta.design.errors import UserError

if TYPE_CHECKING:
    import duckdb

SCHEMA_QUERY = """
SELECT table_name AS "table", column_name AS "column", lower(data_type) AS type
FROM information_schema.columns ORDER BY table_name, ordinal_position
"""
_LONG = 100  # characters of a cell, beyond which a row stands as a list


@dataclass(frozen=True)
class QueryResult:
    """Columns and rows of a query's result."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def ask(connection: duckdb.DuckDBPyConnection, query: str) -> QueryResult:
    """Run a query; UserError with DuckDB's complaint in one line."""
    import duckdb

    try:
        result = connection.execute(query)
        if result is None or not result.description:  # only comments, or nothing
            return QueryResult([], [])
        return QueryResult([str(column[0]) for column in result.description], result.fetchall())
    except duckdb.Error as error:
        raise UserError(f"query: {' '.join(str(error).split())}") from None


def _json_value(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def as_json(answer: QueryResult) -> str:
    """A list with one object a row."""
    rows = [dict(zip(answer.columns, map(_json_value, row), strict=True)) for row in answer.rows]
    return json.dumps(rows, indent=2, allow_nan=False) + "\n"


def as_csv(answer: QueryResult) -> str:
    """RFC 4180, with a header; a missing value is empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)
    return out.getvalue()


def as_text(answer: QueryResult, width: int | None = None) -> str:
    """Aligned columns, numbers to the right; where that is wider than ``width``, each row as a list of its fields.

    Nothing is left out or cut.
    """
    if not answer.columns:
        return ""
    cells = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(answer.columns, *cells, strict=True)]
    if width is not None and cells and (sum(widths) + 2 * (len(widths) - 1) > width or max(widths) > _LONG):
        return _record_format(answer.columns, cells, width)
    right = [all(isinstance(row[i], int | float | None) for row in answer.rows) for i in range(len(widths))]

    def line(row: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        return "  ".join(aligned).rstrip() + "\n"

    return line(answer.columns) + line(["-" * width for width in widths]) + "".join(map(line, cells))


def _record_format(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    """A field a line, a rule before each row."""
    names = min(max(map(len, columns)), width // 2)
    sentences = []
    for number, row in enumerate(cells, 1):
        head = f"- row {number} "
        sentences.append(head + "-" * max(0, min(width, 80) - len(head)))
        for name, text in zip(columns, row, strict=True):
            sentences += hanging([name.ljust(names)], text, width)
    return "\n".join(sentences) + "\n"


def with_meanings(answer: QueryResult) -> QueryResult:
    """The views and columns of a run with what each holds."""
    from trifecta.store.data_dictionary import meaning

    rows = [(table, column, kind, meaning(table, column)) for table, column, kind in answer.rows]
    return QueryResult([*answer.columns, "meaning"], rows)


def schema_as_text(answer: QueryResult, width: int | None = None) -> str:
    """The views with a column a line: name, type, meaning."""
    from trifecta.store.data_dictionary import TABLES

    sentences: list[str] = []
    for table in dict.fromkeys(row[0] for row in answer.rows):
        own = [row[1:] for row in answer.rows if row[0] == table]
        sentences += [""] if sentences else []
        sentences += hanging([table], TABLES.get(table, ""), width)
        sizes = [max(len(row[place]) for row in own) for place in (0, 1)]
        for name, kind, means in own:
            sentences += hanging(["", name.ljust(sizes[0]), kind.ljust(sizes[1])], means, width)
    return "\n".join(line.rstrip() for line in sentences) + "\n"


def terminal_width() -> int | None:
    """Columns of the terminal; a pipe and a file have none, but what COLUMNS gives them."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else None


def hanging(first: Sequence[str], text: str, width: int | None) -> list[str]:
    """Fields that stand first and a text beside them, broken to the width, below them where there is no room."""
    head = "  ".join(first)
    indent = len(click.unstyle(head)) + 2
    if width is None or indent + len(text) <= width:
        return [f"{head}  {text}"]
    if width - indent < 20:
        below = textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ")
        return [*textwrap.wrap(" ".join(head.split()), width, initial_indent="  " if not first[0] else ""), *below]
    lines = textwrap.wrap(text, width - indent) or [""]
    return [f"{head}  {lines[0]}", *(" " * indent + line for line in lines[1:])]


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())

"""The answer to a query, as text, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trifecta.design.errors import UserError

if TYPE_CHECKING:
    import duckdb

SCHEMA_QUERY = """
SELECT table_name AS "table", string_agg(column_name || ' ' || lower(data_type), ', ' ORDER BY ordinal_position)
  AS columns
FROM information_schema.columns GROUP BY table_name ORDER BY table_name
"""
_WIDEST = 400  # characters of a cell in a text table


@dataclass(frozen=True)
class Answer:
    """Columns and rows of a query's result."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def ask(connection: duckdb.DuckDBPyConnection, query: str) -> Answer:
    """Run a query; UserError with DuckDB's complaint in one line."""
    import duckdb

    try:
        result = connection.execute(query)
        if result is None or not result.description:  # only comments, or nothing
            return Answer([], [])
        return Answer([str(column[0]) for column in result.description], result.fetchall())
    except duckdb.Error as error:
        raise UserError(f"query: {' '.join(str(error).split())}") from None


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def as_json(answer: Answer) -> str:
    """A list with one object a row."""
    rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    return json.dumps(rows, indent=2, allow_nan=False) + "\n"


def as_csv(answer: Answer) -> str:
    """RFC 4180, with a header; a missing value is empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)
    return out.getvalue()


def as_text(answer: Answer) -> str:
    """Aligned columns; numbers to the right."""
    if not answer.columns:
        return ""
    cells = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(answer.columns, *cells, strict=True)]
    right = [all(isinstance(row[i], int | float | None) for row in answer.rows) for i in range(len(widths))]

    def line(row: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        return "  ".join(aligned).rstrip() + "\n"

    return line(answer.columns) + line(["-" * width for width in widths]) + "".join(map(line, cells))


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"

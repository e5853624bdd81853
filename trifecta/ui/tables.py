"""Tables and numbers as the page gets them: written out by the functions that the report writes with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from trifecta.contract.values import JsonObject, JsonValue
from trifecta.report.figures import style
from trifecta.report.tables import Table


def json_value(value: object) -> JsonValue:
    """A value for JSON: what is infinite or no number is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): json_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    return value if value is None or isinstance(value, str | int) else str(value)


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[int] = (), sql: str = ""
) -> JsonObject:
    """A table whose first column heads its rows; ``numeric``: which columns are set flush right."""
    return {"caption": caption, "columns": columns, "numeric": numeric, "rows": list(rows), "sql": sql}


def of_report(report_table: Table) -> JsonObject:
    """A table of the report, with the query that gives it again."""
    columns = [report_table.heading, *(column.heading for column in report_table.columns)]
    numeric = [number for number, column in enumerate(report_table.columns, 1) if column.numeric]
    rows = [[line.heading, *(cell.text for cell in line.cells)] for line in report_table.lines]
    return cast(
        JsonObject,
        {
            **table(report_table.caption, columns, rows, numeric=numeric, sql=report_table.sql),
            "notes": report_table.notes,
        },
    )


def arm(name: str) -> JsonObject:
    """An arm: what it is called, and the number of its look (`style.mark`); 0 is the baseline's second run."""
    return {"arm": name, "name": style.name(name), "mark": style.mark(name)}

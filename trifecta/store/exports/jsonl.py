"""tables as lines of JSON

## Writes
A file `TABLE.jsonl` for each of the run's tables that has rows, an object a row. Columns that end in `_json` are
objects in it, not text; a number that JSON has not (`latency_censored_ns` of a failed request is infinite) is the
text `inf`.

## For
jq, scripts, document stores (DynamoDB and MongoDB import it), and whatever reads no Parquet.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from trifecta.store import parquet
from trifecta.store.exports import tables


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """A file a table; times stay integers of nanoseconds."""
    written = []
    for table in tables.tables(connection):
        path = folder / f"{table.name}.jsonl"
        columns = ", ".join(f"{_value(name, kind)} AS {parquet.name_of(name)}" for name, kind in table.columns)
        tables.copy(connection, f"SELECT {columns} {tables.rows(table.name)}", path, "FORMAT json")
        written.append(path)
    return written


def _value(column: str, kind: str) -> str:
    name = parquet.name_of(column)
    if kind in ("DOUBLE", "FLOAT"):
        return f"CASE WHEN isfinite({name}) THEN to_json({name}) ELSE to_json({name}::VARCHAR) END"
    if kind == "VARCHAR" and column.endswith("_json"):
        return f"{name}::JSON"
    return name

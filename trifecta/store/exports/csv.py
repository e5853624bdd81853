"""tables as comma-separated values

## Writes
A file `TABLE.csv` for each of the run's tables that has rows, named and ordered as `trifecta sql RUN` lists them.

## For
Spreadsheets, R, and whatever reads no Parquet.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from trifecta.store.exports import tables


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """A file a table; times stay integers of nanoseconds. A null is nothing, an empty text ``""``."""
    written = []
    for table in tables.tables(connection):
        path = folder / f"{table.name}.csv"
        tables.copy(connection, f"SELECT * {tables.rows(table.name)}", path, "FORMAT csv, HEADER true")
        written.append(path)
    return written

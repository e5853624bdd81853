"""tables as comma-separated values

## Writes
A file `TABLE.csv` for each of the run's tables that has rows, named and ordered as `trifecta sql RUN` lists them.

## For
Spreadsheets, R, and whatever reads no Parquet.
"""

from __future__ import annotations

from pathlib import Path

import duckdb


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """A file a table; times stay integers of nanoseconds."""
    written = []
    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name").fetchall()
    for (view,) in views:
        relation = connection.table(view)
        if not relation.limit(1).fetchall():
            continue
        path = folder / f"{view}.csv"
        relation.write_csv(str(path), header=True)
        written.append(path)
    return written

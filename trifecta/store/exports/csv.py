"""tables as comma-separated values

## Writes
A file `TABLE.csv` for each of the run's tables that has rows, named and ordered as `trifecta sql RUN` lists them.

## For
Spreadsheets, R, and whatever reads no Parquet.
"""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb

_ROWS = 10_000  # at a time: a run may have more than memory holds


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """A file a table; times stay integers of nanoseconds."""
    written = []
    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name").fetchall()
    for (view,) in views:
        # Not DuckDB's own writer: a connection to a run may touch no other folder.
        found = connection.execute(f'SELECT * FROM "{view}"')  # noqa: S608 - a view of ours
        rows = found.fetchmany(_ROWS)
        if not rows:
            continue
        path = folder / f"{view}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(name for name, *_ in found.description)
            while rows:
                out.writerows(rows)
                rows = found.fetchmany(_ROWS)
        written.append(path)
    return written

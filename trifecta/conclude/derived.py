"""Derived tables: each report leaves them in its run's folder, where its SQL and ``trifecta sql`` find them."""

from __future__ import annotations

from pathlib import Path

import duckdb

from trifecta.conclude.queries import Views
from trifecta.store import files, parquet, results_manifest
from trifecta.store.derived import DERIVED
from trifecta.store.run import RunDirectory


def write(run: Path, connection: duckdb.DuckDBPyConnection, views: Views) -> None:
    """Write the rows of each view as ``NAME.parquet`` with its digest; the connection reads them from there.

    CannotError when the disk refuses.
    """
    folder = RunDirectory.open(run).path
    for name, rows in views.items():
        path = folder / f"{name}.parquet"
        with files.draft_of(path) as draft:
            parquet.write(rows, DERIVED[name], draft)
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {parquet.scan([path])}")  # noqa: S608 - ours
    with files.disk_errors(folder / results_manifest.FILE):
        results_manifest.note(folder, [f"{name}.parquet" for name in views])

"""Export formats: one file each and one line here, or an entry point of the group ``trifecta.exporters``."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb

from trifecta.design.document import did_you_mean
from trifecta.design.errors import TrifectaError, UserError
from trifecta.entries import Registry
from trifecta.store import files
from trifecta.store.exports import benchstat, csv
from trifecta.store.exports.exporter import Exporter


def _adopt(_name: str, exporter: Exporter, package: str) -> Exporter:
    """A format of another package: documented as our own are."""
    exporter = replace(exporter, package=package)
    _ = exporter.documentation
    return exporter


_OWN = {"csv": Exporter(csv.write), "benchstat": Exporter(benchstat.write)}
EXPORTERS = Registry("exporter", _OWN, Exporter, _adopt, error=UserError)


def export(name: str, connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """Write a run's views in this format into a new or empty folder: all of it, or nothing.

    UserError for a format that is not there, a folder that is taken, and a fault of another package's exporter.
    """
    if name not in EXPORTERS:
        raise UserError(f"no format {name!r}; {did_you_mean(name, EXPORTERS)}")
    exporter = EXPORTERS[name]
    files.make_empty(folder)
    with files.disk_errors(folder), tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=folder) as drafts:
        try:
            written = exporter.write(connection, Path(drafts))
        except (TrifectaError, OSError):
            raise
        except Exception as error:
            if not exporter.package:
                raise
            said = f"{exporter.package} failed ({type(error).__name__}: {' '.join(str(error).split())})"
            raise UserError(f"exporter {name!r} of {said}; report it to its author") from error
        return [Path(shutil.move(path, folder / path.name)) for path in written]

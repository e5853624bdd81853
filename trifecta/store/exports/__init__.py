"""Exports: a file each and a line here, or an entry point of the group ``trifecta.exporters``.

A format (`Exporter`) is written into a folder, whole or not at all; a target (`Target`) is reached by a URL.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import duckdb

from trifecta.design.document import did_you_mean
from trifecta.design.errors import TrifectaError, UserError
from trifecta.entries import Registry
from trifecta.store import damage, files, views
from trifecta.store.exports import (
    benchstat,
    csv,
    dynamodb,
    har,
    influxdb,
    jsonl,
    line_protocol,
    mariadb,
    objects,
    openmetrics,
    otlp,
)
from trifecta.store.exports.exporter import Exporter, Source, Target

_MEMORY = "600MB"  # of DuckDB; what it cannot hold it spills into the drafts. With the rest a GB
_FOOTERS = "parquet_metadata_cache"  # a table is read in parts, and has a file a trial
Documented = TypeVar("Documented", Exporter, Target)
Settle = Callable[[duckdb.DuckDBPyConnection], None]
"""What puts verdicts and checks as the trials give them in the place of files that do not stand."""


def _adopt(_name: str, one: Documented, package: str) -> Documented:
    """A format or target of another package: documented as our own are."""
    one = replace(one, package=package)
    _ = one.documentation
    return one


_FORMATS = {
    "csv": Exporter(csv.write),
    "jsonl": Exporter(jsonl.write),
    "har": Exporter(gather=har.gather),
    "lines": Exporter(gather=line_protocol.gather),
    "openmetrics": Exporter(gather=openmetrics.gather),
    "benchstat": Exporter(benchstat.write),
}
_PLACES = {
    "objects": Target(objects.send, objects.SCHEMES),
    "influxdb": Target(influxdb.send, influxdb.SCHEMES),
    "mariadb": Target(mariadb.send, mariadb.SCHEMES),
    "dynamodb": Target(dynamodb.send, dynamodb.SCHEMES),
    "otlp": Target(otlp.send, otlp.SCHEMES),
}
EXPORTERS = Registry("exporter", _FORMATS, Exporter, _adopt, error=UserError, taken=_PLACES, beside=(Target,))
TARGETS = Registry("exporter", _PLACES, Target, _adopt, error=UserError, taken=_FORMATS, beside=(Exporter,))


def schemes() -> dict[str, str]:
    """By the scheme of a URL the name of the target that takes it."""
    return {scheme: name for name, target in TARGETS.items() for scheme in target.schemes}


def to(target: str, run: Path, settle: Settle | None = None) -> list[str]:
    """Export a run to ``SCHEME://...``, ``FORMAT``, or ``FORMAT:FOLDER``; what is there now, a line each."""
    if "://" in target:
        return send(target, run, settle)
    name, _, folder = target.partition(":")
    return [str(path) for path in export(name, run, Path(folder) if folder else None, settle)]


def export(name: str, run: Path, folder: Path | None = None, settle: Settle | None = None) -> list[Path]:
    """Write a run in this format into a new or empty folder, by default RUN-FORMAT: all of it, or nothing.

    UserError for a format that is not there, a folder that is taken, and a fault of another package's exporter.
    """
    if name not in EXPORTERS:
        by_url = name in TARGETS or name in schemes()
        remedy = f"it is a target: --to {_example(name)}" if by_url else did_you_mean(name, EXPORTERS)
        raise UserError(f"no format {name!r}; {remedy}")
    exporter = EXPORTERS[name]
    run_folder = run.resolve()
    folder = (folder or run_folder.with_name(f"{run_folder.name}-{name}")).resolve()
    if folder.is_relative_to(run_folder):
        raise UserError(f"{folder} is in the run's folder, which an export leaves alone; choose another with --out")
    is_new = not folder.exists()
    files.make_empty(folder)
    try:
        with (
            files.disk_errors(folder),
            tempfile.TemporaryDirectory(prefix=files.TEMPORARY_PREFIX, dir=folder) as drafts,
        ):
            with _opened(run, Path(drafts), settle) as source, _blamed(name, exporter.package):
                written = exporter.into(source, Path(drafts))
            return [Path(shutil.move(path, folder / path.name)) for path in written]
    except BaseException:
        if is_new:
            with suppress(OSError):  # what it holds is what could not be removed
                folder.rmdir()
        raise


def send(url: str, run: Path, settle: Settle | None = None) -> list[str]:
    """Send a run to where a URL leads; what is there now, a line each. The run is only read.

    UserError for a URL that no target takes or that has a password in it, and a fault of another package's target;
    CannotError where the target cannot be reached or refuses.
    """
    scheme, known = url.partition("://")[0].lower(), schemes()
    if scheme not in known:
        raise UserError(f"--to {scheme}://: no target of this scheme; {did_you_mean(scheme, known)}")
    try:
        parted = urlsplit(url)
        _ = parted.port
    except ValueError as error:
        raise UserError(f"--to {scheme}://: not a URL ({error})") from None
    if parted.password is not None:
        raise UserError(
            f"--to {scheme}://: a password in a URL ends in histories and logs; `trifecta export --help` says where "
            "credentials are looked for"
        )
    name = known[scheme]
    target = TARGETS[name]
    with (
        tempfile.TemporaryDirectory(prefix="trifecta-export-") as drafts,
        files.disk_errors(Path(drafts)),
        _opened(run, Path(drafts).resolve(), settle) as source,
        _blamed(name, target.package),
    ):
        return target.send(source, url)


@contextmanager
def _opened(run: Path, scratch: Path, settle: Settle | None) -> Iterator[Source]:
    with damage.naming_damaged_file(run), views.connect(run, writes=scratch) as connection:
        if settle is not None:
            settle(connection)
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        if connection.execute("SELECT 1 FROM duckdb_settings() WHERE name = ?", [_FOOTERS]).fetchall():
            connection.execute(f"SET GLOBAL {_FOOTERS} = true")  # for cursors, too
        yield Source(run.resolve(), connection, scratch)


@contextmanager
def _blamed(name: str, package: str) -> Iterator[None]:
    """Name the package whose code fails; our own faults stay what they are."""
    try:
        yield
    except (TrifectaError, OSError):
        raise
    except Exception as error:
        if not package:
            raise
        sentence = f"{package} failed ({type(error).__name__}: {' '.join(str(error).split())})"
        raise UserError(f"exporter {name!r} of {sentence}; report it to its author") from error


def _example(name: str) -> str:
    scheme = TARGETS[name].schemes[0] if name in TARGETS else name
    return f"{scheme}://..."

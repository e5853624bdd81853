"""Which file of a run is damaged, when something that reads it fails: cut short by a copy, or by a bad disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.design.errors import TrifectaError, UserError

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("trials", "samples", "spans", "resources", "visits", "fetches", "playback")
"""Folders of tables whose columns the views rely on."""
_looked_at: dict[Path, tuple[int, int, int]] = {}  # of this process; by size, time and number


@contextmanager
def named(run: Path) -> Iterator[None]:
    """Turn whatever a damaged Parquet file of a run raises into a UserError that names the file.

    The files are looked at only when something fails; where all are whole the error stays what it is.
    """
    try:
        yield
    except TrifectaError:
        raise
    except Exception as error:
        found = first_damaged(run)
        if found is None:
            raise
        path, said = found
        raise UserError(f"{path}: {said}; {_remedy(run, path)}") from error


def first_damaged(run: Path) -> tuple[Path, str] | None:
    """The first Parquet file of a run that is not what one of ours is, and why; drafts of an interrupted trial do not
    count.
    """
    for path in sorted(run.rglob("*.parquet")):
        if not path.name.startswith(".") and (said := of_file(path, path.relative_to(run).parts[0])) is not None:
            return path, said
    return None


def refuse_foreign(run: Path) -> None:
    """UserError for the first table of a run without a manifest that lacks a column, or has one of another type.

    DuckDB would read nulls there. What is in the columns is looked at only when something fails.
    """
    for path in sorted(run.rglob("*.parquet")):
        table = path.relative_to(run).parts[0]
        if path.name.startswith(".") or table not in TABLES:
            continue
        state = path.stat()
        seen = state.st_size, state.st_mtime_ns, state.st_ino
        if _looked_at.get(path) != seen:
            if (said := of_file(path, table, content=False)) is not None:
                raise UserError(f"{path}: {said}; {_remedy(run, path)}")
            _looked_at[path] = seen


def of_file(path: Path, table: str, *, content: bool = True) -> str | None:
    """What is wrong with a file of the folder ``table``, or of that name, in words; None where nothing is seen.

    Without ``content`` its columns are looked at, and not what is in them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        return None
    try:
        there = pq.read_schema(path)
        pq.read_metadata(path)
    except (pa.ArrowException, OSError, ValueError):  # a ValueError: the name of a column is no UTF-8
        return "is damaged (no whole Parquet file)"
    wanted = _schemas().get(table.removesuffix(".parquet"))
    said = None if wanted is None else _column(there, wanted, table)
    if said is None and content:
        try:
            read = pq.ParquetFile(path).read()
        except (pa.ArrowException, OSError, ValueError):
            return "is damaged (no whole Parquet file)"
        return _not_text(read) or (_not_json(read) if table == "trials" else None)
    return said


def _column(there: pa.Schema, wanted: pa.Schema, table: str) -> str | None:
    """The first column that is missing or of another type."""
    import pyarrow as pa

    for field in wanted:
        if field.name not in there.names:
            if field.name in _younger(table):
                continue
            return f"lacks the column {field.name!r}"
        found = there.field(field.name).type
        if _kind(found) != _kind(field.type) and not pa.types.is_null(found):
            return f"column {field.name!r} is of type {found}, not {field.type}"
    return None


def _schemas() -> dict[str, pa.Schema]:
    """By folder or name what the files there have."""
    from trifecta.store import schema
    from trifecta.store.derived import DERIVED
    from trifecta.store.visits import BROWSER_TABLES

    return {
        "trials": schema.TRIALS,
        "samples": schema.SAMPLES,
        "spans": schema.SPANS,
        "resources": schema.RESOURCES,
        "checks": schema.CHECKS,
        "verdicts": schema.VERDICTS,
        "conformance": schema.CONFORMANCE,
        **BROWSER_TABLES,
        **DERIVED,
    }


def _younger(table: str) -> frozenset[str]:
    """Columns that earlier versions did not write."""
    from trifecta.store import schema

    return schema.YOUNGER.get(table.removesuffix(".parquet"), frozenset())


def _kind(kind: pa.DataType) -> str:
    """What can be read as each other: whole numbers, numbers, texts, booleans."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    return str(kind)


def _not_text(table: pa.Table) -> str | None:
    import pyarrow as pa

    for name in table.column_names:
        try:
            table.column(name).validate(full=True)
        except pa.ArrowInvalid:
            return f"column {name!r} is not text (UTF-8)"
    return None


def _not_json(trials: pa.Table) -> str | None:
    for name in (name for name in trials.column_names if name.endswith("_json")):
        for value in trials.column(name).to_pylist():
            try:
                if value is not None:
                    json.loads(value)
            except ValueError:
                return f"column {name!r} is not JSON"
    return None


def _remedy(run: Path, path: Path) -> str:
    trial = run / "trials" / f"{path.stem.partition('-')[0]}.parquet"
    if path.parent.parent == run and trial.is_file():
        return f"copy it again, or remove {trial} and measure that trial again with `trifecta resume {run}`"
    return "copy it again, or remove it"

"""Which file of a run is damaged, when something that reads it fails: cut short by a copy, or by a bad disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trifecta.design.errors import TrifectaError, UserError
from trifecta.design.tables import DOUBLE, INTEGERS, TEXT, Schema

TABLES = ("trials", "samples", "spans", "resources", "visits", "fetches", "playback")
"""Folders of tables whose columns the views rely on."""
_NOT_WHOLE = "is damaged (no whole Parquet file)"
_NULLS = '"NULL"'  # of a column without a value whose writer did not know its type
_looked_at: dict[Path, tuple[int, int, int]] = {}  # of this process; by size, time and number


@contextmanager
def naming_damaged_file(run: Path) -> Iterator[None]:
    """Turn whatever a damaged Parquet file of a run raises into a UserError that names the file.

    The files are looked at only when something fails; where all are whole the error stays what it is.
    """
    try:
        yield
    except TrifectaError:
        raise
    except Exception as error:
        damaged = first_damaged(run)
        if damaged is None:
            raise
        path, problem = damaged
        raise UserError(f"{path}: {problem}; {_remedy(run, path)}") from error


def first_damaged(run: Path) -> tuple[Path, str] | None:
    """The first Parquet file of a run that is not what one of ours is, and why; drafts of an interrupted trial do not
    count.
    """
    for path in sorted(run.rglob("*.parquet")):
        if not path.name.startswith(".") and (problem := of_file(path, path.relative_to(run).parts[0])) is not None:
            return path, problem
    return None


def refuse_links(run: Path) -> None:
    """UserError for the first table that is a link out of the run's folder, or lies in one: SQL is not let there.

    Links that no view reads, and drafts of an interrupted trial, are nobody's business.
    """
    folders = (*TABLES, "link", "trace")
    whole_files = {*folders, *(f"{name}.parquet" for name in _schemas())}
    for place in (run, *(run / folder for folder in folders)):
        links = [entry.name for entry in os.scandir(place) if entry.is_symlink()] if place.is_dir() else []
        for name in sorted(links):
            read = name in whole_files if place == run else name.endswith(".parquet") and not name.startswith(".")
            if read and leads_out(run, place / name):
                sentence = "is a link out of the run's folder, which is not followed"
                raise UserError(f"{place / name}: {sentence}; put what it leads to in its place")


def leads_out(run: Path, path: Path) -> bool:
    """Whether what ``path`` leads to, by whatever links, is not in the run's folder: DuckDB would not be let there."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(run))


def refuse_foreign(run: Path) -> None:
    """UserError for the first table of a run without a manifest that lacks a column, or has one of another type.

    DuckDB would read nulls there. What is in the columns is looked at only when something fails.
    """
    unseen: dict[str, dict[Path, tuple[int, int, int]]] = {}
    for table, path in _of_tables(run):
        state = path.stat()
        state_now = state.st_size, state.st_mtime_ns, state.st_ino
        if _looked_at.get(path) != state_now:
            unseen.setdefault(table, {})[path] = state_now
    for table, states in unseen.items():
        for path in _first_of_each_kind(list(states)):
            if (problem := of_file(path, table, content=False)) is not None:
                raise UserError(f"{path}: {problem}; {_remedy(run, path)}")
        _looked_at.update(states)


def _of_tables(run: Path) -> Iterator[tuple[str, Path]]:
    """The files of TABLES, in order, but for drafts of an interrupted trial."""
    for table in sorted(TABLES):
        every = ((folder, name) for folder, _, names in os.walk(run / table) for name in names)
        wanted = (f"{at}/{name}" for at, name in every if name.endswith(".parquet") and not name.startswith("."))
        for path in sorted(wanted):  # as texts: to compare thousands of paths takes longer than to look at them
            yield table, Path(path)


def _first_of_each_kind(paths: list[Path]) -> list[Path]:
    """A file for all that have the same columns; every file where one of them cannot be read."""
    import duckdb

    from trifecta.store import parquet

    try:
        return sorted(kind[0] for kind in parquet.alike(paths))
    except (duckdb.Error, OSError, ValueError):
        return paths


def of_file(path: Path, table: str, *, content: bool = True) -> str | None:
    """What is wrong with a file of the folder ``table``, or of that name, in words; None where nothing is seen.

    Without ``content`` its columns are looked at, and not what is in them.
    """
    import duckdb

    from trifecta.store import parquet

    if path.suffix != ".parquet":
        return None
    try:
        there = parquet.types_of(path)
    except (duckdb.Error, OSError, ValueError):  # a ValueError: the name of a column is no UTF-8
        return _NOT_WHOLE
    wanted = _schemas().get(table.removesuffix(".parquet"))
    problem = None if wanted is None else _column(there, wanted, table)
    if problem is None and content:
        return _content(path, there) or (_not_json(path, there) if table == "trials" else None)
    return problem


def _column(there: Mapping[str, str], wanted: Schema, table: str) -> str | None:
    """The first column that is missing or of another type."""
    for name, kind in wanted.columns:
        if name not in there:
            if name in _younger(table):
                continue
            return f"lacks the column {name!r}"
        actual = there[name]
        if _kind(actual) != _kind(kind) and actual != _NULLS:
            return f"column {name!r} is of type {actual}, not {kind}"
    return None


def _schemas() -> dict[str, Schema]:
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


def _kind(kind: str) -> str:
    """What can be read as each other: whole numbers, numbers, texts, booleans."""
    if kind in INTEGERS or kind in ("TINYINT", "SMALLINT"):
        return "integer"
    return "number" if kind in (DOUBLE, "FLOAT") else kind


def _content(path: Path, there: Mapping[str, str]) -> str | None:
    """Every value is read: the first column where that fails, and why."""
    if _unread(path, list(there)) is None:
        return None
    for name, kind in there.items():
        if (error := _unread(path, [name])) is not None:
            no_text = kind == TEXT and "UTF8" in str(error)
            return f"column {name!r} is not text (UTF-8)" if no_text else _NOT_WHOLE
    return None


def _unread(path: Path, names: Iterable[str]) -> Exception | None:
    """What comes of reading every value of these columns where that fails."""
    import duckdb

    from trifecta.store import parquet

    read = ", ".join(f"bit_xor(hash({parquet.name_of(name)}))" for name in names)
    try:
        parquet.select(f"SELECT {read} FROM {parquet.scan([path])}")  # noqa: S608 - names of columns, quoted
    except (duckdb.Error, OSError, ValueError) as error:
        return error
    return None


def _not_json(path: Path, there: Iterable[str]) -> str | None:
    from trifecta.store import parquet

    names = [name for name in there if name.endswith("_json")]
    for row in parquet.read(path, names) if names else []:
        for name, value in row.items():
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

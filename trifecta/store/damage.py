"""Which file of a run is damaged, when something that reads it fails: cut short by a copy, or by a bad disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trifecta.design.errors import TrifectaError, UserError

_OF_TRIALS = ("trials", "samples")  # folders whose files all have the column


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
        raise UserError(f"{found}: {_fault(found)}; {_remedy(run, found)}") from error


def first_damaged(run: Path) -> Path | None:
    """The first Parquet file of a run that cannot be read whole; drafts of an interrupted trial do not count."""
    files = (path for path in sorted(run.rglob("*.parquet")) if not path.name.startswith("."))
    return next((path for path in files if _fault(path) is not None), None)


def _fault(path: Path) -> str | None:
    """What is wrong with a Parquet file; None: it can be read, and is one of its folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.ParquetFile(path).read().column_names
    except (pa.ArrowException, OSError, ValueError):
        return "is damaged (no whole Parquet file)"
    if path.parent.name in _OF_TRIALS and "trial" not in names:
        return "is no file of a trial (it has no column `trial`)"
    return None


def _remedy(run: Path, path: Path) -> str:
    trial = run / "trials" / f"{path.stem.partition('-')[0]}.parquet"
    if path.parent.parent == run and trial.is_file():
        return f"copy it again, or remove {trial} and measure that trial anew with `trifecta resume {run}`"
    return "copy it again, or remove it"

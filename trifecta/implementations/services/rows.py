"""The lines of JSON that a program of services leaves, as the Parquet files of a trial.

The first line is ``{"columns": [...]}``, then an array of values for each row, at last ``{"rows": N}``: only with that
is it whole. Columns are those of docs/architecture.md, section 1.1; what they lack is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trifecta.contract.errors import is_error_class
from trifecta.design.tables import Schema
from trifecta.store import parquet
from trifecta.store.schema import SAMPLES, SPANS

ENDING = ".jsonl"


def lines_of(path: Path, client: int | None = None) -> Path:
    """Where the program writes what becomes this file; with a number, that client among others."""
    return path.with_suffix(ENDING if client is None else f".{client}{ENDING}")


def gather(trial: str, samples: Path, spans: Path, clients: int | None = None) -> None:
    """Write both files from their lines, which are removed; ValueError where those are not whole or not understood.

    With ``clients``, of so many programs that are a client each: their rows in the order of the requests' numbers.
    """
    numbers: Sequence[int | None] = [None] if clients is None else range(clients)
    _gather(samples, SAMPLES, {"trial": trial, "worker": 0}, [lines_of(samples, number) for number in numbers])
    _gather(spans, SPANS, {"trial": trial}, [lines_of(spans, number) for number in numbers])


def discard(*files: Path) -> None:
    """Remove what there is of these files, and of the lines that they would have been made of."""
    for file in files:
        for lines in (*file.parent.glob(f"{file.stem}{ENDING}"), *file.parent.glob(f"{file.stem}.*{ENDING}")):
            lines.unlink()
        file.unlink(missing_ok=True)


def _gather(path: Path, schema: Schema, more: Mapping[str, str | int], parts: Sequence[Path]) -> None:
    rows = (row for lines in parts for row in _rows(lines, schema))
    ordered = rows if len(parts) == 1 else sorted(rows, key=lambda row: int(row["request"]))
    parquet.write(({**row, **more} for row in ordered), schema, path)
    for lines in parts:
        lines.unlink()


def _rows(lines: Path, schema: Schema) -> Iterator[dict[str, Any]]:
    columns: list[str] = []
    count = 0
    with lines.open("rb") as file:
        for number, line in enumerate(file, 1):
            item = json.loads(line)
            if number == 1:
                columns = item["columns"]
                if unknown := set(columns) - set(schema.names):
                    raise ValueError(f"{lines.name} has columns that are not known: {', '.join(sorted(unknown))}")
            elif isinstance(item, list):
                count += 1
                row = dict(zip(columns, item, strict=True))
                if row["error"] is not None and not is_error_class(row["error"]):
                    raise ValueError(f"{lines.name}: a request failed with {row['error']!r}, which is no error class")
                yield row
            else:
                if item.get("rows") != count:
                    raise ValueError(f"{lines.name} tells of {item.get('rows')} rows, there are {count}")
                return
    raise ValueError(f"{lines.name} has no end after {count} rows")

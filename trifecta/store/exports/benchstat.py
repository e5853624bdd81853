"""Go's benchmark format

## Writes
`trials.txt`: a line a trial that counts, with its metrics, and the levels of its cell in its name. The baseline's
second run is left out.

## For
benchstat (golang.org/x/perf/cmd/benchstat): `benchstat -col /arm trials.txt`. It compares trials as if they were
independent; verdicts of a run compare within blocks.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from trifecta.design.metrics import METRICS

_NOT_IN_A_NAME = re.compile(r"[\s/=]+")


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """One file: https://golang.org/design/14313-benchmark-format."""
    there = {name for (name, *_) in connection.execute("DESCRIBE trials").fetchall()}
    metrics = [one for one in METRICS.values() if one.name in there]
    lines = [f"Unit {one.name} better={'higher' if one.better == 'more' else 'lower'}" for one in metrics]
    columns = ", ".join(one.name for one in metrics)
    query = f"SELECT cell, arm, samples, {columns} FROM trials WHERE valid AND NOT is_aa ORDER BY cell, arm, block"  # noqa: S608
    for cell, arm, samples, *values in connection.execute(query).fetchall():
        levels = [level.partition("=") for level in str(cell).split(",") if "=" in level]
        name = "/".join(["BenchmarkTrial", *(f"{_word(k)}={_word(v)}" for k, _, v in levels), f"arm={_word(arm)}"])
        sentences = [f"{value:.9g} {one.name}" for one, value in zip(metrics, values, strict=True) if value is not None]
        lines.append(" ".join([name, str(samples), *sentences]))
    path = folder / "trials.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _word(text: object) -> str:
    return _NOT_IN_A_NAME.sub("_", str(text).strip())

"""Parquet files by DuckDB: what is written is read again, and what does not fit its column is refused."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trifecta.design.tables import BOOL, DOUBLE, INT32, INT64, TEXT, UINT8, UINT64, make_schema
from trifecta.store import derived, parquet, schema, trace_schema, visits

ALL = make_schema(
    ("text", TEXT), ("flag", BOOL), ("share", DOUBLE), ("count", INT32), ("big", UINT64), ("at_ns", INT64)
)
ROWS: list[dict[str, Any]] = [
    {"text": "a'b\"ü", "flag": True, "share": 0.1, "count": -(2**31), "big": 2**64 - 1, "at_ns": 2**63 - 1},
    dict.fromkeys(ALL.names),
    {"text": "", "flag": False, "share": math.inf, "count": 2**31 - 1, "big": 0, "at_ns": -(2**63)},
]


@pytest.mark.parametrize("folder", ["plain", "it's", "[ab]*?", "cell=1,path=x", "ü ö"])
def test_rows_come_back_in_order_from_any_folder(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "t00000.parquet"
    path.parent.mkdir()
    parquet.write(ROWS, ALL, path)
    assert parquet.read(path) == ROWS
    assert parquet.read(path, ["count", "text"]) == [{"count": row["count"], "text": row["text"]} for row in ROWS]
    assert parquet.types_of(path) == ALL.types
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("folder", ["plain", "it's", "[ab]*?", "cell=1,path=x"])
def test_files_of_the_same_columns_are_together(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    place.mkdir()
    other, fewer = make_schema(*ALL.columns[:-1], ("at_ns", INT32)), make_schema(*ALL.columns[1:])
    kinds = {"a": ALL, "b": other, "c": ALL, "d": fewer, "e": other}
    for name, columns in kinds.items():
        parquet.write([], columns, place / name)
    found = parquet.alike([place / name for name in kinds])
    assert sorted([path.name for path in each] for each in found) == [["a", "c"], ["b", "e"], ["d"]]
    assert {path.parent for each in found for path in each} == {place}


def test_what_a_row_lacks_is_null_and_what_the_schema_lacks_is_left_out(tmp_path: Path) -> None:
    parquet.write([{"text": "a", "more": 1}], ALL, tmp_path / "x.parquet")
    assert parquet.read(tmp_path / "x.parquet") == [dict.fromkeys(ALL.names) | {"text": "a"}]


def test_no_rows_and_only_nulls_keep_the_types(tmp_path: Path) -> None:
    for rows in ([], [{}]):
        parquet.write(rows, ALL, tmp_path / "x.parquet")
        assert parquet.types_of(tmp_path / "x.parquet") == ALL.types
        assert len(parquet.read(tmp_path / "x.parquet")) == len(rows)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    row = {"flag": np.True_, "share": np.float32(0.5), "count": np.int64(3), "big": 4.0, "at_ns": np.float64(5)}
    parquet.write([row], ALL, tmp_path / "x.parquet")
    (found,) = parquet.read(tmp_path / "x.parquet")
    assert found == {"text": None, "flag": True, "share": 0.5, "count": 3, "big": 4, "at_ns": 5}
    parquet.write([{"share": math.nan}], ALL, tmp_path / "x.parquet")
    assert math.isnan(parquet.read(tmp_path / "x.parquet")[0]["share"])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", 1), ("text", b"a"), ("text", "\ud800"), ("flag", 1), ("flag", "true"), ("share", "1"), ("share", True),
        ("count", 1.5), ("count", True), ("count", "1"), ("count", 2**31), ("count", math.nan), ("big", -1),
        ("big", 2**64), ("at_ns", 2**63), ("at_ns", math.inf),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_and_nothing_written(tmp_path: Path, column: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"column {column}|surrogates not allowed"):
        parquet.write([{}, {column: value}], ALL, tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())


def test_a_column_of_octets(tmp_path: Path) -> None:
    parquet.write([{"depth": 255}], make_schema(("depth", UINT8)), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="256 is no UTINYINT"):
        parquet.write([{"depth": 256}], make_schema(("depth", UINT8)), tmp_path / "x.parquet")


def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for count in range(20):
        parquet.write([{"count": count}], ALL, tmp_path / "draft.parquet")
        stat = (tmp_path / "draft.parquet").stat()
        (tmp_path / "draft.parquet").replace(path)
        os.utime(path, ns=(stat.st_atime_ns, 10**18))  # as if written within the same tick of the clock
        assert parquet.read(path, ["count"]) == [{"count": count}]


@pytest.mark.parametrize(("path", "number"), [("/dev/full", errno.ENOSPC), ("none/x.parquet", errno.ENOENT)])
def test_a_disk_that_refuses_is_an_error_of_the_system(tmp_path: Path, path: str, number: int) -> None:
    with pytest.raises(OSError, match=os.strerror(number)) as refused:
        parquet.write(ROWS * 1000, ALL, tmp_path / path)
    assert refused.value.errno == number
    assert refused.value.filename == str(tmp_path / path)


def test_every_schema_is_the_same_for_arrow(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    tables = {"trials": schema.TRIALS, "samples": schema.SAMPLES, **visits.BROWSER_TABLES, **derived.DERIVED}
    for name, columns in {**tables, **trace_schema.SCHEMAS, "all": ALL}.items():
        path = tmp_path / f"{name}.parquet"
        parquet.write([{}], columns, path)
        assert pq.read_schema(path).equals(columns.arrow()), name


@pytest.mark.timeout(30)
def test_a_child_of_a_fork_reads_and_ends(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from trifecta.store import parquet
path = Path(sys.argv[1])
rows = parquet.read(path)
child = os.fork()
assert parquet.read(path) == rows
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    parquet.write(ROWS, ALL, tmp_path / "x.parquet")
    subprocess.run([sys.executable, "-c", code, tmp_path / "x.parquet"], check=True, timeout=20)

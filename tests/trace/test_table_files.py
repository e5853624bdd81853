"""Tables are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from trifecta.design.errors import CannotError
from trifecta.trace import tables

TABLE = pa.table({"a": [1, 2]})


def test_parquet_and_csv_come_back(tmp_path: Path) -> None:
    tables.write({"packets": TABLE}, tmp_path / "new" / "t", csv=True)
    assert sorted(path.name for path in (tmp_path / "new" / "t").iterdir()) == ["packets.csv", "packets.parquet"]
    assert pq.read_table(tmp_path / "new" / "t" / "packets.parquet").equals(TABLE)
    assert (tmp_path / "new" / "t" / "packets.csv").read_text() == '"a"\n1\n2\n'


@pytest.mark.parametrize("csv", [False, True])
def test_of_a_table_that_finds_no_room_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, csv: bool
) -> None:
    def half(_: pa.Table, path: Path, **_more: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((pyarrow.csv, "write_csv", half) if csv else (pq, "write_table", half)))
    with pytest.raises(CannotError, match="No space left on device; name a folder that can be written with --out"):
        tables.write({"packets": TABLE}, tmp_path, csv=csv)
    assert [path.name for path in tmp_path.iterdir()] == (["packets.parquet"] if csv else [])

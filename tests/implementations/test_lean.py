"""What a driver loads before it says that it is loaded: every trial waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("driver", "name"), [("clients", "curl"), ("browsers", "chromium")])
def test_a_driver_loads_what_writes_its_rows_and_no_pandas(driver: str, name: str) -> None:
    """pandas was half of a driver's start, and pyarrow loads it unasked where it is installed: DuckDB loads neither."""
    pytest.importorskip("pandas", reason="pandas is not installed, so nothing can load it")
    command = [sys.executable, "-X", "importtime", "-P", "-m", f"trifecta.implementations.{driver}.driver", name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert '{"loaded":' in done.stdout
    assert "duckdb" in loaded
    assert not {one for one in loaded if one.startswith(("pandas.", "pyarrow."))}  # looking for it has a line as well

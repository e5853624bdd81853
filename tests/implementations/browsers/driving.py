"""Starts a driver of a browser, speaks its contract, and finds what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

FAKE = (sys.executable, "-P", str(Path(__file__).with_name("fake_browser.py")))
REAL = (sys.executable, "-P", "-m", "trifecta.implementations.browsers.driver")


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    """A configuration whose files are in ``folder``."""
    return {
        "trial": "t00001",
        "protocol": "h3",
        "kind": "page",
        "url": "https://www.fake.lab/well",
        "hosts": ["www.fake.lab"],
        "port": 443,
        "ca_file": str(folder / "ca.pem"),
        "visits": 2,
        "warmup_visits": 1,
        "visit_timeout_ns": 20_000_000_000,
        "total_timeout_ns": 60_000_000_000,
        "settle_ns": 10_000_000,
        "work_dir": str(folder / "work"),
        "samples_file": str(folder / "samples.parquet"),
        "visits_file": str(folder / "visits.parquet"),
        "fetches_file": str(folder / "fetches.parquet"),
        "playback_file": str(folder / "playback.parquet"),
    } | changes


class Driver:
    """A driver that was given its configuration."""

    def __init__(self, command: tuple[str, ...], name: str, document: dict[str, Any] | bytes) -> None:
        root = Path(__file__).resolve().parents[3]
        self.process = subprocess.Popen(
            [*command, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=False,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        assert self.process.stdin is not None
        line = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self, key: str) -> dict[str, Any]:
        """The next line of that kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if key in said:
                return said[key]
        raise AssertionError(f"no {key}: {self.words()}")

    def family(self) -> list[psutil.Process]:
        """It and all that it started."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def words(self) -> str:
        """What it wrote to standard error, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self, timeout_s: float = 30) -> int:
        """Its exit code."""
        return self.process.wait(timeout_s)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a file of the trial."""
    return pq.read_table(folder / f"{table}.parquet").to_pylist()

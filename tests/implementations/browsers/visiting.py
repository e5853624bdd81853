"""Visits of a real browser, through the driver, on loopback: a small page of two names, from the engine's origin."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.workloads.drive import REPOSITORY
from trifecta.implementations.registry import BROWSERS
from trifecta.implementations.server import Unsupported
from trifecta.lab.certificates import make_certificates
from trifecta.lab.engine import find_engine

WWW, CDN = "www.light.lab", "cdn.light.lab"
SECOND = 10**9


def need(name: str) -> None:
    """Skip, with the reason, where the browser is missing."""
    try:
        BROWSERS[name].find()
    except Unsupported as missing:
        pytest.skip(str(missing))


@dataclass(frozen=True)
class Site:
    """An origin that serves the page, and what a driver needs to know of it."""

    folder: Path
    port: int
    silent_port: int
    """Takes connections and says nothing."""

    def config(self, **changes: Any) -> dict[str, Any]:
        """Of one cold visit of the page over HTTP/2."""
        folder = self.folder
        return {
            "trial": "t00001", "protocol": "h2", "kind": "page", "url": f"https://{WWW}:{self.port}/index.html",
            "hosts": [WWW, CDN], "addresses": {WWW: "127.0.0.1", CDN: "127.0.0.1"}, "port": self.port,
            "ca_file": str(folder / "pki" / "ca.pem"), "visits": 1, "visit_timeout_ns": 20 * SECOND,
            "total_timeout_ns": 60 * SECOND, "settle_ns": 200_000_000, "work_dir": str(folder / "work"),
            "samples_file": str(folder / "samples.parquet"), "visits_file": str(folder / "visits.parquet"),
            "fetches_file": str(folder / "fetches.parquet"),
        } | changes  # fmt: skip

    def rows(self, table: str) -> list[dict[str, Any]]:
        """What the driver wrote."""
        return pq.read_table(self.folder / f"{table}.parquet").to_pylist()


def png(width: int, height: int) -> bytes:
    """A picture that does not compress well."""
    lines = b"".join(b"\0" + os.urandom(3 * width) for _ in range(height))

    def chunk(name: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@contextmanager
def site(folder: Path, protocols: tuple[str, ...] = ("h1", "h2", "h3"), **changes: Any) -> Iterator[Site]:
    """The page of 1 + 1 + 1 + 4 resources, and two that never end to load."""
    pages = folder / "site"
    pages.mkdir()
    work = folder / "work"
    work.mkdir()
    certificates = make_certificates(folder / "pki", [WWW, CDN], ["127.0.0.1"])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = subprocess.Popen(
            [find_engine(), "origin", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with origin:
            assert origin.stdin is not None
            assert origin.stdout is not None
            said = {
                "address": "127.0.0.1", "port": 0, "certificate_file": str(certificates.chain),
                "key_file": str(certificates.key), "folder": str(pages), "protocols": list(protocols), **changes,
            }  # fmt: skip
            origin.stdin.write(json.dumps(said) + "\n")
            origin.stdin.flush()
            made = Site(folder, json.loads(origin.stdout.readline())["ready"]["port"], silent.getsockname()[1])
            pictures = "".join(
                f'<img src="https://{(WWW, CDN)[number % 2]}:{made.port}/{number}.png" width=300>'
                for number in range(4)
            )
            (pages / "index.html").write_text(
                '<!doctype html><title>page</title><link rel="icon" href="data:,"><link rel="stylesheet" href="a.css">'
                f"<h1>A page</h1>{pictures}<script src=a.js></script>"
            )
            (pages / "a.css").write_text("h1 {color: navy}")
            (pages / "a.js").write_text("document.title = 'done'")
            for number in range(4):
                (pages / f"{number}.png").write_bytes(png(100, 100))
            (pages / "never.html").write_text(f'<p>x<img src="https://{WWW}:{made.silent_port}/x.png">')
            (pages / "busy.html").write_text("<p>x<script>for (;;);</script>")
            try:
                yield made
            finally:
                origin.send_signal(signal.SIGTERM)


@contextmanager
def driver(browser: str, config: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """The driver at work on its configuration."""
    process = subprocess.Popen(
        [sys.executable, "-m", "trifecta.implementations.browsers.driver", browser],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.communicate()


def visit(browser: str, config: dict[str, Any]) -> dict[str, Any]:
    """Make the visits; the summary, with what was said on standard error as ``words``."""
    with driver(browser, config) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = process.stdout.read().splitlines()
        words = process.stderr.read()
        assert process.wait(60) == 0, words
    summary: dict[str, Any] = json.loads(lines[-1])["summary"]
    return summary | {"words": words}


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """All that the driver has started."""
    return psutil.Process(process.pid).children(recursive=True)


def alive(processes: list[psutil.Process], within_s: float = 10) -> list[psutil.Process]:
    """Which of them are still there after that time."""
    return psutil.wait_procs(processes, timeout=within_s)[1]

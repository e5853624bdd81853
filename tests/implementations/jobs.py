"""Jobs done by our own client programs, outside of the lab: on loopback, against the origin or a bad server."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from trifecta.design.model import Protocol
from trifecta.implementations.client import ClientAdapter, Job, Output
from trifecta.implementations.clients import records
from trifecta.implementations.server import Unsupported
from trifecta.lab.certificates import Certificates
from trifecta.lab.engine import find_engine

PROTOCOLS: tuple[Protocol, ...] = ("h1", "h2", "h3")
SECOND = 10**9


def need(adapter: ClientAdapter) -> None:
    """Skip, with the reason, where the program is not in the cache."""
    try:
        adapter.find()
    except Unsupported as missing:
        pytest.skip(str(missing))


def job(folder: Path, **changes: Any) -> Job:
    """A small job whose state is a new folder below ``folder``."""
    state = Path(tempfile.mkdtemp(dir=folder))
    fields: dict[str, Any] = {
        "protocol": "h2", "address": "127.0.0.1", "port": 1, "server_name": "origin.lab", "ca_file": folder / "ca.pem",
        "connections": 1, "streams": 1, "connection_mode": "reused", "requests": 6, "warmup_requests": 0,
        "method": "GET", "path": "/bytes/1000", "request_body_bytes": 0, "expect_body_bytes": 1000,
        "expect_status": 200, "connect_timeout_ns": 5 * SECOND, "request_timeout_ns": 5 * SECOND,
        "total_timeout_ns": 30 * SECOND, "tls_version": "1.3", "keylog_file": None, "qlog_dir": None, "state": state,
    }  # fmt: skip
    return Job(**(fields | changes))


def output(folder: Path, text: str, code: int = 0) -> Output:
    """What a program would have left behind."""
    (folder / "stdout").write_text(text, encoding="utf-8")
    (folder / "stderr").touch()
    return Output(code, folder / "stdout", folder / "stderr", 1_000, 2_000, 9_000)


@contextmanager
def origin(certificates: Certificates, **changes: Any) -> Iterator[int]:
    """The engine's origin on loopback; its port."""
    config = {
        "address": "127.0.0.1", "port": 0, "certificate_file": str(certificates.chain),
        "key_file": str(certificates.key),
    } | changes  # fmt: skip
    with subprocess.Popen(
        [find_engine(), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())["ready"]["port"]
        process.stdin.close()
        assert process.wait(timeout=20) == 0


@contextmanager
def talking(certificates: Certificates, alpn: list[str], talk: Callable[[ssl.SSLSocket], None]) -> Iterator[int]:
    """A TLS server whose connections are each one call of ``talk``; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.chain, certificates.key)
    if alpn:
        context.set_alpn_protocols(alpn)
    listener = socket.create_server(("127.0.0.1", 0))

    def one(plain: socket.socket) -> None:
        plain.settimeout(5)
        with suppress(OSError), context.wrap_socket(plain, server_side=True) as tls:
            talk(tls)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def carry_out(adapter: ClientAdapter, asked: Job) -> list[dict[str, Any]]:
    """Do the job; its rows as they would be stored, judged and typed as the driver does."""
    command = adapter.command(asked)
    began_wall_ns, began_ns = time.time_ns(), time.monotonic_ns()
    with (asked.state / "stdout").open("wb") as stdout, (asked.state / "stderr").open("wb") as stderr:
        done = subprocess.run(
            [os.fspath(argument) for argument in command.arguments], env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, check=False, timeout=60, cwd=asked.state,
        )  # fmt: skip
    ended_ns = time.monotonic_ns()
    left = Output(done.returncode, asked.state / "stdout", asked.state / "stderr", began_ns, began_wall_ns, ended_ns)
    assert done.returncode == 0, left.stderr.read_text()
    rows = records.complete("t00000", asked, left, adapter.rows(asked, left), killed=False)
    records.table(rows)
    assert all(began_ns <= row["started_ns"] <= ended_ns for row in rows), "not CLOCK_MONOTONIC"
    return rows


def classes(rows: list[dict[str, Any]]) -> set[str | None]:
    """The error classes of rows; None for a success."""
    return {row["error"] for row in rows}

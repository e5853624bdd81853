"""The job that the client reads and the rows that it writes; see trifecta/implementations/clients/lines.py."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TextIO

now_ns = time.monotonic_ns  # CLOCK_MONOTONIC, also the clock of asyncio's event loop


@dataclass(frozen=True)
class Job:
    """Fields as in trifecta/implementations/client.py, class Job; ``deadline_ns`` is when all must have ended."""

    protocol: str
    address: str
    port: int
    server_name: str
    ca_file: str
    connections: int
    streams: int
    connection_mode: str
    requests: int
    warmup_requests: int
    method: str
    path: str
    request_body_bytes: int
    expect_body_bytes: int | None
    expect_status: int | None
    connect_timeout_ns: int
    request_timeout_ns: int
    total_timeout_ns: int
    tls_version: str
    key_exchange: str
    cipher: str
    tcp_nodelay: bool
    keylog_file: str | None
    qlog_dir: str | None
    deadline_ns: int

    @classmethod
    def read(cls, path: Path) -> Job:
        """The job in a file; ValueError or TypeError when it is none."""
        job = cls(**json.loads(path.read_text(encoding="utf-8")))
        if job.protocol not in ("h1", "h2", "h3") or job.connection_mode not in ("new", "reused"):
            raise ValueError("protocol must be h1, h2 or h3, connection_mode new or reused")
        if min(job.connections, job.streams, job.requests) < 1:
            raise ValueError("connections, streams and requests must be 1 or more")
        if job.protocol == "h1" and job.streams != 1:
            raise ValueError("streams must be 1 with h1; nothing is pipelined")
        return job

    @property
    def verifies_content(self) -> bool:
        """Content of these paths is the pattern."""
        return self.path.startswith("/bytes/")

    @property
    def expected_octets(self) -> int | None:
        """Octets of content to expect, None for any number."""
        return 0 if self.method == "HEAD" else self.expect_body_bytes


@dataclass(slots=True)
class Row:
    """One request, as in the sample row of docs/architecture.md, section 1.1."""

    connection: int = 0
    started_ns: int = 0
    connect_start_ns: int | None = None
    tcp_connected_ns: int | None = None
    secured_ns: int | None = None
    request_sent_ns: int | None = None
    first_byte_ns: int | None = None
    done_ns: int | None = None
    protocol: str | None = None
    tls_version: str | None = None
    cipher: str | None = None
    resumed: bool = False
    zero_rtt: bool = False
    stream: int | None = None
    status: int | None = None
    bytes_out: int = 0
    bytes_in: int = 0
    error: str | None = None


COLUMNS = tuple(field.name for field in fields(Row))


def write_rows(rows: dict[int, Row], end: dict[str, Any], to: TextIO = sys.stdout) -> None:
    """Write the rows in the order of their ordinals, and the end."""
    to.write(json.dumps({"columns": COLUMNS}) + "\n")
    for ordinal in sorted(rows):
        row = rows[ordinal]
        to.write(json.dumps([getattr(row, name) for name in COLUMNS], separators=(",", ":")) + "\n")
    to.write(json.dumps({"end": {"rows": len(rows), **end}}) + "\n")
    to.flush()

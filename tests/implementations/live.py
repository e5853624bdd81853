"""A real client against the engine's origin on loopback, through the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from trifecta.lab.certificates import make_certificates
from trifecta.lab.engine import find_engine


def requests_of(client: str, folder: Path, **changes: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """25 requests, five at a time and five of them warm-up: the summary and the rows."""
    certificates = make_certificates(folder / "pki", ["origin.lab"], ["127.0.0.1"])
    origin = subprocess.Popen(
        [find_engine(), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with origin:
        assert origin.stdin is not None
        assert origin.stdout is not None
        site = {"certificate_file": str(certificates.chain), "key_file": str(certificates.key)}
        origin.stdin.write(json.dumps({"address": "127.0.0.1", "port": 0, **site}) + "\n")
        origin.stdin.flush()
        port = json.loads(origin.stdout.readline())["ready"]["port"]
        alone = changes["protocol"] == "h1" or changes["connection_mode"] == "new"
        config = {
            "trial": "t00001", "address": "127.0.0.1", "port": port, "server_name": "origin.lab",
            "ca_file": str(certificates.authority), "connections": 5 if alone else 1, "streams": 1 if alone else 5,
            "requests": 20, "warmup_requests": 5, "method": "GET", "path": "/bytes/1000", "request_body_bytes": 0,
            "expect_body_bytes": 1000, "expect_status": 200, "connect_timeout_ns": 10**10, "loop": {"kind": "closed"},
            "request_timeout_ns": 10**10, "total_timeout_ns": 60 * 10**9, "tls_version": "1.3",
            "key_exchange": "X25519", "cipher": "TLS_AES_128_GCM_SHA256",
            "samples_file": str(folder / "samples.parquet"),
        }  # fmt: skip
        try:
            with subprocess.Popen(
                [sys.executable, "-m", "trifecta.implementations.clients.driver", client],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            ) as driver:  # fmt: skip
                assert driver.stdin is not None
                assert driver.stdout is not None
                assert driver.stderr is not None
                driver.stdin.write(json.dumps(config | changes) + "\n")
                driver.stdin.flush()
                said, errors = driver.stdout.read(), driver.stderr.read()
                assert driver.wait(60) == 0, errors
        finally:
            origin.terminate()
    summary: dict[str, Any] = json.loads(said.splitlines()[-1])["summary"]
    return summary, pq.read_table(folder / "samples.parquet").to_pylist()

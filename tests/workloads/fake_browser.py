"""Speaks the contract of a browser's driver and asks for URLs with the engine's load, so that tests need no browser.

Its argument is JSON: ``urls`` (each asked for once a visit, the page first), and what goes wrong: ``die`` (a visit
before which it kills itself), ``hang`` (a visit before which it stops), ``fail`` (exit code before it is ready),
``crash`` (a visit from which on the rows are those of a crashed browser), ``look_up`` (a name that is not there).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from trifecta.lab.engine import find_engine
from trifecta.lab.linux import set_parent_death_signal
from trifecta.store.schema import SAMPLES
from trifecta.store.visits import BROWSER_TABLES, FETCHES, VISITS

TIMES = ("connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns", "first_byte_ns", "done_ns")


def fetch(config: dict[str, Any], url: str, folder: Path) -> dict[str, Any]:
    """One request on a connection of its own: its row of the samples."""
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    asked = {
        "trial": config["trial"], "protocol": config["protocol"], "address": None, "port": config["port"],
        "server_name": parts.hostname, "ca_file": config["ca_file"], "workers": 1, "connections": 1, "streams": 1,
        "connection_mode": "new", "loop": {"kind": "closed"}, "requests": 1, "duration_ns": 0, "warmup_requests": 0,
        "warmup_ns": 0, "method": "GET", "path": path, "request_body_bytes": 0, "expect_body_bytes": None,
        "expect_status": None, "connect_timeout_ns": 5 * 10**9, "request_timeout_ns": 5 * 10**9,
        "total_timeout_ns": 20 * 10**9, "resumption": False, "zero_rtt": False, "congestion_control": "cubic",
        "tcp_nodelay": True, "tls_version": "1.3", "key_exchange": "X25519", "cipher": "TLS_AES_128_GCM_SHA256",
        "seed": 1, "samples_file": str(folder / "one.parquet"),
    }  # fmt: skip
    (folder / "one.json").write_text(json.dumps(asked), encoding="utf-8")
    command = [find_engine(), "load", folder / "one.json"]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    row: dict[str, Any] = pq.read_table(folder / "one.parquet").to_pylist()[0]
    return row


def visit(config: dict[str, Any], number: int, wanted: dict[str, Any], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of one visit, by table."""
    common = {"trial": config["trial"], "visit": number, "warmup": number < config["warmup_visits"]}
    sample = dict.fromkeys(SAMPLES.names) | {
        "trial": config["trial"], "worker": 0, "connection": 0, "client": 0, "request": number,
        "warmup": common["warmup"], "resumed": False, "zero_rtt": False, "bytes_out": 0, "bytes_in": 0,
        "header_bytes_in": 0, "started_ns": time.monotonic_ns(),
    }  # fmt: skip
    seen = dict.fromkeys(VISITS.names) | common | {
        "kind": config["kind"], "view": config["view"], "browser": "fake", "protocol": config["protocol"],
        "url": config["url"], "started_ns": sample["started_ns"],
    }  # fmt: skip
    if "crash" in wanted and number >= wanted["crash"]:
        crashed = {"error": "browser:crashed"}
        return {"samples": [sample | crashed], "visits": [seen | crashed], "fetches": []}
    fetches = []
    for ordinal, url in enumerate(wanted["urls"]):
        row = fetch(config, url, folder)
        missing = row["status"] == 404
        fetches.append(
            dict.fromkeys(FETCHES.names) | common | {name: row[name] for name in ("started_ns", *TIMES)} | {
                "fetch": ordinal, "url": url, "origin": f"{urlsplit(url).hostname}:443", "method": "GET",
                "kind": "document" if ordinal == 0 else "other", "connection": ordinal, "connection_reused": False,
                "protocol": row["protocol"], "status": row["status"], "body_bytes": row["bytes_in"],
                "decoded_bytes": row["bytes_in"], "from_cache": False, "missing": missing, "error": row["error"],
            }
        )  # fmt: skip
    first, ended = fetches[0], time.monotonic_ns()
    octets = sum(row["body_bytes"] for row in fetches)
    sample |= {name: first[name] for name in TIMES} | {
        "done_ns": ended, "protocol": first["protocol"], "tls_version": "1.3", "cipher": "TLS_AES_128_GCM_SHA256",
        "status": first["status"], "bytes_in": octets, "error": first["error"],
    }  # fmt: skip
    seen |= {
        "load_ns": ended - sample["started_ns"], "fcp_ns": 5_000_000 + number, "requests": len(fetches),
        "connections": len(fetches), "body_bytes": octets, "missing_requests": sum(row["missing"] for row in fetches),
        "browser_cpu_ns": 1_000_000, "error": first["error"],
    }  # fmt: skip
    for name, suffix in (("har_dir", ".har"), ("frames_dir", "/0.jpg")):
        if config[name] is not None:
            path = Path(config[name]) / f"{number}{suffix}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("{}", encoding="utf-8")
    return {"samples": [sample], "visits": [seen], "fetches": fetches}


def main() -> int:
    """The driver."""
    set_parent_death_signal(signal.SIGKILL)
    wanted = json.loads(sys.argv[1])
    print(json.dumps({"loaded": {"client": "fake"}}), flush=True)
    config = json.loads(sys.stdin.readline())
    if wanted.get("fail"):
        print("error: the browser is not in the mood", file=sys.stderr)
        return int(wanted["fail"])
    began, before = time.monotonic_ns(), os.times()
    print(json.dumps({"ready": {"client": "fake", "browser": "fake", "version": "1", "pid": os.getpid()}}), flush=True)
    tables: dict[str, list[dict[str, Any]]] = {"samples": [], "visits": [], "fetches": [], "playback": []}
    if "look_up" in wanted:
        with suppress(socket.gaierror):
            socket.getaddrinfo(wanted["look_up"], 443)
    with tempfile.TemporaryDirectory(dir=config["work_dir"]) as folder:
        for number in range(config["warmup_visits"] + config["visits"]):
            if number == wanted.get("die"):
                os.kill(os.getpid(), signal.SIGKILL)
            if number == wanted.get("hang"):
                time.sleep(600)
            for name, rows in visit(config, number, wanted, Path(folder)).items():
                tables[name] += rows
    schemas = {name: one.arrow() for name, one in (("samples", SAMPLES), *BROWSER_TABLES.items())}
    for name, rows in tables.items():
        if config[f"{name}_file"] is not None:
            pq.write_table(pa.Table.from_pylist(rows, schema=schemas[name]), config[f"{name}_file"])
    measured = [row for row in tables["samples"] if not row["warmup"]]
    cpu = os.times()
    summary = {
        "trial": config["trial"], "client": "fake", "version": "1", "declared": {}, "samples": len(measured),
        "errors": sum(row["error"] is not None for row in measured), "visits": len(measured),
        "ended": "crashed" if "crash" in wanted else "requests", "exit_code": 0,
        "started_ns": measured[0]["started_ns"], "ended_ns": time.monotonic_ns(),
        "measured_ns": time.monotonic_ns() - measured[0]["started_ns"], "wall_ns": time.monotonic_ns() - began,
        "program_started_ns": began, "program_ended_ns": time.monotonic_ns(),
        "cpu_user_ns": int((cpu.user - before.user) * 1e9),
        "cpu_system_ns": int((cpu.system - before.system) * 1e9), "busy_ratio": 0.1,
        "connections_opened": len(tables["fetches"]),
        "left_out": {row["url"]: 1 for row in tables["fetches"] if row["missing"]}, "stray_lookups": None,
    }  # fmt: skip
    absent = (
        "max_rss_bytes", "schedule_lag_ns", "missed_slots", "connections_lost_idle", "wire_bytes_out",
        "wire_bytes_in", "key_exchange", "tcp", "quic", "udp_receive_errors",
    )  # fmt: skip
    print(json.dumps({"summary": summary | dict.fromkeys(absent)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

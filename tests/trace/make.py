"""Captures for tests and for the bench, made by our own engine through our own link (needs to be allowed namespaces).

`python -m tests.trace.make OUT` makes the committed ones (tests/trace/captures).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.engine.netns import SERVER, Hosts
from trifecta.lab.certificates import make_certificates

PORT = 8443
_LOAD: dict[str, Any] = {
    "workers": 1,
    "connections": 1,
    "streams": 1,
    "connection_mode": "reused",
    "loop": {"kind": "closed"},
    "duration_ns": 0,
    "warmup_requests": 0,
    "warmup_ns": 0,
    "method": "GET",
    "path": "/bytes/1000",
    "request_body_bytes": 0,
    "expect_body_bytes": None,
    "expect_status": 200,
    "connect_timeout_ns": 10_000_000_000,
    "request_timeout_ns": 60_000_000_000,
    "total_timeout_ns": 120_000_000_000,
    "resumption": False,
    "zero_rtt": False,
    "congestion_control": "cubic",
    "tcp_nodelay": True,
    "tls_version": "1.3",
    "key_exchange": "X25519",
    "cipher": "TLS_AES_128_GCM_SHA256",
    "udp_receive_buffer_bytes": 4_194_304,
    "max_udp_payload_bytes": 1452,
    "tcp_receive_buffer_bytes": 0,
    "seed": 1,
    "verify_content": None,
    "cpu": None,
    "qlog_dir": None,
}


def record(
    hosts: Hosts,
    folder: Path,
    protocol: str,
    *,
    link: list[dict[str, Any]] | None = None,
    back: list[dict[str, Any]] | None = None,
    **load: Any,
) -> tuple[Path, Path, dict[str, Any]]:
    """One load through the link: the capture, the key log, and the load's summary, in which ``link`` is the link's.

    A capture that lacks packets is an error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pki = make_certificates(folder, ["origin.lab"], [])
    capture, keys = folder / f"{protocol}.pcapng", folder / f"{protocol}.keys"
    log = folder / f"{protocol}.link.parquet"
    origin = hosts.start_engine(
        "server",
        "origin",
        {
            "address": SERVER,
            "port": PORT,
            "certificate_file": str(pki.chain),
            "key_file": str(pki.key),
        },
    )
    config: dict[str, Any] = {
        "trial": "t",
        "protocol": protocol,
        "address": SERVER,
        "port": PORT,
        "server_name": "origin.lab",
        "ca_file": str(pki.authority),
        "samples_file": str(folder / f"{protocol}.parquet"),
        "keylog_file": str(keys),
        "requests": 1,
        **_LOAD,
        **load,
    }
    try:
        with hosts.link(link or [], back or [], capture_file=str(capture), log_file=str(log)) as running:
            summary = hosts.start_engine("client", "load", config).wait(timeout=300)
            summary["link"] = running.stop()
    finally:
        origin.stop()
    if summary["link"]["capture_missed"]:
        raise RuntimeError(
            f"{capture}: {summary['link']['capture_missed']} packets are not in the capture, the disk was too slow: "
            "name a faster one with TMPDIR, or send less"
        )
    return capture, keys, summary


def make_committed(out: Path) -> None:
    """One small capture a protocol, in which the link drops one packet of the second response."""
    delay = {"kind": "delay", "delay_ns": 10_000_000}
    wanted: list[tuple[str, dict[str, Any], list[int]]] = [
        ("h1", {"requests": 2, "path": "/bytes/3000", "connection_mode": "new"}, []),
        ("h2", {"requests": 4, "path": "/bytes/4000", "streams": 2}, [8]),
        ("h3", {"requests": 4, "path": "/bytes/4000", "streams": 2}, [6]),
    ]
    for protocol, load, drop in wanted:
        with Hosts() as hosts:
            back = [{"kind": "loss_schedule", "drop": drop}, delay]
            made = out / "work" / protocol
            capture, keys, summary = record(hosts, made, protocol, link=[delay], back=back, **load)
            assert summary["errors"] == 0, summary
            (out / f"{protocol}.pcapng").write_bytes(capture.read_bytes())
            (out / f"{protocol}.keys").write_bytes(keys.read_bytes())
            (out / f"{protocol}.link.parquet").write_bytes((made / f"{protocol}.link.parquet").read_bytes())


if __name__ == "__main__":
    make_committed(Path(sys.argv[1]))

"""One real line of each kind that the engine writes, and what is compared of it: keys in their order, and types."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.engine.netns import ENGINE, SERVER, Hosts
from trifecta.lab.certificates import Certificates, make_certificates

MS = 1_000_000


# Counts by a name that happens: which there are is no matter of form.
COUNTS = {"flights", "errors", "key_exchanges", "status", "protocols_spoken", "h1", "h2", "h3"}


def shape(value: object, name: str = "") -> object:
    """Keys in the order written, with the type of each value; a list is what its first element is."""
    if isinstance(value, dict):
        if name in COUNTS and all(isinstance(inner, int) for inner in value.values()):
            return "counts"
        return {key: shape(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


class _Origin:
    """A running origin of this host."""

    def __init__(self, certificates: Certificates, more: dict[str, Any]) -> None:
        document = {"address": "127.0.0.1", "port": 0, "certificate_file": str(certificates.chain)}
        document |= {"key_file": str(certificates.key), "congestion_control": "cubic"} | more
        self.process = subprocess.Popen(
            [str(ENGINE), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())["ready"]

    def finish(self) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        summary: dict[str, Any] = json.loads(self.process.stdout.read().splitlines()[-1])["summary"]
        assert self.process.wait(30) == 0
        return summary


@contextlib.contextmanager
def _origin(certificates: Certificates, **more: Any) -> Iterator[_Origin]:
    origin = _Origin(certificates, more)
    try:
        yield origin
    finally:
        origin.process.kill()
        origin.process.wait()


def _load(folder: Path, certificates: Certificates, port: int, **more: Any) -> dict[str, Any]:
    document = {
        "trial": "t", "protocol": "h2", "address": "127.0.0.1", "port": port, "server_name": "localhost",
        "ca_file": str(certificates.authority), "connections": 1, "streams": 1, "connection_mode": "reused",
        "loop": {"kind": "closed"}, "requests": 40, "method": "GET", "path": "/bytes/1000",
    }  # fmt: skip
    config = folder / "load.json"
    config.write_text(json.dumps(document | more))
    done = subprocess.run(
        [str(ENGINE), "load", str(config)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    ready, summary = (json.loads(line) for line in done.stdout.splitlines())
    return {"ready": ready["ready"], "summary": summary["summary"]}


def record(folder: Path) -> dict[str, dict[str, Any]]:
    """The lines ``ready`` and ``summary`` of load, origin (with a relay), link and probe, from work that each did."""
    certificates = make_certificates(folder / "pki", ["localhost"], ["127.0.0.1"])
    said: dict[str, dict[str, Any]] = {}
    with _origin(certificates, faults={"delay_ns": 1000}) as origin:
        port = origin.ready["port"]
        said["load h1"] = _load(folder, certificates, port, protocol="h1", server_name="localhost", address=None)
        said["load h2 open"] = _load(
            folder, certificates, port, streams=4, loop={"kind": "open", "rate_per_s": 400.0, "arrivals": "poisson"}
        )
        said["load h3"] = _load(folder, certificates, port, protocol="h3", streams=4)
        said["load nowhere"] = _load(
            folder, certificates, 9, requests=2, connect_timeout_ns=200 * MS, total_timeout_ns=500 * MS
        )
        said["origin"] = {"ready": origin.ready, "summary": origin.finish()}
    relay = {"service": "C", "routes": {"/chain": {}}, "ca_file": str(certificates.authority)}
    with _origin(certificates, relay=relay) as last:
        services = {
            protocol: {"name": "localhost", "port": last.ready["port"], "protocol": protocol, "connection_mode": "new"}
            for protocol in ("h2", "h3")
        }
        routes = {"/chain": {"calls": [{"to": name, "path": "/chain"} for name in services]}}
        with _origin(certificates, relay=relay | {"service": "B", "routes": routes, "services": services}) as first:
            cycle = {"method": "POST", "path": "/chain", "to": "B", "message": {"body_bytes": 1024}}
            said["load cycles"] = _load(folder, certificates, first.ready["port"], **cycle)
            said["origin relay"] = {"ready": first.ready, "summary": first.finish()}
        said["origin last"] = {"ready": last.ready, "summary": last.finish()}
    return said | _record_link(folder)


def _record_link(folder: Path) -> dict[str, dict[str, Any]]:
    there = [
        {"kind": "loss", "probability": 0.01},
        {"kind": "rate", "bits_per_s": 50_000_000, "queue_bytes": 200_000},
        {"kind": "delay", "delay_ns": 5 * MS},
        {"kind": "jitter", "distribution": "table", "table_ns": [0, 1000, 2000]},
    ]
    config = {"a_device": "ra", "b_device": "rb", "a_to_b": there, "b_to_a": [], "log_file": str(folder / "l.parquet")}
    config |= {"capture_file": str(folder / "l.pcapng"), "seed": 7}
    with Hosts() as hosts:
        link = hosts.start_engine("middle", "link", config)
        reflect = hosts.start_engine("server", "probe", {"role": "reflect", "address": SERVER, "port": 9})
        measure = {"role": "measure", "address": SERVER, "port": 9, "packets": 50, "train_packets": 20, "largest": True}
        probe = hosts.start_engine("client", "probe", measure)
        return {
            "probe measure": {"ready": probe.ready, "summary": probe.wait()},
            "probe reflect": {"ready": reflect.ready, "summary": reflect.stop()},
            "link": {"ready": link.ready, "summary": link.stop()},
        }

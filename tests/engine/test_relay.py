"""Services as processes: a chain with the load in front of it, and what each says at its end."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.engine.netns import ENGINE
from trifecta.lab.certificates import Certificates, make_certificates

pytestmark = pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("pki"), ["localhost"], ["127.0.0.1"])


class Service:
    """A running origin with a relay section."""

    def __init__(self, certificates: Certificates, relay: dict[str, Any]) -> None:
        """Start it and wait until it is ready."""
        document = {"address": "127.0.0.1", "port": 0, "certificate_file": str(certificates.chain)}
        document |= {"key_file": str(certificates.key), "relay": relay | {"ca_file": str(certificates.authority)}}
        self.process = subprocess.Popen(
            [str(ENGINE), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        self.ready = json.loads(self.process.stdout.readline())["ready"]

    def finish(self) -> dict[str, Any]:
        """End it; its summary."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        summary: dict[str, Any] = json.loads(self.process.stdout.read().splitlines()[-1])["summary"]
        assert self.process.wait(30) == 0
        return summary


@contextlib.contextmanager
def chain(certificates: Certificates, protocols: tuple[str, str], mode: str) -> Iterator[list[Service]]:
    """B, C and D, spoken to by ``protocols`` between them."""
    services: list[Service] = []
    try:
        services.append(Service(certificates, {"service": "D", "routes": {"/chain": {}}}))
        for name, to, protocol in (("C", "D", protocols[1]), ("B", "C", protocols[0])):
            port = services[0].ready["port"]
            callee = {
                "name": "localhost",
                "port": port,
                "protocol": protocol,
                "connection_mode": mode,
                "connections": 8,
            }
            route = {"calls": [{"to": to, "path": "/chain"}]}
            services.insert(
                0, Service(certificates, {"service": name, "routes": {"/chain": route}, "services": {to: callee}})
            )
        yield services
    finally:
        for service in services:
            service.process.kill()
            service.process.wait()


def cycles(certificates: Certificates, port: int, folder: Path, method: str, protocol: str) -> tuple[Any, list[Any]]:
    """Send 40 cycles, four at a time; the summary and the spans."""
    document = {
        "trial": "t", "protocol": protocol, "address": "127.0.0.1", "port": port, "server_name": "localhost",
        "ca_file": str(certificates.authority), "connections": 4, "streams": 1, "connection_mode": "reused",
        "loop": {"kind": "closed"}, "requests": 40, "method": method, "path": "/chain", "to": "B",
        "expect_status": 200, "spans_file": str(folder / "spans.parquet"),
    }  # fmt: skip
    if method == "POST":
        document["message"] = {"body_bytes": 1024}
    config = folder / "load.json"
    config.write_text(json.dumps(document))
    done = subprocess.run(
        [str(ENGINE), "load", str(config)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    return summary, pq.read_table(folder / "spans.parquet").to_pylist()


@pytest.mark.parametrize("mode", ["new", "reused"])
@pytest.mark.parametrize(
    ("edge", "protocols"), [("h1", ("h2", "h3")), ("h2", ("h3", "h1")), ("h3", ("h1", "h2")), ("h2", ("h2", "h2"))]
)
def test_every_cycle_of_a_chain_leaves_every_hop(
    certificates: Certificates, tmp_path: Path, edge: str, protocols: tuple[str, str], mode: str
) -> None:
    with chain(certificates, protocols, mode) as services:
        for method in ("POST", "HEAD", "DELETE"):
            summary, spans = cycles(certificates, services[0].ready["port"], tmp_path, method, edge)
            assert (summary["samples"], summary["errors"]) == (40, 0)
            by_cycle = itertools.groupby(spans, key=lambda span: span["request"])
            for _, rows in by_cycle:
                hops = list(rows)
                assert [(hop["caller"], hop["callee"]) for hop in hops] == [("A", "B"), ("B", "C"), ("C", "D")]
                assert [hop["depth"] for hop in hops] == [0, 1, 2]
                times = [hop[name] for hop in hops for name in ("started_ns", "arrived_ns")]
                times += [hop[name] for hop in reversed(hops) for name in ("replied_ns", "returned_ns")]
                assert times == sorted(times)
            assert len(spans) == 120
        b, c, d = (service.finish() for service in services)
    for one, to, protocol in ((b, "C", protocols[0]), (c, "D", protocols[1])):
        calls = one["relay"]["calls"][to]
        assert (calls["status"], calls["errors"]) == ({"200": 120}, {})
        assert calls["protocols_spoken"] == {protocol: 120}
        assert (calls["connections"] == 120) == (mode == "new")
    assert d["relay"]["calls"] == {}
    assert all(one["errors"] == {} for one in (b, c, d))


def test_memory_is_that_of_the_service_and_not_of_who_started_it(certificates: Certificates) -> None:
    weight = bytearray(400_000_000)
    weight[::4096] = b"x" * len(weight[::4096])  # every page is touched
    service = Service(certificates, {"service": "D", "routes": {"/chain": {}}})
    assert 1_000_000 < service.finish()["max_rss_bytes"] < 200_000_000
    assert len(weight) == 400_000_000


def test_the_services_are_named_in_ready_where_they_were_found(certificates: Certificates) -> None:
    with chain(certificates, ("h2", "h3"), "new") as services:
        b, c, d = (service.ready for service in services)
        assert b["relay"] == {
            "service": "B",
            "services": {"C": {"address": "127.0.0.1", "port": c["port"], "protocol": "h2"}},
        }
        assert d["relay"] == {"service": "D", "services": {}}

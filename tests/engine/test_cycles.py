"""The load as a client of services: its files, its names, its messages, its limits."""

from __future__ import annotations

import json
import resource
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.engine.netns import ENGINE
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.store import schema

pytestmark = pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("pki"), ["localhost"], ["127.0.0.1"])


class Service:
    """B over HTTP/1.1, which says that it called C."""

    def __init__(self, certificates: Certificates) -> None:
        """Listen on a free port; ``messages`` and ``cycles`` are what requests brought."""
        self.messages: list[Any] = []
        self.cycles: list[str | None] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                arrived = time.monotonic_ns()
                content = self.rfile.read(int(self.headers["content-length"]))
                service.messages.append(json.loads(content)["message"])
                service.cycles.append(self.headers["trifecta-cycle"])
                answer = json.dumps({"message": {"meta": service.meta(arrived), "body": "abc"}}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.chain, certificates.key)
        context.set_alpn_protocols(["http/1.1"])
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @staticmethod
    def meta(arrived: int) -> list[dict[str, Any]]:
        hop = {"method": "POST", "path": "/chain", "status": None, "error": None}
        call = {
            "service": "B",
            "to": "C",
            "arrived_ns": arrived,
            "forwarded_ns": arrived + 1,
            "returned_ns": arrived + 8,
        }
        last = {"service": "C", "to": None, "arrived_ns": arrived + 3, "replied_ns": arrived + 6}
        return [hop | call | {"replied_ns": arrived + 9, "status": 200}, hop | last]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def service(certificates: Certificates) -> Iterator[Service]:
    running = Service(certificates)
    yield running
    running.close()


def config(certificates: Certificates, port: int, **changes: Any) -> dict[str, Any]:
    return {
        "trial": "t00001", "protocol": "h1", "address": "127.0.0.1", "port": port, "server_name": "localhost",
        "ca_file": str(certificates.authority), "connection_mode": "reused", "loop": {"kind": "closed"}, "requests": 4,
        "method": "POST", "path": "/chain", "expect_status": 200, "service": "A", "to": "B",
        "message": {"body_bytes": 10},
    } | changes  # fmt: skip


def load(document: dict[str, Any], **options: Any) -> tuple[int, dict[str, Any] | None, str]:
    """Exit code, summary if there is one, and diagnostics of a run."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        done = subprocess.run(
            [ENGINE, "load", file.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **options,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, next((line["summary"] for line in lines if "summary" in line), None), done.stderr


def test_samples_and_spans_have_the_columns_of_the_run_directory(
    certificates: Certificates, service: Service, tmp_path: Path
) -> None:
    samples, spans = tmp_path / "samples.parquet", tmp_path / "spans.parquet"
    code, _, errors = load(
        config(certificates, service.port, samples_file=str(samples), spans_file=str(spans), expect_body_bytes=3)
    )
    assert (code, errors) == (0, "")
    assert pq.read_schema(samples).names == schema.SAMPLES.names
    assert pq.read_schema(samples).types == schema.SAMPLES.arrow().types
    assert pq.read_schema(spans).names == schema.SPANS.names
    assert pq.read_schema(spans).types == schema.SPANS.arrow().types
    rows = pq.read_table(spans).to_pylist()
    assert [(row["request"], row["ordinal"], row["caller"], row["callee"]) for row in rows] == [
        (cycle, hop, *names) for cycle in range(4) for hop, names in enumerate([("A", "B"), ("B", "C")])
    ]
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        times = [first["started_ns"], first["arrived_ns"], second["started_ns"], second["arrived_ns"]]
        times += [second["replied_ns"], second["returned_ns"], first["replied_ns"], first["returned_ns"]]
        assert times == sorted(times)
    assert service.cycles == ["0", "1", "2", "3"]


def test_a_name_is_resolved_before_the_first_request(certificates: Certificates, service: Service) -> None:
    code, summary, _ = load(config(certificates, service.port, address=None))
    assert code == 0
    assert summary is not None
    assert "127.0.0.1" in summary["resolved"]
    assert summary["dns_ns"] > 0
    code, summary, _ = load(config(certificates, service.port))
    assert summary is not None
    assert (summary["resolved"], summary["dns_ns"]) == (None, None)


def test_a_name_that_stands_for_nothing_is_one_clear_line(certificates: Certificates) -> None:
    # No label is longer than 63 octets, so no server is asked.
    code, summary, errors = load(config(certificates, 1, address=None, server_name="localhost" + 50 * ".x" + ".x.x.x"))
    assert (code, summary) == (3, None)
    assert errors.startswith("error: server_name: localhost")
    assert errors.count("\n") == 1


def test_the_users_bodies_are_sent_in_turn(certificates: Certificates, service: Service, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"name": "é"}\n')
    (tmp_path / "2.json").write_text("[1, 2]")
    code, _, _ = load(config(certificates, service.port, message={"folder": str(tmp_path)}))
    assert code == 0
    assert [message["body"] for message in service.messages] == 2 * [{"name": "é"}, [1, 2]]
    assert {(entry["service"], entry["to"]) for message in service.messages for entry in message["meta"]} == {
        ("A", "B")
    }


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"message": {"folder": "/no/such/folder"}}, "error: message.folder: /no/such/folder: No such file"),
        ({"message": None}, "error: message: belongs to POST"),
        ({"spans_file": "/no/such/folder/x.parquet"}, "error: spans_file: /no/such/folder/x.parquet: No such file"),
        ({"requests_per_client": 2}, "error: requests: must be 0 with requests_per_client"),
        ({"to": None}, "error: message: needs `to`"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    certificates: Certificates, changes: dict[str, Any], line: str
) -> None:
    code, summary, errors = load(config(certificates, 1, **changes))
    assert (code in (2, 3), summary) == (True, None)
    assert errors.startswith(line)
    assert errors.count("\n") == 1


class Origins:
    """Origins of the engine, with or without a relay, that end with the test."""

    def __init__(self, certificates: Certificates) -> None:
        """Use ``start``."""
        self._certificates = certificates
        self._running: list[subprocess.Popen[str]] = []

    def start(self, **fields: Any) -> int:
        """Start one; its port."""
        process = subprocess.Popen([ENGINE, "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._running.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        files = {
            "certificate_file": str(self._certificates.chain),
            "key_file": str(self._certificates.key),
        }
        process.stdin.write(json.dumps({"address": "127.0.0.1", "port": 0, **files, **fields}) + "\n")
        process.stdin.flush()
        port: int = json.loads(process.stdout.readline())["ready"]["port"]
        return port

    def service(self, name: str, to: str | None, port: int, hop: tuple[str, str], answer: object = "meta") -> int:
        """Start a service that calls ``to`` on the hop's protocol and connection mode; its port."""
        call = {"to": to, "method": "same", "path": "/chain", "body": "forward"}
        callee = {
            "name": "localhost", "address": "127.0.0.1", "port": port, "protocol": hop[0], "connection_mode": hop[1],
            "connections": 2, "streams": 1 if hop[0] == "h1" else 10,
        }  # fmt: skip
        relay = {
            "service": name, "routes": {"/chain": {"calls": [call] if to else [], "answer": answer}},
            "services": {to: callee} if to else {}, "ca_file": str(self._certificates.authority),
            "tls_version": "1.3", "key_exchange": "X25519", "cipher": "TLS_AES_128_GCM_SHA256",
            "connect_timeout_ns": 20_000_000_000, "request_timeout_ns": 20_000_000_000,
        }  # fmt: skip
        return self.start(relay=relay)

    def close(self) -> None:
        """End them all."""
        for process in self._running:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(20)
            process.stdout.close()


@pytest.fixture
def origins(certificates: Certificates) -> Iterator[Origins]:
    running = Origins(certificates)
    yield running
    running.close()


HOPS = [("A", "B"), ("B", "C"), ("C", "D")]


@pytest.mark.parametrize("mode", ["reused", "new"])
@pytest.mark.parametrize(
    "protocols", [("h1", "h1", "h1"), ("h2", "h2", "h2"), ("h3", "h3", "h3"), ("h3", "h2", "h1"), ("h1", "h3", "h2")]
)
def test_a_chain_of_real_services_tells_each_hop(
    certificates: Certificates, origins: Origins, tmp_path: Path, protocols: tuple[str, str, str], mode: str
) -> None:
    port = origins.service("D", None, 1, ("h1", mode))
    port = origins.service("C", "D", port, (protocols[2], mode))
    port = origins.service("B", "C", port, (protocols[1], mode), answer=50)
    spans = tmp_path / "spans.parquet"
    for method in ("POST", "PUT", "PATCH", "GET", "HEAD", "DELETE"):
        message = {"body_bytes": 1024} if method in ("POST", "PUT", "PATCH") else None
        code, summary, errors = load(
            config(
                certificates, port, protocol=protocols[0], connection_mode=mode, connections=2, requests=10,
                method=method, message=message, spans_file=str(spans), connect_timeout_ns=20_000_000_000,
                request_timeout_ns=20_000_000_000, expect_body_bytes=50,
            )
        )  # fmt: skip
        assert (code, errors) == (0, "")
        assert summary is not None
        assert (summary["samples"], summary["errors"]) == (10, 0)
        rows = pq.read_table(spans).to_pylist()
        assert [(row["caller"], row["callee"]) for row in rows] == 10 * HOPS
        assert {(row["method"], row["path"], row["status"], row["error"]) for row in rows} == {
            (method, "/chain", 200, None)
        }
        for cycle in range(10):
            hops = rows[3 * cycle : 3 * cycle + 3]
            assert {row["request"] for row in hops} == {hops[0]["request"]}
            times = [row[name] for row in hops for name in ("started_ns", "arrived_ns")]
            times += [row[name] for row in reversed(hops) for name in ("replied_ns", "returned_ns")]
            assert times == sorted(times)
            assert all((row["secured_ns"] is not None) == (mode == "new") for row in hops[:1])
            if mode == "new":
                assert all(row["started_ns"] < row["secured_ns"] < row["arrived_ns"] for row in hops)


def test_the_spans_tell_which_hop_failed(certificates: Certificates, origins: Origins, tmp_path: Path) -> None:
    port = origins.service("C", "D", 1, ("h2", "new"))
    port = origins.service("B", "C", port, ("h3", "reused"))
    samples, spans = tmp_path / "samples.parquet", tmp_path / "spans.parquet"
    code, summary, _ = load(
        config(certificates, port, requests=3, spans_file=str(spans), samples_file=str(samples), protocol="h2")
    )
    assert code == 0
    assert summary is not None
    assert summary["errors"] == 3
    assert set(pq.read_table(samples).column("error").to_pylist()) == {"status"}
    hops = [(row["callee"], row["status"], row["error"]) for row in pq.read_table(spans).to_pylist()]
    assert hops == 3 * [("B", 502, "status"), ("C", 502, "status"), ("D", None, "connect_refused")]


@pytest.mark.parametrize("mode", ["reused", "new"])
@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_more_clients_than_descriptors_are_usually_allowed(
    certificates: Certificates, origins: Origins, tmp_path: Path, protocol: str, mode: str
) -> None:
    """The load raises its own limit, all of 200 clients begin, and each makes its requests."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code, summary, errors = load(
        config(
            certificates, origins.start(), protocol=protocol, connections=200, requests=0, requests_per_client=2,
            connection_mode=mode, method="GET", path="/bytes/10", to=None, message=None, expect_body_bytes=10,
            samples_file=str(tmp_path / "samples.parquet"), connect_timeout_ns=30_000_000_000,
            request_timeout_ns=30_000_000_000,
        ),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert summary is not None
    assert (summary["samples"], summary["errors"], summary["clients"]["begun"]) == (400, 0, 200)
    clients = pq.read_table(tmp_path / "samples.parquet", columns=["client"]).column("client").to_pylist()
    assert sorted(clients) == sorted(2 * list(range(200)))

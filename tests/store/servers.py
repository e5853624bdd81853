"""Servers for the tests of exports: one that records, and Debian's, skipped where they are missing."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import socketserver
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

import pytest

WAIT_S = 60.0
_GO = Path.home() / "go" / "bin"  # before a test moves its home
_CACHE = Path(__file__).parents[2] / ".cache"
_OURS = _CACHE / "bin"  # where scripts/setup.sh long puts programs
_DYNALITE = _CACHE / "dynalite" / "node_modules" / "dynalite" / "cli.js"  # where scripts/setup.sh dev puts it
_AZURITE = _CACHE / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def free_port() -> int:
    """A port of the loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def listening(port: int) -> bool:
    """Whether somebody answers there."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def answering(port: int, path: str) -> bool:
    """Whether a GET of this path there succeeds: a server may listen, and refuse, before it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=WAIT_S) as answer:
            return bool(200 <= answer.status < 300)
    except OSError:
        return False


def accepting(there: Path) -> bool:
    """Whether somebody answers at this socket, which is a file before that."""
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(there)) == 0


class Recorder(ThreadingHTTPServer):
    """Keeps path, header and content of what is posted to it, and answers each with `status` and `content`."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Posted)
        self.status, self.content = status, b""
        self.asked: list[tuple[str, Message, bytes]] = []


class _Posted(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        self.server.asked.append((self.path, self.headers, body))
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_: object) -> None:
        pass


Served = TypeVar("Served", bound=socketserver.BaseServer)


@contextmanager
def serving(one: Served) -> Iterator[Served]:
    """A server of Python's own, in a thread until the end of the block."""
    with one:
        thread = threading.Thread(target=one.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield one
        finally:
            one.shutdown()
            thread.join()


def recording(status: int) -> AbstractContextManager[Recorder]:
    """A recorder until the end of the block."""
    return serving(Recorder(status))


@contextmanager
def running(
    arguments: list[str], ready: Callable[[], bool], log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A program until the end of the block; fails with the end of what it said when it does not come up."""
    environment = {**os.environ, **(variables or {})}
    with (
        log.open("wb") as said,
        subprocess.Popen(arguments, stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environment) as one,
    ):
        try:
            end = time.monotonic() + WAIT_S
            while not ready():
                if one.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"{arguments[0]} does not come up: {log.read_text('utf-8', 'replace')[-500:]}")
                time.sleep(0.1)
            yield
        finally:
            one.terminate()


def program(*names: str, install: str) -> str:
    """The first of these that is there; skips with the line that installs it."""
    for name in names:
        found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{_GO}:{_OURS}")
        if found:
            return found
    pytest.skip(f"{names[0]} is missing; run: {install}")


@contextmanager
def influxdb(folder: Path) -> Iterator[int]:
    """InfluxDB 1.x; its port."""
    influxd = program("influxd", install="apt-get install --no-install-recommends influxdb")
    port, other = free_port(), free_port()
    (folder / "influxd.conf").write_text(
        f'reporting-disabled = true\nbind-address = "127.0.0.1:{other}"\n[meta]\ndir = "{folder}/meta"\n'
        f'[data]\ndir = "{folder}/data"\nwal-dir = "{folder}/wal"\n[http]\nbind-address = "127.0.0.1:{port}"\n'
        "log-enabled = false\n[monitor]\nstore-enabled = false\n"
    )
    arguments = [influxd, "run", "-config", str(folder / "influxd.conf")]
    with running(arguments, lambda: answering(port, "/ping"), folder / "influxd.log"):
        yield port


@contextmanager
def mariadb(folder: Path) -> Iterator[Path]:
    """MariaDB without networking; its socket, at which root needs no password."""
    install = "apt-get install --no-install-recommends mariadb-server-core mariadb-client-core"
    server, maker = program("mariadbd", install=install), program("mariadb-install-db", install=install)
    data, there = folder / "data", folder / "db.sock"
    user = ["--user=root"] if os.getuid() == 0 else []
    subprocess.run(
        [maker, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", *user],
        check=True, capture_output=True, timeout=WAIT_S,
    )  # fmt: skip
    arguments = ["--no-defaults", f"--datadir={data}", f"--socket={there}", "--skip-networking", *user]
    with running([server, *arguments], lambda: accepting(there), folder / "mariadbd.log"):
        yield there


@contextmanager
def prometheus(folder: Path, target: str, token: Path) -> Iterator[int]:
    """Prometheus, which asks a target for `/metrics` each second with the token in a file; its port."""
    program_ = program("prometheus", install="apt-get install --no-install-recommends prometheus")
    port = free_port()
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: trifecta\n"
        f"    authorization: {{credentials_file: {token}}}\n    static_configs: [{{targets: ['{target}']}}]\n"
    )
    arguments = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    arguments += [f"--web.listen-address=127.0.0.1:{port}"]
    with running([program_, *arguments], lambda: answering(port, "/-/ready"), folder / "prometheus.log"):
        yield port


@contextmanager
def collector(folder: Path, beyond: str) -> Iterator[int]:
    """OpenTelemetry's collector; its port for OTLP over HTTP. It passes on what it takes, as JSON, to the URL of a
    recorder, all of it by the end of the block.
    """
    program_ = program("otelcol", install="scripts/setup.sh long (needs Go)")
    port, pipeline = free_port(), "{receivers: [otlp], exporters: [otlp_http]}"
    (folder / "otelcol.yaml").write_text(
        f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n"
        f"exporters: {{otlp_http: {{endpoint: '{beyond}', encoding: json}}}}\n"
        f"service:\n  pipelines: {{metrics: {pipeline}, traces: {pipeline}}}\n"
        "  telemetry: {metrics: {level: none}}\n"
    )
    arguments = [program_, "--config", str(folder / "otelcol.yaml")]
    with running(arguments, lambda: listening(port), folder / "otelcol.log"):
        yield port


@contextmanager
def versitygw(folder: Path) -> Iterator[int]:
    """A server of S3's protocol with the bucket `measured`, which is ``folder/buckets/measured``; its port.

    Who asks is `user` with the key `secret-key`. TRIFECTA_VERSITYGW names the program where it is not in the PATH.
    """
    gateway = os.environ.get("TRIFECTA_VERSITYGW") or program("versitygw", install="scripts/setup.sh long (needs Go)")
    (folder / "buckets" / "measured").mkdir(parents=True)
    (folder / "sidecar").mkdir()
    port = free_port()
    keys = {"ROOT_ACCESS_KEY": "user", "ROOT_SECRET_KEY": "secret-key",
            "ROOT_ACCESS_KEY_ID": "user", "ROOT_SECRET_ACCESS_KEY": "secret-key"}  # fmt: skip
    arguments = [gateway, "--port", f"127.0.0.1:{port}", "posix", "--sidecar", str(folder / "sidecar")]
    with running([*arguments, str(folder / "buckets")], lambda: listening(port), folder / "versitygw.log", keys):
        yield port


def s3_environment(port: int) -> dict[str, str]:
    """Where `versitygw` is, and who asks it, in variables of the environment."""
    return {
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret-key",
    }  # fmt: skip


@contextmanager
def dynalite(folder: Path) -> Iterator[int]:
    """A server of DynamoDB's protocol, which keeps all in memory and lets in whoever signs; its port.

    TRIFECTA_DYNALITE names its cli.js where it is elsewhere.
    """
    script = Path(os.environ.get("TRIFECTA_DYNALITE") or _DYNALITE)
    node = program("node", install="apt-get install --no-install-recommends npm, then scripts/setup.sh dev")
    if not script.exists():
        pytest.skip("dynalite is missing; run: scripts/setup.sh dev (needs npm)")
    port = free_port()
    arguments = [node, str(script), "--host", "127.0.0.1", "--port", str(port), "--createTableMs", "20"]
    with running(arguments, lambda: listening(port), folder / "dynalite.log"):
        yield port


@contextmanager
def azurite(folder: Path) -> Iterator[int]:
    """A server of the protocol of Azure's object store, Microsoft's own for tests; its port."""
    script = Path(os.environ.get("TRIFECTA_AZURITE") or _AZURITE)
    node = program("node", install="apt-get install --no-install-recommends npm, then scripts/setup.sh long")
    if not script.exists():
        pytest.skip("azurite is missing; run: scripts/setup.sh long (needs npm)")
    port = free_port()
    arguments = [node, str(script), "--blobHost", "127.0.0.1", "--blobPort", str(port),
                 "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]  # fmt: skip
    with running(arguments, lambda: listening(port), folder / "azurite.log"):
        yield port

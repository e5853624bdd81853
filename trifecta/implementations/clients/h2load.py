"""h2load, where it is built with HTTP/3: start, status and duration of each request, and the transport's sums."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

from trifecta.contract.common import Declared
from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.clients.content import monotonic_ns, whole_lines
from trifecta.implementations.clients.quic_probe import begins_quic
from trifecta.implementations.server import Command, Unsupported

_BUILD = "build nghttp2 with --enable-http3 (docs/clients.md) and put its h2load on PATH"
_ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}


class H2load(ClientAdapter):
    """nghttp2's load generator; it verifies no certificate and shows no content, which the checks say."""

    name, source = "h2load", "https://nghttp2.org, built with ngtcp2 and nghttp3 and put on PATH"

    def find(self) -> str:
        """Version, as ``h2load --version`` tells."""
        program = shutil.which("h2load")
        if program is None:
            raise Unsupported(f"h2load is not on PATH; {_BUILD}")
        # The version is the same with and without HTTP/3, and the option is listed by both.
        if not begins_quic(lambda port: [program, "--alpn-list=h3", "-n1", f"https://127.0.0.1:{port}"]):
            raise Unsupported(f"h2load ({program}) sends no QUIC when asked for HTTP/3: built without; {_BUILD}")
        output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
        return output.strip().removeprefix("h2load ")

    def declared(self) -> Declared:
        """From its source: SSL_CTX_set_verify is never called."""
        return {"certificate_verified": False, "http3_library": "ngtcp2, nghttp3", "http2_library": "nghttp2"}

    def compares_content(self, job: Job) -> bool:
        """Only the sum of all lengths is told."""
        return False

    def check_workload(self, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
        """It opens all connections at its start, and sends GET and POST over TLS 1.3 when asked for nothing else."""
        if connection == "new":
            raise Unsupported("h2load opens its connections at the start, not one for each request; use 'reused'")
        if workload.method not in ("GET", "POST") or workload.tls_version != "1.3":
            raise Unsupported("h2load is asked for GET and POST over TLS 1.3 only; use another client for the rest")

    def command(self, job: Job) -> Command:
        """Its log has a line for each request."""
        (job.state / "body").write_bytes(b"a" * job.request_body_bytes)
        options = {
            "requests": job.requests, "clients": job.connections, "max-concurrent-streams": job.streams,
            "threads": 1, "alpn-list": _ALPN[job.protocol], "connect-to": job.endpoint,
            "groups": job.key_exchange, "tls13-ciphers": job.cipher, "log-file": "log",
        }  # fmt: skip
        options |= {"data": "body"} if job.method == "POST" else {}
        options |= {"qlog-file-base": job.qlog_dir / "h2load"} if job.qlog_dir else {}
        keys = {"SSLKEYLOGFILE": str(job.keylog_file)} if job.keylog_file else {}
        return Command(("h2load", *(f"--{name}={value}" for name, value in options.items()), job.url), keys)

    def start_only(self, job: Job) -> Command:
        """Its libraries are loaded to tell the version."""
        return Command(("h2load", "--version"))

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        """What it says once (of the first connection, and of all lengths together) holds for every row."""
        text = output.stdout.read_text(encoding="utf-8", errors="replace")
        once = dict(re.findall(r"^(TLS Protocol|Cipher|Application protocol): (\S+)$", text, re.MULTILINE))
        lines = [tuple(map(int, line.split("\t")[:3])) for line in whole_lines(job.state / "log", output)]
        total = re.search(r"\((\d+)\) data$", text, re.MULTILINE)
        answered = sum(status != -1 for _, status, _ in lines)
        each, rest = divmod(int(total[1]), answered) if total and answered else (None, 0)  # a rest: not all are alike
        spoken = {alpn: protocol for protocol, alpn in _ALPN.items()}.get(once.get("Application protocol", ""))
        for start_us, status, duration_us in lines:
            started_ns = monotonic_ns(start_us * 1000, output)
            row: Row = {
                "started_ns": started_ns,
                "protocol": spoken,
                "bytes_out": job.request_body_bytes,
                "tls_version": once.get("TLS Protocol"),
                "cipher": once.get("Cipher"),
                "resumed": False,
            }
            if status == -1:
                row["error"] = "reset"
            else:
                row["done_ns"] = started_ns + duration_us * 1000
                row["status"] = status
                row["bytes_in"] = None if rest else each
            yield row

"""The servers of the load benchmark: nginx with HTTP/3, and our origin, both on one core and one port."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench import peers
from bench.load.clients import ENGINE, NAME
from bench.testbed import SERVER, Host, measured, serving

PATTERN = bytes(0x61 + i % 26 for i in range(26 * 1000))

NGINX = """daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 60s; sendfile on; tcp_nodelay on;
  open_file_cache max=100 inactive=60s; default_type application/octet-stream;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{
    listen {address}:{port} quic reuseport; listen {address}:{port} ssl backlog=4096; http2 on; http3 on; quic_gso on;
    http2_max_concurrent_streams 256; ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    root {folder}/site;
  }}
}}
"""


def certificates(folder: Path) -> None:
    """Make a CA and a P-256 leaf for the bench name in ``folder`` with openssl."""
    extension = folder / "ext"
    extension.write_text(
        f"subjectAltName=DNS:{NAME},IP:{SERVER}\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n"
    )
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", "7", "-subj", "/CN=bench CA")
    openssl("req", *ec, "-keyout", "key.pem", "-out", "leaf.csr", "-subj", f"/CN={NAME}")
    signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "7", "-extfile", "ext"]
    openssl("x509", "-req", "-in", "leaf.csr", *signing, "-out", "cert.pem")


def site(folder: Path, sizes: list[int]) -> None:
    """Write the files ``/bytes/N`` with the content pattern that our client verifies."""
    (folder / "site/bytes").mkdir(parents=True)
    for size in sizes:
        with (folder / "site/bytes" / str(size)).open("wb") as file:
            for start in range(0, size, len(PATTERN)):
                file.write(PATTERN[: min(len(PATTERN), size - start)])


def _wait(host: Host, port: int, log: Path) -> None:
    probe = f"import socket; socket.create_connection(({SERVER!r}, {port}), 1).close()"
    deadline = time.monotonic() + 10
    while measured(["python3", "-c", probe], host).code != 0:
        if time.monotonic() > deadline:
            raise SystemExit(f"bench.load: the server does not answer; its log says: {log.read_text()[-400:]}")
        time.sleep(0.05)


@contextlib.contextmanager
def run(
    name: str, folder: Path, server: Host, client: Host, port: int, *, engine: Path = ENGINE
) -> Iterator[list[int]]:
    """Run ``nginx`` or ``origin`` (of ``engine``); yield the ids of the processes that serve."""
    log = folder / f"{name}.log"
    if name == "nginx":
        config = folder / "nginx.conf"
        config.write_text(NGINX.format(folder=folder, address=SERVER, port=port))
        context = serving([*(peers.nginx() or []), "-p", str(folder), "-c", str(config)], server, log)
    else:
        document = {
            "address": SERVER, "port": port,
            "certificate_file": str(folder / "cert.pem"), "key_file": str(folder / "key.pem"),
            "protocols": ["h1", "h2", "h3"], "key_exchanges": ["X25519"], "max_concurrent_streams": 256,
        }  # fmt: skip
        context = serving([str(engine), "origin", "-"], server, log, json.dumps(document) + "\n")
    with context as process:
        _wait(client, port, log)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield [process.pid, *map(int, children)]

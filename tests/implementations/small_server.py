"""What the small servers of ours (`quic-go`, `quiche`) are tried with: a site, requests, and what all answer."""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path

from trifecta.implementations.server import Site
from trifecta.lab.certificates import make_certificates


def make_site(folder: Path, name: str) -> Site:
    """Two files, a way out of the folder, and a free port; ``name`` is that of the server."""
    (folder / "state").mkdir()
    (folder / "site" / "bytes").mkdir(parents=True)
    (folder / "site" / "bytes" / "3").write_bytes(b"abc")
    (folder / "site" / "bytes" / "0").write_bytes(b"")
    (folder / "secret").write_bytes(b"secret")
    (folder / "site" / "out").symlink_to(folder / "secret")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    certificates = make_certificates(folder / "pki", [f"{name}.lab"], ["127.0.0.1"])
    return Site(folder / "site", certificates, "127.0.0.1", port, folder / "state")


def tells(folder: Path, words: str) -> Path:
    """A program that tells ``words`` as its versions."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\necho '{words}'\n")
    program.chmod(0o755)
    return program


def ask(site: Site, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Status and content of an answer over HTTP/1.1."""
    context = ssl.create_default_context(cafile=site.certificates.authority)
    connection = http.client.HTTPSConnection("127.0.0.1", site.port, timeout=10, context=context)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def assert_files_and_nothing_else(site: Site) -> None:
    """Files of the folder by GET and HEAD, content taken, and no way out of the folder."""
    assert ask(site, "GET", "/bytes/3") == (200, b"abc")
    assert ask(site, "HEAD", "/bytes/3") == (200, b"")
    for method in ("POST", "PUT", "PATCH"):
        assert ask(site, method, "/bytes/3", b"x" * 100_000) == (200, b"abc")
        assert ask(site, method, "/upload", b"x") == (200, b"")
    assert ask(site, "DELETE", "/bytes/3") == (204, b"")
    assert (site.folder / "bytes" / "3").exists()
    assert ask(site, "OPTIONS", "/bytes/3")[0] == 405
    for path in ("/", "/bytes", "/none", "/out", "/../secret", "/..%2fsecret", "/bytes/../../secret", "/a%00b"):
        assert ask(site, "GET", path)[0] == 404, path


def negotiated(site: Site, name: str) -> tuple[str | None, str | None]:
    """Version of TLS and protocol that a connection over TCP gets."""
    context = ssl.create_default_context(cafile=site.certificates.authority)
    context.set_alpn_protocols(["h2", "http/1.1"])
    raw = socket.create_connection((site.address, site.port), 5)
    with context.wrap_socket(raw, server_hostname=f"{name}.lab") as tls:
        return tls.version(), tls.selected_alpn_protocol()

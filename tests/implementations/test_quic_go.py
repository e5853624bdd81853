"""The adapter of the quic-go server, and the server itself where it was built (``trifecta get quic-go``)."""

from __future__ import annotations

import http.client
import itertools
import socket
import ssl
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.implementations.site_study import assert_answered, measure
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers import quic_go
from trifecta.implementations.servers.quic_go import RECIPE, QuicGo
from trifecta.lab.certificates import make_certificates

fetched = pytest.mark.skipif(not RECIPE.installed(), reason="quic-go is not in the cache: trifecta get quic-go")


@pytest.fixture
def site(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "site" / "bytes").mkdir(parents=True)
    (tmp_path / "site" / "bytes" / "3").write_bytes(b"abc")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "site" / "out").symlink_to(tmp_path / "secret")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    certificates = make_certificates(tmp_path / "pki", ["quic-go.lab"], ["127.0.0.1"])
    return Site(tmp_path / "site", certificates, "127.0.0.1", port, tmp_path / "state")


def told(tmp_path, monkeypatch, words):
    """A program in the place of the server that tells ``words`` as its version."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{words}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(RECIPE, "program", lambda: program)


def test_without_the_program_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    with pytest.raises(Unsupported, match=r"run: trifecta get quic-go$"):
        QuicGo().find()


def test_versions_and_libraries_are_read_from_the_program(tmp_path, monkeypatch):
    told(tmp_path, monkeypatch, "v0.65.0 go1.26.8")
    assert QuicGo().find() == "0.65.0"
    said = QuicGo().declared(ServerOptions(congestion_control="bbr", tcp_nodelay=False))
    assert said["congestion_control"] == {"tcp": "bbr", "quic": "reno"}
    assert said["tcp_nodelay"] is False
    assert said["tls_library"] == "crypto/tls of go1.26.8"
    assert said["libraries"] == {"quic-go": "0.65.0", "net/http": "go1.26.8"}


def test_a_program_that_tells_no_version_is_unsupported(tmp_path, monkeypatch):
    told(tmp_path, monkeypatch, "hello")
    quic_go._versions.cache_clear()
    with pytest.raises(Unsupported, match="trifecta get quic-go --force"):
        QuicGo().find()


def test_what_a_cell_asks_is_on_the_command_line(tmp_path, monkeypatch, site):
    told(tmp_path, monkeypatch, "")
    options = ServerOptions(tls_version="1.2", tcp_nodelay=False, max_streams=321)
    arguments = [str(part) for part in QuicGo().command(site, options).arguments]
    pairs = dict(itertools.pairwise(arguments))
    assert pairs["-address"] == f"127.0.0.1:{site.port}"
    assert pairs["-tls"] == "1.2"
    assert pairs["-streams"] == "321"
    assert "-no-delay=false" in arguments
    assert "-qlog" not in arguments
    logging = QuicGo().command(replace(site, qlog=tmp_path / "qlog"), options).arguments
    assert logging[-2:] == ("-qlog", tmp_path / "qlog")


def test_zero_rtt_is_not_claimed():
    QuicGo().check_workload(RequestsWorkload(method="POST"))
    with pytest.raises(Unsupported, match="0-RTT"):
        QuicGo().check_workload(RequestsWorkload(zero_rtt=True))


@contextmanager
def serving(site, options=None):
    process = subprocess.Popen(QuicGo().command(site, options or ServerOptions()).arguments)
    try:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((site.address, site.port), 1).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        assert process.wait(10) == 0


def ask(site, method, path, body=None):
    context = ssl.create_default_context(cafile=site.certificates.authority)
    connection = http.client.HTTPSConnection("127.0.0.1", site.port, timeout=10, context=context)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


@fetched
def test_files_and_nothing_else_are_served(site):
    with serving(site):
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


@fetched
def test_tls_is_pinned_and_a_taken_port_is_told(site):
    with serving(site, ServerOptions(tls_version="1.2")):
        context = ssl.create_default_context(cafile=site.certificates.authority)
        context.set_alpn_protocols(["h2", "http/1.1"])
        raw = socket.create_connection((site.address, site.port), 5)
        with context.wrap_socket(raw, server_hostname="quic-go.lab") as tls:
            assert (tls.version(), tls.selected_alpn_protocol()) == ("TLSv1.2", "h2")
        command = QuicGo().command(site, ServerOptions()).arguments
        second = subprocess.run(command, capture_output=True, check=False, timeout=20)
        assert second.returncode != 0
        assert b"address already in use" in second.stderr


@fetched
@pytest.mark.lab
def test_a_study_measures_it_over_every_protocol(tmp_path):
    rows = measure("quic-go", tmp_path)
    assert_answered(rows)
    assert rows[0]["server"]["proxy"] is False

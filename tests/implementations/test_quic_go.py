"""The adapter of the quic-go server, and the server itself where it was built (``trifecta get quic-go``)."""

from __future__ import annotations

import itertools
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.implementations.site_study import assert_answered, measure
from tests.implementations.small_server import assert_files_and_nothing_else, make_site, negotiated, tells
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import ServerOptions, Unsupported
from trifecta.implementations.servers import quic_go
from trifecta.implementations.servers.quic_go import RECIPE, QuicGo

fetched = pytest.mark.skipif(not RECIPE.installed(), reason="quic-go is not in the cache: trifecta get quic-go")


@pytest.fixture
def site(tmp_path):
    return make_site(tmp_path, "quic-go")


def told(tmp_path, monkeypatch, words):
    """A program in the place of the server that tells ``words`` as its version."""
    program = tells(tmp_path, words)
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


@fetched
def test_files_and_nothing_else_are_served(site):
    with serving(site):
        assert_files_and_nothing_else(site)


@fetched
def test_tls_is_pinned_and_a_taken_port_is_told(site):
    with serving(site, ServerOptions(tls_version="1.2")):
        assert negotiated(site, "quic-go") == ("TLSv1.2", "h2")
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

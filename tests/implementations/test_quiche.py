"""The adapter of the quiche server, and the server itself where it was built (``trifecta get quiche``)."""

from __future__ import annotations

import itertools
import subprocess
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.implementations.site_study import assert_answered, measure
from tests.implementations.small_server import ask, assert_files_and_nothing_else, make_site, negotiated, tells
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import ServerOptions, Unsupported
from trifecta.implementations.servers import quiche
from trifecta.implementations.servers.quiche import RECIPE, Quiche

fetched = pytest.mark.skipif(not RECIPE.installed(), reason="quiche is not in the cache: trifecta get quiche")


@pytest.fixture
def site(tmp_path):
    return make_site(tmp_path, "quiche")


def told(tmp_path, monkeypatch, words):
    """A program in the place of the server that tells ``words`` as its versions."""
    program = tells(tmp_path, words)
    monkeypatch.setattr(RECIPE, "program", lambda: program)
    quiche._versions.cache_clear()


def test_without_the_program_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    with pytest.raises(Unsupported, match=r"run: trifecta get quiche$"):
        Quiche().find()


def test_versions_and_libraries_are_read_from_the_program(tmp_path, monkeypatch):
    told(tmp_path, monkeypatch, "quiche 0.30.0 hyper 1.12.0 boring 5.4.0")
    assert Quiche().find() == "0.30.0"
    said = Quiche().declared(ServerOptions(congestion_control="bbr", tcp_nodelay=False))
    assert said["congestion_control"] == {"tcp": "bbr", "quic": "bbr"}
    assert said["tcp_nodelay"] is False
    assert said["tls_library"] == "BoringSSL of boring 5.4.0"
    assert said["libraries"] == {"quiche": "0.30.0", "hyper": "1.12.0"}


@pytest.mark.parametrize("words", ["hello", "quiche 0.30.0", "quiche 0.30.0 hyper"])
def test_a_program_that_tells_no_versions_is_unsupported(tmp_path, monkeypatch, words):
    told(tmp_path, monkeypatch, words)
    with pytest.raises(Unsupported, match="trifecta get quiche --force"):
        Quiche().find()


def test_what_a_cell_asks_is_on_the_command_line(tmp_path, monkeypatch, site):
    told(tmp_path, monkeypatch, "")
    options = ServerOptions(tls_version="1.2", tcp_nodelay=False, max_streams=321, congestion_control="bbr")
    pairs = dict(itertools.pairwise(map(str, Quiche().command(site, options).arguments)))
    assert pairs["--address"] == f"127.0.0.1:{site.port}"
    assert pairs["--tls"] == "1.2"
    assert pairs["--streams"] == "321"
    assert pairs["--no-delay"] == "false"
    assert pairs["--congestion-control"] == quiche._CONGESTION_CONTROLS["bbr"]
    assert "--qlog" not in pairs
    logging = Quiche().command(replace(site, qlog=tmp_path / "qlog"), options).arguments
    assert logging[-2:] == ("--qlog", tmp_path / "qlog")


def test_zero_rtt_is_not_claimed():
    Quiche().check_workload(RequestsWorkload(method="POST"))
    with pytest.raises(Unsupported, match="0-RTT"):
        Quiche().check_workload(RequestsWorkload(zero_rtt=True))


@contextmanager
def serving(site, options=None):
    """Ready at its word: every connection after it is accepted."""
    command = Quiche().command(site, options or ServerOptions()).arguments
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert Quiche.says_ready in process.stdout.readline()
            yield process
        finally:
            process.terminate()
            assert process.wait(10) == 0


@fetched
def test_files_and_nothing_else_are_served(site):
    with serving(site):
        assert_files_and_nothing_else(site)
        assert ask(site, "GET", "/bytes/./%33?again") == (200, b"abc")
        assert ask(site, "GET", "/bytes/0") == (200, b"")
        assert ask(site, "GET", "/%zz")[0] == 400


@fetched
def test_tls_is_pinned_and_a_taken_port_is_told(site):
    with serving(site, ServerOptions(tls_version="1.2")):
        assert negotiated(site, "quiche") == ("TLSv1.2", "h2")
        second = subprocess.run(
            Quiche().command(site, ServerOptions()).arguments, capture_output=True, check=False, timeout=20
        )
        assert second.returncode != 0
        assert b"Address already in use" in second.stderr
        assert Quiche.says_ready not in second.stdout + second.stderr


@fetched
@pytest.mark.parametrize(
    "option", ["--congestion-control", "--tls", "--streams", "--certificate", "--folder", "--else"]
)
def test_what_it_cannot_take_is_told_on_one_line(site, option):
    program, *words = map(str, Quiche().command(site, ServerOptions()).arguments)
    options = dict(zip(words[::2], words[1::2], strict=True)) | {option: "nonsense"}
    command = [program, *itertools.chain.from_iterable(options.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert option.removeprefix("--") in done.stderr or "nonsense" in done.stderr


@fetched
@pytest.mark.parametrize("congestion_control", ["cubic", "reno", "bbr"])
def test_every_congestion_control_is_one_of_quiche(site, congestion_control):
    with serving(site, ServerOptions(congestion_control=congestion_control)):
        assert ask(site, "GET", "/bytes/3") == (200, b"abc")


@fetched
@pytest.mark.lab
def test_a_study_measures_it_over_every_protocol(tmp_path):
    rows = measure("quiche", tmp_path)
    assert_answered(rows)
    assert rows[0]["server"]["proxy"] is False

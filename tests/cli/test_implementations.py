"""``trifecta implementations``: a table that fits, JSON, and a row for each bad adapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.implementations.outside import install_client, install_server
from trifecta.cli import main
from trifecta.cli.implementations import in_words
from trifecta.implementations.survey import Implementation


def row(name, *, kind="server", found=True, reason=None, **more):
    known = {"version": "1.2" if found else None, "protocols": ("h1", "h2", "h3"), "source": "a place"}
    return Implementation(kind=kind, name=name, found=found, reason=reason, **{"package": "trifecta"} | known | more)


ROWS = [
    row("origin", declared={"congestion_control": {"tcp": "cubic", "quic": "cubic"}, "tls_library": "rustls"}),
    row("caddy", version="2.11.7", declared={"congestion_control": {"tcp": "cubic", "quic": "reno"}}),
    row("envoy", proxy=True, version="1.37.0/a-very-long-build-identifier/Clean/RELEASE/BoringSSL"),
    row("nginx", found=False, reason="nginx is not in the cache", get="trifecta get nginx"),
    row("mine", found=False, reason="did not answer within 15 s: " + "word " * 40, package="my-servers 1.5"),
    row("load", kind="client", protocols=("h1", "h3")),
]


@pytest.fixture
def pretend(monkeypatch):
    monkeypatch.setattr("trifecta.implementations.survey.survey", lambda: ROWS)


def test_the_table_fits_100_columns_and_says_it_all(pretend, capsys):
    assert main.run(["implementations"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    lines = {line.split()[1]: line for line in text.splitlines() if line[:1] in "✓✗" and line.strip()}
    assert list(lines) == ["origin", "caddy", "envoy", "nginx", "mine", "load"]
    assert "TLS: rustls; congestion: cubic" in text
    assert "congestion: TCP cubic, QUIC reno" in text
    assert "2.11.7" in lines["caddy"]
    assert lines["envoy"].split()[2] == "+"
    assert "not found" in lines["nginx"]
    assert "nginx is not in the cache" in lines["nginx"]
    assert "1.1 3" in lines["load"]
    assert "adds a hop" in text
    assert "To get what is missing: trifecta get nginx\n" in text
    whole = " ".join(text.split())
    assert "trifecta get nginx" in whole
    assert whole.count("word") == 40  # a long reason is folded, not cut


def test_a_narrow_terminal_is_respected(pretend, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main.run(["implementations"]) == 0
    from rich.text import Text

    lines = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
    assert max(len(line) for line in lines if "trifecta get" not in line) <= 72


def test_json_has_every_field(pretend, capsys):
    assert main.run(["implementations", "--json"]) == 0
    said = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert said["nginx"] == {
        "kind": "server", "name": "nginx", "found": False, "version": None, "protocols": ["h1", "h2", "h3"],
        "source": "a place", "package": "trifecta", "reason": "nginx is not in the cache",
        "get": "trifecta get nginx", "proxy": False, "declared": {},
    }  # fmt: skip
    assert said["envoy"]["proxy"]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (None, ""),
        ({}, ""),
        ("bbr", "bbr"),
        ({"tcp": "cubic", "quic": "cubic"}, "cubic"),
        ({"tcp": "cubic", "quic": "bbr"}, "TCP cubic, QUIC bbr"),
    ],
)
def test_what_is_declared_in_a_word_or_two(declared, words):
    assert in_words(declared) == words


def test_this_machine(capsys):
    assert main.run(["implementations", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = {(each["kind"], each["name"]): each for each in said if each["found"]}
    assert {("server", "origin"), ("server", "caddy"), ("client", "load")} <= {*found}
    assert all(each["found"] or each["reason"] for each in said)


def test_foreign_adapters_are_rows_whatever_they_do(tmp_path):
    install_server(tmp_path, "good", "good-server")
    install_client(tmp_path, "good-too", "good-client")
    install_server(tmp_path, "crashing", "crashing", "import os; os._exit(3)")
    install_server(tmp_path, "unimportable", "unimportable")
    (tmp_path / "unimportable_module.py").write_text("raise ImportError('nothing works')")
    done = subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", "implementations", "--json"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    said = {each["name"]: each for each in json.loads(done.stdout)}
    assert said["good-server"]["found"]
    assert said["good-client"]["kind"] == "client"
    assert said["crashing"]["reason"] == "crashed (exit code 3)"
    assert "nothing works" in said["unimportable"]["reason"]
    assert said["origin"]["found"]
    assert done.stderr == ""

"""curl: what it is asked, what its lines mean, and the real one where it is in the cache."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.implementations.live import requests_of
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.client import Job, Output
from trifecta.implementations.clients import curl as adapter
from trifecta.implementations.clients import records
from trifecta.implementations.clients.curl import Curl
from trifecta.implementations.recipes.debian import CURL
from trifecta.implementations.server import Unsupported

CAPABLE = (
    "curl 8.23.0 (x86_64-pc-linux-gnu) libcurl/8.23.0 OpenSSL/3.6.5 ngtcp2/1.24.0\nFeatures: alt-svc HTTP2 HTTP3\n"
)
# Lines of curl 8.23, over HTTP/2 (the connection is opened, then another transfer waits for it) and HTTP/3.
OPENS = {
    "number": "0", "exit": "0", "version": "2", "status": "200", "connects": "1", "connection": "0",
    "bytes_in": "26", "bytes_out": "0", "lookup": "0.000100", "queue": "0.000012", "connect": "0.000271",
    "secured": "0.003365", "sent": "0.003551", "first_byte": "0.003827", "total": "0.003913",
    "now": "1795312868.927905",
}  # fmt: skip
WAITS = OPENS | {
    "number": "1", "connects": "0", "lookup": "0.000000", "queue": "0.003334", "connect": "0.000000",
    "secured": "0.000000", "sent": "0.003376", "first_byte": "0.003682", "total": "0.003692",
}  # fmt: skip
FAILS = OPENS | {
    "number": "2", "exit": "7", "version": "0", "status": "000", "connection": "-1", "bytes_in": "0",
    "connect": "0.000000", "secured": "0.000000", "sent": "0.000000", "first_byte": "0.000000",
}  # fmt: skip
END_NS = 927_905_000  # of OPENS, on the clock of `output`


def job(folder: Path, **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "protocol": "h2", "address": "10.77.0.2", "port": 8443, "server_name": "origin.lab",
        "ca_file": Path('/somewhere/"quoted"/ca.pem'), "connections": 1, "streams": 3, "connection_mode": "reused",
        "requests": 3, "warmup_requests": 0, "method": "GET", "path": "/bytes/26", "request_body_bytes": 0,
        "expect_body_bytes": 26, "expect_status": 200, "connect_timeout_ns": 1_500_000_000,
        "request_timeout_ns": 10**9, "total_timeout_ns": 10**10, "tls_version": "1.3", "keylog_file": None,
        "qlog_dir": None, "state": folder,
    } | changes  # fmt: skip
    return Job(**fields)


def output(folder: Path, *lines: dict[str, str], code: int = 0, cut: str = "") -> Output:
    (folder / "stdout").write_text("".join(json.dumps(line) + "\n" for line in lines) + cut)
    wall_ns = 1_795_312_868 * 10**9
    return Output(code, folder / "stdout", folder / "stderr", began_ns=0, began_wall_ns=wall_ns, ended_ns=10**10)


def program(folder: Path, said: str) -> str:
    path = folder / "curl"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_times_are_placed_on_the_clock(tmp_path: Path) -> None:
    opened, waited = Curl().rows(job(tmp_path), output(tmp_path, OPENS, WAITS))
    begin = END_NS - 3_913_000
    assert opened["done_ns"] == END_NS
    assert opened["connect_start_ns"] == begin + 100_000
    assert opened["tcp_connected_ns"] == begin + 271_000
    assert opened["secured_ns"] == begin + 3_365_000
    assert opened["started_ns"] == opened["secured_ns"]  # a kept connection is open before its first request begins
    assert opened["request_sent_ns"] == begin + 3_551_000
    assert opened["first_byte_ns"] == begin + 3_827_000
    assert (opened["protocol"], opened["status"], opened["bytes_in"], opened["error"]) == ("h2", 200, 26, None)
    assert waited["started_ns"] == END_NS - 3_692_000 + 3_334_000
    assert waited["connect_start_ns"] is waited["tcp_connected_ns"] is waited["secured_ns"] is None


def test_over_http3_only_what_compares_is_told(tmp_path: Path) -> None:
    (row,) = Curl().rows(job(tmp_path, protocol="h3"), output(tmp_path, OPENS | {"version": "3"}))
    assert row["tcp_connected_ns"] is row["request_sent_ns"] is None
    assert row["secured_ns"] is not None
    assert row["first_byte_ns"] is not None
    assert row["protocol"] == "h3"


def test_with_new_connections_a_request_begins_with_its_connection(tmp_path: Path) -> None:
    opened, shared = Curl().rows(job(tmp_path, connection_mode="new"), output(tmp_path, OPENS, WAITS))
    assert opened["started_ns"] == opened["connect_start_ns"] == END_NS - 3_913_000 + 100_000
    assert shared["error"] == "client:reused"


def test_a_time_in_the_queue_that_is_too_long_is_cut(tmp_path: Path) -> None:
    """curl adds up the queue times of a transfer that was woken in vain."""
    (row,) = Curl().rows(job(tmp_path), output(tmp_path, WAITS | {"queue": "5.000000"}))
    assert row["started_ns"] == END_NS - 3_692_000 + 3_376_000


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, "connect_refused"),
        ({"exit": "28"}, "connect_timeout"),
        ({"exit": "28", "secured": "0.001000", "sent": "0.001100"}, "timeout"),
        ({"exit": "60"}, "tls:certificate"),
        ({"exit": "92"}, "reset"),
        ({"exit": "18"}, "closed"),
        ({"exit": "26"}, "client:curl_26"),
    ],
)
def test_exit_codes_are_error_classes(tmp_path: Path, changes: dict[str, str], error: str) -> None:
    (row,) = Curl().rows(job(tmp_path), output(tmp_path, FAILS | changes, code=7))
    assert (row["error"], row["status"], row["done_ns"], row["connection"]) == (error, None, None, None)


def test_who_asked_for_http2_and_got_http1_is_told_apart(tmp_path: Path) -> None:
    (row,) = Curl().rows(job(tmp_path), output(tmp_path, OPENS | {"version": "1.1"}))
    assert row["protocol"] == "h1"


def test_content_is_compared(tmp_path: Path) -> None:
    (tmp_path / "got-0").write_text("abcdefghijklmnopqrstuvwxyz")
    (tmp_path / "got-1").write_text("abcdefghijklmnopqrstuvwxy!")
    right, wrong = Curl().rows(job(tmp_path), output(tmp_path, OPENS, WAITS))
    assert (right["error"], wrong["error"]) == (None, "content")


def test_a_line_cut_short_by_the_kill_is_a_missing_request(tmp_path: Path) -> None:
    asked = job(tmp_path)
    cut = output(tmp_path, OPENS, code=-9, cut='{"number":')
    found = records.complete("t00001", asked, cut, Curl().rows(asked, cut), killed=True)
    assert [row["error"] for row in found] == [None, "timeout", "timeout"]
    with pytest.raises(ValueError, match="Expecting value"):
        list(Curl().rows(asked, output(tmp_path, OPENS, cut='{"number":')))


@pytest.fixture
def _on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(CURL, "program", lambda path: None)
    monkeypatch.setattr(CURL, "installed", lambda: False)
    path = program(tmp_path, CAPABLE)
    monkeypatch.setattr(adapter.shutil, "which", lambda name: path)


@pytest.mark.usefixtures("_on_path")
@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_the_configuration(tmp_path: Path, protocol: str) -> None:
    command = Curl().command(job(tmp_path, protocol=protocol, method="POST", request_body_bytes=3))
    assert command.arguments[1:] == ("-q", "-sS", "-Z", "--parallel-max", "3", "-K", "transfers")
    text = (tmp_path / "transfers").read_text()
    assert {"h1": "http1.1", "h2": "http2", "h3": "http3-only"}[protocol] in text.splitlines()
    assert 'cacert = "/somewhere/\\"quoted\\"/ca.pem"' in text
    assert 'connect-to = "::10.77.0.2:8443"' in text
    assert "connect-timeout = 1.500000\nmax-time = 2.500000\n" in text
    assert "request = POST" in text
    assert text.count('url = "https://origin.lab:8443/bytes/26"\noutput = "got-') == 3
    assert text.count("upload-file = body") == 3
    assert "next" not in text.splitlines()
    assert "insecure" not in text
    assert (tmp_path / "body").read_bytes() == b"aaa"


@pytest.mark.usefixtures("_on_path")
def test_no_two_new_connections_have_the_same_settings(tmp_path: Path) -> None:
    command = Curl().command(job(tmp_path, connection_mode="new", connections=2, streams=1))
    lines = (tmp_path / "transfers").read_text().splitlines()
    ciphers = [line for line in lines if line.startswith("ciphers")]
    assert len(set(ciphers)) == 3
    assert lines.count("next") == 2
    assert "--parallel-immediate" in command.arguments


@pytest.mark.usefixtures("_on_path")
def test_large_content_is_not_stored_and_not_said_to_be_compared(tmp_path: Path) -> None:
    large = job(tmp_path, expect_body_bytes=30_000_000)
    assert not Curl().compares_content(large)
    assert Curl().compares_content(job(tmp_path))
    Curl().command(large)
    assert (tmp_path / "transfers").read_text().count('output = "/dev/null"') == 3


@pytest.mark.usefixtures("_on_path")
def test_a_capable_curl_on_path_is_found() -> None:
    assert Curl().find() == "8.23.0 (x86_64-pc-linux-gnu) libcurl/8.23.0 OpenSSL/3.6.5 ngtcp2/1.24.0"


@pytest.mark.parametrize(
    "said",
    [
        CAPABLE.replace("HTTP3", ""),
        CAPABLE.replace("curl 8.23", "curl 8.15"),
        CAPABLE.replace("curl 8", "curl 7"),
        "?\n",
    ],
)
def test_an_incapable_curl_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    monkeypatch.setattr(CURL, "program", lambda path: None)
    path = program(tmp_path, said)
    monkeypatch.setattr(adapter.shutil, "which", lambda name: path)
    with pytest.raises(Unsupported, match=r"is not curl 8\.16 or newer with HTTP/3; run: trifecta get curl"):
        Curl().find()


def test_without_any_curl_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CURL, "program", lambda path: None)
    monkeypatch.setattr(adapter.shutil, "which", lambda name: None)
    with pytest.raises(Unsupported, match="run: trifecta get curl"):
        Curl().find()


def test_several_connections_for_streams_are_refused() -> None:
    several = RequestsWorkload(requests=5, connections=2, streams=5)
    for protocol in ("h2", "h3"):
        with pytest.raises(Unsupported, match="one connection"):
            Curl().check_workload(several, protocol, "reused")  # type: ignore[arg-type]
    Curl().check_workload(several, "h1", "reused")
    Curl().check_workload(several, "h2", "new")


@pytest.mark.parametrize("mode", ["new", "reused"])
@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_the_real_one(tmp_path: Path, protocol: str, mode: str) -> None:
    try:
        Curl().find()
    except Unsupported as error:
        pytest.skip(str(error))
    summary, found = requests_of("curl", tmp_path, protocol=protocol, connection_mode=mode)
    assert summary["errors"] == 0
    assert {row["protocol"] for row in found} == {protocol}
    assert {row["error"] for row in found} == {None}
    connections = len({row["connection"] for row in found})
    assert connections == (25 if mode == "new" else 5 if protocol == "h1" else 1)
    assert sum(row["secured_ns"] is not None for row in found) == connections

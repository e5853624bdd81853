"""Go's net/http and quic-go as a client: its adapter, and, where it is in the cache, the program itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.implementations.check_client import CheckClient  # which has a test with pytest.mark.lab
from tests.implementations.jobs import carry_out, job, need, origin, output
from trifecta.design.model import Protocol
from trifecta.implementations.clients import go_client, lines
from trifecta.implementations.clients.go_client import GoClient, GoClientOwnTLS
from trifecta.implementations.registry import CLIENTS, ONLY_BY_NAME, RECIPES
from trifecta.implementations.server import Unsupported
from trifecta.lab.certificates import make_certificates

COLUMNS = (
    "connection", "started_ns", "connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns",
    "first_byte_ns", "done_ns", "protocol", "tls_version", "cipher", "resumed", "zero_rtt", "status", "bytes_out",
    "bytes_in", "error",
)  # fmt: skip
# As the program wrote it: HTTP/3 against the origin, then nobody listening.
RECORDED = f"""{json.dumps({"columns": COLUMNS})}
[0,11753041,8221508,null,11568504,11798229,13670758,13682135,"h3","1.3","TLS_AES_128_GCM_SHA256",false,false,200,0,1000,null]
[0,13690012,null,null,null,13731544,14003185,14011042,"h3","1.3","TLS_AES_128_GCM_SHA256",false,false,200,0,1000,null]
[1,14100000,14100000,null,null,null,null,null,null,null,null,false,false,null,0,0,"connect_refused"]
"""
END = '{"end":{"rows":3,"ended":"requests","connections_opened":2,"connections_lost_idle":0,"cpu_ns":14945000}}\n'


def test_it_is_in_the_tables() -> None:
    assert isinstance(CLIENTS["go-client"], GoClient)
    assert RECIPES["go-client"] is go_client.RECIPE


def test_recorded_output_becomes_rows(tmp_path: Path) -> None:
    rows = list(GoClient().rows(job(tmp_path, requests=3), output(tmp_path, RECORDED + END)))
    assert [row["error"] for row in rows] == [None, None, "connect_refused"]
    assert rows[0]["secured_ns"] == 11568504
    assert rows[0]["tcp_connected_ns"] is None
    assert rows[1]["connect_start_ns"] is None
    assert rows[2]["done_ns"] is None
    assert all(set(row) == set(COLUMNS) for row in rows)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no end after 0 rows"),
        (RECORDED, "no end after 3 rows"),
        (RECORDED + END.replace('"rows":3', '"rows":4'), "tells of 4 rows, there are 3"),
        (RECORDED + "[1, 2]\n" + END, "line 5 is neither a row of 17 values nor the end"),
        (RECORDED + "panic: out of luck\n", "line 5 is not JSON"),
        ('{"rows": []}\n', "line 1 does not name the columns"),
        ("[1]\n", "line 1 does not name the columns"),
    ],
)
def test_output_that_is_not_whole_is_not_understood(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(GoClient().rows(job(tmp_path, requests=3), output(tmp_path, text)))


def test_output_that_a_signal_cut_short_ends_there(tmp_path: Path) -> None:
    left = output(tmp_path, RECORDED[:-20], code=-9)
    assert len(list(GoClient().rows(job(tmp_path, requests=3), left))) == 2


@pytest.mark.parametrize(
    ("ended", "error"), [("total_timeout", "timeout"), ("signal", "interrupted"), ("no_response", "interrupted")]
)
def test_requests_that_were_given_up_are_failures_with_the_reason(tmp_path: Path, ended: str, error: str) -> None:
    left = output(tmp_path, RECORDED + END.replace('"requests"', f'"{ended}"'))
    rows = list(GoClient().rows(job(tmp_path, requests=5), left))
    assert rows[3:] == [{"started_ns": left.ended_ns, "error": error}] * 2


def test_the_job_is_told_whole_and_leaves_time_to_write(tmp_path: Path) -> None:
    asked = job(tmp_path, keylog_file=tmp_path / "keys", total_timeout_ns=10**9)
    told = json.loads(lines.write_job(asked).read_text())
    assert told.pop("deadline_ns") > 0
    assert told["keylog_file"] == str(tmp_path / "keys")
    assert told["qlog_dir"] is None
    assert set(told) == set(asked.__dataclass_fields__) - {"state"}


def test_a_program_that_is_not_there_or_broken_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    with pytest.raises(Unsupported, match="trifecta get go-client"):
        GoClient().find()
    broken = tmp_path / "broken"
    monkeypatch.setattr(go_client.RECIPE, "program", lambda: broken)
    for script in (None, "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho nonsense\n", "#!/bin/sh\necho '{}'\n"):
        if script is not None:
            broken.write_text(script)
            broken.chmod(0o755)
        with pytest.raises(Unsupported, match="trifecta get go-client --force"):
            GoClient().find()


def test_what_a_user_says_to_the_runtime_does_not_reach_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(go_client.RECIPE, "program", lambda: tmp_path / "go-client")
    monkeypatch.setenv("GODEBUG", "http2client=0")
    command = GoClient().command(job(tmp_path))
    assert {**os.environ, **command.environment}["GODEBUG"] == ""


class TestGoClient(CheckClient):
    adapter = GoClient()


@pytest.mark.parametrize(("asked", "spoken"), [("h1", "h1"), ("h2", "h1"), ("h3", "h3")])
def test_with_a_tls_configuration_of_its_own_net_http_speaks_http1_and_says_nothing(
    tmp_path: Path, asked: Protocol, spoken: str
) -> None:
    adapter = GoClientOwnTLS()
    need(adapter)
    assert (CLIENTS[adapter.name].name, adapter.name in ONLY_BY_NAME) == (adapter.name, True)
    certificates = make_certificates(tmp_path / "pki", ["origin.lab"], ["127.0.0.1"])
    streams = 1 if asked == "h1" else 4
    with origin(certificates) as port:
        work = job(tmp_path, ca_file=certificates.authority, port=port, protocol=asked, streams=streams, requests=20)
        rows = carry_out(adapter, work)
    assert {(row["error"], row["protocol"], row["status"]) for row in rows} == {(None, spoken, 200)}
    # What was meant as streams of one connection is a connection each, as in the pool of net/http.
    assert len({row["connection"] for row in rows}) == (4 if (asked, spoken) == ("h2", "h1") else 1)

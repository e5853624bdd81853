"""Resumption, early data, keys and qlog, from the study's text to the samples of real servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workloads import drive
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect

pytestmark = pytest.mark.lab
BOUND = [
    "path=clean", "connection=new", "server=origin,caddy", "budget=2 min", "blocks.at_least=1", "blocks.at_most=1",
    "workload.in_flight=1", "paths.clean.trial.new.requests=10", "paths.clean.trial.new.warmup=1 requests",
]  # fmt: skip
SESSIONS = """
SELECT t.server, t.protocol, count(*) AS requests, count(s.error) AS failed, count(*) FILTER (s.resumed) AS resumed,
       count(*) FILTER (s.zero_rtt) AS early
FROM trials t JOIN samples s USING (trial) GROUP BY ALL ORDER BY ALL
"""


def run(folder: Path, *settings: str) -> RunDirectory:
    code, _, outcome, errors = drive.finish(folder, set=[*BOUND, *settings])
    assert code in (0, 1), errors  # 1: no trial was fit for a verdict, as on a machine that does other work
    assert outcome["trials"] > 0
    return RunDirectory.open(folder)


def parity(folder: Path) -> set[tuple[str, str]]:
    """Status and evidence of the check, over all trials."""
    found = connect(folder).sql("SELECT DISTINCT status, evidence FROM checks WHERE \"check\" = 'parity'").fetchall()
    return {(str(status), str(evidence)) for status, evidence in found}


def test_sessions_are_resumed_and_keys_and_qlog_kept_with_each_server(tmp_path: Path) -> None:
    settings = ("workload.resumption=true", "workload.keylog=true", "workload.qlog=true")
    run(tmp_path / "run", *settings)
    rows = connect(tmp_path / "run").sql(SESSIONS).fetchall()
    assert {row[:2] for row in rows} == {(server, p) for server in ("origin", "caddy") for p in ("h1", "h2", "h3")}
    for server, protocol, requests, failed, resumed, early in rows:
        trials = 2 if protocol == "h2" else 1  # the baseline runs twice
        assert (requests, failed, early) == (11 * trials, 0, 0), (server, protocol)
        # Every connection but the first has a session, which its server may let go now and then.
        assert resumed >= 5 * trials, (server, protocol)
    assert not {status for status, _ in parity(tmp_path / "run")} & {"fail"}
    assert any("session resumption taken" in evidence for _, evidence in parity(tmp_path / "run"))
    for trial, protocol in connect(tmp_path / "run").sql("SELECT trial, protocol FROM trials").fetchall():
        keys = (tmp_path / "run" / "captures" / f"{trial}.keys").read_text()
        assert "CLIENT_TRAFFIC_SECRET_0 " in keys, protocol  # SSLKEYLOGFILE of TLS 1.3, over TCP and QUIC alike
        folder = tmp_path / "run" / "qlog" / str(trial)
        assert folder.exists() == (protocol == "h3")
        if protocol == "h3":
            events = [
                line for file in (folder / "load").iterdir() for line in file.read_text(encoding="utf-8").splitlines()
            ]
            assert any("packet_sent" in line for line in events)
    assert (tmp_path / "run" / "captures").stat().st_mode & 0o077 == 0


def test_early_data_is_sent_and_a_server_that_takes_it_on_one_protocol_only_is_left_out(tmp_path: Path) -> None:
    made = run(tmp_path / "run", "workload.resumption=true", "workload.zero_rtt=true")
    rows = connect(tmp_path / "run").sql(SESSIONS).fetchall()
    assert {row[:2] for row in rows} == {("origin", protocol) for protocol in ("h1", "h2", "h3")}
    for _, protocol, requests, failed, resumed, early in rows:
        trials = 2 if protocol == "h2" else 1
        assert (requests, failed) == (11 * trials, 0), protocol
        assert resumed >= early >= 5 * trials, protocol
    (left_out,) = made.facts["unsupported"]
    assert left_out["level"] == "caddy"
    assert "0-RTT over HTTP/3 only" in left_out["reason"]
    assert any("early data taken" in evidence for _, evidence in parity(tmp_path / "run"))


def test_without_being_asked_for_nothing_is_resumed_or_kept(tmp_path: Path) -> None:
    run(tmp_path / "run", "server=origin")
    assert {row[4:] for row in connect(tmp_path / "run").sql(SESSIONS).fetchall()} == {(0, 0)}
    assert not (tmp_path / "run" / "captures").exists()
    assert not (tmp_path / "run" / "qlog").exists()
    rows = RunDirectory.open(tmp_path / "run").rows()
    assert all(json.loads(row["load_json"])["errors"] == 0 for row in rows)

"""The views of a run: what is committed, with the phases and settings that SQL derives of it, and nothing outside."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from tests.store.test_run import commit, sample
from trifecta.design.model import CheckResult
from trifecta.design.study_file import parse_study
from trifecta.store import trace_schema as trace
from trifecta.store import views
from trifecta.store.run import RunDirectory
from trifecta.trace import overview


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "a run [1]*'", {"seed": 1}, "name: x\n")


def test_views_of_a_run_without_trials_are_empty(run: RunDirectory) -> None:
    connection = views.connect(run.path)
    for view in ("trials", "samples", "checks", "verdicts", "link", "resources"):
        assert connection.execute(f"SELECT count(*) FROM {view}").fetchall() == [(0,)]


def test_views_show_committed_trials_only_and_derive_phases(run: RunDirectory) -> None:
    h3 = {"tcp_connected_ns": None, "protocol": "h3"}
    commit(
        run,
        "t00000",
        [sample("t00000", 0), sample("t00000", 1, **h3), sample("t00000", 2, error="timeout", done_ns=None)],
    )
    (run.path / "samples" / "t00001.parquet").write_bytes((run.path / "samples" / "t00000.parquet").read_bytes())
    rows = views.connect(run.path).execute(
        "SELECT success, latency_ns, latency_censored_ns, connect_ns, tls_ns, wait_ns, transfer_ns "
        "FROM samples ORDER BY request"
    ).fetchall()  # fmt: skip
    assert rows == [
        (True, 2000, 2000.0, 300, 600, 500, 500),
        (True, 2001, 2001.0, None, 900, 500, 501),
        (False, None, float("inf"), 300, 600, 500, None),
    ]


def test_open_loop_latency_counts_from_the_intended_start(run: RunDirectory) -> None:
    commit(run, "t00000", [sample("t00000", 0, intended_ns=400)])
    assert views.connect(run.path).execute("SELECT latency_ns FROM samples").fetchall() == [(2600,)]


def test_checks_of_trials_are_seen_before_checks_are_written_and_not_twice_after(run: RunDirectory) -> None:
    check = {
        "check": "path",
        "scope": "t00000",
        "status": "pass",
        "evidence": "e",
        "value": 1.5,
        "limit": None,
        "remedy": "",
    }
    commit(run, "t00000", [sample("t00000", 0)], checks_json=json.dumps([check]))
    query = 'SELECT "check", scope, status, value FROM checks ORDER BY scope'
    assert views.connect(run.path).execute(query).fetchall() == [("path", "t00000", "pass", 1.5)]
    run.write_checks([CheckResult(**check), CheckResult("noise_floor", "run", "warn", "e")])
    assert views.connect(run.path).execute(query).fetchall() == [
        ("noise_floor", "run", "warn", None),
        ("path", "t00000", "pass", 1.5),
    ]


def test_link_view_has_a_row_for_each_direction(run: RunDirectory) -> None:
    direction = {"lost": 3, "loss_given": 0.5, "lateness_ns": {"p50": 7, "p90": 8, "p99": 9, "max": 10}}
    direction["wire_packets"] = 100
    link = {
        "a_to_b": direction,
        "b_to_a": direction | {"lost": 4, "wire_packets": 99},
        "cpu_user_ns": 1,
        "cpu_system_ns": 2,
        "wall_ns": 9,
    }
    commit(run, "t00000", [sample("t00000", 0)], link_json=json.dumps(link))
    assert views.connect(run.path).execute(
        "SELECT trial, direction, lost, loss_given, lateness_p99_ns, cpu_ns, queue_dropped FROM link ORDER BY lost"
    ).fetchall() == [("t00000", "a_to_b", 3, 0.5, 9, 3, None), ("t00000", "b_to_a", 4, 0.5, None, 3, None)]  # fmt: skip


def test_link_view_has_a_row_for_each_wire_of_services(run: RunDirectory) -> None:
    def link(lost: int, cpu_ns: int) -> dict[str, object]:
        return {"a_to_b": {"lost": lost}, "b_to_a": {"lost": 0}, "cpu_user_ns": cpu_ns, "cpu_system_ns": 0}

    both = {"links": {"host1-host2": link(3, 5), "host2-host3": link(7, 6)}}
    commit(run, "t00000", [sample("t00000", 0)], link_json=json.dumps(both))
    commit(run, "t00001", [sample("t00001", 0)], link_json=json.dumps(link(1, 2)))
    commit(run, "t00002", [sample("t00002", 0)], link_json=None)
    found = views.connect(run.path).execute(
        "SELECT trial, wire, lost, cpu_ns FROM link WHERE direction = 'a_to_b' ORDER BY trial, wire"
    )
    assert found.fetchall() == [
        ("t00000", "host1-host2", 3, 5), ("t00000", "host2-host3", 7, 6), ("t00001", None, 1, 2),
    ]  # fmt: skip


def test_sql_reads_nothing_outside_the_run(run: RunDirectory, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    connection = views.connect(run.path)
    with pytest.raises(Exception, match=r"(?i)permission|disabled"):
        connection.execute(f"SELECT * FROM read_csv('{secret}')")
    with pytest.raises(Exception, match=r"(?i)cannot enable"):
        connection.execute("SET enable_external_access = true")


def test_the_tables_of_packets_are_views_whether_there_are_any_or_not(run: RunDirectory) -> None:
    commit(run, "t00000", [sample("t00000", 0)])
    for name in trace.TABLES:
        assert views.connect(run.path).execute(f"SELECT count(*) FROM {name}").fetchall() == [(0,)]
    (run.path / "trace").mkdir()
    row = dict.fromkeys(trace.CONNECTIONS.names) | {"capture": "t00000", "connection": 3, "protocol": "h3"}
    pq.write_table(
        pa.Table.from_pylist([row], schema=trace.CONNECTIONS.arrow()), run.path / "trace" / "connections.parquet"
    )
    overview.note_tables(run.path)
    with views.connect(run.path) as connection:
        assert connection.execute("SELECT capture, protocol FROM connections").fetchall() == [("t00000", "h3")]
        assert connection.execute("SELECT count(*) FROM packets").fetchall() == [(0,)]


def test_asked_in_the_view_is_the_plans_whatever_the_link_says(tmp_path: Path) -> None:
    """A link that says it was asked for 5 % on a path of 1 %: the table still says 1 %."""
    run = tmp_path / "run"
    write_run(run, Shape(blocks=2))
    for file in (run / "trials").glob("*.parquet"):
        table = pq.read_table(file)
        row = table.to_pylist()[0]
        link = json.loads(row["link_json"])
        for direction in (link or {}).keys() & {"a_to_b", "b_to_a"}:
            if link[direction] is None:
                continue
            link[direction] |= {"loss_asked": 0.5, "delay_asked_ns": 1, "rate_asked_bits_per_s": 7}
        row["link_json"] = json.dumps(link)
        pq.write_table(pa.Table.from_pylist([row], schema=table.schema), file)
    study = parse_study((run / "study.yaml").read_text(), "study.yaml")
    with views.connect(run) as connection:
        found = connection.execute(
            "SELECT DISTINCT path, direction, delay_asked_ns, loss_asked, rate_asked_bits_per_s FROM link"
        ).fetchall()
    assert found
    for path, direction, delay_ns, loss, rate in found:
        asked = study.paths[path].forward if direction == "a_to_b" else study.paths[path].backward
        by_kind = {one["kind"]: one for one in asked}
        assert delay_ns == by_kind.get("delay", {"delay_ns": 0})["delay_ns"]
        assert loss == pytest.approx(by_kind.get("loss", {"probability": 0})["probability"])
        assert rate == by_kind.get("rate", {"bits_per_s": None})["bits_per_s"]

"""Every number of the report is in the answer of the SQL shown beside it, asked through the views a user has."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.report import held, pages
from trifecta.analysis.checks.cpu_utilization import client_busy
from trifecta.conclude import catalogue, evidence_queries, queries
from trifecta.conclude.query import Query, for_metric
from trifecta.store import views

EVERY = [one for module in (catalogue, evidence_queries) for one in vars(module).values() if isinstance(one, Query)]


def test_running_the_shown_sql_gives_the_shown_number(run: Path) -> None:
    root = pages.read((run / "report.html").read_text()).root
    found = pages.numbers(root)
    # 12 cells with at least a verdict table's and five tables' numbers each: a parser that finds few proves nothing.
    assert len(found) > 1_500
    pages.assert_sql_gives(run, found)


def test_every_number_of_a_table_carries_its_source(run: Path) -> None:
    """No cell of a numeric column without a query."""
    root = pages.read((run / "report.html").read_text()).root
    for table in root.all("table"):
        if "data-query" in table.attributes:
            bare = [cell.text for cell in table.all("td") if cell.has("n") and "data-column" not in cell.attributes]
            assert bare == []


def test_the_sql_of_the_figures_runs(run: Path) -> None:
    root = pages.read((run / "report.html").read_text()).root
    cell = next(section for section in root.all("section") if section.has("cell"))
    shown = [span.text for span in cell.all("span") if span.has("query")]
    assert len(shown) >= 10
    with views.connect(run) as connection:
        for sql in shown:
            assert connection.execute(sql).fetchall(), sql


def test_the_sql_can_be_pasted_between_double_quotes() -> None:
    for query in EVERY:
        assert not set('"$!`\\') & set(query.text("path=a'b")), query.name
        assert "a''b" in query.text("path=a'b") or "{and_cell}" not in query.sql


def test_keys_tell_rows_apart(run: Path) -> None:
    with held.opened(run) as connection:
        for query in EVERY:
            asked = for_metric(query, "latency_p50_ns")
            cursor = connection.execute(asked.text())
            names = [column[0] for column in cursor.description or ()]
            keys = [tuple(row[names.index(name)] for name in asked.key) for row in cursor.fetchall()]
            assert len(keys) == len(set(keys)), query.name


@pytest.mark.parametrize(
    "told",
    [
        {"busy_ratio": 0.95},
        {"busy_ratio": 0.95, "cpu_user_ns": 900, "cpu_system_ns": 100, "started_ns": 1_000, "ended_ns": 2_000},
        {"busy_ratio": 0.95, "cpu_user_ns": 900, "cpu_system_ns": 100, "started_ns": 1_000, "ended_ns": 1_000},
    ],
)
@pytest.mark.parametrize("start", [None, 700, 5_000])
def test_the_table_says_of_a_client_s_core_what_the_check_says(told: dict[str, Any], start: int | None) -> None:
    load = told | {"start_cpu_ns": start}
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE link (trial TEXT, cpu_ns BIGINT, wall_ns BIGINT)")
        connection.execute("CREATE TABLE trials (trial TEXT, level TEXT, protocol TEXT, load_json TEXT)")
        connection.execute("INSERT INTO trials VALUES ('t', 'h2', 'h2', ?)", [json.dumps(load)])
        cursor = connection.execute(evidence_queries.HEADROOM.text())
        names = [column[0] for column in cursor.description or ()]
        (row,) = cursor.fetchall()
    assert row[names.index("busy_max")] == pytest.approx(client_busy(load))


def test_a_failed_request_is_never_done(run: Path) -> None:
    with views.connect(run) as connection:
        cursor = connection.execute(catalogue.PERCENTILES.text())
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    failed = [row for row in rows if row["failed"]]
    assert failed
    assert all(math.isinf(row["max_ns"]) for row in failed)
    assert not any(math.isinf(row["max_ns"]) for row in rows if not row["failed"])
    assert "∞" in (run / "report.html").read_text()


@pytest.mark.parametrize("query", [catalogue.PERCENTILES, catalogue.ECDF], ids=lambda query: query.name)
def test_one_pass_over_the_samples_says_what_the_query_that_is_shown_says(run: Path, query: Query) -> None:
    with views.connect(run) as connection:
        queries.keep(connection, catalogue.CURVES)
        said = queries.ask(connection, catalogue.FROM_CURVES[query.name]).rows
        assert said
        assert said == queries.ask(connection, query).rows


def test_phases_add_up_and_absent_ones_are_absent(run: Path) -> None:
    with views.connect(run) as connection:
        cursor = connection.execute(catalogue.PHASES.text())
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
    parts = ("tcp_connect_ns", "tls_ns", "quic_handshake_ns", "send_ns", "wait_ns", "transfer_ns")
    for row in rows:
        total = sum(row[name] or 0 for name in parts)
        assert abs(total - row["total_ns"]) < 5, row
        # The synthetic client takes 40 us to send: that must not be booked as handshake.
        assert 35_000 < row["send_ns"] < 50_000
        is_new = "connection=new" in row["cell"]
        assert (row["tcp_connect_ns"] is None) == (row["arm"] == "h3" or not is_new)
        assert (row["quic_handshake_ns"] is None) == (row["arm"] != "h3" or not is_new)


def test_a_long_query_prints_nothing(run: Path) -> None:
    """DuckDB would draw a progress bar after two seconds, into the JSON of a command as well."""
    with queries.connect(run) as connection:
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)

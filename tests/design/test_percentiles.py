"""No percentile beyond what a sample holds: one rule, and every place that prints one keeps it."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

import trifecta
from trifecta import studies
from trifecta.analysis.estimate import log_value
from trifecta.analysis.transport.quantiles import quantiles_of_each
from trifecta.conclude.catalogue import PERCENTILES
from trifecta.conclude.evidence_queries import HEADROOM, PROBES
from trifecta.conclude.reproduction.places import SAMPLES
from trifecta.conclude.services.catalogue import CLIENTS, WATERFALL
from trifecta.conclude.visits.catalogue import SEGMENTS
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.design.percentiles import held_sql, holds, needed
from trifecta.workloads.aggregate import percentile

SOURCES = sorted(Path(trifecta.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    ("quantile", "values"),
    [(0.0, 1), (0.1, 10), (0.5, 1), (0.9, 10), (0.95, 20), (0.99, 100), (0.995, 200), (0.999, 1000), (1.0, 1)],
)
def test_how_many_values_hold_a_percentile(quantile: float, values: int) -> None:
    assert needed(quantile) == values
    assert holds(quantile, values)
    assert not holds(quantile, values - 1)


@pytest.mark.parametrize(("quantile", "values"), [(0.95, 20), (0.99, 100)])
def test_a_trial_has_no_percentile_of_too_few_requests(quantile: float, values: int) -> None:
    assert percentile(np.arange(values - 1.0), quantile) is None
    assert percentile(np.arange(float(values)), quantile) is not None
    assert percentile(np.arange(1.0), 0.5) == 0


def test_what_an_earlier_run_stored_of_too_few_is_no_value() -> None:
    row = {"latency_p99_ns": 5_000_000, "samples": 99, "success_rate": 1.0}
    assert np.isnan(log_value(row, METRICS["latency_p99_ns"]))
    assert log_value(row | {"samples": 100}, METRICS["latency_p99_ns"]) == pytest.approx(np.log(5e6))
    # one failure of 60 does not make it infinitely long: it was never known
    few = {"latency_p99_ns": None, "samples": 60, "success_rate": 59 / 60}
    assert np.isnan(log_value(few, METRICS["latency_p99_ns"]))
    assert log_value(few | {"samples": 600}, METRICS["latency_p99_ns"]) == np.inf


def test_gaps_of_a_capture() -> None:
    ends = np.array([99, 199, 208])
    few, many, nine = quantiles_of_each(np.r_[:99, :100, :9], np.array([0, 99, 199]), ends)
    assert few is not None
    assert many is not None
    assert (few.count, few.p99, few.most) == (99, None, 98)
    assert few.p90 is not None
    assert many.p99 is not None
    assert nine is not None
    assert (nine.p50, nine.p90) == (4, None)


@pytest.mark.parametrize(("requests", "known"), [(3, 0), (9, 0), (10, 1), (20, 2), (100, 3), (1000, 4)])
def test_the_percentiles_of_a_report(requests: int, known: int) -> None:
    """99.9 % of three requests was the largest of three."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE trials AS SELECT 't' AS trial, 'c' AS cell, 'h2' AS arm, true AS valid, "
                           "false AS is_aa")  # fmt: skip
        connection.execute(
            "CREATE TABLE samples AS SELECT 't' AS trial, true AS success, false AS warmup, "
            f"i::DOUBLE AS latency_censored_ns FROM range({requests}) AS r(i)"
        )
        cursor = connection.execute(PERCENTILES.text())
        row = dict(zip([column[0] for column in cursor.description or ()], cursor.fetchone() or (), strict=True))
    told = [row[name] for name in ("p90_ns", "p95_ns", "p99_ns", "p999_ns")]
    assert [value is not None for value in told] == [place < known for place in range(4)]
    assert row["p50_ns"] is not None
    assert (row["succeeded"], row["max_ns"]) == (requests, requests - 1)


def test_a_study_cannot_be_judged_by_a_percentile_that_its_trials_do_not_hold() -> None:
    with pytest.raises(
        UserError, match=r"metric: the 99th percentile of latency needs 100 requests a trial, .* has 60"
    ):
        studies.load("race", ["metric=latency_p99", "requests=60", "budget=none"])
    assert studies.load("race", ["metric=latency_p99", "requests=100", "budget=none"]).metric == "latency_p99_ns"


def test_every_percentile_of_the_reports_sql_is_held() -> None:
    """What is asked of SQL beyond the 90th (or below the 10th) stands behind the rule."""
    for query in (PERCENTILES, PROBES, HEADROOM, WATERFALL, CLIENTS, SEGMENTS, SAMPLES):
        assert "{" not in query.sql.replace("{and_cell}", "").replace("{request}", "").replace("{connect}", ""), query
    tail = re.compile(r"quantile_(?:cont|disc)\([^()]*(?:\([^()]*\)[^()]*)*,\s*0\.(?:9\d*|0[0-9]*|1)\)")
    for query in (CLIENTS, SEGMENTS, SAMPLES):
        for found in tail.finditer(query.sql):
            before = query.sql[: found.start()]
            assert before.rfind("CASE WHEN") > before.rfind(" END"), (query.name, found[0])
    for file in SOURCES:
        text = file.read_text(encoding="utf-8")
        if tail.search(text):
            assert "held_sql" in text or "ECDF" in text, file


def test_the_sql_of_the_rule() -> None:
    with duckdb.connect() as connection:
        cursor = connection.execute(f"SELECT {held_sql('7', 0.99, '99')}, {held_sql('7', 0.99, '100')}")
        assert cursor.fetchall() == [(None, 7)]

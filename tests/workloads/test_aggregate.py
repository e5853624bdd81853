"""A trial's numbers are those that SQL gives, and failures never make them look better."""

from __future__ import annotations

import heapq
import random
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trifecta.store import schema
from trifecta.store.run import RunDirectory, TrialFiles
from trifecta.store.views import connect
from trifecta.workloads.aggregate import aggregate, error_summary, percentile

BASE = 9_007_199_254_740_993  # above 2^53: a float could not distinguish neighbours


def samples(count: int, seed: int, failing: float = 0.0, **fixed: object) -> list[dict[str, object]]:
    generator = random.Random(seed)
    rows = []
    for request in range(count):
        started = BASE + request * 1000
        failed = generator.random() < failing
        row: dict[str, object] = dict.fromkeys(schema.SAMPLES.names)
        row |= {
            "trial": "t00000", "worker": 0, "connection": 0, "request": request, "warmup": request < count // 10,
            "started_ns": started, "connect_start_ns": started, "tcp_connected_ns": started + 10,
            "secured_ns": started + 40, "request_sent_ns": started + 50,
            "first_byte_ns": None if failed else started + 90 + generator.randrange(100),
            "done_ns": started + 200 + generator.randrange(1000), "protocol": "h2", "tls_version": "TLSv1.3",
            "cipher": "TLS13_AES_128_GCM_SHA256", "resumed": False, "zero_rtt": False,
            "status": None if failed else 200,
            "bytes_out": 5, "bytes_in": 100, "header_bytes_in": 20, "error": "timeout" if failed else None,
        }  # fmt: skip
        rows.append(row | fixed)
    return rows


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.SAMPLES.arrow()), path)
    return path


def by_sql(tmp_path: Path, rows: list[dict[str, object]]) -> duckdb.DuckDBPyConnection:
    run = RunDirectory.create(tmp_path / "run", {}, "")
    row = dict.fromkeys(schema.TRIALS.names) | {"trial": "t00000"}
    run.commit_trial(row, TrialFiles(samples=write(run.draft("samples", "t00000", ".parquet"), rows)))
    return connect(run.path)


@pytest.mark.parametrize("failing", [0.0, 0.03, 0.3])
def test_columns_are_what_the_views_give(tmp_path: Path, failing: float) -> None:
    rows = samples(400, seed=3, failing=failing)
    found = aggregate(write(tmp_path / "s.parquet", rows)).columns
    query = """
        SELECT count(*), count(*) FILTER (NOT success), avg(success::INT),
          quantile_cont(latency_censored_ns, 0.5), quantile_cont(latency_censored_ns, 0.95),
          quantile_cont(latency_censored_ns, 0.99), quantile_cont(ttfb_ns, 0.5) FILTER (success),
          count(*) FILTER (success) / (max(done_ns) - min(started_ns)) * 1e9, sum(bytes_in), median(connect_ns)
        FROM samples WHERE NOT warmup"""
    sql = by_sql(tmp_path, rows).execute(query).fetchone()
    assert sql is not None
    expected = [None if isinstance(value, float) and not np.isfinite(value) else value for value in sql]
    assert found["samples"] == expected[0]
    assert found["errors"] == expected[1]
    assert found["success_rate"] == pytest.approx(expected[2])
    for name, value in zip(
        ("latency_p50_ns", "latency_p95_ns", "latency_p99_ns", "ttfb_p50_ns"), expected[3:7], strict=True
    ):
        assert (found[name] is None) == (value is None), name
        if value is not None:
            assert abs(found[name] - value) <= 0.5
    assert found["requests_per_s"] == pytest.approx(expected[7])
    assert found["bytes_in"] == expected[8]
    assert found["connect_p50_ns"] == expected[9]


def test_failures_count_as_longer_than_anything(tmp_path: Path) -> None:
    half_failed = aggregate(write(tmp_path / "s.parquet", samples(200, seed=1, failing=0.6))).columns
    assert half_failed["latency_p50_ns"] is None
    assert half_failed["latency_mean_ns"] is None
    assert half_failed["requests_per_s"] > 0


def test_a_server_that_falls_silent_has_not_the_rate_of_before(tmp_path: Path) -> None:
    rows = samples(200, seed=1, failing=0.0)
    whole = aggregate(write(tmp_path / "a.parquet", rows), lasted_ns=60_000_000_000).columns
    assert whole["requests_per_s"] == aggregate(tmp_path / "a.parquet").columns["requests_per_s"], "nothing failed"
    silent = [*rows, {**rows[-1], "request": 200, "done_ns": None, "first_byte_ns": None, "error": "timeout"}]
    found = aggregate(write(tmp_path / "b.parquet", silent), lasted_ns=60_000_000_000).columns
    answered = found["samples"] - found["errors"]
    assert found["requests_per_s"] == pytest.approx(answered / 60)
    assert whole["requests_per_s"] > 2 * found["requests_per_s"]


def test_nothing_succeeded(tmp_path: Path) -> None:
    found = aggregate(write(tmp_path / "s.parquet", samples(50, seed=1, failing=1.1)))
    assert found.columns["success_rate"] == 0
    assert found.columns["requests_per_s"] == 0
    assert found.columns["latency_p99_ns"] is None
    assert found.first_half_p50_ns is None
    assert found.errors == {"timeout": 45}


def test_no_rows_at_all(tmp_path: Path) -> None:
    found = aggregate(write(tmp_path / "s.parquet", []))
    assert found.samples == 0
    assert found.columns["success_rate"] is None


def test_a_phase_a_protocol_does_not_have_is_none(tmp_path: Path) -> None:
    found = aggregate(write(tmp_path / "s.parquet", samples(50, seed=1, tcp_connected_ns=None, protocol="h3"))).columns
    assert found["connect_p50_ns"] is None
    assert found["tls_p50_ns"] == 40  # the whole QUIC handshake


def test_open_loop_counts_from_the_intended_start(tmp_path: Path) -> None:
    rows = samples(50, seed=1)
    for row in rows:
        row["intended_ns"] = int(str(row["started_ns"])) - 1_000_000
    plain = aggregate(write(tmp_path / "a.parquet", samples(50, seed=1))).columns["latency_p50_ns"]
    assert aggregate(write(tmp_path / "b.parquet", rows)).columns["latency_p50_ns"] == plain + 1_000_000


@pytest.mark.parametrize(("places", "stalled_ns", "most"), [(1, 0, 1), (3, 0, 3), (40, 50_000_000, 0)])
def test_it_knows_whether_late_requests_of_an_open_loop_waited_for_others(
    tmp_path: Path, places: int, stalled_ns: int, most: int
) -> None:
    """A request a millisecond that takes 10 ms: over one or three places each waits; over forty the client was late."""
    template, free, rows = samples(1, seed=1)[0], [0] * places, []
    for number in range(100):
        due = (number + 1) * 1_000_000 + (number >= 60) * 100_000_000
        started = max(due, heapq.heappop(free)) + (stalled_ns if number == 60 else 0)
        heapq.heappush(free, started + 10_000_000)
        times = {"intended_ns": due, "started_ns": started, "request_sent_ns": started, "done_ns": started + 10_000_000}
        rows.append(template | {"request": number, "warmup": number < 5} | times)
    assert aggregate(write(tmp_path / "s.parquet", rows)).in_flight_when_due == most


def test_a_closed_loop_has_no_schedule_to_be_late_of(tmp_path: Path) -> None:
    assert aggregate(write(tmp_path / "s.parquet", samples(50, seed=1))).in_flight_when_due is None


def test_warm_up_is_left_out_of_numbers_and_counts(tmp_path: Path) -> None:
    rows = samples(100, seed=1)
    for row in rows[:10]:
        row["bytes_in"] = 7
    found = aggregate(write(tmp_path / "s.parquet", rows))
    assert (found.samples, found.warmup_samples, found.bytes_in) == (90, 10, {100: 90})


def closed_loop(seed: int, slow_until: int = 0) -> list[dict[str, object]]:
    """192 requests, 64 in flight, whose times do not depend on when they start; the first may be slower."""
    rng = np.random.default_rng(seed)
    template, free, rows = samples(1, seed=1)[0], [0] * 64, []
    for number in range(192):
        started = heapq.heappop(free)
        done = started + int(1e6 * np.exp(rng.normal(0, 1)) * (5 if number < slow_until else 1))
        heapq.heappush(free, done)
        times = {"started_ns": started, "first_byte_ns": done, "done_ns": done, "request_sent_ns": started}
        rows.append(template | {"request": number, "warmup": False} | times)
    return rows


def test_a_steady_trial_of_few_requests_per_connection_has_no_drift(tmp_path: Path) -> None:
    """Ordered by when they end, 97 of 100 such trials seem to drift by more than 2."""

    def drift(rows: list[dict[str, object]]) -> float:
        found = aggregate(write(tmp_path / "s.parquet", rows))
        assert found.first_half_p50_ns and found.second_half_p50_ns
        return found.first_half_p50_ns / found.second_half_p50_ns

    steady = [drift(closed_loop(seed)) for seed in range(40)]
    assert not [one for one in steady if not 0.5 <= one <= 2]
    assert all(drift(closed_loop(seed, slow_until=96)) > 2 for seed in range(10)), "a start-up phase is seen"


def test_a_client_that_says_nothing_of_its_handshakes_has_full_ones(tmp_path: Path) -> None:
    rows = samples(100, seed=1, resumed=None, zero_rtt=None)
    assert aggregate(write(tmp_path / "s.parquet", rows)).handshakes == {"full": 90}
    rows = samples(100, seed=1, resumed=None, zero_rtt=None, connect_start_ns=None)
    assert aggregate(write(tmp_path / "t.parquet", rows)).handshakes == {}


def test_percentile_edges() -> None:
    assert percentile(np.array([]), 0.5) is None
    assert percentile(np.array([5.0]), 0.5) == 5
    assert percentile(np.array([5.0]), 0.99) is None
    assert percentile(np.array([1.0, np.inf]), 0.5) is None
    assert percentile(np.array([1.0, 3.0, np.inf]), 0.5) == 3
    assert percentile(np.array([np.nan, 4.0]), 0.5) == 4


def test_errors_in_words() -> None:
    assert error_summary({"reset": 1, "timeout": 3}) == "timeout 3, reset 1"

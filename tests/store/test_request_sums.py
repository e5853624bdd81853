"""The view ``request_sums`` says what its samples say, in whatever way they are counted."""

from __future__ import annotations

import duckdb
import pytest

from trifecta.conclude import queries
from trifecta.conclude.catalogue import PHASES
from trifecta.conclude.evidence_queries import ERRORS, TLS
from trifecta.conclude.reproduction import places
from trifecta.store import request_sums

_SAMPLES = """
CREATE TABLE samples AS
SELECT 't' || i % 4 AS trial, i % 11 = 0 AS warmup, CASE WHEN i % 7 = 0 THEN 'timeout' END AS error,
       CASE WHEN i % 5 < 3 THEN 'h2' ELSE 'h3' END AS protocol, 'TLSv1.3' AS tls_version, 'AES' AS cipher,
       i % 6 = 0 AS resumed, i % 12 = 0 AS zero_rtt,
       CASE WHEN i % 2 = 0 THEN started_ns - i % 3 END AS intended_ns, started_ns,
       CASE WHEN i % 3 > 0 THEN started_ns + 2 - 4 * (i % 3 - 1) END AS connect_start_ns,
       CASE WHEN i % 3 > 0 AND i % 5 < 3 THEN started_ns + 100 + i % 9 END AS tcp_connected_ns,
       CASE WHEN i % 3 > 0 AND i % 8 > 0 THEN started_ns + 200 + i % 13 END AS secured_ns,
       CASE WHEN i % 10 > 0 THEN started_ns + 150 + i % 90 END AS request_sent_ns,
       CASE WHEN i % 17 > 0 THEN started_ns + 400 + i % 101 END AS first_byte_ns,
       started_ns + 700 + i % 203 AS done_ns
FROM (SELECT i, i * 1000 AS started_ns FROM range(1, 2001) AS r(i))
"""
# Each request by itself: how long its phases took.
_PHASES = """
SELECT avg(started_ns - intended_ns) AS late_start_ns,
       avg(request_sent_ns - coalesce(until_ns, started_ns)) AS send_ns,
       avg(first_byte_ns - request_sent_ns) AS wait_ns,
       avg(done_ns - first_byte_ns) AS transfer_ns, avg(done_ns - coalesce(intended_ns, started_ns)) AS total_ns,
       sum(until_ns - tcp_connected_ns) / count(*) AS tls_ns,
       sum(until_ns - connect_start_ns) FILTER (WHERE tcp_connected_ns IS NULL) / count(*) AS quic_handshake_ns,
       sum(tcp_connected_ns - connect_start_ns) FILTER (WHERE opens) / count(*) AS tcp_connect_ns
FROM (SELECT *, connect_start_ns >= started_ns AS opens, opens AND secured_ns IS NOT NULL AS opened,
             CASE WHEN opened THEN least(secured_ns, request_sent_ns) END AS until_ns FROM samples)
WHERE NOT warmup AND error IS NULL
"""


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute(_SAMPLES)
        opened.execute(
            "CREATE TABLE trials AS SELECT DISTINCT trial, 'c' AS cell, 'h2' AS arm, 'h2' AS level, true AS valid, "
            "false AS is_aa, 'h2' AS protocol, 'origin' AS server FROM samples"
        )
        opened.execute(f"CREATE VIEW request_sums AS {request_sums.SQL}")
        yield opened


def test_phases_are_the_means_of_single_requests(connection: duckdb.DuckDBPyConnection) -> None:
    (row,) = queries.ask(connection, PHASES).rows
    columns = [*(one for one in row if one.endswith("_ns"))]
    alone = connection.execute(f"SELECT {', '.join(columns)} FROM ({_PHASES})").fetchone()
    assert alone is not None
    assert [row[name] for name in columns] == pytest.approx(list(alone), rel=1e-12)
    assert row["requests"] == _count(connection, "NOT warmup AND error IS NULL")


def test_counts_are_those_of_single_requests(connection: duckdb.DuckDBPyConnection) -> None:
    (tls,) = queries.ask(connection, TLS).rows
    assert (tls["samples"], tls["negotiated"]) == (2000, "h2, h3")
    assert tls["resumed"] == _count(connection, "resumed")
    assert tls["zero_rtt"] == _count(connection, "zero_rtt")
    (errors,) = queries.ask(connection, ERRORS).rows
    assert (errors["error"], errors["requests"]) == ("timeout", _count(connection, "error IS NOT NULL"))


def test_held_rows_are_those_of_the_view(connection: duckdb.DuckDBPyConnection) -> None:
    before = connection.execute("SELECT * FROM request_sums ORDER BY ALL").fetchall()
    queries.hold(connection, "request_sums")
    connection.execute("DROP TABLE samples")
    assert connection.execute("SELECT * FROM request_sums ORDER BY ALL").fetchall() == before


def test_requests_sent_together_are_told_apart_by_their_stream() -> None:
    """A batch leaves in one moment: which of it came first must not depend on the order of rows."""
    found = set()
    for order in ("stream", "stream DESC", "hash(stream)"):
        with duckdb.connect() as opened:
            opened.execute(
                "CREATE TABLE samples AS SELECT 't' AS trial, 0 AS worker, 0 AS connection, 4 * i AS stream, "
                "1 + i AS request, false AS warmup, 0 AS started_ns, 0 AS connect_start_ns, NULL::BIGINT AS "
                "tcp_connected_ns, 5 AS request_sent_ns, 9 AS first_byte_ns, 100 * (40 - i) AS done_ns, "
                f"100.0 * (40 - i) AS latency_censored_ns FROM range(40) AS r(i) ORDER BY {order}"
            )
            opened.execute("CREATE TABLE trials AS SELECT 't' AS trial, 'c' AS cell")
            found.add(queries.ask(opened, places.SAMPLES).rows[0]["later_to_first"])
    assert list(found) == [pytest.approx((100 * 20 - 9) / 3991)]


def _count(connection: duckdb.DuckDBPyConnection, where: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM samples WHERE {where}").fetchone()
    assert row is not None
    return int(row[0])

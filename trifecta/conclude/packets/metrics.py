"""What captured trials say in numbers: a row of the view ``packet_metrics`` a cell, arm and metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import duckdb

from trifecta.analysis.transport.trial import Capture, look_at
from trifecta.conclude.queries import select
from trifecta.conclude.visits.metrics import VisitMetric
from trifecta.contract.trial import TrialValues
from trifecta.design.metrics import PACKETS
from trifecta.store.trace_schema import SCHEMAS

if TYPE_CHECKING:
    import pyarrow as pa

METRICS = tuple(VisitMetric(one) for one in PACKETS)
"""At the client's side of the link (side ``a``), but for what was lost, which is counted where it was sent."""

# Captured trials that say something: every check but that on captures itself passed. What a former trial left over, a
# late FIN of a connection that does not begin here, is not counted. A trial whose capture lacks packets is left out.
CAPTURED = """
kept AS (
  SELECT t.cell, t.arm, t.block, t.trial, t.is_aa
  FROM trials AS t
  WHERE t.trial NOT IN (SELECT c.scope FROM checks AS c WHERE c.status = 'fail' AND c.check <> 'capture')
    AND t.error IS NULL{and_cell}),
one AS (
  SELECT k.cell, k.arm, k.block, k.trial, k.is_aa, c.*
  FROM kept AS k JOIN connections AS c ON k.trial = split_part(split_part(c.capture, '.', 1), '-', 1)
  WHERE NOT contains(coalesce(c.truncated, ''), 'start')
    AND k.trial NOT IN (SELECT split_part(split_part(l.capture, '.', 1), '-', 1) FROM connections AS l
                        WHERE contains(coalesce(l.truncated, ''), 'packets')))"""

VALUES = """
WITH {captured},
answer AS (
  SELECT m.connection, min(m.request_start_ns) AS asked_ns, min(m.response_start_ns) AS answered_ns,
         sum(m.response_body_bytes) + sum(m.request_body_bytes) AS content_bytes
  FROM messages AS m GROUP BY m.connection),
wire AS (
  SELECT p.connection, count(*) FILTER (WHERE near AND p.direction = 'up') AS packets_up,
         count(*) FILTER (WHERE near AND p.time_ns <= a.answered_ns) AS setup_packets,
         sum(p.wire_bytes) FILTER (WHERE near AND p.time_ns <= a.answered_ns) AS setup_bytes,
         count(*) FILTER (WHERE p.fate IN ('lost', 'queue_dropped', 'corrupted') AND sending) AS lost,
         count(*) FILTER (WHERE p.retransmission AND sending) AS again
  FROM (SELECT *, coalesce(side, 'a') = 'a' AS near,
               side IS NULL OR (side = 'a') = (direction = 'up') AS sending FROM packets) AS p
  LEFT JOIN answer AS a USING (connection)
  GROUP BY p.connection)
SELECT o.cell, o.arm, o.block, o.trial,
       max(o.end_ns) - min(o.start_ns) AS duration_ns, median(a.asked_ns - o.start_ns) AS setup_ns,
       median(a.answered_ns - o.start_ns) AS first_response_ns,
       median(w.setup_packets) FILTER (WHERE a.answered_ns IS NOT NULL) AS setup_packets,
       median(w.setup_bytes) FILTER (WHERE a.answered_ns IS NOT NULL) AS setup_bytes, count(*) AS connections,
       sum(o.packets) AS packets, sum(w.packets_up) AS packets_up, sum(o.wire_bytes) AS wire_bytes,
       sum(a.content_bytes) AS content_bytes, max(o.largest_wire_bytes) AS largest_bytes, sum(w.lost) AS lost,
       sum(w.again) AS again
FROM one AS o LEFT JOIN answer AS a USING (connection) LEFT JOIN wire AS w USING (connection)
GROUP BY o.cell, o.arm, o.block, o.trial
ORDER BY o.block, o.trial
""".replace("{captured}", CAPTURED.strip())


# The capture of each trial that is looked at packet by packet: of several wires the one with the most packets.
CAPTURES = """
WITH {captured}
SELECT o.cell, o.arm, o.block, o.trial, arg_max(o.capture, o.packets ORDER BY o.capture) AS capture
FROM one AS o GROUP BY o.cell, o.arm, o.block, o.trial ORDER BY o.cell, o.block, o.trial
""".replace("{captured}", CAPTURED.strip())


@dataclass(frozen=True)
class CapturedTrial:
    """A captured trial that says something: which it is, the tables of its capture, and what they say."""

    cell: str
    arm: str
    block: int
    trial: str
    tables: Mapping[str, pa.Table]
    summary: Capture


def captured_trials(connection: duckdb.DuckDBPyConnection) -> Iterator[CapturedTrial]:
    """The captured trials, one after the other: the tables of all of them do not fit into memory."""
    for cell, arm, block, trial, capture in connection.execute(CAPTURES.replace("{and_cell}", "")).fetchall():
        tables = read(connection, capture)
        yield CapturedTrial(cell, arm, block, trial, tables, look_at(tables))


def read(connection: duckdb.DuckDBPyConnection, capture: str) -> Mapping[str, pa.Table]:
    """The tables of one capture."""
    tables = {}
    for name, schema in SCHEMAS.items():
        answer = connection.sql(f"SELECT * FROM {name} WHERE capture = ?", params=[capture])  # noqa: S608 - constants
        tables[name] = answer.to_arrow_table().select(schema.names).cast(schema.arrow())
    return tables


def trial_values(connection: duckdb.DuckDBPyConnection) -> list[TrialValues]:
    """A row a captured trial: its cell, arm and block, and its value of every metric."""
    rows = sql_metrics(connection)
    by_trial = {row["trial"]: row for row in rows}
    for one in captured_trials(connection):
        add(by_trial[one.trial], one.summary)
    return rows


def add(row: TrialValues, summary: Capture) -> None:
    """Add to a trial what its packets say."""
    cast(dict[str, float | None], row).update(summary.values)


def sql_metrics(connection: duckdb.DuckDBPyConnection) -> list[TrialValues]:
    """The same, but only what SQL can count."""
    rows = select(connection, TrialValues, VALUES.replace("{and_cell}", ""))
    return [cast(TrialValues, {name: _as_float(value) for name, value in row.items()}) for row in rows]


def _as_float(value: Any) -> Any:
    """Sums of integers come as Decimal or int; the analysis takes floats."""
    return value if value is None or isinstance(value, str | bool | int | float) else float(value)

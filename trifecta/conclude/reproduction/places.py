"""A run as the evaluation of published statements needs it: its cells, each with a row of metrics a valid trial."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from statistics import median
from typing import Any, cast

import duckdb
import numpy as np

from trifecta.analysis.cycles import one_way_times
from trifecta.analysis.estimate import log_value
from trifecta.analysis.published import Place
from trifecta.analysis.switched import tolerated
from trifecta.conclude import queries
from trifecta.conclude.catalogue import VERDICTS
from trifecta.conclude.comparisons import VerdictRow, from_rows
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.facts import read as read_facts
from trifecta.conclude.packets import metrics as of_packets
from trifecta.conclude.query import Query
from trifecta.conclude.services import measured as of_services
from trifecta.conclude.visits import metrics as of_visits
from trifecta.conclude.visits import published
from trifecta.contract.trial import TrialRow, TrialValues
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Study
from trifecta.design.percentiles import held_sql
from trifecta.design.services import LETTERS

Row = dict[str, Any]

# Of single requests; a failed one is longer than every other.
SAMPLES = Query(
    "published_samples",
    """
WITH measured AS (
  SELECT t.cell, s.*, row_number() OVER (PARTITION BY s.trial ORDER BY s.done_ns) AS place,
         count(*) OVER (PARTITION BY s.trial) AS requests,
         s.done_ns - min(s.request_sent_ns) OVER (PARTITION BY s.trial) AS since_ns,
         row_number() OVER (PARTITION BY s.trial, s.worker, s.connection
                            ORDER BY s.request_sent_ns, s.stream, s.started_ns, s.request) AS of_connection
  FROM samples AS s JOIN trials AS t USING (trial)
  WHERE NOT s.warmup{and_cell}),
trial AS (
  SELECT cell, trial, min(latency_censored_ns) AS latency_min_ns, max(latency_censored_ns) AS latency_max_ns,
         {spread} AS latency_spread_ns,
         max(done_ns) - min(started_ns) AS duration_ns, median(first_byte_ns - connect_start_ns) AS first_response_ns,
         median(tcp_connected_ns - connect_start_ns) AS tcp_ns,
         -- not from when a request was sent, which curl does not tell over HTTP/3
         median(done_ns - first_byte_ns) FILTER (WHERE of_connection > 1)
           / nullif(median(done_ns - first_byte_ns) FILTER (WHERE of_connection = 1), 0) AS later_to_first,
         avg(place * 1e9 / since_ns) FILTER (WHERE since_ns > 0) AS progression_mean,
         max(place / since_ns) FILTER (WHERE place >= greatest(10, 0.01 * requests))
           / nullif(min(place / since_ns) FILTER (WHERE place >= greatest(10, 0.01 * requests)), 0)
           AS progression_range,
         arg_max(place / since_ns, place)
           / nullif(arg_max(place / since_ns, place) FILTER (WHERE place <= ceil(0.15 * requests)), 0)
           AS progression_after_15_percent
  FROM measured GROUP BY cell, trial)
SELECT * FROM trial ORDER BY cell, trial
""".replace(
        "{spread}",
        held_sql("quantile_disc(latency_censored_ns, 0.9) - quantile_disc(latency_censored_ns, 0.1)", 0.9, "count(*)"),
    ),
    ("trial",),
)

# The link counts every packet, so octets on the wire are known without a capture. One wire: where there are several
# the octets of a service are counted on each that they cross.
WIRE = Query(
    "published_wire",
    """
SELECT l.cell, l.trial, sum(l.wire_bytes) AS wire_bytes, sum(l.wire_packets) AS packets
FROM link AS l JOIN trials AS t USING (trial)
WHERE l.wire IS NULL{and_cell}
GROUP BY l.cell, l.trial ORDER BY l.cell, l.trial
""",
    ("trial",),
)

# CPU time of a process as a share of one core's, between its first reading and its last.
CPU = Query(
    "published_cpu",
    """
SELECT t.cell, r.trial, r.process, (max(r.cpu_ns) - min(r.cpu_ns)) / nullif(max(r.time_ns) - min(r.time_ns), 0) AS share
FROM resources AS r JOIN trials AS t USING (trial)
WHERE r.cpu_ns IS NOT NULL{and_cell}
GROUP BY t.cell, r.trial, r.process ORDER BY t.cell, r.trial, r.process
""",
    ("trial", "process"),
)

STRUCK = Query(
    "published_checks",
    """
SELECT t.cell, c."check" AS name, count(DISTINCT t.trial) AS trials
FROM checks AS c JOIN trials AS t ON c.scope = t.trial
WHERE c.status IN ('fail', 'warn') AND c."check" <> 'capture'{and_cell}
GROUP BY t.cell, c."check" ORDER BY t.cell, trials DESC, name
""",
    ("cell", "name"),
)


# Wall time of the trials of a block, without what lies between them.
SPANS = Query(
    "published_spans",
    """
SELECT cell, block, count(DISTINCT arm) AS arms, sum(ended_ns - started_ns) AS busy_ns
FROM trials AS t WHERE true{and_cell}
GROUP BY cell, block ORDER BY cell, block
""",
    ("cell", "block"),
)


def read(run: Path, name: str = "", tolerate: Set[str] = frozenset()) -> list[Place]:
    """The cells of a run that has trials; ``name`` is what it is called in the table.

    Trials that fail checks of ``tolerate`` alone count here.
    """
    about = read_facts(run)
    with queries.connect(run) as connection:
        return places(connection, about, name or run.name, tolerate)


def places(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, name: str, tolerate: Set[str] = frozenset()
) -> list[Place]:
    """The same from an open run."""
    study = published.study_of(about)
    rows, counts = _rows(connection, about, study, tolerate)
    struck: dict[str, Counter[str]] = {}
    for row in queries.ask(connection, STRUCK):
        struck.setdefault(row["cell"], Counter())[row["name"]] += row["trials"]
    spans = _spans(connection, about, study)
    comparisons = from_rows(queries.ask(connection, VERDICTS).of(VerdictRow), about.metric)
    measured_places = []
    for cell in plan.cells(study):
        if cell.key not in counts:
            continue
        measured_places.append(
            Place(
                run=name,
                cell=cell.key,
                levels=published.levels_of(study, cell),
                rows=rows.get(cell.key, []),
                baseline=about.baseline,
                margin=about.margin,
                confidence=about.confidence,
                trials=counts[cell.key],
                checks=dict(struck.get(cell.key, {})),
                # A verdict of the run leaves out what is tolerated here.
                verdicts={} if tolerate else published.verdicts_of(about, study, comparisons, cell.key),
                done=spans.get(cell.key, (0, 0))[0],
                block_ns=spans.get(cell.key, (0, 0))[1],
            )
        )
    return measured_places


def _spans(connection: duckdb.DuckDBPyConnection, about: RunFacts, study: Study) -> dict[str, tuple[int, int]]:
    """By cell how many blocks are whole, from the first on, and the wall time of one, with what lies between trials."""
    arms = len(plan.arms(study))
    blocks: dict[str, dict[int, tuple[int, int]]] = {}
    for row in queries.ask(connection, SPANS):
        blocks.setdefault(row["cell"], {})[int(row["block"])] = int(row["arms"]), int(row["busy_ns"] or 0)
    busy = sum(ns for of_cell in blocks.values() for _, ns in of_cell.values())
    overhead = max(1.0, int(about.rest.get("elapsed_ns") or 0) / busy) if busy else 1.0
    spans = {}
    for cell, of_cell in blocks.items():
        done = next((n for n in range(len(of_cell) + 1) if of_cell.get(n, (0, 0))[0] < arms), 0)
        spans[cell] = done, round(median(ns for _, ns in of_cell.values()) * overhead)
    return spans


def _rows(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, study: Study, tolerate: Set[str]
) -> tuple[dict[str, list[TrialValues]], dict[str, int]]:
    """The rows of the trials that count, and how many trials there are, by cell."""
    names = ", ".join(METRICS)
    sql = f"SELECT trial, cell, arm, block, valid, error, checks_json, samples, errors, {names} FROM trials ORDER BY block, trial"  # noqa: S608, E501 - known columns
    trials = tolerated(queries.select(connection, TrialRow, sql), tolerate)
    counts = Counter(row["cell"] for row in trials)
    captured = _captured(connection, about)
    more = _further_metrics(connection, about, study, trials)
    trial_values: dict[str, list[TrialValues]] = {}
    for row in trials:
        counted = row["trial"] in captured if study.capture and not row["valid"] else row["valid"]
        if not counted:
            continue
        values = {name: _value(row, name) for name in METRICS}
        values_of_trial: Row = {"trial": row["trial"], "arm": row["arm"], "block": row["block"]}
        values_of_trial |= values | more.get(row["trial"], {}) | captured.get(row["trial"], {})
        values_of_trial.setdefault("requests", row["samples"])
        values_of_trial.setdefault("succeeded", (row["samples"] or 0) - (row["errors"] or 0))
        trial_values.setdefault(row["cell"], []).append(cast(TrialValues, values_of_trial))
    return trial_values, dict(counts)


def _value(row: TrialRow, name: str) -> float | None:
    """A trial's value; infinite where it lies among failures."""
    if name == "success_rate":
        return _number(row["success_rate"])
    log = log_value(row, METRICS[name])
    return None if math.isnan(log) else math.exp(log) if log < 700 else math.inf


def _further_metrics(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, study: Study, trials: Sequence[TrialRow]
) -> dict[str, Row]:
    """Metrics that are not columns of ``trials``, by trial."""
    rows: dict[str, Row] = {row["trial"]: {} for row in trials}
    if about.is_browser:
        metrics = of_visits.metrics_of(about)
        visit_rows: Sequence[Mapping[str, object]] = of_visits.trial_values(connection, metrics)
    else:
        visit_rows = [row for query in (SAMPLES, WIRE) for row in queries.ask(connection, query)]
    for row in visit_rows:
        rows[str(row["trial"])] |= {name: _number(value) for name, value in row.items() if name not in _HEAD}
    if not about.is_browser:
        for trial, mode in _modes(connection).items():
            rows[trial]["latency_mode_ns"] = mode
    if of_services.is_services(about):
        for trial, values in _of_services(connection, about, study).items():
            rows[trial] |= values
    return rows


def _of_services(connection: duckdb.DuckDBPyConnection, about: RunFacts, study: Study) -> dict[str, Row]:
    """What services cost, all together and each (``cpu_share[B]``), and the ways between two (``elapsed_ns[AB]``)."""
    clients = {
        cell.key: int(published.levels_of(study, cell)["clients"]) if about.workload.get("kind") == "fan-in" else 1
        for cell in plan.cells(study)
    }
    shares = {(row["trial"], row["process"]): row["share"] for row in queries.ask(connection, CPU)}
    rows_by_trial: dict[str, Row] = {}
    measured = of_services.read(connection, about)
    for row in (row for rows in measured.trials.values() for row in rows):
        shares_of_services = {service: shares.get((row["trial"], service)) for service in row["services"]}
        here: Row = {name: row.get(name) for name in SERVICES}
        here[CPU_SHARE] = (
            None
            if None in shares_of_services.values()
            else sum(share for share in shares_of_services.values() if share is not None)
        )
        # All clients of a fan-in are read as one here; the study's CPU is that of one of them.
        alike = {LETTERS[0]: clients[row["cell"]]}
        here |= {
            f"{CPU_SHARE}[{name}]": share and share / alike.get(name, 1) for name, share in shares_of_services.items()
        }
        rows_by_trial[row["trial"]] = here
    for hops in measured.hops.values():
        for trial, times in one_way_times(hops).items():
            rows_by_trial[trial] |= {f"{ELAPSED}[{name}]": time for name, time in times.items()}
    return rows_by_trial


_HEAD = frozenset({"cell", "trial", "arm", "block"})
SERVICES = ("cpu_ns_per_request", "rss_bytes", "requests", "succeeded")
CPU_SHARE = "cpu_share"
"""CPU time of all services over the time of a trial, in cores; ``cpu_share[B]`` of one, in a fan-in of one client."""
ELAPSED = "elapsed_ns"
"""``elapsed_ns[AB]``: the median way from A to B, its handshake in it; of an answer ``elapsed_ns[BA]``."""


def _captured(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> dict[str, Row]:
    """What captured trials say of packets, by trial; nothing where no capture was dissected."""
    there = connection.execute("SELECT count(*) FROM connections").fetchone()
    if about.is_browser or not there or not there[0]:
        return {}
    capture_rows = of_packets.trial_values(connection)
    return {
        row["trial"]: {name: _number(value) for name, value in row.items() if name not in _HEAD} for row in capture_rows
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _modes(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    latencies = connection.execute(
        "SELECT trial, list(latency_ns) FROM samples WHERE NOT warmup AND success GROUP BY trial ORDER BY trial"
    ).fetchall()
    return {trial: half_sample_mode(np.asarray(values, dtype=np.float64)) for trial, values in latencies if values}


def half_sample_mode(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The half-sample mode (Robertson & Cryer 1974): the densest half of the densest half, and so on."""
    ordered = np.sort(values)
    while len(ordered) > 3:
        half = (len(ordered) + 1) // 2
        widths = ordered[half - 1 :] - ordered[: len(ordered) - half + 1]
        first = int(np.argmin(widths))
        ordered = ordered[first : first + half]
    if len(ordered) == 3:
        left, right = ordered[1] - ordered[0], ordered[2] - ordered[1]
        ordered = ordered[:2] if left < right else ordered[1:] if right < left else ordered[1:2]
    return float(ordered.mean())

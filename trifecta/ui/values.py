"""The trials of a run by any metric and any factor, and the samples of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np

from trifecta.conclude import facts, queries
from trifecta.conclude.facts import RunFacts
from trifecta.contract.values import JsonObject
from trifecta.design import numbers
from trifecta.design.errors import UserError
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX
from trifecta.report import verdict_words
from trifecta.report.figures import style
from trifecta.store import damage, views
from trifecta.ui import tables, trial_files

MOST_POINTS = 20_000
"""A picture of more samples than this has the least, the median and the largest of each of `BUCKETS` spans of time."""
BUCKETS = 2_000
SLOWEST = 50
_ROWS = ("block", "position")
_PHASES = {
    "connect_ns": "TCP connect",
    "tls_ns": "TLS or QUIC handshake",
    "wait_ns": "wait",
    "transfer_ns": "transfer",
}


def against(folder: Path, metric: str, factor: str) -> JsonObject:
    """Every trial's value of a metric, by the levels of a factor; trials that do not count are marked."""
    about = facts.read(folder)
    with damage.naming_damaged_file(folder), about.naming(), views.connect(folder) as connection:
        if metric not in METRICS:
            raise UserError(f"metric {metric!r} is not known; known are {', '.join(METRICS)}")
        of = METRICS[metric]
        if factor not in (*about.factors, about.compare, *_ROWS):
            known = ", ".join([*about.factors, about.compare, *_ROWS])
            raise UserError(f"factor {factor!r} is not of this run; known are {known}")
        rows = _trials(connection, of)
        points = [_point(about, of, factor, row) for row in rows if row["value"] is not None]
        levels = _in_order(about, factor, points)
        return {
            "metric": of.name,
            "label": about.metric_label if of.name == about.metric else of.label,
            "unit": of.unit,
            "factor": factor,
            "levels": levels,
            "numeric": factor in _ROWS,
            "points": points,
            "without": len(rows) - len(points),
            "arms": [tables.arm(arm) for arm in (*about.arms, f"{about.baseline}{AA_SUFFIX}")],
            "table": _table(about, of, factor, levels, points),
        }


def _trials(connection: duckdb.DuckDBPyConnection, of: Metric) -> list[queries.Row]:
    columns = "trial, cell, arm, block, position, valid, factors_json"
    sql = f"SELECT {columns}, {of.name} AS value FROM trials ORDER BY trial"  # noqa: S608 - of METRICS
    return queries.select(connection, queries.Row, sql)


def _point(about: RunFacts, of: Metric, factor: str, row: dict[str, Any]) -> dict[str, Any]:
    levels = json.loads(row["factors_json"] or "{}")
    level = str(row[factor] + 1 if factor in _ROWS else levels.get(factor, ""))  # counted as a person does
    value = numbers.in_unit(row["value"], of.unit)
    place = verdict_words.place_words(row["cell"], without="")
    counts = "" if row["valid"] else "; it does not count"
    return {
        "trial": row["trial"],
        "level": level,
        "value": tables.json_value(float(row["value"])),
        "valid": row["valid"],
        "said": f"{row['trial']}, block {row['block'] + 1}, {style.name(row['arm'])}, {place}: {value}{counts}",
        **tables.arm(row["arm"]),
    }


def _in_order(about: RunFacts, factor: str, points: Sequence[dict[str, Any]]) -> list[str]:
    there = list(dict.fromkeys(str(one["level"]) for one in points))
    if factor in _ROWS:
        return sorted(there, key=int)
    study = [str(level) for level in (about.study.get("factors") or {}).get(factor, [])]
    return sorted(there, key=lambda level: study.index(level) if level in study else len(study))


def _table(
    about: RunFacts, of: Metric, factor: str, levels: Sequence[str], points: Sequence[dict[str, Any]]
) -> JsonObject:
    """The picture in numbers: of each level and arm the median, least and largest of the trials that count."""
    by_group: dict[tuple[str, str], list[float]] = {}
    for one in points:
        if one["valid"] and one["value"] is not None:
            by_group.setdefault((one["level"], one["name"]), []).append(one["value"])
    arms = [style.name(arm) for arm in (*about.arms, f"{about.baseline}{AA_SUFFIX}")]
    rows = [
        [level, arm, numbers.count(len(values)), *(numbers.in_unit(float(statistic), of.unit) for statistic in
         (np.median(values), min(values), max(values)))]
        for level in levels
        for arm in arms
        if (values := by_group.get((level, arm)))
    ]  # fmt: skip
    columns = [factor.replace("_", " "), about.compare.replace("_", " "), "trials", "median", "least", "largest"]
    return tables.table(f"{of.label}, trials that count", columns, rows, numeric=[2, 3, 4, 5])


def trial(folder: Path, name: str) -> JsonObject:
    """A trial: its checks, its samples in the order of time, and what else the run kept of it."""
    about = facts.read(folder)
    with damage.naming_damaged_file(folder), about.naming(), views.connect(folder) as connection:
        row = connection.execute(
            "SELECT cell, arm, block, position, valid, samples, errors, wall_started_utc, error FROM trials "
            "WHERE trial = ?",
            [name],
        ).fetchone()
        if row is None:
            raise UserError(f"{folder} has no trial {name!r}")
        cell, arm, block, position, valid, samples, errors, began, error = row
        checks = connection.execute(
            "SELECT c.check, c.status, c.evidence, coalesce(c.remedy, '') FROM checks AS c WHERE c.scope = ? ORDER BY "
            "list_position(['fail', 'warn', 'unknown', 'pass'], c.status), c.check",
            [name],
        ).fetchall()
        return {
            "trial": name,
            "arm": tables.arm(arm),
            "place": verdict_words.place_words(cell, without=""),
            "valid": valid,
            "facts": [
                ["block", str(block + 1)],
                ["place in the block", str(position + 1)],
                ["begun", str(began or "")],
                ["samples", numbers.count(samples)],
                ["failed", numbers.count(errors)],
                *([["no samples", str(error)]] if error else []),
            ],
            "checks": tables.table("Checks", ["check", "status", "evidence", "remedy"], [list(one) for one in checks]),
            "samples": _samples(connection, about, name),
            "kept": trial_files.listing(folder, name),
            "trace": trial_files.trace(connection, name),
        }


def _samples(connection: duckdb.DuckDBPyConnection, about: RunFacts, name: str) -> JsonObject:
    sql = """
SELECT request, origin_ns, latency_ns, warmup, status, coalesce(error, '') AS error, connection, bytes_in,
       connect_ns, tls_ns, wait_ns, transfer_ns
FROM samples WHERE trial = ? ORDER BY origin_ns, request"""
    columns = connection.execute(sql, [name]).fetchnumpy()
    total = len(columns["request"])
    if not total:
        return {"points": None, "total": 0, "tables": [], "word": about.latency_word, "said": "", "bucketed": False}
    start = int(columns["origin_ns"][0])
    at_ms = (columns["origin_ns"].astype(np.int64) - start) / 1e6
    latency = np.ma.filled(np.ma.asarray(columns["latency_ns"]).astype(float), np.nan) / 1e6
    bucketed = total > MOST_POINTS
    points = _buckets(at_ms, latency) if bucketed else _every(columns, at_ms, latency)
    sentence = f"{numbers.count(total)} samples"
    if bucketed:
        sentence += f": the least, the median and the largest of each of {numbers.count(BUCKETS)} spans of time"
    failed = int(np.count_nonzero(np.isnan(latency)))
    order = np.argsort(np.where(np.isnan(latency), np.inf, latency), kind="stable")[::-1][:SLOWEST]
    return {
        "points": cast(JsonObject, points),
        "bucketed": bucketed,
        "total": total,
        "word": about.latency_word,
        "said": sentence + (f"; {numbers.count(failed)} failed" if failed else ""),
        "tables": [_slowest(about, columns, at_ms, latency, order)],
    }


def _every(columns: Any, at_ms: Any, latency: Any) -> dict[str, Any]:
    return {
        "at_ms": [round(float(one), 4) for one in at_ms],
        "ms": [None if np.isnan(one) else round(float(one), 5) for one in latency],
        "warmup": [bool(one) for one in columns["warmup"]],
        "request": [int(one) for one in columns["request"]],
        "error": [str(one) for one in columns["error"]],
    }


def _buckets(at_ms: Any, latency: Any) -> dict[str, Any]:
    """Spans of the same number of samples; a span in which all failed has no value."""
    edges = np.linspace(0, len(at_ms), BUCKETS + 1).astype(int)
    spans = [latency[first:last] for first, last in pairwise(edges)]
    good = [span[~np.isnan(span)] for span in spans]
    return {
        "at_ms": [round(float(at_ms[first]), 4) for first in edges[:-1]],
        "ms": [round(float(np.median(one)), 5) if len(one) else None for one in good],
        "least": [round(float(one.min()), 5) if len(one) else None for one in good],
        "largest": [round(float(one.max()), 5) if len(one) else None for one in good],
    }


def _slowest(about: RunFacts, samples: Any, at_ms: Any, latency: Any, order: Any) -> JsonObject:
    def ns(column: str, number: int) -> str:
        value = np.ma.asarray(samples[column])[number]
        return numbers.NO_VALUE if value is np.ma.masked or np.isnan(value) else numbers.duration(float(value))

    shown = [name for name in _PHASES if np.ma.asarray(samples[name]).count()]
    rows = [
        [
            str(int(samples["request"][number])),
            numbers.duration(float(at_ms[number]) * 1e6),
            "∞" if np.isnan(latency[number]) else numbers.duration(float(latency[number]) * 1e6),
            *(ns(column, number) for column in shown),
            str(samples["error"][number]) or _status(samples["status"][number]),
            "yes" if samples["warmup"][number] else "",
        ]
        for number in order
    ]
    columns = ["request", "begun after", about.latency_word, *(_PHASES[name] for name in shown), "status", "warm-up"]
    caption = f"The {len(rows)} slowest {about.sample_word}s of {numbers.count(len(at_ms))}, failed ones first"
    return tables.table(caption, columns, rows, numeric=list(range(1, 3 + len(shown))))


def _status(value: Any) -> str:
    return "" if value is np.ma.masked or value is None else str(int(value))

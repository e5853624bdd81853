"""What pages and videos took, protocol by protocol: a row of the view ``visit_metrics`` a cell, arm and metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from trifecta.analysis.visits import summarise
from trifecta.report.facts import RunFacts

Row = dict[str, Any]


@dataclass(frozen=True)
class VisitMetric:
    """A column of ``visits`` (or a value of its segments), in ``unit``.

    A time of a visit that failed is longer than every other. What can be zero is compared by differences of means.
    """

    name: str
    label: str
    unit: str  # ns, B, bit/s, count
    sql: str = ""
    source: str = "v"
    zero: bool = False
    ratio: str = ""  # its name in the figure of ratios; empty: it is not there
    cost: bool = False  # a visit that failed has it, too
    filmed: bool = False  # of visits that were filmed, which are not measured ones: a camera slows a page down

    @property
    def value(self) -> str:
        """The SQL of a trial's value: the median over its measured visits, of what can be zero the mean."""
        what = self.sql or f"{self.source}.{self.name}"
        if self.filmed:
            good = f"median({what}) FILTER (WHERE v.error IS NULL"
            return f"coalesce({good} AND NOT v.warmup), {good}))"
        if self.zero:
            return f"avg({what}) FILTER (WHERE v.error IS NULL AND NOT v.warmup)"
        if self.unit == "ns" and self.source == "v" and not self.cost:
            censored = f"CASE WHEN v.error IS NULL THEN {what} ELSE 'infinity'::DOUBLE END"
            return f"median({censored}) FILTER (WHERE NOT v.warmup)"
        return f"median({what}) FILTER (WHERE v.error IS NULL AND NOT v.warmup)"


PAGE = (
    VisitMetric("ttfb_ns", "time to first byte (TTFB)", "ns", ratio="TTFB"),
    VisitMetric("dns_ns", "DNS", "ns"),
    VisitMetric("connect_ns", "connect, with TLS", "ns"),
    VisitMetric("tls_ns", "of it TLS; of QUIC all", "ns"),
    VisitMetric("request_ns", "request and wait", "ns"),
    VisitMetric("response_ns", "response of the document", "ns"),
    VisitMetric("fcp_ns", "first contentful paint (FCP)", "ns", ratio="FCP"),
    VisitMetric("dom_content_loaded_ns", "DOMContentLoaded", "ns", ratio="DOMContentLoaded"),
    VisitMetric("lcp_ns", "largest contentful paint (LCP)", "ns", ratio="LCP"),
    VisitMetric("speed_index_ns", "Speed Index, of filmed visits", "ns", ratio="Speed Index", filmed=True),
    VisitMetric("visually_complete_ns", "visually complete, of filmed visits", "ns", filmed=True),
    VisitMetric("load_ns", "load", "ns", ratio="load"),
    VisitMetric("wire_bytes", "page weight, as sent", "B", ratio="page weight"),
    VisitMetric("requests", "requests", "count"),
    VisitMetric("connections", "connections", "count"),
    VisitMetric("tcp_connections", "of them TCP", "count", zero=True),
    VisitMetric("resumed_connections", "of them resumed", "count", zero=True),
    VisitMetric("browser_cpu_ns", "CPU of the browser", "ns", ratio="CPU of the browser", cost=True),
)
VIDEO = (
    VisitMetric("startup_ns", "startup: play to first frame", "ns", ratio="startup"),
    VisitMetric("live_latency_ns", "live latency", "ns", ratio="live latency"),
    VisitMetric("rebuffers", "stalls", "count", zero=True),
    VisitMetric("rebuffer_ns", "time stalled", "ns", zero=True),
    VisitMetric("bitrate_bits_per_s", "bitrate shown", "bit/s", ratio="bitrate shown (more is better)"),
    VisitMetric("switches", "switches of rung", "count", zero=True),
    VisitMetric("segment_ns", "download of a segment", "ns", "s.segment_ns", "s", ratio="download of a segment"),
    VisitMetric("segment_ttfb_ns", "first octet of a segment", "ns", "s.segment_ttfb_ns", "s"),
    VisitMetric(
        "throughput_bits_per_s",
        "throughput of a segment",
        "bit/s",
        "s.throughput",
        "s",
        ratio="throughput (more is better)",
    ),
    VisitMetric("segments", "segments", "count"),
    VisitMetric("frames_shown", "frames shown", "count"),
    VisitMetric("frames_dropped", "frames dropped", "count", zero=True),
    VisitMetric("frames_dropped_floor", "of them the machine's own", "count", zero=True),
    VisitMetric("requests", "requests", "count"),
    VisitMetric("connections", "connections", "count"),
    VisitMetric("browser_cpu_ns", "CPU of the browser", "ns", ratio="CPU of the browser", cost=True),
)

_SEGMENTS = """
SELECT trial, visit, median(done_ns - started_ns) AS segment_ns, median(first_byte_ns - started_ns) AS segment_ttfb_ns,
       median(body_bytes * 8e9 / nullif(done_ns - started_ns, 0)) AS throughput
FROM fetches WHERE segment IS NOT NULL AND error IS NULL GROUP BY trial, visit
"""


def metrics_of(about: RunFacts) -> tuple[VisitMetric, ...]:
    """The metrics of the run's kind of visit."""
    return VIDEO if about.workload.get("kind") == "video" else PAGE


def trial_values(connection: duckdb.DuckDBPyConnection, metrics: Sequence[VisitMetric]) -> list[Row]:
    """A row a valid trial: its cell, arm and block, and its value of every metric."""
    columns = ", ".join(f"{one.value} AS {one.name}" for one in metrics)
    joined = f"LEFT JOIN ({_SEGMENTS}) AS s USING (trial, visit)"
    cursor = connection.execute(
        f"SELECT t.cell, t.arm, t.block, t.trial, {columns} FROM visits AS v JOIN trials AS t USING (trial) "  # noqa: S608 - constants
        f"{joined} WHERE t.valid GROUP BY t.cell, t.arm, t.block, t.trial ORDER BY t.block, t.trial"
    )
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def rows(about: RunFacts, trials: Sequence[Row], metrics: Sequence[VisitMetric]) -> list[Row]:
    """The rows of a view like ``visit_metrics``; metrics that no trial of a cell has are left out."""
    by_cell: dict[str, list[Row]] = {}
    for row in trials:
        by_cell.setdefault(row["cell"], []).append(row)
    made = []
    for cell, here in by_cell.items():
        for place, metric in enumerate(metrics):
            if any(row[metric.name] is not None and math.isfinite(row[metric.name]) for row in here):
                head = {"cell": cell, "metric": metric.name, "label": metric.label, "unit": metric.unit, "place": place}
                made += [head | {"arm": arm} | _row(about, metric, here, arm) for arm in about.protocols]
    return made


def _row(about: RunFacts, metric: VisitMetric, here: Sequence[Row], arm: str) -> Row:
    found = summarise(here, metric.name, arm, about.baseline, confidence=about.confidence, zero=metric.zero)
    row: Row = {"value": found.value.value, "low": found.value.low, "high": found.value.high}
    row |= {"blocks": found.value.blocks, "noise": None if metric.zero else found.noise}
    row |= dict.fromkeys(("ratio", "ratio_low", "ratio_high", "difference", "difference_low", "difference_high"))
    name, change = "difference" if metric.zero else "ratio", found.change
    return row | {name: change.value, f"{name}_low": change.low, f"{name}_high": change.high}

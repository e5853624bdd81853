"""What pages and videos took, protocol by protocol: a row of the view ``visit_metrics`` a cell, arm and metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import duckdb

from trifecta.analysis.visits import NOTHING, summarise
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import select
from trifecta.contract.trial import TrialValues, value_of
from trifecta.design import metrics
from trifecta.design.metric import Metric


class MetricOfArm(TypedDict):
    """A row of the view ``visit_metrics`` (or ``packet_metrics``): a metric of an arm in a cell, over its blocks."""

    cell: str
    metric: str
    label: str
    unit: str
    place: int
    arm: str
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    noise: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None


@dataclass(frozen=True)
class VisitMetric:
    """A metric of `trifecta.design.metrics` and where its values are: a column of ``visits``, or SQL over segments.

    A time of a visit that failed is longer than every other. What can be zero is compared by differences of means.
    """

    metric: Metric
    sql: str = ""
    source: str = "v"
    cost: bool = False  # a visit that failed has it, too
    filmed: bool = False  # of visits that were filmed, which are not measured ones: a camera slows a page down

    @property
    def name(self) -> str:
        """Its column."""
        return self.metric.name

    @property
    def label(self) -> str:
        """It in words."""
        return self.metric.label

    @property
    def unit(self) -> str:
        """ns, B, bit/s, count."""
        return self.metric.unit

    @property
    def zero(self) -> bool:
        """Whether it can be zero."""
        return self.metric.by_difference

    @property
    def ratio(self) -> str:
        """Its name in the figure of ratios, with the direction where more is better; empty: it is not there."""
        label = self.metric.short
        return f"{label} (more is better)" if label and self.metric.better == "more" else label

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


_HOW: dict[str, dict[str, Any]] = {
    "speed_index_ns": {"filmed": True},
    "visually_complete_ns": {"filmed": True},
    "browser_cpu_ns": {"cost": True},
    "segment_ns": {"sql": "s.segment_ns", "source": "s"},
    "segment_ttfb_ns": {"sql": "s.segment_ttfb_ns", "source": "s"},
    "throughput_bits_per_s": {"sql": "s.throughput", "source": "s"},
}
PAGE = tuple(VisitMetric(one, **_HOW.get(one.name, {})) for one in metrics.PAGE)
VIDEO = tuple(VisitMetric(one, **_HOW.get(one.name, {})) for one in metrics.VIDEO)

_SEGMENTS = """
SELECT trial, visit, median(done_ns - started_ns) AS segment_ns, median(first_byte_ns - started_ns) AS segment_ttfb_ns,
       median(body_bytes * 8e9 / nullif(done_ns - started_ns, 0)) AS throughput
FROM fetches WHERE segment IS NOT NULL AND error IS NULL GROUP BY trial, visit
"""


def metrics_of(about: RunFacts) -> tuple[VisitMetric, ...]:
    """The metrics of the run's kind of visit."""
    return VIDEO if about.workload.get("kind") == "video" else PAGE


def trial_values(connection: duckdb.DuckDBPyConnection, metrics: Sequence[VisitMetric]) -> list[TrialValues]:
    """A row a valid trial: its cell, arm and block, and its value of every metric."""
    columns = ", ".join(f"{one.value} AS {one.name}" for one in metrics)
    joined = f"LEFT JOIN ({_SEGMENTS}) AS s USING (trial, visit)"
    return select(
        connection,
        TrialValues,
        f"SELECT t.cell, t.arm, t.block, t.trial, {columns} FROM visits AS v JOIN trials AS t USING (trial) "  # noqa: S608 - constants
        f"{joined} WHERE t.valid GROUP BY t.cell, t.arm, t.block, t.trial ORDER BY t.block, t.trial",
    )


def rows(about: RunFacts, trials: Sequence[TrialValues], metrics: Sequence[VisitMetric]) -> list[MetricOfArm]:
    """The rows of a view like ``visit_metrics``; metrics that no trial of a cell has are left out."""
    by_cell: dict[str, list[TrialValues]] = {}
    for row in trials:
        by_cell.setdefault(row["cell"], []).append(row)
    arm_metrics: list[MetricOfArm] = []
    for cell, here in by_cell.items():
        for place, metric in enumerate(metrics):
            values = [value_of(row, metric.name) for row in here]
            if any(value is not None and math.isfinite(value) for value in values):
                arm_metrics += [_row(about, (cell, place), metric, here, arm) for arm in about.arms]
    return arm_metrics


def _row(
    about: RunFacts, at: tuple[str, int], metric: VisitMetric, here: Sequence[TrialValues], arm: str
) -> MetricOfArm:
    summary = summarise(here, metric.name, arm, about.baseline, confidence=about.confidence, zero=metric.zero)
    ratio, difference = (NOTHING, summary.change) if metric.zero else (summary.change, NOTHING)
    return {
        "cell": at[0],
        "metric": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "place": at[1],
        "arm": arm,
        "value": summary.value.value,
        "low": summary.value.low,
        "high": summary.value.high,
        "blocks": summary.value.blocks,
        "noise": None if metric.zero else summary.noise,
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "difference": difference.value,
        "difference_low": difference.low,
        "difference_high": difference.high,
    }

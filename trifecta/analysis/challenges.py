"""What would overturn a verdict: the same data looked at in other ways, and how far it is from another answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.estimate import Row, pair_blocks
from trifecta.analysis.verdict import verdicts
from trifecta.design.metrics import METRICS
from trifecta.design.model import Cell, Study, Verdict

# In the order of a reader's questions; those that the study has no values of are left out.
OTHER_METRICS = (
    "latency_p50_ns",
    "latency_mean_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "requests_per_s",
    "success_rate",
    "client_cpu_ns_per_request",
    "server_cpu_ns_per_request",
)


@dataclass(frozen=True)
class Challenge:
    """One comparison challenged.

    Ratios are medians over blocks. ``without_one``: the smallest and the largest ratio with one block left out.
    ``halves``: the ratio of the first and of the second half of the blocks. ``counted``: the verdict with the trials
    that a check excluded; None where there are none. ``metrics``: the verdict of this cell alone by other metrics.
    ``opposed``: blocks on the other side of 1.
    """

    blocks: int
    opposed: int
    without_one: tuple[float, float] | None
    halves: tuple[float, float] | None
    counted: Verdict | None
    metrics: tuple[Verdict, ...]


Pair = tuple[str, str]


def challenges(
    study: Study, rows: Sequence[Row], cell: Cell, pairs: Sequence[Pair], *, metrics: bool = True
) -> dict[Pair, Challenge]:
    """Challenge the comparisons (arm, reference) of one cell; ``rows`` are its trials, excluded ones included.

    ``metrics``: by other metrics, too, which takes longest.
    """
    metric, baseline = METRICS[study.metric], study.baseline.level
    excluded = {str(row["arm"]).split("#")[0] for row in rows if not row.get("valid")}
    counted = _alone(study, [{**row, "valid": True} for row in rows], cell, metric.name) if excluded else {}
    others = [
        _alone(study, rows, cell, name)
        for name in OTHER_METRICS
        if metrics and name != metric.name and any(row.get(name) is not None for row in rows)
    ]
    found = {}
    for pair in pairs:
        logs = pair_blocks(cell.key, rows, metric, arm=pair[0], reference=pair[1], baseline=baseline).log_ratios()
        known = logs[np.isfinite(logs)]
        middle = float(np.median(known)) if len(known) else 0.0
        found[pair] = Challenge(
            blocks=len(known),
            opposed=int((known * middle < 0).sum()),
            without_one=_without_one(known),
            halves=_halves(known),
            counted=counted.get(pair) if excluded & set(pair) else None,
            metrics=tuple(one[pair] for one in others if pair in one and one[pair].blocks),
        )
    return found


def _without_one(logs: np.typing.NDArray[np.float64]) -> tuple[float, float] | None:
    if len(logs) < 3:
        return None
    left = [float(np.median(np.delete(logs, one))) for one in range(len(logs))]
    return math.exp(min(left)), math.exp(max(left))


def _halves(logs: np.typing.NDArray[np.float64]) -> tuple[float, float] | None:
    half = len(logs) // 2
    if half < 2:
        return None
    return math.exp(float(np.median(logs[:half]))), math.exp(float(np.median(logs[half:])))


def _alone(study: Study, rows: Sequence[Row], cell: Cell, metric: str) -> dict[Pair, Verdict]:
    """The verdicts by a metric with the cell as the whole family."""
    return {(one.arm, one.reference): one for one in verdicts(study, rows, [cell], metric, fixed=False)}

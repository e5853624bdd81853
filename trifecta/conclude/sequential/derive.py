"""Works out what the report says of requests made one after the other: the views ``progress`` and ``trip_tests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from trifecta.analysis import sequential
from trifecta.conclude import queries
from trifecta.conclude.cells import cells_in_order
from trifecta.conclude.comparisons import levels
from trifecta.conclude.facts import RunFacts
from trifecta.contract.trial import TrialRow
from trifecta.design import naming

Row = dict[str, Any]
Floats = NDArray[np.float64]
_FEWEST = 20  # requests of an arm; fewer have no distribution

_SAMPLES = """
SELECT t.arm, s.trial, s.done_ns - s.started_ns AS latency_ns, s.done_ns,
       coalesce(s.request_sent_ns, s.started_ns) AS sent_ns
FROM samples AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT s.warmup AND s.success AND t.cell = ?
ORDER BY s.trial, s.done_ns
"""
_TRIALS = """
SELECT arm, block, valid, samples, success_rate, latency_mean_ns, requests_per_s FROM trials
WHERE cell = ? ORDER BY block, trial
"""


@dataclass(frozen=True)
class Sequential:
    """Rows of the derived views, by view; the round trips of the cells that are shown, in ns."""

    rows: dict[str, list[Row]]
    cells: dict[str, sequential.Histogram]


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Sequential | None:
    """Work it out from the samples; None when no cell of the run asks one request at a time in a closed loop."""
    if about.workload.get("kind") != "requests" or not about.closed_loop:
        return None
    every = [str(cell) for (cell,) in connection.execute("SELECT DISTINCT cell FROM trials").fetchall()]
    cells: dict[str, sequential.Histogram] = {}
    rows: dict[str, list[Row]] = {"progress": [], "trip_tests": []}
    for cell in cells_in_order(about, [cell for cell in every if one_at_a_time(about, cell)]):
        samples = connection.execute(_SAMPLES, [cell]).fetchnumpy()
        by_arm = _by_arm(about, samples)
        if not by_arm:
            continue
        latencies = {
            arm: np.concatenate([one for one, _, _ in latencies_of_arm]) for arm, latencies_of_arm in by_arm.items()
        }
        cells[cell] = sequential.histogram(latencies)
        if is_reused(cell):
            rows["progress"] += _progress(about, cell, by_arm)
        rows["trip_tests"] += _tests(connection, about, cell, latencies)
    return Sequential(rows, cells) if cells else None


def one_at_a_time(about: RunFacts, cell: str) -> bool:
    """Whether a cell has one request in flight."""
    return int(levels(cell).get("in_flight") or about.workload.get("in_flight") or 0) == 1


def is_reused(cell: str) -> bool:
    """Whether its requests share a connection."""
    return levels(cell).get("connection") == "reused"


Trial = tuple[Floats, int, list[int]]
"""Latencies in ns, when the first request was sent, and when each was answered."""


def _by_arm(about: RunFacts, columns: Mapping[str, Any]) -> dict[str, list[Trial]]:
    trials: dict[str, list[Trial]] = {}
    for arm in about.arms:
        own = columns["arm"] == arm
        if int(own.sum()) < _FEWEST:
            continue
        for trial in np.unique(columns["trial"][own]):
            here = own & (columns["trial"] == trial)
            latency = columns["latency_ns"][here].astype(np.float64)
            sent = int(columns["sent_ns"][here].min())
            trials.setdefault(arm, []).append((latency, sent, columns["done_ns"][here].tolist()))
    return trials


def _progress(about: RunFacts, cell: str, by_arm: Mapping[str, Sequence[Trial]]) -> list[Row]:
    return [
        {"cell": cell, **asdict(point)}
        for arm, trials in by_arm.items()
        for point in sequential.band(
            arm, [sequential.progression(sent, done) for _, sent, done in trials], about.confidence
        )
    ]


def _tests(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, cell: str, latencies: Mapping[str, Floats]
) -> list[Row]:
    trials = queries.select(connection, TrialRow, _TRIALS, [cell])
    metric = "requests_per_s" if is_reused(cell) else "latency_mean_ns"
    rows = []
    for arm, reference in about.pairs:
        if arm not in latencies or reference not in latencies:
            continue
        blocks = sequential.by_blocks(
            trials, metric, (arm, reference), baseline=about.baseline, confidence=about.confidence
        )
        by_samples = sequential.by_samples(latencies[arm], latencies[reference])
        times = metric == "latency_mean_ns"
        what = "latency" if times else "throughput"
        rows.append(
            {
                "cell": cell, "arm": arm, "reference": reference, "metric": metric,
                "hypothesis": f"no difference between {naming.name(arm)} and {naming.name(reference)} in {what}",
                "ratio": blocks.ratio, "ratio_low": blocks.low, "ratio_high": blocks.high,
                "difference_ns": blocks.difference if times else None,
                "difference_low_ns": blocks.difference_low if times else None,
                "difference_high_ns": blocks.difference_high if times else None,
                "p_blocks": blocks.p, "blocks": blocks.blocks,
                "faster": by_samples.faster if by_samples else None,
                "distance": by_samples.distance if by_samples else None,
                "p_samples": by_samples.p if by_samples else None,
                "samples": by_samples.samples if by_samples else None,
                "reference_samples": by_samples.reference_samples if by_samples else None,
            }
        )  # fmt: skip
    return rows

"""What would overturn a verdict: the same data looked at in other ways, and how far it is from another answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import PairBlocks, Row, pair_blocks
from trifecta.analysis.nested import middle_of
from trifecta.analysis.verdict import verdicts
from trifecta.design.metrics import METRICS
from trifecta.design.model import Cell, Study, Verdict

Floats = NDArray[np.float64]

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

    Ratios are the verdict's estimate, so censored blocks are in them; None where one of them is infinite.
    ``without_one``: the smallest and the largest ratio with one block left out. ``halves``: the ratio of the first and
    of the second half of the blocks. ``counted``: the verdict with the trials that a check excluded; None where there
    are none. ``metrics``: the verdict of this cell alone by other metrics. ``opposed``: blocks on the other side of 1
    than most.
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
    counted = _verdicts_of_cell(study, [{**row, "valid": True} for row in rows], cell, metric.name) if excluded else {}
    others = [
        _verdicts_of_cell(study, rows, cell, name)
        for name in OTHER_METRICS
        if metrics and name != metric.name and any(row.get(name) is not None for row in rows)
    ]
    by_pair = {}
    for pair in pairs:
        here = pair_blocks(cell.key, rows, metric, arm=pair[0], reference=pair[1], baseline=baseline)
        by_pair[pair] = Challenge(
            blocks=here.blocks,
            opposed=_opposed(here.log_ratios()),
            without_one=_without_one(here),
            halves=_halves(here),
            counted=counted.get(pair) if excluded & set(pair) else None,
            metrics=tuple(one[pair] for one in others if pair in one and one[pair].blocks),
        )
    return by_pair


def _opposed(logs: Floats) -> int:
    """Blocks on the other side of 1 than most; where both are censored it is a tie, on neither."""
    known = np.where(np.isnan(logs), 0.0, logs)
    above, below = int((known > 0).sum()), int((known < 0).sum())
    return min(above, below)


def _without_one(pair: PairBlocks) -> tuple[float, float] | None:
    """None where one of these ratios is infinite: its median block is censored."""
    if pair.blocks < 3:
        return None
    every = np.arange(pair.blocks)
    left = [_middle(pair, np.delete(every, one)) for one in every]
    known = [one for one in left if one is not None]
    return (math.exp(min(known)), math.exp(max(known))) if len(known) == len(left) else None


def _halves(pair: PairBlocks) -> tuple[float, float] | None:
    """None as in `_without_one`."""
    half = pair.blocks // 2
    if half < 2:
        return None
    every = np.arange(pair.blocks)
    first, second = _middle(pair, every[:half]), _middle(pair, every[half:])
    return None if first is None or second is None else (math.exp(first), math.exp(second))


def _middle(pair: PairBlocks, blocks: NDArray[np.intp]) -> float | None:
    """The estimate of the verdicts, as a log, from these blocks alone."""
    nodes = tuple(pair.nodes[one] for one in blocks) if pair.nodes else ()
    return middle_of(np.ascontiguousarray(pair.logs[blocks]), nodes)


def _verdicts_of_cell(study: Study, rows: Sequence[Row], cell: Cell, metric: str) -> dict[Pair, Verdict]:
    """The verdicts by a metric with the cell as the whole family."""
    return {(one.arm, one.reference): one for one in verdicts(study, rows, [cell], metric, fixed=False)}

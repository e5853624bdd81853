"""Trials to numbers: one value per trial and metric, compared within a block.

A row is a plain dictionary with the columns of ``trials`` (docs/architecture.md, 2.1).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import median_log_ratio
from trifecta.contract.trial import TrialRow
from trifecta.design import percentiles, plan
from trifecta.design.metric import Metric
from trifecta.design.model import AA_SUFFIX, PROTOCOL_FACTOR, PROTOCOLS, Study

Row = TrialRow
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairBlocks:
    """One arm against one reference in one cell, block by block.

    ``logs`` has one line a usable block: the natural log of the arm's value, then of the reference's value or, for
    the baseline, of both its runs (NaN where one is missing). Infinite entries are censored trials (see `log_value`).
    ``nodes`` says of each line on which node of a cluster its block was run, as `node_of`.
    """

    cell: str
    arm: str
    reference: str
    logs: Floats
    invalid_trials: int = 0
    incomplete_blocks: int = 0
    nodes: tuple[str, ...] = ()

    @property
    def blocks(self) -> int:
        """Number of usable blocks."""
        return len(self.logs)

    @property
    def censored(self) -> int:
        """Number of usable blocks that hold a trial without a finite value."""
        return int(np.isinf(self.logs).any(axis=1).sum())

    def log_ratios(self) -> Floats:
        """Log of arm / geometric mean of the reference runs, per block; infinite or NaN where censored."""
        return log_ratios(self.logs)


def log_ratios(logs: Floats) -> Floats:
    """Per block: log of the arm minus the mean log of its references (NaN references left out)."""
    if len(logs) == 0:
        return np.empty(0)
    present = ~np.isnan(logs[:, 1:])
    with np.errstate(invalid="ignore"):
        reference = np.where(present, logs[:, 1:], 0.0).sum(axis=1) / present.sum(axis=1)
        result: Floats = logs[:, 0] - reference
    return result


def ratio_estimate(logs: Floats) -> float | None:
    """The median over blocks of arm / reference run, which the confidence sequence is for; None if it is infinite."""
    middle = median_log_ratio(logs)
    return None if middle is None else math.exp(middle)


def log_value(row: Row, metric: Metric) -> float:
    """Natural log of a trial's value of a metric; NaN when it was not measured, infinite when censored.

    A percentile that too few requests survived to reach has no finite value: its time is longer than any that was
    seen, so the trial counts as worse than every finite one. The same holds for a rate of zero. One that the trial's
    requests are too few to hold was not measured.
    """
    value = cast(Mapping[str, float | None], row).get(metric.name)
    samples = row.get("samples")
    if metric.quantile is not None and samples:
        if samples < percentiles.needed(metric.quantile):
            return math.nan
        success = row.get("success_rate")
        # A percentile is interpolated between two requests, of which one may have failed: then there is none either.
        among_failures = value is None and metric.over_failures
        if success is not None and (success < metric.quantile or (among_failures and success < 1)):
            return math.inf
    if value is None:
        return math.nan
    number = float(value)
    if math.isnan(number) or number < 0:
        return math.nan
    if number == 0:
        # A time of zero was not measured; a rate or share of zero is worse than every other.
        return math.nan if metric.lower_is_better else -math.inf
    return math.log(number) if math.isfinite(number) else math.nan


def node_of(row: Row) -> str:
    """The node of a cluster that a trial was run on; empty for this machine."""
    return str(row.get("node") or "")


def usable(row: Row) -> bool:
    """Whether the trial passed the checks that decide on validity."""
    return bool(row.get("valid"))


def arm_pairs(study: Study) -> list[tuple[str, str]]:
    """(arm, reference) of every comparison of a cell: each arm to the baseline, then the others, later to earlier.

    Protocols are in the order of their age, other levels in that of the study.
    """
    baseline, others = study.baseline.level, plan.other_levels(study)
    if study.compare == PROTOCOL_FACTOR:
        others.sort(key=[str(protocol) for protocol in PROTOCOLS].index)
    pairs = [(arm, baseline) for arm in others]
    pairs += [(later, earlier) for i, earlier in enumerate(others) for later in others[i + 1 :]]
    return pairs


def by_cell(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows grouped by cell, in the order given."""
    cells: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        cells[str(row["cell"])].append(row)
    return dict(cells)


def pair_blocks(
    cell: str, rows: Sequence[Row], metric: Metric, *, arm: str, reference: str, baseline: str
) -> PairBlocks:
    """Collect arm against reference from the rows of one cell, in block order.

    Where the reference is the baseline, both its runs are references. A trial that failed a check, or has no value,
    leaves its slot empty; a block without the arm, or without any reference, is left out and counted. What a lost node
    left of a block that was done again elsewhere is a block of its own: runs of two nodes are never paired.
    """
    slots = {arm: 0, reference: 1}
    if reference == baseline and arm != baseline + AA_SUFFIX:
        slots[baseline + AA_SUFFIX] = 2
    width = max(slots.values()) + 1
    blocks: dict[tuple[int, str], list[float]] = {}
    invalid = 0
    for row in rows:
        slot = slots.get(str(row["arm"]))
        if slot is None:
            continue
        values = blocks.setdefault((int(row["block"]), node_of(row)), [math.nan] * width)
        if usable(row):
            values[slot] = log_value(row, metric)
        else:
            invalid += 1
    keys = sorted(blocks)
    ordered = np.array([blocks[key] for key in keys], dtype=np.float64).reshape(-1, width)
    complete = ~np.isnan(ordered[:, 0]) & ~np.isnan(ordered[:, 1:]).all(axis=1)
    nodes = tuple(node for (_, node), counts in zip(keys, complete, strict=True) if counts)
    return PairBlocks(cell, arm, reference, ordered[complete], invalid, int((~complete).sum()), nodes)

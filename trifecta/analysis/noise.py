"""The noise floor: what the baseline's second run says this lab could have seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.confidence import Interval, judge
from trifecta.analysis.estimate import METRICS, Row, by_cell, pair_blocks, ratio_estimate
from trifecta.analysis.family import adjusted_log_e
from trifecta.analysis.forecast import blocks_to_fit
from trifecta.design.model import AA_SUFFIX, Study


@dataclass(frozen=True)
class NoiseFloor:
    """The baseline against itself in one cell.

    ``floor`` is the smallest ratio - 1 that could have been told from 1: the larger arm of the A/A interval. None
    while there are too few blocks for an interval. ``biased`` is set when the A/A pair, beyond chance in the family of
    the study's cells, differs from itself: then something other than the protocol tells its runs apart.
    """

    cell: str
    blocks: int
    ratio: float | None
    low: float | None
    high: float | None
    floor: float | None
    e_value: float
    excludes_one: bool
    biased: bool
    blocks_to_margin: float  # forecast of the blocks at which the floor is below the study's margin


def noise_floors(
    study: Study, rows: Sequence[Row], cells: Sequence[str], metric_name: str | None = None
) -> dict[str, NoiseFloor]:
    """The noise floor of every cell, judged as one family."""
    metric = METRICS[metric_name or study.metric]
    baseline = study.baseline.protocol
    alpha = 1 - study.confidence
    grouped = by_cell(rows)
    pairs = [
        pair_blocks(c, grouped.get(c, []), metric, arm=baseline + AA_SUFFIX, reference=baseline, baseline=baseline)
        for c in cells
    ]
    judged = [judge(pair.logs, alpha) for pair in pairs]
    log_e = np.array([judgement.log_e for judgement in judged])
    adjusted = adjusted_log_e(log_e)
    floors = {}
    for pair, evidence, in_family in zip(pairs, judged, adjusted, strict=True):
        interval = evidence.interval
        floors[pair.cell] = NoiseFloor(
            cell=pair.cell,
            blocks=pair.blocks,
            ratio=ratio_estimate(pair.logs),
            low=None if interval.low is None else math.exp(interval.low),
            high=None if interval.high is None else math.exp(interval.high),
            floor=_floor(interval),
            e_value=math.exp(min(evidence.log_e, 700.0)),
            excludes_one=interval.excludes_zero(),
            biased=bool(in_family >= math.log(1 / alpha)),
            blocks_to_margin=blocks_to_fit(pair.logs, math.log1p(study.margin), alpha),
        )
    return floors


def _floor(interval: Interval) -> float | None:
    if interval.low is None or interval.high is None:
        return None
    return math.exp(max(abs(interval.low), abs(interval.high))) - 1


def margin_in_force(study_margin: float, floor: NoiseFloor | None) -> tuple[float, bool]:
    """The margin, never below the noise floor, and whether "same" may be said.

    It may not while the floor is above the study's margin or unknown: the lab has not shown that it could have seen a
    difference of that size, and a noisy lab must not find it easier to call things the same than a quiet one.
    """
    if floor is None or floor.floor is None:
        return study_margin, False
    return max(study_margin, floor.floor), floor.floor <= study_margin

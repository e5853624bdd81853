"""Two noise floors: what the baseline against itself says this lab could have seen, in one weather and across weathers.

*Same weather*: the two runs of a block, under the same impairment seed and a moment apart, so the same packets are lost
in both. That is the noise of the instrument. *Across weather*: the first run of each block against the second run of
every other. A program that loses other packets, or runs at another time, differs from itself by so much.

A floor is the larger arm of *median +- t S sqrt(pi / 2 blocks)*: S is 1.4826 times the median size of a log ratio, the
standard deviation where it is normal, and t Student's quantile for blocks - 1 degrees of freedom. Fewer than half of
the blocks cannot move it far, whatever they hold; the interval of section 2 ends at the block that is furthest out
until it has thirteen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LARGEST_LOG_RATIO, differences_of, judge
from trifecta.analysis.estimate import Row, by_cell, pair_blocks, ratio_estimate
from trifecta.analysis.family import adjusted_log_e
from trifecta.analysis.memoize import memoized
from trifecta.analysis.student import t_quantile
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Study

Floats = NDArray[np.float64]

FEWEST_BLOCKS = 6  # as many as a verdict needs
_NORMAL = 1.4826  # median size of a normal variable to its standard deviation
_OF_A_MEDIAN = math.sqrt(math.pi / 2)  # standard error of a median to that of a mean


@dataclass(frozen=True)
class NoiseFloor:
    """The baseline against itself in one cell.

    ``floor`` is the smallest ratio - 1 that could have been distinguished from 1 within a block, ``weather_floor`` that
    between blocks; None before `FEWEST_BLOCKS`. ``low`` and ``high`` are the confidence sequence of the A/A pair.
    ``biased`` is set when that pair, beyond chance in the family of the study's cells, differs from itself: then
    something other than the protocol distinguishes its runs.
    """

    cell: str
    blocks: int
    ratio: float | None
    low: float | None
    high: float | None
    floor: float | None
    weather_floor: float | None
    e_value: float
    excludes_one: bool
    biased: bool
    blocks_to_margin: float  # forecast of the blocks at which the floor is below the study's margin


def noise_floors(
    study: Study, rows: Sequence[Row], cells: Sequence[str], metric_name: str | None = None
) -> dict[str, NoiseFloor]:
    """The noise floors of every cell, judged as one family."""
    metric = METRICS[metric_name or study.metric]
    baseline = study.baseline.level
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
        biased = bool(in_family >= math.log(1 / alpha))
        floor, weather_floor, to_margin = _floors_of(pair.logs, study.confidence, math.log1p(study.margin))
        floors[pair.cell] = NoiseFloor(
            cell=pair.cell,
            blocks=pair.blocks,
            ratio=ratio_estimate(pair.logs),
            low=None if interval.low is None else math.exp(interval.low),
            high=None if interval.high is None else math.exp(interval.high),
            floor=floor,
            weather_floor=weather_floor,
            e_value=math.exp(min(evidence.log_e, 700.0)),
            excludes_one=interval.excludes_zero(),
            biased=biased,
            blocks_to_margin=math.inf if biased else to_margin,
        )
    return floors


@memoized
def _floors_of(logs: Floats, confidence: float, log_margin: float) -> tuple[float | None, float | None, float]:
    """Within a block, between blocks, and the blocks at which the first is below the margin."""
    within = differences_of(logs)[0]
    floors = [robust_floor(differences, len(logs), confidence) for differences in (within, across_weather(logs))]
    return floors[0], floors[1], blocks_to_floor(within, log_margin)


def robust_floor(differences: Floats, blocks: int, confidence: float) -> float | None:
    """The floor, as a ratio - 1, that log ratios of a program to itself give over so many blocks.

    None with too few blocks, or where half of them hold a trial without a finite value.
    """
    if blocks < FEWEST_BLOCKS:
        return None
    reach = t_quantile((1 + confidence) / 2, blocks - 1) * _OF_A_MEDIAN * _scale(differences) / math.sqrt(blocks)
    log_floor = abs(float(np.median(differences))) + reach
    return math.expm1(log_floor) if log_floor < LARGEST_LOG_RATIO else None


def blocks_to_floor(differences: Floats, log_margin: float) -> float:
    """Total blocks, by estimate, at which the floor is below the margin; infinite with fewer than two."""
    if len(differences) < 2:
        return math.inf
    return max(FEWEST_BLOCKS, 3 + (2 * _OF_A_MEDIAN * _scale(differences) / log_margin) ** 2)


def _scale(differences: Floats) -> float:
    """Robust standard deviation about 0, which is the truth; where half are ties, from the smallest step between them.

    A clock that ticks once a millisecond makes ties; that it shows no difference does not mean that there is none.
    """
    sizes = np.abs(differences)
    middle = float(np.median(sizes))
    if middle == 0 and sizes.any():
        middle = float(sizes[sizes > 0].min())
    return _NORMAL * middle


def across_weather(logs: Floats) -> Floats:
    """Log ratios of one block's first run to the second run of every other; ``logs`` as in `PairBlocks`."""
    blocks = len(logs)
    pairs = np.stack([np.repeat(logs[:, 1], blocks), np.tile(logs[:, 0], blocks)], axis=1)
    values: Floats = differences_of(pairs[~np.eye(blocks, dtype=bool).ravel()])[0]
    return values


def margin_in_force(study_margin: float, floor: NoiseFloor | None) -> tuple[float, bool]:
    """The margin, never below the noise floor, and whether "same" may be said.

    It may not while the floor is above the study's margin or unknown: the lab has not shown that it could have seen a
    difference of that size, and a noisy lab must not find it easier to call things the same than a quiet one.
    """
    if floor is None or floor.floor is None:
        return study_margin, False
    return max(study_margin, floor.floor), floor.floor <= study_margin

"""The reference of a map against itself: what the lab makes of no difference, over the whole plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.confidence import judge
from trifecta.analysis.estimate import Row, pair_blocks, ratio_estimate
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Study


@dataclass(frozen=True)
class Noise:
    """The reference against itself, over all blocks: the median ratio with its interval, and whether it differs beyond
    chance."""

    blocks: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    biased: bool = False

    @property
    def floor(self) -> float:
        """The ratio - 1 that a claim must exceed: 0 where the reference agrees with itself."""
        if not self.biased:
            return 0.0
        ends = [abs(math.log(end)) for end in (self.low, self.high) if end]
        return math.expm1(max(ends, default=math.log(2)))


def noise_of(study: Study, blocks: Sequence[Sequence[Row]]) -> Noise:
    """The two runs of the reference in every block, given by its trials; one confidence sequence over the whole map."""
    metric, baseline = METRICS[study.metric], study.baseline.level
    arm = baseline + AA_SUFFIX
    every = [pair_blocks("", own, metric, arm=arm, reference=baseline, baseline=baseline).logs for own in blocks]
    logs = np.concatenate(every) if every else np.empty((0, 2))
    if not len(logs):
        return Noise(0)
    interval = judge(logs, 1 - study.confidence).interval
    return Noise(
        blocks=len(logs),
        ratio=ratio_estimate(logs),
        low=None if interval.low is None else math.exp(interval.low),
        high=None if interval.high is None else math.exp(interval.high),
        biased=interval.excludes_zero(),
    )

"""Two cells against each other: containers and native, a path and its variant, one protocol inside and another.

Blocks of two cells are not run side by side, so nothing is paired: Welch's t-test and interval of the log values, whose
variances may differ. Cells take turns and share the impairments' seeds, which makes this cautious rather than bold. For
a number of blocks set in advance, as `signed_rank` is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.student import t_quantile, two_sided_p

Floats = NDArray[np.float64]
Outcome = Literal["more", "less", "same", "undecided"]


@dataclass(frozen=True)
class Contrast:
    """The ratio of the geometric means of two cells; None where censored or missing blocks leave none.

    ``p`` is that of "no difference", ``p_holm`` the same adjusted over the contrasts of a table.
    """

    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    blocks: int
    against_blocks: int
    p_holm: float | None = None

    def outcome(self, margin: float, alpha: float) -> Outcome:
        """``more`` or ``less`` when it holds in the family, ``same`` when the interval lies inside the margin.

        ``same`` is not corrected for the family: that all rows are the same needs none (Berger 1982), and one row
        stands beside its own interval.
        """
        if self.p_holm is not None and self.p_holm <= alpha and self.ratio is not None and self.ratio != 1:
            return "more" if self.ratio > 1 else "less"
        inside = self.low is not None and self.high is not None
        if inside and (self.low or 0.0) >= 1 / (1 + margin) and (self.high or math.inf) <= 1 + margin:
            return "same"
        return "undecided"


def contrast(logs: Floats, against: Floats, confidence: float) -> Contrast:
    """Blocks of one cell against those of another; both as log values (see `means.block_logs`)."""
    sizes = (len(logs), len(against))
    if min(sizes) == 0:
        return Contrast(None, None, None, None, *sizes)
    if not (np.isfinite(logs).all() and np.isfinite(against).all()):
        shift = float(np.median(logs)) - float(np.median(against))
        ratio = math.exp(shift) if math.isfinite(shift) else None
        return Contrast(ratio, None, None, p_value(logs, against), *sizes)
    return contrast_over([(logs, against)], confidence)


def contrast_over(pairs: Sequence[tuple[Floats, Floats]], confidence: float) -> Contrast:
    """The geometric mean over several places of the ratio in each; every place counts the same.

    Places where one side has no block, or a censored one, are left out. The variance is that of the mean of the places'
    differences, its degrees of freedom Satterthwaite's (1946); with one place this is Welch's test.
    """
    known = [pair for pair in pairs if all(len(side) and np.isfinite(side).all() for side in pair)]
    sizes = (sum(len(side) for side, _ in known), sum(len(side) for _, side in known))
    if not known:
        return Contrast(None, None, None, None, *sizes)
    shift = float(np.mean([logs.mean() - against.mean() for logs, against in known]))
    spread = [side for pair in known for side in pair]
    if min(len(side) for side in spread) < 2:
        return Contrast(math.exp(shift), None, None, None, *sizes)
    parts = np.array([float(side.var(ddof=1)) / len(side) for side in spread])
    if parts.sum() == 0:
        return Contrast(math.exp(shift), None, None, 1.0 if shift == 0 else 0.0, *sizes)
    freedom = float(parts.sum() ** 2 / (parts**2 / [len(side) - 1 for side in spread]).sum())
    error = math.sqrt(float(parts.sum())) / len(known)
    reach = t_quantile((1 + confidence) / 2, freedom) * error
    p = two_sided_p(shift / error, freedom)
    return Contrast(math.exp(shift), math.exp(shift - reach), math.exp(shift + reach), p, *sizes)


def p_value(first: Floats, second: Floats, shared_variance: float = 0.0) -> float | None:
    """Two-sided p-value of "no difference" (Welch; Mann and Whitney with censored blocks); None with fewer than two.

    ``shared_variance`` is what the two means vary by besides: what all blocks of a side share, which their spread does
    not hold. It is taken as known. Mann and Whitney's test has no place for it.
    """
    if min(len(first), len(second)) < 2:
        return None
    if np.isfinite(first).all() and np.isfinite(second).all():
        parts = np.array([float(side.var(ddof=1)) / len(side) for side in (first, second)])
        variance = float(parts.sum()) + shared_variance
        shift = float(first.mean() - second.mean())
        if variance <= 1e-24:
            return 1.0 if abs(shift) <= 1e-12 else 0.0
        freedom = variance**2 / max(float((parts**2 / [len(first) - 1, len(second) - 1]).sum()), 1e-300)
        p = two_sided_p(shift / math.sqrt(variance), min(freedom, 1e6))
    else:
        from scipy import stats

        p = float(stats.mannwhitneyu(first, second).pvalue)
    return 1.0 if math.isnan(p) else p


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) step-down adjusted p-values; a missing one counts as a member that is never claimed."""
    count = len(p_values)
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * count
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, (count - rank) * p))
        adjusted[index] = largest
    return adjusted


def adjusted(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """The contrasts of one table as a family (Holm 1979)."""
    p_holm = holm([one.p for one in contrasts])
    return [replace(one, p_holm=p) for one, p in zip(contrasts, p_holm, strict=True)]

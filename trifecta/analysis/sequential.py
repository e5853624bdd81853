"""Requests made one after the other: round trips, the progression of a connection, and the tests of "no difference".

What milicevic2023 measured and drew, for any run that asks with one request in flight. Its hypotheses, no difference
between HTTP/3 and HTTP/2 in latency and in throughput, are tested here in two ways. By blocks: paired, valid, and few.
By samples: all requests of an arm against all of another; they share a machine, a server and a moment, so they are not
independent, and a p-value of such a test says only how large the sample was. The shares that come with it describe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import Row, pair_blocks
from trifecta.analysis.means import Mean, geometric_mean
from trifecta.analysis.signed_rank import fixed_analysis
from trifecta.analysis.student import reach_of_mean
from trifecta.design.metrics import METRICS

Floats = NDArray[np.float64]
POINTS = 120  # of a progression, evenly on a logarithmic axis
FIRST = 1
_BINS = (20, 60)  # a histogram has at least and at most so many
_SHOWN = 0.995  # share of each arm's samples that a histogram's axis holds


@dataclass(frozen=True)
class Progress:
    """T_i = i / (response_i - request_1) of an arm, in requests a second: the mean over trials with its interval."""

    arm: str
    place: int  # i
    value: float
    low: float | None
    high: float | None
    smallest: float
    largest: float
    trials: int


@dataclass(frozen=True)
class BySamples:
    """All samples of an arm against all of a reference: described, and tested as if they were independent."""

    samples: int
    reference_samples: int
    faster: float
    """Chance that a sample of the arm is smaller than one of the reference; ties count half (Mann and Whitney 1947)."""
    distance: float
    """Largest difference of the two distribution functions (Kolmogorov and Smirnov)."""
    p: float
    """Of Mann and Whitney's test, two-sided, normal approximation. Not valid: samples of a trial are dependent."""


@dataclass(frozen=True)
class ByBlocks:
    """An arm against a reference, paired within blocks: the ratio and the difference of a metric, and the p-value."""

    metric: str
    ratio: float | None
    low: float | None
    high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None
    """Of the signed rank test of log ratios, two-sided, for a number of blocks set in advance."""
    blocks: int


@dataclass(frozen=True)
class Bars:
    """A histogram of the samples of an arm: how many, and which share, are in each bin; its ends and its mean."""

    counts: NDArray[np.int64]
    shares: Floats
    fullest: int
    smallest: float
    largest: float
    mean: float


@dataclass(frozen=True)
class Histogram:
    """The samples of every arm in the same bins; what is longer than the last edge is in none."""

    edges: Floats
    arms: dict[str, Bars]


def progression(sent_ns: int, done_ns: Sequence[int]) -> Floats:
    """T_i for i = 1, 2, ...: requests answered by the time of the i-th answer, a second, since the first was sent."""
    since = np.sort(np.asarray(done_ns, dtype=np.float64)) - sent_ns
    places = np.arange(1, len(since) + 1)
    rates: Floats = np.divide(places * 1e9, since, out=np.full(len(since), np.nan), where=since > 0)
    return rates


def places(most: int) -> list[int]:
    """The i at which a progression of so many requests is shown: all of the first, then ever fewer."""
    if most < FIRST:
        return []
    return sorted({round(i) for i in np.geomspace(FIRST, most, POINTS)})


def band(arm: str, trials: Sequence[Floats], confidence: float, shown: Sequence[int] | None = None) -> list[Progress]:
    """The progression of an arm over its trials, as far as all of them go, at `places` or at the i ``shown``."""
    shortest = min((len(one) for one in trials), default=0)
    progressions = []
    for place in places(shortest) if shown is None else shown:
        values = np.array([one[place - 1] for one in trials])
        values = values[np.isfinite(values) & (values > 0)]
        if not len(values):
            continue
        mean: Mean = geometric_mean(np.log(values), confidence)
        assert mean.value is not None
        ends = float(values.min()), float(values.max())
        progressions.append(Progress(arm, place, mean.value, mean.low, mean.high, *ends, len(values)))
    return progressions


def by_samples(own: Floats, reference: Floats) -> BySamples | None:
    """Compare the distributions of two arms; None where one has no sample."""
    from scipy import stats

    if not len(own) or not len(reference):
        return None
    test = stats.mannwhitneyu(own, reference, alternative="two-sided", method="asymptotic")
    larger = float(test.statistic) / (len(own) * len(reference))
    distance = float(stats.ks_2samp(own, reference, method="asymp").statistic)
    p = float(test.pvalue)
    return BySamples(len(own), len(reference), 1 - larger, distance, 1.0 if math.isnan(p) else p)


def by_blocks(rows: Sequence[Row], metric: str, pair: tuple[str, str], *, baseline: str, confidence: float) -> ByBlocks:
    """Compare an arm with a reference in one cell, paired within blocks; ``rows`` are those of its trials."""
    arm, reference = pair
    paired = pair_blocks("", rows, METRICS[metric], arm=arm, reference=reference, baseline=baseline)
    if paired.blocks < 2 or paired.censored:
        return ByBlocks(metric, None, None, None, None, None, None, None, paired.blocks)
    ratios = paired.log_ratios()
    fixed = fixed_analysis(np.column_stack([ratios, np.zeros(len(ratios))]), confidence)
    values = np.exp(paired.logs)
    differences = values[:, 0] - np.nanmean(values[:, 1:], axis=1)
    middle, low, high = _t_interval(differences, confidence)
    if fixed is None:
        return ByBlocks(metric, None, None, None, middle, low, high, None, paired.blocks)
    return ByBlocks(metric, fixed.ratio, fixed.low, fixed.high, middle, low, high, fixed.p, paired.blocks)


def bins(values: Sequence[Floats]) -> Floats:
    """The edges of one histogram for all arms, by the rule of Freedman and Diaconis; the long tails lie beyond it."""
    known = [one for one in values if len(one)]
    if not known:
        return np.array([0.0, 1.0])
    low = min(float(one.min()) for one in known)
    high = max(float(np.quantile(one, _SHOWN)) for one in known)
    if high - low <= low * 1e-9:  # one value, as far as a histogram can tell
        return np.array([low * 0.99, low * 1.01 + 1])
    widths = [2 * float(np.subtract(*np.quantile(one, [0.75, 0.25]))) / len(one) ** (1 / 3) for one in known]
    width = min((width for width in widths if width > 0), default=(high - low) / _BINS[0])
    number = int(np.clip(math.ceil((high - low) / width), *_BINS))
    return np.linspace(low, high, number + 1)


def histogram(samples: Mapping[str, Floats], edges: Floats | None = None) -> Histogram:
    """By arm, of as many bins as the samples distinguish, or of those with these edges."""
    edges = bins(list(samples.values())) if edges is None else edges
    return Histogram(edges, {arm: _bars(values, edges) for arm, values in samples.items()})


def _bars(values: Floats, edges: Floats) -> Bars:
    counts, _ = np.histogram(values, edges)
    smallest, largest, mean = (float(one) for one in (values.min(), values.max(), values.mean()))
    return Bars(counts, counts / len(values), int(counts.argmax()), smallest, largest, mean)


def _t_interval(values: Floats, confidence: float) -> tuple[float, float | None, float | None]:
    middle = float(values.mean())
    if len(values) < 2:
        return middle, None, None
    reach = reach_of_mean(values, confidence)
    return middle, middle - reach, middle + reach

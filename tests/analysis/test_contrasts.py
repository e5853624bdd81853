"""Means of cells and contrasts between them: coverage, family, edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from trifecta.analysis.contrasts import Contrast, adjusted, contrast, contrast_over
from trifecta.analysis.intervals import linear
from trifecta.analysis.means import block_logs, geometric_mean
from trifecta.design.metrics import METRICS


@pytest.mark.parametrize(
    ("blocks", "against", "spreads", "weather"),
    [(6, 6, (0.05, 0.05), 0.0), (6, 6, (0.05, 0.05), 0.05), (6, 11, (0.03, 0.2), 0.0), (4, 4, (0.1, 0.02), 0.1)],
)
def test_the_interval_of_a_contrast_holds(
    blocks: int, against: int, spreads: tuple[float, float], weather: float
) -> None:
    """Also with unequal spread and size; weather that both cells share makes it wider than need be, never worse."""
    rng = np.random.default_rng(blocks + against)
    truth = 1.15
    held = 0
    for _ in range(1_000):
        shared = weather * rng.standard_normal(max(blocks, against))
        ours = math.log(truth) + shared[:blocks] + spreads[0] * rng.standard_normal(blocks)
        other = shared[:against] + spreads[1] * rng.standard_normal(against)
        found = contrast(ours, other, 0.95)
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    assert held >= 930
    if not weather:
        assert held < 985, "an interval that always holds says nothing"


def test_the_interval_of_a_mean_holds() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1_000):
        found = geometric_mean(math.log(7e6) + 0.1 * rng.standard_normal(6), 0.95)
        assert found.low is not None and found.high is not None
        held += found.low <= 7e6 <= found.high
    assert 930 <= held <= 970


@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ([5.0, 9.0, math.inf], 9.0),
        ([4.0, 9.0, 1.0, math.inf], 6.0),  # between 4 and 9, by ratio
        ([5.0, math.inf], None),  # as many are beyond every value
        ([5.0, 6.0, math.inf, math.inf], None),
        ([0.0, 5.0], None),  # of a rate
        ([0.0, math.inf], None),
    ],
)
def test_with_censored_blocks_the_value_is_their_median(values: list[float], middle: float | None) -> None:
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(values))
    assert geometric_mean(logs, 0.95).value == (None if middle is None else pytest.approx(middle))
    assert linear([(1.0, logs)], 0.95).value == (None if middle is None else pytest.approx(math.log(middle)))


def test_one_place_is_welchs_test_and_several_are_averaged() -> None:
    rng = np.random.default_rng(5)
    logs, against = rng.normal(0.2, 0.05, 6), rng.normal(0, 0.2, 9)
    reference = stats.ttest_ind(logs, against, equal_var=False)
    ends = reference.confidence_interval(0.95)
    found = contrast(logs, against, 0.95)
    assert found.p == pytest.approx(float(reference.pvalue))
    assert (found.low, found.high) == pytest.approx((math.exp(ends.low), math.exp(ends.high)))
    held = 0
    for _ in range(500):
        places = [(rng.normal(0.1 * i, 0.03 * (i + 1), 5), rng.normal(0, 0.05, 6 + i)) for i in range(4)]
        pooled = contrast_over(places, 0.95)
        assert pooled.low is not None and pooled.high is not None
        held += pooled.low <= math.exp(0.15) <= pooled.high
    assert 460 <= held <= 490
    dead = (np.full(5, math.inf), rng.normal(0, 1, 5))
    assert contrast_over([*places, dead], 0.95) == pooled


def test_without_a_difference_a_table_claims_one_in_a_twentieth_of_cases() -> None:
    rng = np.random.default_rng(8)
    claimed = 0
    for _ in range(500):
        table = [contrast(*rng.normal(0, 0.05, (2, 8)), 0.95) for _ in range(9)]
        claimed += any(one.outcome(0.05, 0.05) in ("more", "less") for one in adjusted(table))
    assert claimed <= 35


def test_outcomes() -> None:
    def outcome(ratio: float, low: float, high: float, p: float) -> str:
        return Contrast(ratio, low, high, p, 6, 6, p).outcome(0.05, 0.05)

    assert outcome(1.3, 1.2, 1.4, 0.001) == "more"
    assert outcome(0.7, 0.6, 0.8, 0.001) == "less"
    assert outcome(1.3, 1.01, 1.5, 0.06) == "undecided"  # alone it would hold, in the family it does not
    assert outcome(1.0, 0.97, 1.03, 0.9) == "same"
    assert outcome(1.0, 0.9, 1.1, 0.9) == "undecided"
    assert Contrast(1.3, None, None, None, 1, 1).outcome(0.05, 0.05) == "undecided"


def test_censored_and_missing_blocks() -> None:
    fine, dead = np.log([10.0, 11.0, 12.0, 10.5, 10.2, 11.1]), np.full(6, math.inf)
    found = contrast(fine, dead, 0.95)
    assert (found.ratio, found.low, found.high) == (None, None, None)
    assert found.p is not None and found.p < 0.05
    assert contrast(np.empty(0), fine, 0.95).ratio is None
    alone = contrast(fine[:1], fine[1:2], 0.95)
    assert alone.ratio == pytest.approx(10 / 11)
    assert (alone.low, alone.p) == (None, None)
    equal = contrast(np.zeros(3), np.zeros(3), 0.95)
    assert (equal.ratio, equal.low, equal.p) == (1.0, None, 1.0)


def test_the_mean_of_the_baselines_two_runs_counts_once() -> None:
    metric = METRICS["latency_p50_ns"]
    rows = [
        {"arm": "h2", "block": 0, "valid": True, "latency_p50_ns": 4},
        {"arm": "h2#aa", "block": 0, "valid": True, "latency_p50_ns": 16},
        {"arm": "h2", "block": 1, "valid": False, "latency_p50_ns": 4},
        {"arm": "h3", "block": 1, "valid": True, "latency_p50_ns": 3},
    ]
    assert np.exp(block_logs(rows, metric, "h2")) == pytest.approx([8.0])
    assert np.exp(block_logs(rows, metric, "h3")) == pytest.approx([3.0])
    assert geometric_mean(np.empty(0), 0.95).value is None

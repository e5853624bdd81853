"""From rows to log values and blocks."""

import math

import numpy as np
import pytest

from tests.analysis.worlds import make_rows, make_study, one_cell_study
from trifecta.analysis.estimate import arm_pairs, log_value, pair_blocks, ratio_estimate
from trifecta.design.metrics import METRICS
from trifecta.design.model import Baseline

P50, P99, RATE = METRICS["latency_p50_ns"], METRICS["latency_p99_ns"], METRICS["requests_per_s"]


def row(**columns):
    return {"samples": 100, "success_rate": 1.0, "latency_p50_ns": 1000, "latency_p99_ns": 5000, **columns}


def test_a_value_is_its_log_and_a_missing_one_is_missing():
    assert log_value(row(), P50) == pytest.approx(math.log(1000))
    for missing in (None, float("nan"), -1, 0):
        assert math.isnan(log_value(row(latency_p50_ns=missing), P50))
    assert math.isnan(log_value(row(latency_p50_ns=None, samples=0, success_rate=None), P50))


def test_a_percentile_that_lies_among_failures_is_worse_than_every_finite_one():
    assert log_value(row(success_rate=0.4), P50) == math.inf
    assert log_value(row(success_rate=0.6), P50) == pytest.approx(math.log(1000))
    assert log_value(row(success_rate=0.985), P99) == math.inf
    assert log_value(row(success_rate=0.991, latency_p99_ns=None), P99) == math.inf
    assert math.isnan(log_value(row(success_rate=0.9, ttfb_p50_ns=None), METRICS["ttfb_p50_ns"]))


def test_a_rate_of_zero_is_worse_than_every_other():
    assert log_value(row(requests_per_s=0.0), RATE) == -math.inf
    assert log_value(row(requests_per_s=10.0), RATE) == pytest.approx(math.log(10))


def test_pairs_are_each_arm_to_the_baseline_and_the_others_newer_to_older():
    assert arm_pairs(one_cell_study()) == [("h1", "h2"), ("h3", "h2"), ("h3", "h1")]
    assert arm_pairs(one_cell_study(baseline=Baseline("h1"))) == [("h2", "h1"), ("h3", "h1"), ("h3", "h2")]
    assert arm_pairs(one_cell_study(baseline=Baseline("h3"))) == [("h1", "h3"), ("h2", "h3"), ("h2", "h1")]
    two = make_study(factors={"protocol": ("h2", "h3")})
    assert arm_pairs(two) == [("h3", "h2")]


def pair(rows, arm="h3", reference="h2"):
    return pair_blocks(rows[0]["cell"], rows, P50, arm=arm, reference=reference, baseline="h2")


def test_blocks_are_arm_then_reference_then_its_second_run_in_block_order():
    rows = make_rows(one_cell_study(), lambda cell, protocol: {"h1": 1e6, "h2": 2e6, "h3": 4e6}[protocol], 3, sigma=0)
    found = pair(list(reversed(rows)))
    assert np.exp(found.logs) == pytest.approx(np.array([[4e6, 2e6, 2e6]] * 3))
    assert ratio_estimate(found.logs) == pytest.approx(2.0)
    assert pair(rows, "h3", "h1").logs.shape == (3, 2)
    again = pair(rows, "h2#aa", "h2")
    assert np.exp(again.logs) == pytest.approx(np.array([[2e6, 2e6]] * 3))


def test_the_reference_of_a_block_is_the_geometric_mean_of_both_runs():
    logs = np.log(np.array([[8.0, 1.0, 4.0]]))
    assert ratio_estimate(logs) == pytest.approx(4.0)


def test_invalid_trials_leave_their_slot_empty_and_are_counted():
    rows = make_rows(one_cell_study(), lambda cell, protocol: 1e6, 4, sigma=0.1)

    def spoil(block, arm):
        next(r for r in rows if r["block"] == block and r["arm"] == arm)["valid"] = False

    spoil(0, "h3")  # no arm: the block is out
    spoil(1, "h2")  # one reference left
    spoil(2, "h2")
    spoil(2, "h2#aa")  # no reference: out
    spoil(3, "h1")  # does not matter here
    found = pair(rows)
    assert (found.blocks, found.invalid_trials, found.incomplete_blocks) == (2, 4, 2)
    assert np.isnan(found.logs[0, 1])
    assert not np.isnan(found.logs[1]).any()


def test_with_censored_blocks_the_estimate_is_the_median_while_that_is_finite():
    logs = np.log(np.array([[2.0, 1.0], [3.0, 1.0], [4.0, 1.0]]))
    logs[2, 0] = math.inf
    assert ratio_estimate(logs) == pytest.approx(3.0)
    logs[:, 0] = math.inf
    assert ratio_estimate(logs) is None
    assert ratio_estimate(np.empty((0, 2))) is None


def test_times_of_a_page_that_lie_among_failed_visits_are_worse_than_every_finite_one():
    fcp = METRICS["fcp_p50_ns"]
    assert log_value({"samples": 2, "success_rate": 0.5, "fcp_p50_ns": None}, fcp) == math.inf
    assert math.isnan(log_value({"samples": 2, "success_rate": 1.0, "fcp_p50_ns": None}, fcp))
    assert log_value({"samples": 2, "success_rate": 1.0, "fcp_p50_ns": 1}, fcp) == 0

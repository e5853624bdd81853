"""Confidence sequences: validity under randomisation, coverage at every look, and the edges."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.e_process import log_e_process
from tests.analysis.worlds import NOISES, blocks_in_random_order
from trifecta.analysis.confidence import (
    confidence_sequence,
    differences_of,
    judge,
    log_e_above,
    log_e_above_without,
    log_e_below,
    log_e_below_without,
    log_e_within,
    median_log_ratio,
    votes_above,
)

ALPHA = 0.05
THRESHOLD = math.log(2 / ALPHA)
ZERO = np.zeros(1)


def processes(arm, *references, theta=0.0):
    """Log of both one-sided e-processes of simulated comparisons (..., T) against one or two runs."""
    differences = np.stack([arm - reference - theta for reference in references])
    above = np.where(differences > 0, 1.0, -1.0).mean(axis=0)
    below = np.where(differences < 0, 1.0, -1.0).mean(axis=0)
    return log_e_process(above), log_e_process(below)


def ever(arm, *references, theta=0.0):
    """Which comparisons reject the median theta at any look."""
    above, below = processes(arm, *references, theta=theta)
    return (np.maximum(above, below).max(axis=-1)) >= THRESHOLD


def test_over_all_orders_that_the_blocks_could_have_had_the_mean_e_value_is_at_most_one():
    # Values of three runs a block, of any kind: outliers, ties, a value a thousand times the others.
    values = np.array([[0.0, 0.3, -0.1], [7.0, 7.2, 7.1], [1e3, 2.0, 1.0], [-4.0, 0.1, 0.15]])
    orders = list(itertools.permutations(range(3)))

    def mean_over_orders(runs):
        worlds = [
            np.stack([runs[block][list(order)] for block, order in enumerate(choice)])
            for choice in itertools.product(orders, repeat=len(runs))
        ]
        return np.exp([[log_e_above(world, ZERO)[0], log_e_below(world, ZERO)[0]] for world in worlds])

    untied = mean_over_orders(values)
    assert untied.mean(axis=0) == pytest.approx([1.0, 1.0], abs=1e-9)
    assert untied.max() > 2  # they do differ from world to world
    values[1, 1] = values[1, 0]
    assert (mean_over_orders(values).mean(axis=0) < 1).all()  # a tie costs evidence


@pytest.mark.parametrize("noise", NOISES)
def test_a_single_comparison_is_rarely_rejected_at_any_of_200_looks(noise):
    rng = np.random.default_rng(20)
    values = blocks_in_random_order(noise, rng, 4000, 200, 4)
    rejected = ever(values[..., 0], values[..., 1], values[..., 2]).sum()
    assert rejected <= stats.binom.ppf(0.9999, len(values), ALPHA), f"{rejected} of {len(values)}"
    assert rejected > 0.005 * len(values) or noise == "ties of 1 ms"  # the level is used, not given away


def test_the_simulation_has_teeth_a_t_test_with_peeking_fails_it():
    rng = np.random.default_rng(21)
    values = blocks_in_random_order("log-normal", rng, 500, 200, 4)
    differences = values[..., 0] - values[..., 1]
    rejected = np.zeros(len(values), dtype=bool)
    for look in range(5, 201):
        rejected |= stats.ttest_1samp(differences[:, :look], 0, axis=1).pvalue < ALPHA
    assert rejected.mean() > 0.2


UNEQUAL = {
    "a quarter of the spread": lambda rng, shape: rng.normal(0, 0.0125, shape),
    "four times the spread": lambda rng, shape: rng.normal(0, 0.2, shape),
    "skewed, four times the spread": lambda rng, shape: 0.2 * (rng.exponential(1, shape) - 1),
    "a mode of 15 % at + 50 %": lambda rng, shape: (
        np.log(1.5) * (rng.random(shape) < 0.15) + rng.normal(0, 0.02, shape)
    ),
    "a mode of 30 % at + 50 %": lambda rng, shape: np.log(1.5) * (rng.random(shape) < 0.3) + rng.normal(0, 0.02, shape),
    "a mode of 30 % at - 45 %": lambda rng, shape: (
        np.log(0.55) * (rng.random(shape) < 0.3) + rng.normal(0, 0.02, shape)
    ),
}


@pytest.mark.parametrize("arm", UNEQUAL)
def test_the_median_is_covered_at_any_of_55_looks_whatever_the_arms_differ_in(arm):
    """No symmetry: the arm has another spread, skew or modes than its reference; the truth is the median of D."""
    rng = np.random.default_rng(22)
    long = UNEQUAL[arm](rng, 400_000) - rng.normal(0, 0.05, 400_000)
    truth = float(np.median(long))
    count = 3000
    drawn = UNEQUAL[arm](rng, (count, 60))
    rejected = ever(drawn, *(rng.normal(0, 0.05, (count, 60)) for _ in range(2)), theta=truth).sum()
    assert rejected <= stats.binom.ppf(0.9999, count, ALPHA), f"{rejected} of {count}"


@pytest.mark.parametrize("noise", NOISES)
def test_the_interval_covers_the_truth_at_all_looks_together(noise):
    rng = np.random.default_rng(24)
    truth = math.log(1.10)
    count, missed = 200, 0
    looks = [4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 60]
    for values in blocks_in_random_order(noise, rng, count, looks[-1], 4):
        logs = values[:, :3].copy()
        logs[:, 0] += truth
        for look in looks:
            interval = confidence_sequence(logs[:look], ALPHA)
            low = -math.inf if interval.low is None else interval.low - 1e-12
            high = math.inf if interval.high is None else interval.high + 1e-12
            estimate = median_log_ratio(logs[:look])
            assert low <= estimate <= high  # the number printed lies in its interval
            if not low <= truth <= high:
                missed += 1
                break
    assert missed <= stats.binom.ppf(0.999, count, ALPHA), f"{missed} of {count}"


def test_the_interval_is_the_set_of_ratios_that_the_e_processes_do_not_reject():
    rng = np.random.default_rng(25)
    for blocks, references in ((6, 1), (7, 2), (30, 1), (30, 2), (80, 2)):
        logs = rng.normal(0, 0.05, (blocks, 1 + references))
        interval = confidence_sequence(logs, ALPHA)
        ends = np.array([interval.low - 1e-9, interval.low + 1e-9, interval.high - 1e-9, interval.high + 1e-9])
        evidence = np.maximum(log_e_above(logs, ends), log_e_below(logs, ends))
        assert list(evidence < THRESHOLD) == [False, True, True, False]
        found = judge(logs, ALPHA)
        assert found.interval == interval
        assert interval.excludes_zero() == (max(found.log_e_above, found.log_e_below) >= THRESHOLD)
        reach = max(abs(interval.low), abs(interval.high))
        assert log_e_within(logs, reach + 1e-9) >= THRESHOLD > log_e_within(logs, reach - 1e-9)


@pytest.mark.parametrize("blocks", [7, 40, 41, 90, 700])
@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.05])
def test_its_ends_are_the_first_values_that_are_not_rejected_among_however_many(blocks, shift):
    """Each value seen is tried, by the e-value of a theta just below it."""
    rng = np.random.default_rng(blocks)
    arm, *references = rng.normal(0, 0.1, (3, blocks))
    logs = np.column_stack([arm + shift, *references])
    logs[rng.random(blocks) < 0.1, 2] = np.nan
    found = confidence_sequence(logs, ALPHA)
    differences = differences_of(logs)
    values = np.unique(differences[~np.isnan(differences)])
    for end, sign, log_e in ((found.low, 1, log_e_above), (found.high, -1, log_e_below)):
        rejected = [value for value in values if log_e(logs, np.array([value - sign * 1e-12]))[0] >= THRESHOLD]
        assert end == ((max(rejected) if sign > 0 else min(rejected)) if rejected else None)


def test_blocks_left_out_by_group_leave_what_the_rest_says():
    rng = np.random.default_rng(3)
    logs = rng.normal(0, 0.1, (60, 3))
    logs[:, 0] += 0.08
    logs[4, 1] = logs[9, 2] = np.nan
    logs[5] = np.inf
    groups = rng.integers(0, 7, 60)
    for theta in (0.0, 0.1):
        edge = np.array([theta])
        above, below = log_e_above_without(logs, theta, groups), log_e_below_without(logs, theta, groups)
        for group in range(7):
            rest = logs[groups != group]
            assert above[group] == pytest.approx(log_e_above(rest, edge)[0], rel=1e-9)
            assert below[group] == pytest.approx(log_e_below(rest, edge)[0], rel=1e-9)
    assert len(set(log_e_above_without(logs, 0.0, groups))) > 3


def test_a_wider_level_gives_an_interval_inside():
    logs = np.random.default_rng(8).normal(0, 0.05, (40, 3))
    narrow, wide = confidence_sequence(logs, 0.2), confidence_sequence(logs, 0.001)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_it_moves_with_the_effect_turns_with_the_sign_and_does_not_care_for_the_unit():
    rng = np.random.default_rng(26)
    logs = rng.normal(0, 0.05, (25, 3))
    interval = confidence_sequence(logs, ALPHA)
    moved = confidence_sequence(logs + np.array([0.7, 0.0, 0.0]), ALPHA)
    assert (moved.low, moved.high) == pytest.approx((interval.low + 0.7, interval.high + 0.7), abs=1e-9)
    turned = confidence_sequence(-logs, ALPHA)
    assert (turned.low, turned.high) == pytest.approx((-interval.high, -interval.low), abs=1e-9)
    other_unit = confidence_sequence(logs + math.log(1000), ALPHA)
    assert (other_unit.low, other_unit.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_few_blocks_have_no_bound_and_six_that_agree_have():
    far = np.column_stack([np.full(6, 2.0) + np.arange(6) * 1e-3, np.zeros(6)])
    for blocks in range(6):
        assert confidence_sequence(far[:blocks], ALPHA).low is None
    assert confidence_sequence(far[:5], ALPHA).excludes_zero() is False
    six = confidence_sequence(far, ALPHA)
    assert (six.low, six.high) == pytest.approx((2.0, 2.005))


def test_equal_blocks_give_their_ratio_and_ties_are_no_evidence():
    equal = confidence_sequence(np.tile([0.2, 0.0], (12, 1)), ALPHA)
    assert (equal.low, equal.high) == pytest.approx((0.2, 0.2))
    tied = judge(np.zeros((12, 3)), ALPHA)
    assert tied.log_e < 0
    assert (tied.interval.low, tied.interval.high) == (0.0, 0.0)


def test_the_estimate_is_the_median_over_blocks_and_both_runs_of_the_reference():
    logs = np.array([[1.0, 0.0, 0.2], [1.0, 0.1, 0.3], [1.0, 0.4, 0.5]])
    assert median_log_ratio(logs) == pytest.approx((0.7 + 0.8) / 2)
    logs[0, 2] = math.nan  # one run alone weighs as much as two
    assert median_log_ratio(logs) == pytest.approx((0.7 + 0.9) / 2)
    assert median_log_ratio(np.array([[0.3, 0.1]])) == pytest.approx(0.2)


def test_equal_skewed_arms_have_a_ratio_of_one_although_the_mean_of_two_runs_is_not_their_median():
    rng = np.random.default_rng(31)
    values = np.log(1.5) * (rng.random((20_000, 3)) < 0.15) + rng.normal(0, 0.02, (20_000, 3))
    assert abs(median_log_ratio(values)) < 0.001
    assert np.median(values[:, 0] - values[:, 1:].mean(axis=1)) < -0.003  # what we once compared


def test_a_censored_arm_is_evidence_of_worse_and_two_censored_trials_are_a_tie():
    inf = math.inf
    worse = np.array([[inf, 0.0, 0.1]] * 8)
    assert log_e_above(worse, ZERO)[0] > THRESHOLD
    beyond = confidence_sequence(worse, ALPHA)
    assert (beyond.low, beyond.high) == (math.log(10_000), None)  # no finite ratio was seen
    assert confidence_sequence(-worse, ALPHA).high == -math.log(10_000)
    assert confidence_sequence(worse[:5], ALPHA).low is None
    assert median_log_ratio(worse) is None
    some = np.concatenate([worse, np.random.default_rng(1).normal([0.5, 0, 0], 0.01, (8, 3))])
    assert confidence_sequence(some, ALPHA).low > 0
    assert differences_of(np.array([[inf, inf, 0.0]])).ravel().tolist() == [0.0, math.log(10_000)]
    assert judge(np.array([[inf, inf, inf]] * 8), ALPHA).log_e < 0


def test_an_effect_that_turns_during_the_run_gives_no_narrow_interval():
    flipped = np.column_stack([np.repeat([1.0, -1.0], 60), np.zeros(120)])
    interval = confidence_sequence(flipped + np.random.default_rng(2).normal(0, 0.001, (120, 1)) * [1, 0], ALPHA)
    assert interval.high - interval.low > 1


def test_one_outlier_does_not_end_the_evidence_nor_move_the_interval():
    logs = np.random.default_rng(3).normal([0.2, 0, 0], 0.02, (30, 3))
    logs[10, 0] = -30.0
    assert log_e_above(logs, ZERO)[0] > THRESHOLD
    interval = confidence_sequence(logs, ALPHA)
    assert 0.15 < interval.low < interval.high < 0.25


def test_votes_of_a_block_are_the_mean_over_its_reference_runs():
    differences = differences_of(np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 0.5], [1.0, math.nan, 3.0]]))
    assert votes_above(differences, ZERO).tolist() == [[0.0, 1.0, -1.0]]

"""Confidence sequences: exactness under randomisation, coverage at every look, and the edges."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import NOISES, blocks_in_random_order
from trifecta.analysis.confidence import (
    confidence_sequence,
    differences_of,
    log_e_process,
    log_e_value,
    log_factors,
    mean_of_runs,
)

ALPHA = 0.05
THRESHOLD = math.log(1 / ALPHA)


def test_over_all_orders_that_the_blocks_could_have_had_the_mean_e_value_is_exactly_one():
    # Values of three runs a block, of any kind: outliers, ties, a value a thousand times the others.
    values = np.array([[0.0, 0.3, -0.1], [7.0, 7.0, 7.1], [1e3, 2.0, 1.0], [-4.0, 0.1, 0.1]])
    orders = list(itertools.permutations(range(3)))
    worlds = [
        np.stack([values[block][list(order)] for block, order in enumerate(choice)])
        for choice in itertools.product(orders, repeat=len(values))
    ]
    e_values = np.exp([log_e_value(world)[0] for world in worlds])
    assert e_values.mean() == pytest.approx(1.0, abs=1e-9)
    assert e_values.max() > 2  # they do differ from world to world


def test_a_block_with_one_reference_missing_keeps_the_mean_at_one():
    values = np.array([[0.0, 0.3], [5.0, 7.0], [-1.0, 2.0]])
    e_values = []
    for flips in itertools.product([False, True], repeat=3):
        world = np.stack([values[b][::-1] if flip else values[b] for b, flip in enumerate(flips)])
        e_values.append(math.exp(log_e_value(np.column_stack([world, np.full(3, np.nan)]))[0]))
    assert np.mean(e_values) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_a_single_comparison_is_rarely_rejected_at_any_of_200_looks(noise):
    rng = np.random.default_rng(20)
    values = blocks_in_random_order(noise, rng, 4000, 200, 4)
    against = [log_e_process(values[..., 0] - values[..., other]) for other in (1, 2)]
    ever = (mean_of_runs(np.stack(against, axis=-1)).max(axis=1) >= THRESHOLD).sum()
    assert ever <= stats.binom.ppf(0.9999, len(values), ALPHA), f"{ever} of {len(values)}"
    assert ever > 0.01 * len(values)  # the level is used, not given away


def test_the_simulation_has_teeth_a_t_test_with_peeking_fails_it():
    rng = np.random.default_rng(21)
    values = blocks_in_random_order("log-normal", rng, 500, 200, 4)
    differences = values[..., 0] - values[..., 1]
    ever = np.zeros(len(values), dtype=bool)
    for look in range(5, 201):
        ever |= stats.ttest_1samp(differences[:, :look], 0, axis=1).pvalue < ALPHA
    assert ever.mean() > 0.2


@pytest.mark.parametrize("spread", [0.25, 2.0, 4.0])
def test_an_arm_that_only_varies_more_or_less_is_not_taken_for_a_different_one(spread):
    rng = np.random.default_rng(22)
    count = 2000
    arm = rng.normal(0, 0.05 * spread, (count, 200))
    against = [log_e_process(arm - rng.normal(0, 0.05, (count, 200))) for _ in range(2)]
    ever = (mean_of_runs(np.stack(against, axis=-1)).max(axis=1) >= THRESHOLD).sum()
    assert ever <= stats.binom.ppf(0.9999, count, ALPHA)


def test_unequal_skew_costs_coverage_as_the_methodology_says():
    # One arm exponential, the other normal, the same geometric mean: outside the assumption, documented with figures.
    rng = np.random.default_rng(23)
    count = 2000

    def ever_excluded(times, blocks):
        arm = 0.05 * times * (rng.exponential(1, (count, blocks)) - 1)
        against = [log_e_process(arm - rng.normal(0, 0.05, (count, blocks))) for _ in range(2)]
        return (mean_of_runs(np.stack(against, axis=-1)).max(axis=1) >= THRESHOLD).mean()

    assert ever_excluded(1, 20) < 0.06
    assert ever_excluded(2, 20) < 0.08
    assert 0.15 < ever_excluded(4, 200) < 0.35


@pytest.mark.parametrize("noise", NOISES)
def test_the_interval_covers_the_truth_at_all_looks_together(noise):
    rng = np.random.default_rng(24)
    truth = math.log(1.10)
    count, missed = 120, 0
    looks = [4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40]
    for values in blocks_in_random_order(noise, rng, count, looks[-1], 4):
        logs = values[:, :3].copy()
        logs[:, 0] += truth
        for look in looks:
            interval = confidence_sequence(logs[:look], ALPHA)
            low = -math.inf if interval.low is None else interval.low
            high = math.inf if interval.high is None else interval.high
            if interval.contradictory or not low <= truth <= high:
                missed += 1
                break
    assert missed <= stats.binom.ppf(0.999, count, ALPHA), f"{missed} of {count}"


def test_the_interval_is_the_set_of_ratios_that_the_e_process_does_not_reject():
    rng = np.random.default_rng(25)
    logs = rng.normal(0, 0.05, (30, 3))
    interval = confidence_sequence(logs, ALPHA)
    assert interval.low is not None
    assert interval.high is not None
    ends = np.array([interval.low - 1e-4, interval.low + 1e-4, interval.high - 1e-4, interval.high + 1e-4])
    assert list(log_e_value(logs, ends) < THRESHOLD) == [False, True, True, False]
    assert interval.excludes_zero() == (log_e_value(logs)[0] >= THRESHOLD)


def test_it_moves_with_the_effect_turns_with_the_sign_and_does_not_care_for_the_unit():
    rng = np.random.default_rng(26)
    logs = rng.normal(0, 0.05, (25, 3))
    interval = confidence_sequence(logs, ALPHA)
    assert interval.low is not None
    assert interval.high is not None
    moved = confidence_sequence(logs + np.array([0.7, 0.0, 0.0]), ALPHA)
    assert (moved.low, moved.high) == pytest.approx((interval.low + 0.7, interval.high + 0.7), abs=1e-4)
    turned = confidence_sequence(-logs, ALPHA)
    assert (turned.low, turned.high) == pytest.approx((-interval.high, -interval.low), abs=1e-4)
    other_unit = confidence_sequence(logs + math.log(1000), ALPHA)
    assert (other_unit.low, other_unit.high) == pytest.approx((interval.low, interval.high), abs=1e-4)


def test_few_blocks_have_no_bound_and_six_that_agree_have():
    far = np.column_stack([np.full(6, 2.0) + np.arange(6) * 1e-3, np.zeros(6)])
    for blocks in range(5):
        assert confidence_sequence(far[:blocks], ALPHA).low is None
    assert confidence_sequence(far[:5], ALPHA).excludes_zero() is False
    assert confidence_sequence(far, ALPHA).excludes_zero() is True


def test_equal_blocks_give_their_ratio_and_ties_are_no_evidence():
    equal = confidence_sequence(np.tile([0.2, 0.0], (12, 1)), ALPHA)
    assert (equal.low, equal.high) == pytest.approx((0.2, 0.2), abs=1e-4)
    assert log_e_value(np.zeros((12, 3)))[0] == pytest.approx(0.0, abs=1e-12)
    assert (log_factors(np.zeros(3)) == 0).all()


def test_a_censored_arm_is_evidence_of_worse_and_two_censored_trials_are_a_tie():
    inf = math.inf
    worse = np.array([[inf, 0.0, 0.1]] * 8)
    assert log_e_value(worse)[0] > THRESHOLD
    assert confidence_sequence(worse, ALPHA).low == math.log(10_000)  # no finite ratio was seen
    assert confidence_sequence(-worse, ALPHA).high == -math.log(10_000)
    assert confidence_sequence(worse[:5], ALPHA).low is None
    some = np.concatenate([worse, np.random.default_rng(1).normal([0.5, 0, 0], 0.01, (8, 3))])
    interval = confidence_sequence(some, ALPHA)
    assert interval.low is not None
    assert interval.low > 0
    assert differences_of(np.array([[inf, inf, 0.0]])).ravel().tolist() == [0.0, inf]
    assert log_e_value(np.array([[inf, inf, inf]] * 8))[0] == pytest.approx(0.0, abs=1e-12)
    assert log_e_value(-worse)[0] == pytest.approx(log_e_value(worse)[0])


def test_an_effect_that_turns_during_the_run_gives_no_narrow_interval():
    flipped = np.column_stack([np.repeat([1.0, -1.0], 60), np.zeros(120)])
    interval = confidence_sequence(flipped + np.random.default_rng(2).normal(0, 0.001, (120, 1)) * [1, 0], ALPHA)
    assert interval.contradictory or (interval.high or 9) - (interval.low or -9) > 1
    assert not interval.excludes_zero()


def test_one_outlier_does_not_end_the_evidence():
    logs = np.random.default_rng(3).normal([0.2, 0, 0], 0.02, (30, 3))
    logs[10, 0] = -30.0
    assert log_e_value(logs)[0] > THRESHOLD

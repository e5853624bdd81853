"""How many blocks a difference takes: the figures that docs/methodology.md states."""

import math

import numpy as np
import pytest

from trifecta.analysis.confidence import confidence_sequence, log_e_process, mean_of_runs

COUNT, BLOCKS = 1500, 200


def blocks_to(threshold, ratio, noise, runs=2, seed=31):
    """Blocks until a claim, per simulated comparison; BLOCKS + 1 where it is not made."""
    rng = np.random.default_rng(seed)
    arm = rng.normal(math.log(ratio), noise, (COUNT, BLOCKS))
    against = [log_e_process(arm - rng.normal(0, noise, (COUNT, BLOCKS))) for _ in range(runs)]
    reached = mean_of_runs(np.stack(against, axis=-1)) >= math.log(threshold)
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, BLOCKS + 1)


def test_ten_percent_with_five_percent_noise_takes_a_median_of_seven_blocks():
    assert np.median(blocks_to(20, 1.10, 0.05)) <= 7
    assert np.quantile(blocks_to(20, 1.10, 0.05), 0.9) <= 16


def test_ten_percent_with_five_percent_noise_among_36_comparisons_of_which_no_other_differs():
    assert np.median(blocks_to(36 * 20, 1.10, 0.05)) <= 15


@pytest.mark.parametrize(("ratio", "most"), [(2.0, 6), (1.2, 6), (1.05, 23), (1.03, 60), (1.02, 140)])
def test_power_curve_at_five_percent_noise(ratio, most):
    assert np.median(blocks_to(20, ratio, 0.05)) <= most


def test_a_large_difference_takes_six_blocks_the_fewest_that_chance_allows():
    taken = blocks_to(20, 3.0, 0.05)
    assert taken.min() == 6
    assert np.quantile(taken, 0.99) == 6


def test_the_interval_narrows_to_within_twice_a_fixed_size_interval():
    rng = np.random.default_rng(32)
    widths = []
    for _ in range(20):
        interval = confidence_sequence(rng.normal(0, 0.05, (100, 3)), 0.05)
        assert interval.low is not None
        assert interval.high is not None
        widths.append(interval.high - interval.low)
    fixed = 2 * 1.96 * 0.05 * math.sqrt(1.5 / 100)
    assert np.median(widths) < 2.6 * fixed

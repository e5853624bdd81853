"""How many blocks a difference takes: the figures that docs/methodology.md states."""

import math

import numpy as np
import pytest

from tests.analysis.e_process import log_e_process
from trifecta.analysis.confidence import confidence_sequence
from trifecta.analysis.family import log_e_to_claim

COUNT, BLOCKS = 1500, 200
ALONE, AMONG_36_OF_WHICH_24 = math.log(40), log_e_to_claim(36, 24, 0.05)


def blocks_to(threshold, ratio, noise, runs=2, seed=31):
    """Blocks until a claim, per simulated comparison; BLOCKS + 1 where it is not made."""
    rng = np.random.default_rng(seed)
    arm = rng.normal(math.log(ratio), noise, (COUNT, BLOCKS))
    differences = np.stack([arm - rng.normal(0, noise, (COUNT, BLOCKS)) for _ in range(runs)])
    reached = log_e_process(np.where(differences > 0, 1.0, -1.0).mean(axis=0)) >= threshold
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, BLOCKS + 1)


def test_ten_percent_with_five_percent_noise_takes_a_median_of_seven_blocks():
    assert np.median(blocks_to(ALONE, 1.10, 0.05)) <= 7
    assert np.quantile(blocks_to(ALONE, 1.10, 0.05), 0.9) <= 19


def test_ten_percent_among_36_comparisons_of_which_two_thirds_differ():
    assert np.median(blocks_to(AMONG_36_OF_WHICH_24, 1.10, 0.05)) <= 9


@pytest.mark.parametrize(("ratio", "most"), [(2.0, 6), (1.2, 6), (1.05, 26), (1.03, 77), (1.02, 175)])
def test_power_curve_at_five_percent_noise(ratio, most):
    assert np.median(blocks_to(ALONE, ratio, 0.05)) <= most


def test_a_large_difference_takes_six_blocks_the_fewest_that_chance_allows():
    taken = blocks_to(ALONE, 3.0, 0.05)
    assert taken.min() == 6
    assert np.quantile(taken, 0.99) == 6
    assert np.median(blocks_to(AMONG_36_OF_WHICH_24, 3.0, 0.05)) == 7


@pytest.mark.parametrize(("blocks", "alike"), [(6, 25), (7, 13), (8, 7)])
def test_so_many_of_36_comparisons_that_agree_in_every_block_are_claimed_at_once(blocks, alike):
    reached = log_e_process(np.ones((1, blocks)))[0, -1]
    assert reached >= log_e_to_claim(36, alike, 0.05)
    assert reached < log_e_to_claim(36, alike - 1, 0.05)


def test_the_interval_narrows_to_within_three_times_a_fixed_size_interval():
    rng = np.random.default_rng(32)
    widths = []
    for _ in range(20):
        interval = confidence_sequence(rng.normal(0, 0.05, (100, 3)), 0.05)
        assert interval.low is not None
        assert interval.high is not None
        widths.append(interval.high - interval.low)
    fixed = 2 * 1.96 * 0.05 * math.sqrt(1.5 / 100)
    assert np.median(widths) < 3 * fixed

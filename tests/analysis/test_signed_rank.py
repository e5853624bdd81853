"""The fixed-size analysis: against scipy, and its error rates when the number of blocks is fixed."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import NOISES, blocks_in_random_order
from trifecta.analysis.contrasts import holm
from trifecta.analysis.signed_rank import fixed_analysis, permutation_p, signed_rank_p, walsh_averages


@pytest.mark.parametrize("blocks", [2, 5, 9, 14])
def test_exact_permutation_p_is_scipys(blocks):
    ratios = np.random.default_rng(blocks).normal(0.03, 0.05, blocks)
    theirs = stats.permutation_test(
        (ratios, np.zeros(blocks)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert permutation_p(ratios) == pytest.approx(theirs.pvalue)


def test_monte_carlo_p_repeats_with_its_seed_and_is_near_the_t_test():
    ratios = np.random.default_rng(1).normal(0.015, 0.05, 40)
    assert permutation_p(ratios, seed=3) == permutation_p(ratios, seed=3)
    assert permutation_p(ratios, seed=3) == pytest.approx(stats.ttest_1samp(ratios, 0).pvalue, abs=0.03)
    assert permutation_p(ratios + 1.0) == pytest.approx(1 / 10_000)  # never zero


def test_permutation_p_is_uniform_without_a_difference():
    rng = np.random.default_rng(2)
    p = np.array([permutation_p(rng.standard_t(2, 10)) for _ in range(600)])
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).sum() <= stats.binom.ppf(0.999, len(p), level)
    assert (p <= 0.5).mean() > 0.4


def coverage(noise, blocks, runs, seed):
    """Share of comparisons whose interval holds the true ratio of 1.1."""
    logs = blocks_in_random_order(noise, np.random.default_rng(seed), runs, blocks, 3)
    logs[:, :, 0] += math.log(1.1)
    found = [fixed_analysis(one) for one in logs]
    return np.mean([(one.low or 0) - 1e-12 <= 1.1 <= (one.high or math.inf) + 1e-12 for one in found])


@pytest.mark.parametrize("blocks", [6, 7, 9, 20, 60])
@pytest.mark.parametrize("noise", ["log-normal", "student t, 2 df", "ar(1) 0.9", "drift with jumps"])
def test_the_interval_covers_as_often_as_it_says(noise, blocks):
    runs = 200
    assert coverage(noise, blocks, runs, blocks) * runs >= stats.binom.ppf(0.001, runs, 0.95)


@pytest.mark.long
@pytest.mark.parametrize("blocks", [6, 9, 20, 60])
@pytest.mark.parametrize("noise", NOISES)
def test_the_interval_covers_in_many_simulations(noise, blocks):
    assert coverage(noise, blocks, 2_000, blocks) * 2_000 >= stats.binom.ppf(0.0005, 2_000, 0.95)


@pytest.mark.parametrize("blocks", [6, 9, 25])
def test_the_test_is_scipys_and_the_interval_its_inversion(blocks):
    values = np.random.default_rng(blocks).normal(0.03, 0.05, blocks)
    found = fixed_analysis(np.stack([values, np.zeros(blocks)], axis=1))
    assert found.p == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)
    for end, inward in ((math.log(found.low), 1), (math.log(found.high), -1)):
        assert signed_rank_p(values - end - inward * 1e-9) > 0.05
        assert signed_rank_p(values - end + inward * 1e-9) <= 0.05
    assert math.log(found.ratio) == pytest.approx(np.median(walsh_averages(values)))


def test_one_outlier_moves_the_estimate_little():
    logs = np.stack([np.random.default_rng(4).normal(0, 0.01, 12), np.zeros(12)], axis=1)
    quiet = fixed_analysis(logs).ratio
    logs[5, 0] = 3.0
    assert fixed_analysis(logs).ratio == pytest.approx(quiet, abs=0.01)


def test_ties_and_few_or_censored_blocks():
    equal = fixed_analysis(np.tile([0.1, 0.0], (6, 1)))
    assert (equal.ratio, equal.low, equal.high) == (pytest.approx(math.exp(0.1)), None, None)
    assert fixed_analysis(np.tile([0.0, 0.0], (6, 1))).p == 1
    assert fixed_analysis(np.random.default_rng(1).normal(0, 1, (5, 2))) is None
    assert fixed_analysis(np.array([[math.inf, 0.0], *[[0.1, 0.0]] * 9])) is None
    strict = fixed_analysis(np.random.default_rng(1).normal(0, 1, (6, 2)), confidence=0.99)
    assert (strict.low, strict.high) == (None, None), "six blocks reject nothing at 1 %"


def test_holm_is_the_step_down_of_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, None, 0.01]) == [pytest.approx(0.8), None, pytest.approx(0.03)]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []

"""The fixed-size analysis: against scipy, and its error rates when the number of blocks is fixed."""

import math

import numpy as np
import pytest
from scipy import stats

from trifecta.analysis.fixed import bca_interval, fixed_analysis, holm, permutation_p


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


def test_bca_interval_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    truth, covered = math.log(1.1), 0
    for _ in range(150):
        low, high = bca_interval(rng.normal(truth, 0.05, 25), 0.95, seed=1)
        assert low is not None
        assert high is not None
        covered += low <= 1.1 <= high
    assert covered >= stats.binom.ppf(0.001, 150, 0.92)  # BCa is known to fall a little short with few values


def test_ties_and_few_or_censored_blocks():
    equal = fixed_analysis(np.tile([0.1, 0.0], (5, 1)))
    assert equal is not None
    assert (equal.ratio, equal.low, equal.high) == (pytest.approx(math.exp(0.1)), None, None)
    assert fixed_analysis(np.array([[0.1, 0.0]])) is None
    assert fixed_analysis(np.array([[math.inf, 0.0], [0.1, 0.0], [0.2, 0.0]])) is None


def test_holm_is_the_step_down_of_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, None, 0.01]) == [pytest.approx(0.8), None, pytest.approx(0.03)]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []

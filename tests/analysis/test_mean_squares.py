"""Draws of a noncentrality: where the root of the form is taken for normal, they are those of scipy."""

import numpy as np
import pytest
from scipy import special, stats

from trifecta.analysis import mean_squares
from trifecta.analysis.student import t_quantile, two_sided_p


@pytest.mark.parametrize("freedom", [1.0, 2.3, 10.0])
@pytest.mark.parametrize("size", [2_000.0, 3_100.0, 50_000.0])
def test_large_forms_draw_what_the_distribution_says(size, freedom):
    draws = mean_squares._noncentral(size, (1.0, freedom), np.ones(500), np.random.default_rng(3))
    uniform = np.clip(np.random.default_rng(3).random(500), 1e-12, 1 - 1e-12)
    assert draws == pytest.approx(special.chndtrinc(size, freedom, uniform), rel=2e-4)


def test_students_t_is_that_of_scipy_stats():
    for freedom in (1, 2, 5.5, 11, 400):
        for share in (0.9, 0.975, 0.9995):
            assert t_quantile(share, freedom) == pytest.approx(float(stats.t.ppf(share, freedom)), rel=1e-9)
        for t in (0.0, 1.3, -4.0, 30.0):
            assert two_sided_p(t, freedom) == pytest.approx(2 * float(stats.t.sf(abs(t), freedom)), rel=1e-9)

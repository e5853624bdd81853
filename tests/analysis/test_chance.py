"""What chance can explain."""

import numpy as np
import pytest
from scipy import stats

from trifecta.analysis.chance import consistent, plausible_share
from trifecta.design.impairments import burst_share


def test_the_interval_is_the_binomial_one():
    trials, probability = 3000, 0.02
    low, high = stats.binom.ppf([0.0005, 0.9995], trials, probability)
    accepted = [count for count in range(200) if consistent(count, trials, probability)]
    assert abs(accepted[0] - low) <= 1
    assert abs(accepted[-1] - high) <= 1


def test_certain_and_impossible_events():
    assert consistent(0, 100, 0.0)
    assert not consistent(1, 100, 0.0)
    assert consistent(100, 100, 1.0)
    assert not consistent(99, 100, 1.0)
    assert consistent(0, 0, 0.02)
    assert plausible_share(0, 0.02) == (0.0, 1.0)


@pytest.mark.parametrize(("to_bad", "to_good", "in_bad"), [(0.01, 0.3, 0.5), (0.002, 0.1, 1.0), (0.5, 0.5, 1.0)])
def test_the_variance_of_bursts_is_that_of_a_simulated_channel(to_bad, to_good, in_bad):
    rng = np.random.default_rng(1)
    runs, packets = 1500, 1500
    bad = rng.random(runs) < to_bad / (to_bad + to_good)
    lost = np.zeros(runs)
    for _ in range(packets):
        lost += bad & (rng.random(runs) < in_bad)
        bad = np.where(bad, rng.random(runs) >= to_good, rng.random(runs) < to_bad)
    impairment = {"good_to_bad": to_bad, "bad_to_good": to_good, "loss_good": 0.0, "loss_bad": in_bad}
    share, inflation = burst_share(impairment)
    assert lost.mean() / packets == pytest.approx(share, rel=0.03)
    assert lost.var() / (packets * share * (1 - share)) == pytest.approx(inflation, rel=0.12)

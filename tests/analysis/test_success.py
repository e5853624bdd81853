"""The interval of a success rate: does it hold when requests of a trial fail together?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from tests.analysis.worlds import make_rows, one_cell_study
from trifecta.analysis.confidence import LAMBDAS, WEIGHTS, Interval
from trifecta.analysis.success import design_effect, difference, success_rate, with_unseen
from trifecta.analysis.verdict import verdicts


def coverage(truth: float, correlation: float, trials: int, studies: int, requests: int = 400) -> tuple[float, float]:
    """Share of studies whose interval holds the truth: ours, and that of requests taken as independent."""
    rng = np.random.default_rng(round(1000 * truth + 100 * correlation) + trials)
    ours = naive = 0
    for _ in range(studies):
        if correlation:
            strength = 1 / correlation - 1  # beta-binomial: the correlation of two requests of a trial
            rates = rng.beta(truth * strength, (1 - truth) * strength, trials)
        else:
            rates = np.full(trials, truth)
        succeeded = rng.binomial(requests, rates)
        found = success_rate([(requests, int(k)) for k in succeeded], 0.95)
        assert found.low is not None and found.high is not None
        ours += found.low <= truth <= found.high
        low, high = proportion_confint(int(succeeded.sum()), trials * requests, 0.05, "beta")
        naive += low <= truth <= high
    return ours / studies, naive / studies


@pytest.mark.parametrize(
    ("truth", "correlation", "trials", "least"),
    [(0.9, 0.0, 8, 0.94), (0.9, 0.05, 8, 0.92), (0.9, 0.05, 20, 0.92), (0.98, 0.02, 12, 0.90), (0.5, 0.2, 6, 0.93)],
)
def test_the_interval_holds_although_requests_fail_together(
    truth: float, correlation: float, trials: int, least: float
) -> None:
    ours, naive = coverage(truth, correlation, trials, 500)
    assert ours >= least
    if correlation:
        assert naive < 0.75, "the simulation has teeth: taken as independent, requests promise too much"


def test_the_design_effect_is_that_of_the_correlation() -> None:
    """1 + (n - 1) times the correlation (Kish), for trials of one size."""
    rng = np.random.default_rng(4)
    rates = rng.beta(0.8 * 19, 0.2 * 19, 3_000)
    trials = [(50, int(k)) for k in rng.binomial(50, rates)]
    assert design_effect(trials) == pytest.approx(1 + 49 * 0.05, rel=0.1)
    alone = [(50, int(k)) for k in rng.binomial(50, 0.8, 3_000)]
    assert design_effect(alone) == pytest.approx(1.0, rel=0.1)


def test_independent_requests_get_the_interval_of_clopper_and_pearson() -> None:
    found = success_rate([(100, 90)], 0.95)
    low, high = proportion_confint(90, 100, 0.05, "beta")
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.design_effect is None


def test_without_a_failure_a_trial_counts_as_one() -> None:
    found = success_rate([(2_000, 2_000)] * 12, 0.95)
    assert (found.rate, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.025 ** (1 / 12))
    assert success_rate([(100, 100)] * 60, 0.95).low == pytest.approx(1 - 3.69 / 60, abs=0.003), "the rule of three"


@pytest.mark.parametrize("trials", [6, 12, 60])
def test_trials_that_fail_whole_are_covered(trials: int) -> None:
    rng, runs = np.random.default_rng(trials), 1_000
    truth = 1 - 1 / trials  # so that many a study sees no failure at all
    held = 0
    for failed in rng.random((runs, trials)) > truth:
        found = success_rate([(50, 0 if one else 50) for one in failed], 0.95)
        assert found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
    assert held >= stats.binom.ppf(0.001, runs, 0.95)


def test_a_ratio_without_a_failure_is_no_point() -> None:
    study = one_cell_study()
    for blocks, kind in ((15, "undecided"), (60, "undecided"), (120, "same")):
        rows = make_rows(study, lambda cell, protocol: 1e6, blocks)
        one = next(v for v in verdicts(study, rows, metric="success_rate") if (v.arm, v.reference) == ("h3", "h2"))
        assert one.verdict == kind
        assert one.low is not None and one.high is not None
        stakes = WEIGHTS * (1 + LAMBDAS * (1 / one.low - 1)) ** blocks  # no trial failed: every bet was won
        assert (one.ratio, stakes.sum(), one.high) == pytest.approx((1.0, 40, 1 / one.low), rel=1e-6)
        assert one.family_low is not None and one.low is not None and one.family_low <= one.low < one.ratio
        if kind == "undecided":
            assert "could have missed failures" in one.reason


def test_the_same_success_rate_is_claimed_just_where_the_interval_of_the_family_is_within_the_margin() -> None:
    study, kinds = one_cell_study(), []
    for blocks in (80, 90, 105, 120):
        rows = make_rows(study, lambda cell, protocol: 1e6, blocks)
        for row in rows:
            if row["arm"] == "h1" and row["block"] % 3 == 0:
                row["success_rate"] = 0.9  # so that one of three comparisons can be claimed
        one = next(v for v in verdicts(study, rows, metric="success_rate") if (v.arm, v.reference) == ("h3", "h2"))
        assert one.family_low is not None and one.family_high is not None
        within = one.family_low >= 1 / 1.05 and one.family_high <= 1.05
        assert (one.verdict == "same") == within
        kinds.append((one.verdict, one.likely))
    assert kinds == [("undecided", "same")] * 2 + [("same", None)] * 2


def test_what_few_trials_may_have_missed_holds_at_every_look_and_where_the_trials_of_a_block_fail_together() -> None:
    rng, runs, wrong = np.random.default_rng(3), 200, np.zeros(2)
    margin = math.log(1.05)
    for _ in range(runs):
        fails = rng.random((200, 2)) < 1 - math.exp(-margin)  # as many as the margin: a claim would be false
        logs = np.where(fails[:, [0, 1, 1]], -math.inf, 0.0)
        ends = [with_unseen(Interval(-1e-9, 1e-9), logs[:look], 0.95) for look in range(40, 201, 20)]
        wrong += [any((one.low or 0) >= -margin for one in ends), any((one.high or 0) <= margin for one in ends)]
    assert (wrong <= stats.binom.ppf(0.999, runs, 0.025)).all(), wrong / runs


def test_an_arm_that_fails_is_still_told() -> None:
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: 1e6, 12)
    for row in rows:
        if row["arm"] == "h3":
            row["success_rate"] = 0.5 + 0.01 * (row["block"] % 3)
    one = next(v for v in verdicts(study, rows, metric="success_rate") if (v.arm, v.reference) == ("h3", "h2"))
    assert one.verdict == "slower"
    assert one.high is not None and one.high < 0.6


def test_the_edges() -> None:
    assert success_rate([], 0.95).rate is None
    assert success_rate([(0, 0)], 0.95).trials == 0
    nothing = success_rate([(10, 0), (10, 0)], 0.95)
    assert (nothing.low, nothing.rate) == (0.0, 0.0)
    assert nothing.high is not None and nothing.high > 0.8, "two trials tell little"
    alike = success_rate([(10, 9), (10, 9), (10, 9)], 0.95)  # no more spread than chance: never narrower than chance
    assert (alike.low, alike.high) == pytest.approx(proportion_confint(27, 30, 0.05, "beta"))
    split = success_rate([(100, 100), (100, 100), (100, 0)], 0.95)
    assert split.design_effect == pytest.approx(150)  # all of a trial or none of it
    assert split.low is not None and split.low < 0.05
    one_each = success_rate([(1, 1), (1, 0)], 0.95)
    assert one_each.low is not None and one_each.low < 0.1


def test_who_fails_less_often_is_claimed_in_a_twentieth_of_cases_by_chance() -> None:
    rng = np.random.default_rng(6)

    def rates(truth: float) -> dict[tuple[str, int], float]:
        keys = [(cell, block) for cell in "abc" for block in range(8)]
        return {key: float(rng.binomial(200, truth)) / 200 for key in keys}

    claimed = sum((found := difference(rates(0.98), rates(0.98), 0.95)) is not None and found.p <= 0.05
                  for _ in range(400))  # fmt: skip
    assert claimed <= 32
    found = difference(rates(0.99), rates(0.9), 0.95)
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < 0.09 < found.high
    assert (found.p, found.blocks) == (2 / 2**8, 8)
    assert difference({("a", 1): 1.0}, {("a", 2): 1.0}, 0.95) is None
    alone = difference({("a", 1): 1.0}, {("a", 1): 0.5}, 0.95)
    assert alone is not None and (alone.difference, alone.low, alone.p) == (0.5, None, 1.0)

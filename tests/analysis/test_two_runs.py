"""How far the ratios of two runs lie apart: how often the interval holds the truth, and verdicts turn falsely."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from trifecta.analysis import two_runs
from trifecta.analysis.confidence import judge, median_log_ratio
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.two_runs import (
    ALIKE,
    INDISTINGUISHABLE,
    NEWLY,
    NO_LONGER,
    OPEN_IN_BOTH,
    OTHERWISE,
    became,
    ratio_of_ratios,
)
from trifecta.design.model import VerdictKind

SESSIONS = 0.01
MARGIN = math.log1p(0.05)


def blocks(rng: np.random.Generator, truth: float, noise: float, count: int, tails: str) -> NDArray[np.float64]:
    """The logs of an arm and of both runs of the reference, of one session."""
    drawn = rng.normal(0, noise, (count, 3)) if tails == "normal" else noise * rng.standard_t(2, (count, 3))
    drawn[:, 0] += truth + rng.normal(0, SESSIONS)
    return drawn


def estimate(logs: NDArray[np.float64]) -> Estimate:
    found = judge(logs, 0.05).interval
    return Estimate(median_log_ratio(logs), found.low, found.high, len(logs))


def kind(one: Estimate) -> VerdictKind:
    """What a run would decide, were it the only question."""
    if one.low is not None and one.low > 0:
        return "slower"
    if one.high is not None and one.high < 0:
        return "faster"
    within = one.low is not None and one.high is not None and one.low >= -MARGIN and one.high <= MARGIN
    return "same" if within else "undecided"


@pytest.mark.parametrize("tails", ["normal", "t"])
@pytest.mark.parametrize(("count", "noise"), [(6, 0.002), (6, 0.02), (20, 0.002), (20, 0.02)])
def test_the_interval_holds_the_truth_over_sessions(count: int, noise: float, tails: str) -> None:
    rng = np.random.default_rng(3)
    held, without, runs = 0, 0, 400
    for _ in range(runs):
        first, second = (estimate(blocks(rng, 0.3, noise, count, tails)) for _ in range(2))
        for sessions in (SESSIONS, 0.0):
            alone = ratio_of_ratios(first, second, sessions, 0.95, 1).alone
            assert alone.low is not None and alone.high is not None
            holds = alone.low <= 0 <= alone.high
            held, without = held + (holds and sessions > 0), without + (holds and sessions == 0)
    assert held >= 0.93 * runs  # 95 % less what 400 pairs vary by
    if noise == 0.002:
        assert without < 0.7 * runs  # what blocks vary by alone is not enough


@pytest.mark.parametrize("truth", [0.0, 0.005, 0.025, MARGIN, 0.08])
@pytest.mark.parametrize("noise", [0.002, 0.01])
def test_one_truth_is_hardly_ever_decided_otherwise(truth: float, noise: float) -> None:
    """Twelve questions at once, near 1 and near the margin, where verdicts are of different kinds most often."""
    rng = np.random.default_rng(4)
    comparisons, kinds, any_otherwise = 60, 0, 0
    for _ in range(comparisons):
        said = []
        for _ in range(12):
            first, second = (estimate(blocks(rng, truth, noise, 12, "normal")) for _ in range(2))
            told = ratio_of_ratios(first, second, SESSIONS, 0.95, 12).distinct
            said.append(became(kind(first), kind(second), told_apart=told))
        kinds += any(one in (OTHERWISE, INDISTINGUISHABLE) for one in said)
        any_otherwise += OTHERWISE in said
    assert any_otherwise <= 5  # of 60 comparisons of 12 questions: 5 % are 3
    if truth in (0.0, 0.005) and noise == 0.002:
        assert kinds > comparisons // 2  # the kinds alone would say so most of the time


def test_a_change_beyond_sessions_is_seen() -> None:
    rng = np.random.default_rng(5)
    first, second = (estimate(blocks(rng, truth, 0.01, 12, "normal")) for truth in (-0.3, 0.1))
    found = ratio_of_ratios(first, second, SESSIONS, 0.95, 36)
    assert found.distinct
    assert found.alone.value == pytest.approx(0.4, abs=0.05)
    assert became(kind(first), kind(second), told_apart=found.distinct) == OTHERWISE


@pytest.mark.parametrize(
    ("first", "second", "told", "said"),
    [
        ("faster", "faster", False, ALIKE),
        ("same", "same", True, ALIKE),
        ("faster", "slower", True, OTHERWISE),
        ("faster", "same", False, INDISTINGUISHABLE),
        ("undecided", "same", True, NEWLY),
        ("slower", "undecided", True, NO_LONGER),
        ("undecided", "undecided", False, OPEN_IN_BOTH),
    ],
)
def test_what_became_of_a_verdict(first: VerdictKind, second: VerdictKind, told: bool, said: str) -> None:
    assert became(first, second, told_apart=told) == said


def test_every_outcome_is_counted() -> None:
    assert set(two_runs.OUTCOMES) == set(get_args(two_runs.Became))
    assert two_runs.count_outcomes([ALIKE, ALIKE, NEWLY])[ALIKE] == 2


def test_reaches_towards_each_other_add_up_as_squares() -> None:
    found = ratio_of_ratios(Estimate(0.0, -0.01, 0.03, 9), Estimate(0.5, 0.46, 0.6, 7), 0.0, 0.95, 1).alone
    assert found.blocks == 7
    assert found.low == pytest.approx(0.5 - math.hypot(0.04, 0.03))
    assert found.high == pytest.approx(0.5 + math.hypot(0.1, 0.01))
    guarded = ratio_of_ratios(Estimate(0.0, 0.0, 0.0, 9), Estimate(0.0, 0.0, 0.0, 9), 0.01, 0.95, 1).alone
    assert guarded.high == pytest.approx(1.96 * math.sqrt(2) * 0.01, rel=1e-3)


def test_among_more_questions_the_interval_is_longer() -> None:
    sides = Estimate(0.0, -0.01, 0.01, 9), Estimate(0.05, 0.04, 0.06, 9)
    ends = [ratio_of_ratios(*sides, 0.01, 0.95, count).among for count in (1, 10, 100)]
    assert [one.low for one in ends] == sorted((one.low for one in ends), reverse=True)
    assert ends[0] == ratio_of_ratios(*sides, 0.01, 0.95, 100).alone


def test_without_an_interval_there_is_none_and_a_censored_side_has_no_ratio() -> None:
    few, whole = Estimate(0.1, None, None, 4), Estimate(0.1, 0.0, 0.2, 9)
    assert ratio_of_ratios(few, whole, 0.01, 0.95, 1).alone == Estimate(0.0, None, None, 4)
    endless = Estimate(None, 2.0, None, 9)  # the arm failed in most blocks: its median is infinite
    found = ratio_of_ratios(whole, endless, 0.01, 0.95, 1)
    assert found.alone.value is None and found.alone.high is None
    assert found.alone.low == pytest.approx(1.8 - 1.96 * math.sqrt(2) * 0.01, rel=1e-3)
    assert found.distinct
    assert not ratio_of_ratios(endless, endless, 0.01, 0.95, 1).distinct

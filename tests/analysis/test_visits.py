"""Metrics of visits: values of trials, comparisons by block, and intervals that cover what they promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.analysis.visits import summarise

ARMS = ("h1", "h2", "h2#aa", "h3")


def rows(blocks):
    """``blocks``: a line a block, a value an arm of ARMS."""
    return [
        {"arm": arm, "block": number, "m": value}
        for number, block in enumerate(blocks)
        for arm, value in zip(ARMS, block, strict=True)
    ]


def of(blocks, arm="h3", *, zero=False):
    return summarise(rows(blocks), "m", arm, "h2", confidence=0.95, zero=zero)


def test_ratios_are_within_blocks_and_against_both_runs_of_the_baseline():
    one = of([(1, 100, 400, 100), (1, 1000, 4000, 1000)])
    assert one.change.value == pytest.approx(0.5)
    assert (one.change.low, one.change.high) == (None, None)  # every block says the same
    assert one.value.value == pytest.approx(math.sqrt(100 * 1000))
    assert one.value.low < one.value.value < one.value.high
    assert one.repeat.value == pytest.approx(4)
    base = of([(1, 100, 400, 100)], "h2")
    assert base.value.value == pytest.approx(200)
    assert base.change.blocks == 0


def test_what_can_be_zero_is_compared_by_differences():
    one = of([(0, 0, 2, 4), (0, 1e9, 3e9, 2e9), (0, 0, 0, 0)], zero=True)
    assert one.change.value == pytest.approx((3 + 0 + 0) / 3)
    assert one.change.low < 0 < one.change.high
    assert one.value.value == pytest.approx((4 + 2e9) / 3)
    nothing = of([(0, 0, 0, 0), (0, 0, 0, 0)], zero=True)
    assert (nothing.change.value, nothing.change.low, nothing.noise) == (0, None, 0)


def test_noise_is_that_of_one_trial_and_not_the_bias_of_the_pair():
    rng = np.random.default_rng(1)
    made = [(1, math.exp(a), math.exp(0.3 + b), 1) for a, b in 0.04 * rng.standard_normal((4000, 2))]
    assert of(made).noise == pytest.approx(math.expm1(0.04), rel=0.05)
    made = [(1, a, b, 1) for a, b in 10 + 2 * rng.standard_normal((4000, 2))]
    assert of(made, zero=True).noise == pytest.approx(2, rel=0.05)
    assert of(made[:1], zero=True).noise is None


def test_a_trial_that_is_missing_leaves_its_block_out_and_one_that_is_censored_counts_as_worst():
    made = rows([(1, 100, 100, 50), (1, 100, 100, 50), (1, 100, 100, 55)])
    made[3]["m"] = math.inf
    made[1]["m"] = None
    one = summarise(made, "m", "h3", "h2", confidence=0.95, zero=False)
    assert one.change.blocks == 3
    assert one.change.value == pytest.approx(0.55)  # the median of inf, 0.5, 0.55
    assert (one.change.low, one.change.high) == (None, None)
    assert one.value.value == pytest.approx(55)  # the median of inf, 50, 55
    assert one.value.low is None
    assert one.repeat.blocks == 2
    assert summarise(made, "absent", "h3", "h2", confidence=0.95, zero=False).value.blocks == 0
    worst = [row | {"m": math.inf} for row in made]
    assert summarise(worst, "m", "h3", "h2", confidence=0.95, zero=False).value.value is None


def test_failing_does_not_make_an_arm_look_fast():
    """Of ten blocks of HTTP/3 six fail and four take half as long: the ratio has no value, and no interval."""
    made = [(1, 100, 102, math.inf if number < 6 else 50 + number) for number in range(10)]
    failing = of(made).change
    assert (failing.value, failing.low, failing.high, failing.blocks) == (None, None, None, 10)
    turned = of([(1, h3, math.inf, 100) for _, _, _, h3 in made]).change  # the baseline fails
    assert (turned.value, turned.low, turned.high) == (None, None, None)
    both = of([(1, math.inf, math.inf, math.inf)] * 3 + [(1, 100, 100, 80)] * 4)
    assert both.change.value == pytest.approx(0.8)  # where both fail it is a tie
    assert (both.repeat.value, both.noise) == (1, None)
    assert of([(1, math.inf, 100, 80), (1, 100, 100, 80)]).noise is None


NUMBERS = st.one_of(
    st.none(),
    st.floats(min_value=-1e20, max_value=1e20),
    st.just(1e-300),
    st.just(1e100),
    st.just(math.inf),
    st.just(math.nan),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=6), st.booleans())
def test_any_values_give_a_summary(blocks, zero):
    for arm in ("h1", "h2", "h3"):
        one = of(blocks, arm, zero=zero)
        for spread in (one.value, one.change, one.repeat):
            assert spread.blocks <= len(blocks)
            if spread.low is not None and spread.high is not None:
                assert spread.low <= spread.value <= spread.high


def covered(draw, truth, *, zero, worlds=1000, blocks=6):
    """Shares of the worlds whose interval of the change holds the truth, and of the A/A pair no change."""
    rng = np.random.default_rng(5)
    hits = repeats = 0
    for _ in range(worlds):
        one = of(draw(rng, blocks), zero=zero)
        hits += one.change.low is None or one.change.low <= truth <= one.change.high
        repeats += one.repeat.low is None or one.repeat.low <= (0 if zero else 1) <= one.repeat.high
    return hits / worlds, repeats / worlds


def load_times(rng, blocks):
    """Blocks have weather of their own, which all arms meet; a trial's value is a median of two skewed visits."""
    weather = rng.normal(13, 0.3, (blocks, 1))
    visits = rng.exponential(0.08, (blocks, 4, 2)).mean(axis=2)
    return np.exp(weather + visits + np.array([0, 0, 0, math.log(0.9)]))


def stalls(rng, blocks):
    return rng.poisson([1.0, 0.7, 0.7, 0.2], (blocks, 4)).astype(float)


def stall_times(rng, blocks):
    """Most watches do not stall at all; the others for seconds."""
    return (rng.random((blocks, 4)) < [0.5, 0.5, 0.5, 0.3]) * rng.exponential(2e9, (blocks, 4))


@pytest.mark.parametrize(
    ("draw", "truth", "zero", "least"),
    [(load_times, 0.9, False, 0.93), (stalls, -0.5, True, 0.92), (stall_times, -0.4e9, True, 0.90)],
    ids=["load times", "stalls", "time stalled"],
)
def test_intervals_cover(draw, truth, zero, least):
    change, repeat = covered(draw, truth, zero=zero)
    assert change >= least
    assert repeat >= least
    wrong = covered(draw, 3 * truth if zero else 0.8, zero=zero, worlds=300)[0]
    assert wrong < change - 0.05  # it has teeth

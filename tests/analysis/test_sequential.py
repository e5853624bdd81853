"""Requests one after the other: progressions, histograms and the two kinds of tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.analysis import sequential


def test_a_steady_connection_progresses_at_its_rate_from_the_first_request_on():
    done = [7_000 + i * 50_000_000 for i in range(1, 101)]  # 50 ms each: milicevic2023's 20 requests/s
    rates = sequential.progression(7_000, done)
    assert rates == pytest.approx(np.full(100, 20.0))


def test_a_slow_start_is_seen_and_forgotten_as_one_over_i():
    done = [10**9 + (i - 1) * 10_000_000 for i in range(1, 1001)]  # the first takes 1 s, the others 10 ms
    rates = sequential.progression(0, done)
    assert rates[0] == pytest.approx(1.0)
    assert rates[99] == pytest.approx(100 / 1.99)
    assert (np.diff(rates) > 0).all()
    assert rates[-1] == pytest.approx(1000 / 10.99)


def test_the_order_in_which_answers_are_told_does_not_matter():
    done = [30, 10, 40, 20]
    assert sequential.progression(0, done) == pytest.approx([1e9 / 10, 2e9 / 20, 3e9 / 30, 4e9 / 40])
    assert np.isnan(sequential.progression(10, [10])).all(), "an answer at the moment of the question has no rate"


def test_the_band_goes_as_far_as_all_trials_and_holds_their_mean():
    fast, slow = (
        sequential.progression(0, [i * step for i in range(1, n)]) for step, n in ((10**7, 301), (2 * 10**7, 201))
    )
    points = sequential.band("h2", [fast, slow], 0.95)
    assert [points[0].place, points[-1].place] == [1, 200]
    assert [point.place for point in points] == sorted({point.place for point in points})
    for point in points:
        assert (point.smallest, point.largest) == (pytest.approx(50), pytest.approx(100))
        assert point.value == pytest.approx(np.sqrt(5000))
        assert point.low < point.value < point.high
    slow_start = sequential.progression(0, [10**9 + i * 10**7 for i in range(200)])
    for point in sequential.band("h2", [slow_start, slow_start], 0.95):
        assert point.value == pytest.approx(slow_start[point.place - 1])
    assert sequential.band("h2", [], 0.95) == []
    (lone, *_) = sequential.band("h3", [fast], 0.95)
    assert (lone.low, lone.high, lone.trials) == (None, None, 1)


def test_samples_are_described_by_the_chance_and_the_distance():
    rng = np.random.default_rng(3)
    own, reference = rng.normal(100, 10, 4000), rng.normal(110, 10, 4000)
    found = sequential.by_samples(own, reference)
    # Of two normal variables that differ by one standard deviation: Phi(1 / sqrt(2)), and 2 Phi(1/2) - 1.
    assert found.faster == pytest.approx(0.7602, abs=0.02)
    assert found.distance == pytest.approx(0.3829, abs=0.03)
    assert found.p < 1e-6
    back = sequential.by_samples(reference, own)
    assert back.faster == pytest.approx(1 - found.faster)
    same = sequential.by_samples(np.full(30, 5.0), np.full(20, 5.0))
    assert (same.faster, same.distance, same.p) == (0.5, 0.0, 1.0)
    assert sequential.by_samples(np.array([]), reference) is None


def row(block, arm, mean, valid=True):
    return {"block": block, "arm": arm, "valid": valid, "samples": 20, "success_rate": 1.0, "latency_mean_ns": mean}


def test_blocks_are_paired_and_the_baseline_s_two_runs_are_one_reference():
    rows = []
    for block in range(6):
        level = 1e8 * 2**block  # a drift far larger than the effect
        rows += [row(block, "h2", 2.0 * level), row(block, "h2#aa", 2.2 * level), row(block, "h3", 1.05 * level)]
    found = sequential.by_blocks(rows, "latency_mean_ns", ("h3", "h2"), baseline="h2", confidence=0.95)
    assert found.ratio == pytest.approx(1.05 / np.sqrt(4.4))
    assert found.blocks == 6
    assert found.p == pytest.approx(2 / 64)  # of 64 signs only two are as extreme
    differences = np.array([-1.05e8 * 2**block for block in range(6)])
    assert found.difference == pytest.approx(differences.mean())
    assert found.difference_low < found.difference < found.difference_high
    rows += [row(6, "h2", 1e8), row(6, "h3", 9e9, valid=False)]
    assert sequential.by_blocks(rows, "latency_mean_ns", ("h3", "h2"), baseline="h2", confidence=0.95) == found


def test_the_interval_of_the_difference_is_student_s():
    gains = [1.0, 2.0, 3.0, 4.0, 6.0]
    rows = [
        one for block, gain in enumerate(gains) for one in (row(block, "h2", 100.0), row(block, "h3", 100.0 + gain))
    ]
    found = sequential.by_blocks(rows, "latency_mean_ns", ("h3", "h2"), baseline="h2", confidence=0.95)
    # Mean 3.2, standard deviation 1.9235, t(0.975; 4) = 2.7764: a reach of 2.3883.
    assert (found.difference_low, found.difference_high) == (
        pytest.approx(0.8117, abs=1e-3),
        pytest.approx(5.5883, abs=1e-3),
    )


def test_bins_are_as_wide_as_freedman_and_diaconis_say_and_leave_the_longest_out():
    values = np.linspace(0.0, 1000.0, 1001)
    edges = sequential.bins([values])
    assert edges[-1] == pytest.approx(995.0), "0.5 % lie beyond the axis"
    assert len(edges) - 1 == 20, "2 x 500 / 1001^(1/3) is 100, so ten bins: 20 are the least"
    narrow = np.concatenate([np.linspace(400.0, 600.0, 900), np.linspace(0.0, 1000.0, 101)])
    # The quartiles lie at about 450 and 550 there: a width of about 20, so about 50 bins of the axis.
    assert 40 <= len(sequential.bins([narrow])) - 1 <= 60


def test_one_block_decides_nothing():
    found = sequential.by_blocks([row(0, "h2", 1e8), row(0, "h3", 2e8)], "latency_mean_ns", ("h3", "h2"), baseline="h2",
                            confidence=0.95)  # fmt: skip
    assert (found.ratio, found.p, found.difference, found.blocks) == (None, None, None, 1)


@given(st.lists(st.lists(st.floats(1, 1e12), max_size=300), max_size=3))
def test_bins_are_few_rise_and_hold_the_smallest(values):
    arrays = [np.array(one) for one in values]
    edges = sequential.bins(arrays)
    assert 1 <= len(edges) - 1 <= 60
    assert (np.diff(edges) > 0).all()
    known = [one for one in arrays if len(one)]
    if known:
        assert edges[0] <= min(one.min() for one in known)


@given(st.integers(0, 100_000))
def test_places_rise_from_the_first_to_the_last(most):
    found = sequential.places(most)
    assert found == sorted(set(found))
    assert len(found) <= sequential.POINTS
    assert not most or (found[0], found[-1]) == (1, most)

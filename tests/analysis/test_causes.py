"""Parts of a difference: they add up, and a share exists where there is a difference."""

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import NOISES, blocks_in_random_order
from trifecta.analysis.causes import (
    LATE,
    ROUND_TRIPS,
    SEND,
    SETUP,
    TRANSFER,
    WAIT,
    TrialParts,
    causes,
    least_setup_round_trips,
    share_interval,
    split_setup,
)
from trifecta.analysis.mean_ratio import half_width
from trifecta.analysis.transport.differences import difference

MS = 1e6
REQUEST_PARTS = (LATE, ROUND_TRIPS, SETUP, SEND, WAIT, TRANSFER)


def trials(arms, blocks=8, noise=0.02, seed=1):
    """Arms to parts in ms, each trial a little off."""
    rng = np.random.default_rng(seed)
    return [
        TrialParts(arm, block, {name: value * MS * rng.normal(1, noise) for name, value in parts.items()})
        for block in range(blocks)
        for arm, parts in arms.items()
    ]


H2 = {ROUND_TRIPS: 160.0, SETUP: 1.0, WAIT: 81.0, TRANSFER: 10.0}
H3 = {ROUND_TRIPS: 80.0, SETUP: 3.0, WAIT: 81.0, TRANSFER: 14.0}


def test_the_parts_add_up_and_the_largest_cause_comes_first():
    found = causes(trials({"h2": H2, "h2#aa": H2, "h3": H3}), "h3", "h2", REQUEST_PARTS, 0.95)
    assert found.told_apart and found.whole.blocks == 8
    assert found.causes[0].part == ROUND_TRIPS
    assert found.causes[0].found.difference_ns == pytest.approx(-80 * MS, rel=0.05)
    assert sum(one.share for one in found.causes) == pytest.approx(1.0)
    assert sum(one.found.difference_ns for one in found.causes) == pytest.approx(found.whole.whole.difference_ns)
    by_part = {one.part: one for one in found.causes}
    assert by_part[ROUND_TRIPS].share > 1 and by_part[SETUP].share < 0  # it is paid for elsewhere
    assert "late start" not in by_part  # neither has it


def test_both_runs_of_the_baseline_count():
    arms = {"h2": {WAIT: 10.0}, "h2#aa": {WAIT: 30.0}, "h3": {WAIT: 10.0}}
    found = causes(trials(arms, noise=0.0), "h3", "h2", REQUEST_PARTS, 0.95)
    assert found.whole.whole.reference_ns == pytest.approx(20 * MS)


def test_without_a_difference_there_is_nothing_to_share_out():
    found = causes(trials({"h2": H2, "h3": H2}, noise=0.1), "h3", "h2", REQUEST_PARTS, 0.95)
    assert (found.told_apart, found.causes) == (False, ())
    one_block = causes(trials({"h2": H2, "h3": H3}, blocks=1), "h3", "h2", REQUEST_PARTS, 0.95)
    assert not one_block.told_apart  # no interval, so nothing is known
    assert causes(trials({"h2": H2}), "h3", "h2", REQUEST_PARTS, 0.95) is None


def test_of_a_verdict_that_holds_1_there_are_no_causes():
    clear = trials({"h2": H2, "h3": H3})
    found = causes(clear, "h3", "h2", REQUEST_PARTS, 0.95, excludes_one=False)
    assert (found.told_apart, found.causes) == (False, ())
    assert found.whole.whole.difference_ns < 0, "the means are known all the same"


def test_equal_pairs_are_seldom_told_apart_at_any_look():
    """The planner stops when it likes: Student's interval excludes 0 at some look in a quarter of such runs."""
    runs, looks = 60, (6, 8, 10, 15, 20, 30, 40)
    told = 0
    for seed in range(runs):
        made = trials({"h2": H2, "h3": H2}, looks[-1], 0.1, seed)
        told += any(
            causes([one for one in made if one.block < look], "h3", "h2", REQUEST_PARTS, 0.95).told_apart
            for look in looks
        )
    assert told <= stats.binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize("noise", NOISES)
def test_the_interval_of_a_mean_difference_holds_at_every_look(noise):
    runs, most = 200, 60
    times = blocks_in_random_order(noise, np.random.default_rng(8), runs, most, 2)
    each = (times if noise == "cauchy" else 100 * np.exp(times)) @ np.array([1.0, -1.0])
    counts = np.arange(6, most + 1)
    means = np.cumsum(each, axis=1)[:, 5:] / counts
    spread = np.sqrt((np.cumsum(each**2, axis=1)[:, 5:] - counts * means**2) / (counts - 1))
    reach = np.array([half_width(int(count), 0.05) for count in counts])
    wrong = (np.abs(means) > reach * spread).any(axis=1).sum()
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)


def blocks(rng, count, part=-50.0, rest=-30.0):
    """Differences of a part and of the whole, by block; the part's noise is in the whole's."""
    own = part + 8 * rng.normal(size=count)
    return own, own + rest + 12 * rng.normal(size=count)


@pytest.mark.parametrize("count", [6, 12, 40])
def test_intervals_of_shares_hold_what_is_true_at_least_as_often_as_they_say(count):
    rng, draws = np.random.default_rng(count), 1_000
    found = [share_interval(*blocks(rng, count), 0.95) for _ in range(draws)]
    known = [ends for ends in found if ends != (None, None)]
    assert len(known) > 0.9 * draws  # a difference as clear as this one
    assert sum(low <= 50 / 80 <= high for low, high in known) / len(known) > 0.95
    assert share_interval(*blocks(rng, 4), 0.95) == (None, None), "four blocks bound no mean"


def test_of_a_small_difference_they_hold_it_no_less_often():
    """Where most runs see no difference, and those that do see one that is too large."""
    rng = np.random.default_rng(3)
    found = [share_interval(*blocks(rng, 6, -9.0, -9.0), 0.95) for _ in range(3_000)]
    known = [ends for ends in found if ends != (None, None)]
    assert 100 < len(known) < 2_000
    assert sum(low <= 0.5 <= high for low, high in known) / len(known) > 0.92


def test_resampling_of_few_blocks_would_hold_it_less_often():
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        part, whole = blocks(rng, 6)
        at = rng.integers(0, 6, (500, 6))
        low, high = np.quantile(part[at].mean(axis=1) / whole[at].mean(axis=1), [0.025, 0.975])
        held += low <= 50 / 80 <= high
    assert held / 300 < 0.9


def test_a_share_has_an_interval_just_where_the_whole_is_told_from_nothing():
    rng = np.random.default_rng(5)
    for _ in range(200):
        part, whole = blocks(rng, 6, -9.0, -9.0)
        ends = difference([({"all": one}, {"all": 0.0}) for one in whole], 0.95, ["all"], anytime=True).whole
        bounded = share_interval(part, whole, 0.95) != (None, None)
        assert bounded == (ends.low_ns > 0 or ends.high_ns < 0)


def test_every_cause_has_the_interval_of_its_own_share():
    found = causes(trials({"h2": H2, "h2#aa": H2, "h3": H3}), "h3", "h2", REQUEST_PARTS, 0.95)
    assert all(one.share_low < one.share < one.share_high for one in found.causes)
    only = causes(trials({"h2": {WAIT: 20.0}, "h3": {WAIT: 10.0}}), "h3", "h2", REQUEST_PARTS, 0.95).causes[0]
    assert (only.share, only.share_low, only.share_high) == pytest.approx((1.0, 1.0, 1.0))  # it is the whole
    exact = causes(trials({"h2": H2, "h3": H3}, noise=0.0), "h3", "h2", REQUEST_PARTS, 0.95).causes[0]
    assert exact.share_low == pytest.approx(exact.share) == pytest.approx(exact.share_high)
    assert share_interval(np.ones(1), np.ones(1), 0.95) == (None, None)


def test_a_handshake_cannot_wait_longer_than_it_took():
    assert split_setup(100.0, 1, 80.0) == {ROUND_TRIPS: 80.0, SETUP: 20.0}
    assert split_setup(50.0, 1, 80.0) == {ROUND_TRIPS: 50.0, SETUP: 0.0}
    assert split_setup(50.0, 2, None) == {ROUND_TRIPS: 0.0, SETUP: 50.0}


@pytest.mark.parametrize(
    ("protocol", "version", "resumed", "early", "trips"),
    [
        ("h3", "1.3", False, False, 1),
        ("h3", "1.3", True, True, 0),
        ("h2", "1.3", False, False, 2),
        ("h2", "1.3", True, False, 2),
        ("h2", "1.3", True, True, 1),
        ("h1", "1.2", False, False, 3),
        ("h1", "1.2", True, False, 2),
        ("h1", None, False, False, None),
    ],
)
def test_round_trips_of_set_up(protocol, version, resumed, early, trips):
    assert least_setup_round_trips(protocol, version, resumed=resumed, zero_rtt=early) == trips

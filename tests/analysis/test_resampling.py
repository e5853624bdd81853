"""What a published procedure would conclude: on data whose truth is known."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from trifecta.analysis.resampling import (
    NO_NOISE_FLOOR,
    SAME,
    SINGLE_LOAD,
    BackOff,
    Block,
    Concluded,
    Times,
    change,
    conclude,
    different_work,
    retried,
    retries_hidden,
    truth,
)


def normal_share(distance: float) -> float:
    """The share of a standard normal distribution that lies beyond."""
    return 0.5 * math.erfc(distance / math.sqrt(2))


def world(
    seed: int, blocks: int, requests: int, effect: float, within: float, between: float, fail: float = 0.0
) -> list[Block]:
    """Blocks with h2 twice and h3: logs of times vary ``within`` trials and ``between`` them; h3 is ``effect`` off."""
    rng = np.random.default_rng(seed)

    def trial(shift: float) -> Times:
        level = shift + rng.normal(0, between)
        failed = np.full(int(requests * fail), 50e6)
        return Times(20e6 * np.exp(level + rng.normal(0, within, requests - len(failed))), failed)

    return [{"h2": [trial(0), trial(0)], "h3": [trial(effect)]} for _ in range(blocks)]


def one(found: list[Concluded]) -> Concluded:
    assert len(found) == 1
    return found[0]


def test_any_name_is_wrong_where_there_is_none() -> None:
    found = one(conclude(world(1, 8, 100, 0.0, 0.1, 0.02), [("h3", "h2", SAME)], SINGLE_LOAD))
    assert (found.wrong, found.draws, found.rate, found.high) == (200, 200, 1.0, 1.0)
    assert found.opposite == 0
    assert found.low is not None and found.low > 0.97


def test_nothing_is_wrong_where_the_truth_is_open() -> None:
    found = one(conclude(world(1, 8, 100, 0.0, 0.1, 0.02), [("h3", "h2", None)], SINGLE_LOAD))
    assert (found.draws, found.wrong, found.rate, found.low, found.high) == (200, 0, None, None, None)
    assert found.named is not None and 0.35 < found.named < 0.65
    share = found.named
    assert found.contradict == pytest.approx(2 * share * (1 - share) * 200 / 199)  # of two drawn without putting back


def test_the_truth_is_what_all_blocks_say_of_the_median() -> None:
    assert truth(world(1, 12, 200, -0.3, 0.1, 0.02), "h3", "h2", 0.05) == "h3"
    assert truth(world(1, 12, 200, 0.3, 0.1, 0.02), "h3", "h2", 0.05) == "h2"
    assert truth(world(2, 30, 400, 0.0, 0.02, 0.005), "h3", "h2", 0.05) == SAME
    assert truth(world(2, 4, 50, 0.0, 0.5, 0.3), "h3", "h2", 0.05) is None  # the interval reaches beyond the margin
    assert truth(world(1, 1, 200, -0.3, 0.1, 0.02), "h3", "h2", 0.05) is None  # one block has no interval
    assert truth([], "h3", "h2", 0.05) is None
    failing = world(1, 12, 200, -0.3, 0.1, 0.02, fail=0.6)
    assert truth(failing, "h3", "h2", 0.05) is None  # the medians lie among failures


def test_open_cells_are_seldom_called_decided() -> None:
    """Where nothing differs a winner is the truth in 5 % of worlds: the level of the interval."""
    named = [truth(world(seed, 6, 60, 0.0, 0.1, 0.05), "h3", "h2", 0.05) in ("h2", "h3") for seed in range(1000, 1400)]
    assert 0.02 < np.mean(named) < 0.085  # 5 %, binomial of 400


def test_one_load_names_the_slower_one_as_often_as_their_times_overlap() -> None:
    """Two normal distributions of logs: the share is known, and the interval holds it."""
    expected = normal_share(0.1 / (0.2 * math.sqrt(2)))
    shares, held = [], 0
    for seed in range(60):
        blocks = world(seed, 40, 400, -0.1, 0.2, 0.0)
        found = one(conclude(blocks, [("h3", "h2", "h3")], SINGLE_LOAD, seed=seed))
        assert found.wrong == found.opposite
        assert found.low is not None and found.high is not None and found.rate is not None
        shares.append(found.rate)
        held += found.low <= expected <= found.high
    assert np.mean(shares) == pytest.approx(expected, abs=0.012)
    assert held >= 54  # 95 % of 60 are 57; fewer than 54 are less likely than 3 %


def test_the_mean_of_one_trial_knows_nothing_of_what_differs_between_trials() -> None:
    expected = normal_share(0.05 / (0.05 * math.sqrt(2)))
    shares = []
    for seed in range(30):
        blocks = world(seed, 60, 500, 0.05, 0.1, 0.05)
        found = one(conclude(blocks, [("h3", "h2", "h2")], NO_NOISE_FLOOR, seed=seed))
        shares.append(found.rate)
    assert np.mean(shares) == pytest.approx(expected, abs=0.03)
    quiet = one(conclude(world(1, 6, 500, 0.05, 0.1, 0.0), [("h3", "h2", "h2")], NO_NOISE_FLOOR))
    assert quiet.wrong == 0  # without it, the mean of 500 requests is right
    assert quiet.ratio_low is not None and 1.0 < quiet.ratio_low < 1.05 < (quiet.ratio_high or 0)


def test_loads_of_unequal_pages_name_the_one_with_less_to_do() -> None:
    """Times that never vary: what is named follows from the counts alone, and can be counted out."""
    blocks: list[Block] = [{"h2": [Times(np.full(5, 1e9))], "h3": [Times(np.full(5, 0.95e9))]}]
    counts = (120, 123, 134)
    expected = sum(0.95 * mine > other for mine, other in product(counts, counts)) / 9
    assert expected == 2 / 9
    found = one(conclude(blocks, [("h3", "h2", "h3")], different_work(counts), draws=4000))
    assert found.rate == pytest.approx(expected, abs=0.02)
    same = one(conclude(blocks, [("h3", "h2", "h3")], different_work(counts, share=0.0)))
    assert same.wrong == 0


def test_a_request_that_is_tried_again_is_a_slow_one() -> None:
    """One in four fails after 50 ms and waits 100 ms: the mean is 20 ms and a third of 150 ms."""
    rule = BackOff(first_ns=100e6, factor=1.0, spread=0.5, tries=60)
    trial = Times(np.full(300, 20e6), np.full(100, 50e6))
    found = np.concatenate([retried(np.random.default_rng(seed), trial, rule) for seed in range(100)])
    assert len(found) == 40_000
    assert found.mean() == pytest.approx(20e6 + 150e6 / 3, rel=0.02)
    assert found.min() == 20e6


def test_the_pause_grows_and_a_request_is_given_up() -> None:
    rule = BackOff(first_ns=100.0, factor=2.0, spread=0.0, longest_ns=250.0, tries=4)
    trial = Times(np.full(1, 1.0), np.full(9_999, 10.0))
    found = retried(np.random.default_rng(1), trial, rule)
    # Pauses of 100, 200 and, not longer, 250; a fourth failure is the last: then there is no time.
    assert set(found.tolist()) <= {1.0, 111.0, 321.0, 581.0}
    often = Times(np.ones(1), np.full(3, 10.0))
    assert max(max(retried(np.random.default_rng(seed), often, rule), default=0) for seed in range(99)) == 581.0
    assert len(found) < 20
    assert len(retried(np.random.default_rng(1), Times(np.empty(0), np.full(9, 1.0)), rule)) == 0


def test_hidden_retries_make_the_protocol_that_fails_look_slow() -> None:
    blocks = world(3, 10, 1000, 0.0, 0.05, 0.01)
    failing = [{"h2": block["h2"], "h3": world(i, 1, 1000, 0, 0.05, 0.01, 0.02)[0]["h3"]} for i, block in
               enumerate(blocks)]  # fmt: skip
    with_it = retries_hidden()
    found = change(failing, "h3", "h2", with_it, NO_NOISE_FLOOR)
    expected = (20e6 + 0.02 / 0.98 * (50e6 + 100e6)) / 20e6  # the second pause, of one in 2,500, is too rare to show
    assert found is not None and found.low is not None and found.high is not None
    assert found.ratio == pytest.approx(expected, rel=0.03)
    assert found.low > 1.1 and found.blocks == 10
    base = change(failing, "h2", None, with_it, NO_NOISE_FLOOR)
    assert base is not None and base.ratio == pytest.approx(1.0, abs=0.01)  # nothing failed there
    named = one(conclude(failing, [("h3", "h2", None)], with_it))
    assert named.ratio_low is not None and named.ratio_low > 1.05


def test_on_paper_requests_are_tried_again_as_the_study_did() -> None:
    """avast/retry-go of 2019 without options: 100 ms, twice as long each time, no jitter, ten attempts."""
    often = Times(np.ones(1), np.full(3, 10.0))
    found = np.concatenate([retried(np.random.default_rng(seed), often, BackOff()) for seed in range(2_000)])
    pauses = {1.0 + 10.0 * failed + 100e6 * (2**failed - 1) for failed in range(10)}
    assert set(found.tolist()) == pauses
    assert "(100 ms, 2 times as long each time)" in retries_hidden().words


def test_the_same_seed_concludes_the_same() -> None:
    blocks = world(1, 6, 50, 0.02, 0.2, 0.02)
    pairs = [("h3", "h2", "h2")]
    assert conclude(blocks, pairs, SINGLE_LOAD, seed=5) == conclude(blocks, pairs, SINGLE_LOAD, seed=5)
    assert conclude(blocks, pairs, SINGLE_LOAD, seed=5) != conclude(blocks, pairs, SINGLE_LOAD, seed=6)


def test_what_is_missing_concludes_nothing() -> None:
    empty = Times(np.empty(0), np.full(3, 1e6))
    cases: list[list[Block]] = [[], [{"h2": [Times(np.ones(3))]}], [{"h2": [Times(np.ones(3))], "h3": [empty]}]]
    for blocks in cases:
        found = one(conclude(blocks, [("h3", "h2", "h3")], NO_NOISE_FLOOR))
        assert (found.draws, found.rate, found.ratio) == (0, None, None)
        assert change(blocks, "h3", "h2", retries_hidden(), NO_NOISE_FLOOR) is None

"""Two noise floors: neither is an outlier's, and differences by chance exceed them about as seldom as they say."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import NOISES, blocks_in_random_order, make_rows, one_cell_study
from trifecta.analysis.noise import across_weather, blocks_to_floor, noise_floors, robust_floor
from trifecta.store import data_dictionary


def floors_of(logs):
    """(Same weather, across weather) of logs with the columns of the second and the first run."""
    differences = logs[:, 0] - logs[:, 1]
    return robust_floor(differences, len(logs), 0.95), robust_floor(across_weather(logs), len(logs), 0.95)


@pytest.mark.parametrize("blocks", [6, 9, 12, 30])
def test_an_outlier_makes_no_floor(blocks):
    rng = np.random.default_rng(blocks)
    logs = rng.normal(0, 0.005, (blocks, 2))
    quiet = floors_of(logs)
    logs[2, 0] += math.log(1.62)
    assert max(quiet) < 0.02
    assert max(floors_of(logs)) < 0.035, "the interval of the A/A pair reaches 62 % with one such block in nine"


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("blocks", [6, 9, 20, 60])
def test_equal_arms_seldom_differ_by_more_than_a_floor(noise, blocks):
    """The same program four times a block, the weather of each its own: both floors hold."""
    runs = 300
    logs = blocks_in_random_order(noise, np.random.default_rng(blocks), runs, blocks, 4)
    beyond = np.zeros(2)
    for one in logs:
        chance = math.expm1(abs(float(np.median(one[:, 2] - one[:, 3]))))
        beyond += [chance > floor for floor in floors_of(one[:, :2])]
    # A mode in 30 % of the trials or a coarse clock cannot be known from six blocks: half of them show nothing of it.
    share = 0.16 if blocks < 9 and noise in ("bimodal, 30 %", "ties of 1 ms") else 0.08
    assert (beyond <= stats.binom.ppf(0.999, runs, share)).all(), beyond / runs


def test_shared_weather_is_in_the_one_floor_and_not_in_the_other():
    """Two runs with one seed lose the same packets: what another protocol, which loses others, must exceed is wider."""
    rng, blocks, runs, beyond = np.random.default_rng(7), 12, 300, np.zeros(2)
    sizes = []
    for _ in range(runs):
        weather, instrument = rng.normal(0, 0.1, (blocks, 1)), rng.normal(0, 0.01, (blocks, 2))
        both = floors_of(weather + instrument)
        sizes.append(both)
        chance = math.expm1(abs(float(np.median(rng.normal(0, 0.1, blocks) - weather[:, 0]))))
        beyond += [chance > floor for floor in both]
    same, across = np.median(sizes, axis=0)
    assert 0.005 < same < 0.03 < 0.08 < across < 0.25
    assert beyond[0] > 0.6 * runs
    assert beyond[1] <= stats.binom.ppf(0.999, runs, 0.05)


def test_the_floor_between_blocks_is_one_of_medians_and_not_of_single_blocks():
    """Two cells of as many blocks are what it is for, and so the report and the dictionary say."""
    rng, blocks, runs = np.random.default_rng(8), 40, 200
    floors, singles, medians = [], 0, 0
    for _ in range(runs):
        weather, other = rng.normal(0, 0.2, (2, blocks))
        floor = floors_of(weather[:, None] + rng.normal(0, 0.01, (blocks, 2)))[1]
        floors.append(floor)
        singles += int((np.expm1(np.abs(weather - other)) > floor).sum())
        medians += math.expm1(abs(float(np.median(weather) - np.median(other)))) > floor
    assert 0.09 < np.median(floors) < 0.14
    assert 0.62 < singles / (runs * blocks) < 0.76
    assert medians <= stats.binom.ppf(0.999, runs, 0.05)
    assert "from another cell or run of as many blocks" in data_dictionary.meaning("verdicts", "weather_floor")


def test_both_floors_of_a_cell_come_from_its_trials():
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: 1e6, 20, sigma=0.005)
    for row in rows:
        row["latency_p50_ns"] = round(row["latency_p50_ns"] * math.exp(0.1 * math.sin(7 * row["block"])))
    key = rows[0]["cell"]
    found = noise_floors(study, rows, [key])[key]
    assert 0.001 < found.floor < 0.01
    assert 0.03 < found.weather_floor < 0.15
    few = noise_floors(study, [row for row in rows if row["block"] < 5], [key])[key]
    assert (few.floor, few.weather_floor) == (None, None)
    assert few.blocks_to_margin == 6
    assert noise_floors(study, [], [key])[key].blocks_to_margin == math.inf


def test_ties_are_no_proof_of_no_noise():
    ticks = np.array([0, 0, 0, 0, 0, 0.02, -0.04, 0, 0])
    assert 0.01 < robust_floor(ticks, 9, 0.95) < 0.05
    assert robust_floor(np.zeros(9), 9, 0.95) == 0
    assert robust_floor(np.full(9, 20.0), 9, 0.95) is None


def test_the_forecast_of_the_floor_is_of_the_right_order():
    rng = np.random.default_rng(3)
    needed = np.median([blocks_to_floor(rng.normal(0, 0.08, 10), math.log(1.05)) for _ in range(60)])
    floors = [robust_floor(rng.normal(0, 0.08, round(needed)), round(needed), 0.95) for _ in range(60)]
    assert 0.04 < np.median(floors) < 0.07

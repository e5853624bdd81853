"""Verdicts: what is said, against which margin, and why."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import blocks_in_random_order, make_rows, make_study, one_cell_study
from trifecta.analysis.checks import noise_floor
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.forecast import OUT_OF_REACH, blocks_to_difference, blocks_to_same, within_horizon
from trifecta.analysis.mean_ratio import mean_ratio
from trifecta.analysis.noise import NoiseFloor, margin_in_force, noise_floors
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan


def by_pair(judged):
    return {(v.arm, v.reference): v for v in judged}


def flat(cell, protocol):
    return 1e6


def ordered(cell, protocol):
    return {"h1": 1.5e6, "h2": 1e6, "h3": 0.7e6}[protocol]


def test_faster_and_slower_follow_the_direction_of_the_metric():
    study = one_cell_study()
    rows = make_rows(study, ordered, 10, sigma=0.02)
    found = by_pair(verdicts(study, rows))
    assert found["h1", "h2"].verdict == "slower"
    assert found["h3", "h2"].verdict == "faster"
    assert found["h3", "h1"].verdict == "faster"
    assert found["h1", "h2"].ratio == pytest.approx(1.5, rel=0.05)
    assert found["h1", "h2"].low < 1.5 < found["h1", "h2"].high
    assert found["h3", "h1"].ratio == pytest.approx(0.7 / 1.5, rel=0.05)
    for row in rows:
        row["requests_per_s"] = 1e9 / row["latency_p50_ns"]
    rates = by_pair(verdicts(study, rows, metric="requests_per_s"))
    assert rates["h1", "h2"].verdict == "slower"
    assert rates["h1", "h2"].ratio == pytest.approx(1 / 1.5, rel=0.05)
    assert rates["h3", "h2"].verdict == "faster"


def test_same_needs_the_whole_interval_inside_the_margin():
    study = one_cell_study()
    quiet = by_pair(verdicts(study, make_rows(study, flat, 15, sigma=0.01)))
    assert {v.verdict for v in quiet.values()} == {"same"}
    assert quiet["h3", "h2"].margin == 0.05
    assert "within 5 %" in quiet["h3", "h2"].reason
    loud = by_pair(verdicts(study, make_rows(study, flat, 15, sigma=0.2)))
    assert {v.verdict for v in loud.values()} == {"undecided"}
    assert all("beyond the margin" in v.reason or "could have seen" in v.reason for v in loud.values())


def test_without_a_noise_floor_nothing_is_the_same_and_its_size_is_not_told():
    study = one_cell_study()
    rows = [dict(row, valid=not row["arm"].endswith("#aa")) for row in make_rows(study, flat, 15, sigma=0.01)]
    found = by_pair(verdicts(study, rows))["h3", "h2"]
    assert found.noise_floor is None
    assert found.reason == "no difference seen, but the smallest that this lab could have seen here is not known yet"


def test_a_small_real_difference_is_named_even_inside_the_margin():
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: 1.02e6 if protocol == "h3" else 1e6, 40, sigma=0.005)
    found = by_pair(verdicts(study, rows))
    assert found["h3", "h2"].verdict == "slower"
    assert found["h1", "h2"].verdict == "same"


@pytest.mark.filterwarnings("error::RuntimeWarning")  # a median of nothing
def test_no_rows_and_too_few_blocks_are_undecided_and_say_so():
    study = one_cell_study()
    nothing = verdicts(study, [])
    assert len(nothing) == 3
    assert {(v.verdict, v.ratio, v.blocks, v.reason) for v in nothing} == {
        ("undecided", None, 0, "no block has been run yet")
    }
    few = by_pair(verdicts(study, make_rows(study, ordered, 3)))["h1", "h2"]
    assert (few.verdict, few.low, few.high) == ("undecided", None, None)
    assert "too few" in few.reason
    assert few.ratio == pytest.approx(1.5, rel=0.1)
    assert few.blocks_needed is not None


def test_invalid_trials_are_left_out_counted_and_named():
    study = one_cell_study()
    rows = make_rows(study, ordered, 8)
    for row in rows:
        row["valid"] = row["arm"] != "h3"
    found = by_pair(verdicts(study, rows))
    assert (found["h3", "h2"].blocks, found["h3", "h2"].invalid_trials) == (0, 8)
    assert found["h3", "h2"].reason == "no usable block: 8 trials failed a check"
    assert found["h1", "h2"].verdict == "slower"


def test_a_reason_counts_one_of_a_thing_as_one():
    two = one_cell_study().factors | {"protocol": ("h2", "h3")}
    study = make_study(factors=two)
    rows = make_rows(study, ordered, 8)
    alone = by_pair(verdicts(study, rows))
    assert [one.verdict for one in alone.values()] == ["faster"]
    assert alone["h3", "h2"].reason.split("; ")[0] == "the whole interval of the ratio of median latency lies below 1"
    first = next(row for row in rows if row["arm"] == "h3")
    first.update(success_rate=0.3, latency_p50_ns=None)
    assert "1 block holds a trial without" in by_pair(verdicts(study, rows))["h3", "h2"].reason
    one = [dict(row, valid=row["arm"] != "h3") for row in rows if row["block"] == first["block"]]
    assert by_pair(verdicts(study, one))["h3", "h2"].reason == "no usable block: 1 trial failed a check"


def test_the_interval_alone_is_not_a_claim_among_many_comparisons():
    study = make_study()
    one = plan.cells(study)[0].key

    def value(cell, protocol):
        return 1.5e6 if protocol == "h3" and cell.key == one else 1e6

    rows = make_rows(study, value, 8, seed=4)
    found = next(v for v in verdicts(study, rows) if v.cell == one and (v.arm, v.reference) == ("h3", "h2"))
    assert found.low > 1
    assert found.verdict == "undecided"
    assert found.likely == "slower"
    assert found.low > 1 > (found.family_low or 0)
    assert "among 36 comparisons the evidence is not enough yet" in found.reason
    assert found.blocks < found.blocks_needed_low <= found.blocks_needed
    later = verdicts(study, make_rows(study, value, 14, seed=4))
    assert next(v for v in later if v.cell == one and (v.arm, v.reference) == ("h3", "h2")).verdict == "slower"


def test_the_verdict_alone_covers_at_its_level_with_lossy_blocks():
    """A whole study under no difference with invalid trials at random: few claims, and "same" only when it is true."""
    study = one_cell_study()
    wrong = 0
    for seed in range(60):
        rows = make_rows(study, flat, 20, seed=seed, sigma=0.05)
        spoiled = np.random.default_rng(seed).random(len(rows)) < 0.1
        for row, bad in zip(rows, spoiled, strict=True):
            row["valid"] = not bad
        wrong += any(v.verdict in ("faster", "slower") for v in verdicts(study, rows, fixed=False))
    assert wrong <= stats.binom.ppf(0.999, 60, 0.05)


def test_failures_make_an_arm_worse_not_better():
    study = one_cell_study()
    rows = make_rows(study, flat, 10, sigma=0.02)
    for row in rows:
        if row["arm"] == "h3":
            row.update(success_rate=0.3, latency_p50_ns=None)
    found = by_pair(verdicts(study, rows))["h3", "h2"]
    assert (found.verdict, found.ratio, found.low, found.high) == ("slower", None, pytest.approx(10_000), None)
    assert "10 blocks hold a trial without a finite value" in found.reason
    assert found.fixed_p is None


def test_the_fixed_size_analysis_stands_beside_and_can_be_left_out():
    study = one_cell_study()
    rows = make_rows(study, ordered, 8)
    full = by_pair(verdicts(study, rows))["h1", "h2"]
    assert full.fixed_ratio == pytest.approx(full.ratio, rel=0.05)
    assert full.fixed_low < full.fixed_ratio < full.fixed_high
    assert full.fixed_p == pytest.approx(2 / 2**8)
    assert by_pair(verdicts(study, rows, fixed=False))["h1", "h2"].fixed_p is None


# --- the noise floor


def floor_of(value, biased=False):
    return NoiseFloor("c", 10, 1.0, 0.9, 1.1, value, None, 1.0, biased, biased, 20.0)


def test_the_margin_is_never_below_the_floor_and_a_wide_floor_allows_no_same():
    assert margin_in_force(0.05, floor_of(0.02)) == (0.05, True)
    assert margin_in_force(0.05, floor_of(0.08)) == (0.08, False)
    assert margin_in_force(0.05, floor_of(None)) == (0.05, False)
    assert margin_in_force(0.05, None) == (0.05, False)


def test_a_wide_floor_does_not_make_a_large_effect_undecidable():
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: 3e6 if protocol == "h3" else 1e6, 12, sigma=0.2)
    found = by_pair(verdicts(study, rows))["h3", "h2"]
    assert found.noise_floor > 0.1
    assert found.verdict == "slower"


def test_a_baseline_that_differs_from_itself_fails_the_check_and_swallows_effects_of_its_size():
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: {"h1": 1.25e6, "h2": 1e6, "h3": 3e6}[protocol], 20, sigma=0.02)
    for row in rows:
        if row["arm"] == "h2#aa":
            row["latency_p50_ns"] = round(row["latency_p50_ns"] * 1.3)
    result = noise_floor.check(RunEvidence(study, plan.cells(study), rows))[0]
    assert result.status == "fail"
    assert "HTTP/2 against itself: ratio 1.297" in result.evidence
    found = by_pair(verdicts(study, rows))
    assert found["h1", "h2"].verdict == "undecided"
    assert "differs from itself" in found["h1", "h2"].reason
    assert found["h3", "h2"].verdict == "slower"


def test_what_a_biased_baseline_leaves_of_a_difference_is_claimed_at_the_level_of_the_family():
    study, claimed = one_cell_study(), 0
    (cell,) = plan.cells(study)
    for seed in range(40):
        slow = 1.2e6 if seed % 2 else 1.1e6
        rows = make_rows(study, lambda _, arm, slow=slow: slow if arm == "h3" else 1e6, 14, seed=seed, sigma=0.03)
        for row in rows:
            if row["arm"] == "h2#aa":
                row["latency_p50_ns"] = round(row["latency_p50_ns"] / 1.06)
        found = by_pair(verdicts(study, rows, fixed=False))["h3", "h2"]
        if found.verdict != "undecided" and noise_floors(study, rows, [cell.key])[cell.key].biased:
            claimed += 1
            assert found.verdict == "slower"
            assert found.family_low > 1 + found.noise_floor
    assert claimed >= 4


def test_the_noise_floor_check_passes_warns_and_does_not_know():
    study = one_cell_study()

    def status(rows):
        return noise_floor.check(RunEvidence(study, plan.cells(study), rows))[0].status

    assert status(make_rows(study, flat, 20, sigma=0.02)) == "pass"
    assert status(make_rows(study, flat, 12, sigma=0.3)) == "warn"
    assert status(make_rows(study, flat, 3)) == "unknown"
    assert status([]) == "unknown"


# --- the forecast


def test_the_forecast_is_of_the_right_order():
    rng = np.random.default_rng(6)
    forecasts = []
    for _ in range(60):
        logs = rng.normal([math.log(1.05), 0, 0], 0.05, (12, 3))
        forecasts.append(blocks_to_difference(logs, math.log(40)).middle)
    assert 12 <= np.median(forecasts) <= 60  # it takes a median of 23 (test_power.py)
    same = [blocks_to_same(rng.normal(0, 0.03, (10, 3)), math.log(1.05), math.log(40)).middle for _ in range(40)]
    assert 8 <= np.median(same) <= 40


def test_the_forecast_gives_up_on_what_is_far_away():
    rng = np.random.default_rng(7)
    hopeless = [blocks_to_same(rng.normal(0, 1.0, (6, 3)), 0.01, math.log(40)).middle for _ in range(20)]
    assert sum(within_horizon(n, 6) is None for n in hopeless) >= 15
    assert blocks_to_difference(np.zeros((1, 3)), 3.0) == OUT_OF_REACH
    assert blocks_to_same(np.zeros((1, 3)), 0.05, math.log(40)) == OUT_OF_REACH
    assert within_horizon(math.inf, 10) is None
    assert within_horizon(99.2, 10) == 100
    assert within_horizon(100.2, 10) is None
    assert within_horizon(3.0, 10) == 11


# --- modes


def with_mode(study, blocks, seed, share=0.15, factor=1.5, arm="h3"):
    """Rows in which a share of an arm's trials takes ``factor`` times as long, else 1 % of noise."""
    rng = np.random.default_rng(seed)
    rows = make_rows(study, flat, blocks, seed=seed, sigma=0.01)
    for row in rows:
        if row["arm"] == arm and rng.random() < share:
            row["latency_p50_ns"] = round(row["latency_p50_ns"] * factor)
    return rows


def ends_same(study, seed, share, most=40):
    """Whether a study that looks after every block from the sixth ends with *same* for h3 against h2."""
    rows = with_mode(study, most, seed, share)
    for blocks in range(6, most + 1):
        found = by_pair(verdicts(study, [row for row in rows if row["block"] < blocks], fixed=False))["h3", "h2"]
        if found.verdict != "undecided":
            return found.verdict == "same"
    return False


def test_a_mode_of_15_percent_of_the_trials_is_seldom_called_the_same():
    study = one_cell_study()
    called = sum(ends_same(study, seed, 0.15) for seed in range(30))
    assert called <= stats.binom.ppf(0.999, 30, 0.85**14), called  # 45 % before modes were looked for


def test_without_a_mode_the_same_arms_are_called_the_same():
    study = one_cell_study()
    assert sum(ends_same(study, seed, 0.0, most=20) for seed in range(20)) >= 19


def test_modes_are_named_with_their_share_and_as_round_trips():
    from trifecta.design.model import PathSpec

    study = one_cell_study(paths={"clean": PathSpec(name="clean", rtt_ns=500_000)})
    found = by_pair(verdicts(study, with_mode(study, 40, 3, 0.2)))["h3", "h2"]
    assert found.verdict == "undecided"
    assert "trials of HTTP/3 took one round trip more" in found.modes
    assert "which a median hides" in found.reason
    assert found.mean_ratio > 1.05 > found.ratio
    plain = one_cell_study()
    said = by_pair(verdicts(plain, with_mode(plain, 20, 3, 0.25)))["h3", "h2"].modes
    assert "trials of HTTP/3 form a mode at 1.49" in said
    of_the_baseline = by_pair(verdicts(plain, with_mode(plain, 20, 3, 0.3, arm="h2")))["h3", "h2"].modes
    assert "of 40 trials of HTTP/2" in of_the_baseline


@pytest.mark.parametrize("share", [0.15, 0.30])
def test_a_stationary_mode_is_never_called_a_change_during_the_run(share):
    study = one_cell_study()
    for seed in range(15):
        for found in verdicts(study, with_mode(study, 50, seed, share), fixed=False):
            assert "changed" not in found.reason and "contradict" not in found.reason


def test_drift_and_weather_of_all_arms_are_no_mode():
    study = one_cell_study()
    rng = np.random.default_rng(9)
    rows = make_rows(study, flat, 20, sigma=0.01)
    weather = np.exp(np.cumsum(rng.normal(0, 0.2, 20)) + (rng.random(20) < 0.3))
    for row in rows:
        row["latency_p50_ns"] = round(row["latency_p50_ns"] * weather[row["block"]])
    assert {found.modes for found in verdicts(study, rows, fixed=False)} == {""}


# --- the mean ratio beside


@pytest.mark.parametrize("noise", ["log-normal", "student t, 2 df", "drift with jumps"])
def test_the_mean_ratio_is_covered_at_any_look(noise):
    rng = np.random.default_rng(12)
    missed = 0
    for values in blocks_in_random_order(noise, rng, 300, 40, 4):
        ratios = 0.1 + values[:, 0] - values[:, 1:3].mean(axis=1)
        found = [mean_ratio(ratios[:blocks], 0.05) for blocks in range(6, 41, 2)]
        missed += any(one.low is not None and not one.low <= math.exp(0.1) <= one.high for one in found)
    assert missed <= stats.binom.ppf(0.999, 300, 0.05), missed


def test_a_mean_ratio_needs_blocks_and_finite_values():
    assert mean_ratio(np.array([]), 0.05) is None
    assert mean_ratio(np.array([0.1, math.inf]), 0.05) is None
    assert mean_ratio(np.array([0.1]), 0.05).low is None

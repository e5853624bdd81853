"""What a switch does to protocols and to their ratio, from worlds whose truth is known."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from trifecta.analysis.switched import (
    EVERYWHERE,
    FactorContrast,
    countable,
    detected,
    left_out,
    one_family,
    switched,
    tolerated,
)

ASKED = FactorContrast("path", "in-order", "overtaking", "latency_p50_ns", ("h2", "h3"), "h2", 0.95)


def world(effects, blocks=20, noise=0.01, places=("new",), seed=1, **columns):
    """Rows of trials: ``effects`` has for (level, arm) the latency in ns; every block has weather of its own."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in places:
        for (level, arm), value in effects.items():
            for block in range(blocks):
                weather = np.random.default_rng([len(place), len(level), block]).normal(0, 0.3)
                rows += [
                    {
                        "cell": f"path={level},connection={place},server=origin",
                        "factors_json": json.dumps({"protocol": arm, "path": level, "connection": place}),
                        "arm": name,
                        "block": block,
                        "valid": True,
                        "error": None,
                        "samples": 10,
                        "errors": 0,
                        "success_rate": 1.0,
                        "checks_json": "[]",
                        "latency_p50_ns": value * math.exp(weather + rng.normal(0, noise)),
                        **columns,
                    }
                    for name in ((arm, arm + "#aa") if arm == "h2" else (arm,))
                ]
    return rows


def truth(h2, h3):
    return {
        ("in-order", "h2"): 1e8,
        ("in-order", "h3"): 0.8e8,
        ("overtaking", "h2"): 1e8 * h2,
        ("overtaking", "h3"): 0.8e8 * h3,
    }


def test_the_ratio_of_ratios_is_what_the_switch_does_to_the_comparison():
    found = switched(world(truth(h2=1.0, h3=1.5)), ASKED)
    (ratio,) = [one for one in found if one.reference == "h2"]
    assert ratio.arm == "h3"
    assert ratio.contrast.low < 1.5 < ratio.contrast.high
    assert ratio.contrast.high / ratio.contrast.low < 1.03, "weather of a block falls out of its ratios"
    assert ratio.contrast.outcome(0.05, 0.05) == "more"
    assert ratio.off.value == pytest.approx(0.8, rel=0.02)
    assert ratio.on.value == pytest.approx(1.2, rel=0.02)
    alone = {one.arm: one for one in found if one.reference is None}
    assert alone["h2"].contrast.low < 1.0 < alone["h2"].contrast.high
    assert alone["h3"].contrast.ratio / alone["h2"].contrast.ratio == pytest.approx(1.5, rel=0.02)


def test_a_switch_without_effect_is_the_same():
    (ratio,) = [one for one in switched(world(truth(1.0, 1.0)), ASKED) if one.reference]
    assert ratio.contrast.outcome(0.05, 0.05) == "same"


def test_places_stand_for_themselves_and_together():
    rows = world(truth(1.0, 1.5), places=("new",)) + world(truth(1.0, 1.1), places=("reused",))
    ratios = {one.place: one for one in switched(rows, ASKED) if one.reference}
    assert list(ratios) == [EVERYWHERE, "connection new", "connection reused"]
    assert ratios["connection new"].contrast.ratio == pytest.approx(1.5, rel=0.02)
    assert ratios["connection reused"].levels == {"connection": "reused"}
    assert ratios[EVERYWHERE].contrast.ratio == pytest.approx(math.sqrt(1.5 * 1.1), rel=0.02)
    only = FactorContrast(**{**vars(ASKED), "where": (("connection", "new"),)})
    assert {one.place for one in switched(rows, only)} == {""}


def test_without_one_of_the_levels_there_is_nothing_to_compare():
    rows = [row for row in world(truth(1, 1)) if "overtaking" not in row["cell"]]
    assert switched(rows, ASKED) == []


def test_trials_count_that_only_the_threats_own_check_excludes():
    own = json.dumps([{"check": "protocol", "status": "fail"}])
    other = json.dumps([{"check": "protocol", "status": "fail"}, {"check": "drops", "status": "fail"}])
    rows = [
        {"valid": False, "error": None, "checks_json": own},
        {"valid": False, "error": None, "checks_json": other},
        {"valid": False, "error": "client crashed", "checks_json": own},
        {"valid": True, "error": None, "checks_json": "[]"},
    ]
    assert [row["valid"] for row in countable(rows, "protocol")] == [True, False, False, True]
    assert [row["valid"] for row in countable(rows, None)] == [False, False, False, True]
    assert [row["valid"] for row in countable(rows, "protocol", "success_rate")] == [True, True, False, True]


def test_a_check_can_be_tolerated_for_one_of_its_findings_alone():
    """A kernel that does not give the initial window that is asked for must not count as one that does."""
    windows = "initial congestion window 240000 B here, 14480 B in h2"
    untaken = "the initial congestion window has 10 packets, requested: 100"
    said = [windows, untaken, f"{windows}; {untaken}", f"{windows}; TLS version is 1.2, requested: 1.3"]
    failed = [[{"check": "parity", "status": "fail", "evidence": one}] for one in said]
    rows = [{"valid": False, "error": None, "checks_json": json.dumps(one)} for one in failed]
    assert [row["valid"] for row in tolerated(rows, {"parity: initial congestion window"})] == [True, *[False] * 3]
    assert [row["valid"] for row in tolerated(rows, {"parity"})] == [True] * 4
    assert [row["valid"] for row in tolerated(rows, {"path: initial congestion window"})] == [False] * 4


def test_what_a_check_says_is_counted_off_and_on():
    warned = json.dumps([{"check": "reordering", "status": "warn"}])
    rows = world(truth(1, 1), blocks=2)
    for row in rows:
        if "overtaking" in row["cell"]:
            row["checks_json"] = warned
    told = detected(rows, ASKED, "reordering")
    assert (told.off, told.off_trials, told.on, told.on_trials) == (0, 6, 6, 6)


def test_of_a_check_that_sees_several_threats_its_words_are_counted():
    said = {"in-order": "reno", "overtaking": "reno; leaks connections"}
    rows = world(truth(1, 1), blocks=2)
    for row in rows:
        evidence = said[json.loads(row["factors_json"])["path"]]
        row["checks_json"] = json.dumps([{"check": "parity", "status": "warn", "evidence": evidence}])
    told = detected(rows, ASKED, "parity", "leaks")
    assert (told.off, told.off_trials, told.on, told.on_trials) == (0, 6, 6, 6)


@pytest.mark.parametrize(("by", "most"), [(0.2, "less"), (1.0, "undecided")])
def test_four_blocks_decide_what_ten_connections_instead_of_one_do_and_nothing_else(by, most):
    """As alpn-mismatch at the quick depth: HTTP/2 takes a fifth, blocks vary by 30 % and trials by 25 %."""
    outcomes = []
    for seed in range(60):
        found = switched(world(truth(h2=by, h3=1.0), blocks=4, noise=0.25, seed=seed), ASKED)
        outcomes.append({(one.arm, one.reference): one.contrast.outcome(0.05, 0.05) for one in found})
    alone = [one["h2", None] for one in outcomes]
    ratio = [one["h3", "h2"] for one in outcomes]
    assert alone.count(most) >= 57
    assert ratio.count({"less": "more"}.get(most, most)) >= 57
    assert sum(one["h3", None] in ("more", "less") for one in outcomes) <= 6


def test_what_leaves_trials_out_is_counted_by_check():
    rows = world(truth(1, 1), blocks=2)
    for row in rows[:5]:
        row |= {"valid": False, "checks_json": json.dumps([{"check": "path", "status": "fail"}])}
    rows[0]["checks_json"] = json.dumps([{"check": name, "status": "fail"} for name in ("path", "drops")])
    rows[1]["error"] = "client crashed"
    missing = left_out(rows, ASKED)
    assert (missing.count, missing.trials) == (5, 12)
    assert missing.checks == {"path": 4, "drops": 1, "trouble": 1}
    other = FactorContrast(**{**vars(ASKED), "on": "elsewhere"})
    assert left_out(rows, other).trials == 6


def rates(failed, blocks=4):
    rows = world(truth(1, 1), blocks=blocks)
    for row in rows:
        if "overtaking" in row["cell"] and row["arm"].startswith("h2"):
            row |= {"errors": failed, "success_rate": 1 - failed / 10}
    asked = FactorContrast(**{**vars(ASKED), "metric": "success_rate"})
    return {one.arm: one for one in switched(rows, asked)}


def test_success_is_counted_over_requests_and_may_be_none():
    for failed, ratio in ((10, 0.0), (5, 0.5)):
        found = rates(failed)
        assert (found["h2"].off.value, found["h2"].on.value) == (1.0, ratio)
        assert found["h2"].contrast.ratio == ratio
        assert found["h2"].contrast.low <= ratio < found["h2"].contrast.high < 1
        assert found["h2"].contrast.outcome(0.05, 0.05) == "less"
        assert found["h3"].contrast.p == 1.0
        assert found["h3"].reference is None


def test_few_requests_that_fail_decide_nothing():
    assert rates(1, blocks=1)["h2"].contrast.outcome(0.05, 0.05) == "undecided"


def contrast_of(off, on, requests=400):
    """Two cells of one arm, given by how many of the requests of each trial failed."""

    def cell(level, failed):
        return [
            {"cell": f"path={level}", "arm": "h2", "valid": True, "error": None, "samples": requests,
             "errors": int(one), "factors_json": json.dumps({"path": level})}
            for one in failed
        ]  # fmt: skip

    asked = FactorContrast("path", "normal", "lag", "success_rate", ("h2",), "h2", 0.95)
    (found,) = switched([*cell("normal", off), *cell("lag", on)], asked)
    return found.contrast


def p_of(off, on):
    return contrast_of(off, on).p


def test_requests_that_fail_together_are_not_independent_ones():
    """One trial of six that fails whole, against none of six: it could as well have been one of the others."""
    assert p_of([0] * 6, [400, 0, 0, 0, 0, 0]) == 1
    assert p_of([0] * 6, [120, 130, 110, 125, 118, 121]) < 1e-6  # every trial fails alike: requests tell
    assert p_of([0] * 6, [400] * 6) == pytest.approx(2 / math.comb(12, 6))  # neither tells: a trial counts as one


@pytest.mark.parametrize("trials", [6, 12])
def test_rates_that_do_not_differ_are_told_apart_in_one_of_twenty_cases_at_most(trials):
    rng, cases = np.random.default_rng(trials), 300
    whole = [(rng.random((2, trials)) < 0.08) * 400 for _ in range(cases)]
    partly = [rng.binomial(400, rng.beta(0.08, 3.92, (2, trials))) for _ in range(cases)]  # correlated by 0.2
    for drawn in (whole, partly):
        told = sum(p_of(*one) <= 0.05 for one in drawn)
        assert told <= stats.binom.ppf(0.999, cases, 0.05)


def test_what_is_told_apart_has_an_interval_on_that_side():
    """Measured of Go services with losses: all of 80 requests succeed without timeouts, 46 of 80 with them."""
    found = contrast_of([0] * 8, [4, 0, 5, 5, 6, 5, 5, 4], requests=10)
    assert found.outcome(0.05, 0.05) == "less"
    assert found.low < found.ratio == 0.575 < found.high < 1
    few = [8, 9, 8, 7, 9, 8]
    assert contrast_of([0] * 6, few, requests=20).high == 1  # by themselves six trials leave 1.03
    assert contrast_of(few, [0] * 6, requests=20).low == 1
    rng = np.random.default_rng(5)
    for _ in range(200):
        one = contrast_of(*rng.binomial(20, rng.uniform(0, 0.5, (2, 1)), (2, 6)), requests=20)
        if one.p <= 0.05:
            assert one.high <= 1 or one.low >= 1


@pytest.mark.parametrize(
    ("off", "on", "correlated"), [(0.0, 0.4, 0), (0.1, 0.1, 0.3), (0.1, 0.4, 0.1), (0.02, 0.2, 0.3)]
)
def test_the_ratio_of_rates_is_covered(off, on, correlated):
    rng, cases, missed = np.random.default_rng(3), 400, 0
    for _ in range(cases):
        drawn = []
        for rate in (off, on):
            share = rng.beta(*(part * (1 / correlated - 1) for part in (rate, 1 - rate)), 8) if correlated else rate
            drawn.append(rng.binomial(20, share, 8))
        if drawn[0].sum() < 160:
            one = contrast_of(*drawn, requests=20)
            missed += not one.low <= (1 - on) / (1 - off) <= (one.high or math.inf)
    assert missed <= stats.binom.ppf(0.999, cases, 0.05)


def test_tables_of_one_claim_are_one_family():
    tables = [
        switched(world(truth(1.0, by), blocks=6, noise=0.3, seed=seed), ASKED) for seed, by in ((1, 1.0), (2, 1.3))
    ]
    together = one_family(tables)
    assert [len(table) for table in together] == [len(table) for table in tables] == [3, 3]
    alone = [row.contrast.p_holm for table in tables for row in table]
    corrected = [row.contrast.p_holm for table in together for row in table]
    smallest = min(row.contrast.p for table in tables for row in table)
    assert min(corrected) == pytest.approx(6 * smallest)
    assert min(alone) == pytest.approx(3 * smallest)
    same = [(row.place, row.arm, row.contrast.ratio) for table in tables for row in table]
    assert [(row.place, row.arm, row.contrast.ratio) for table in together for row in table] == same

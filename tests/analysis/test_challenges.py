"""What would overturn a verdict, on data that is known."""

from dataclasses import replace

import pytest

from tests.analysis.worlds import make_rows, one_cell_study
from trifecta.analysis.challenges import challenges
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan

PAIR = ("h3", "h2")
STUDY = one_cell_study(metric="latency_p50_ns")
CELL = plan.cells(STUDY)[0]


def rows(ratio=0.8, blocks=12, sigma=0.02, **columns):
    return make_rows(
        STUDY, lambda cell, protocol: 10e6 * (ratio if protocol == "h3" else 1.0), blocks, sigma=sigma, **columns
    )


def test_a_clear_difference_stands_whatever_block_is_left_out():
    found = challenges(STUDY, rows(), CELL, [PAIR])[PAIR]
    assert (found.blocks, found.opposed) == (12, 0)
    low, high = found.without_one
    assert 0.77 < low < high < 0.83
    assert high - low < 0.015  # one of twelve does little
    assert found.halves == pytest.approx((0.8, 0.8), rel=0.04)
    assert found.counted is None
    assert [one.metric for one in found.metrics] == ["success_rate"]  # the rows have no other
    assert challenges(STUDY, rows(), CELL, [PAIR], metrics=False)[PAIR].metrics == ()


def test_one_wild_block_makes_no_difference_but_a_block_between_two_groups_and_a_drift_are_seen():
    some = rows(1.0, 10, 0.001)
    wild = [{**row, "latency_p50_ns": 5e6} if row["arm"] == "h3" and row["block"] == 0 else row for row in some]
    low, high = challenges(STUDY, wild, CELL, [PAIR])[PAIR].without_one
    assert 0.99 < low <= high < 1.01
    early = [
        {**row, "latency_p50_ns": row["latency_p50_ns"] * 0.5} if row["arm"] == "h3" and row["block"] < 5 else row
        for row in some
    ]
    found = challenges(STUDY, early, CELL, [PAIR])[PAIR]
    assert found.without_one[0] < 0.55 < 0.95 < found.without_one[1]
    assert found.halves[0] < 0.55 < 0.95 < found.halves[1]


def test_blocks_that_are_censored_are_challenged_with_the_others():
    """In 5 of 12 blocks too much failed: they count as worst in the verdict, and so they do here."""
    some = rows(0.8, 12, 0.001)
    for row in some:
        if row["arm"] == "h3" and row["block"] < 4:
            row |= {"latency_p50_ns": None, "success_rate": 0.4, "samples": 100}
        elif row["arm"] == "h3" and row["block"] < 6:
            row["latency_p50_ns"] *= 1.5
    (verdict,) = [one for one in verdicts(STUDY, some, [CELL]) if (one.arm, one.reference) == PAIR]
    found = challenges(STUDY, some, CELL, [PAIR], metrics=False)[PAIR]
    assert (found.blocks, found.opposed) == (verdict.blocks, 6) == (12, 6)
    low, high = found.without_one
    assert low < verdict.ratio < high  # 0.8 to 1.2: half of the blocks on either side
    assert found.halves is None  # the ratio of the first half is infinite
    worse = [{**row, "latency_p50_ns": None, "success_rate": 0.4, "samples": 100} if row["arm"] == "h3" else row
             for row in some]  # fmt: skip
    found = challenges(STUDY, worse, CELL, [PAIR], metrics=False)[PAIR]
    assert (found.blocks, found.opposed, found.without_one, found.halves) == (12, 0, None, None)


def test_excluded_trials_are_counted_for_once():
    some = [{**row, "valid": row["arm"] != "h3" or row["block"] != 3} for row in rows(blocks=12)]
    found = challenges(STUDY, some, CELL, [PAIR, ("h1", "h2")])
    assert found[PAIR].counted is not None and found[PAIR].counted.blocks == 12
    assert found["h1", "h2"].counted is None  # none of its trials was excluded


def test_other_metrics_get_their_own_verdict():
    some = [
        {**row, "requests_per_s": 1e12 / row["latency_p50_ns"] * (0.5 if row["arm"] == "h3" else 1.0)}
        for row in rows(0.8)
    ]
    found = challenges(STUDY, some, CELL, [PAIR])[PAIR]
    assert [one.metric for one in found.metrics] == ["requests_per_s", "success_rate"]
    assert found.metrics[0].verdict == "slower"  # although its latency is lower
    mean = challenges(replace(STUDY, metric="requests_per_s"), some, CELL, [PAIR])[PAIR]
    assert mean.metrics[0].metric == "latency_p50_ns" and mean.metrics[0].verdict == "faster"


def test_no_block_is_no_challenge():
    found = challenges(STUDY, [], CELL, [PAIR])[PAIR]
    assert (found.blocks, found.without_one, found.halves, found.metrics) == (0, None, None, ())

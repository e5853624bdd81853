"""A full grid against a map's search: whose turn it is, and whether the comparison says what is true."""

import json
from collections import Counter

import numpy as np
import pytest

from bench.mapping import compare, real, turns
from bench.mapping.contest import Contest, read_contest
from tests.analysis.mapping.plane import a_plan, a_study, rows_of
from trifecta.analysis.mapping.planner import blocks_of_rows
from trifecta.analysis.mapping.result import work_out
from trifecta.analysis.planner import Stop
from trifecta.design import plan as design_plan

MINUTE_NS = 60 * 10**9


def _truth(x, y):
    return 0.6 * (x - 0.5) + 0.2 * y - 0.1


@pytest.fixture(scope="module")
def contest():
    return Contest(a_plan("6x6", blocks=26), held_out=36, seed=3)


@pytest.fixture(scope="module")
def study(contest):
    return a_study(contest.plan)


def _run(contest, study, rows, rng, budget_ns=60 * MINUTE_NS, most=200, each_ns=10**9):
    planner = turns.Turns(contest, study, design_plan.cells(study), budget_ns)
    for _ in range(most):
        decision = planner.next(rows, len(rows) * each_ns)
        if isinstance(decision, Stop):
            return decision
        made = rows_of(contest.plan, study, decision, _truth, rng, len(rows), 0.05)
        present = {(row["cell"], row["block"], row["arm"]) for row in rows}
        rows += [row for row in made if (row["cell"], row["block"], row["arm"]) not in present]
    return None


@pytest.fixture(scope="module")
def done(contest, study):
    rows = []
    stop = _run(contest, study, rows, np.random.default_rng(0))
    return rows, stop


def test_every_kind_gets_its_blocks_and_none_shares_its_losses(contest, study, done):
    rows, stop = done
    assert stop.kind == "blocks"
    blocks = {kind: blocks_of_rows(contest.plan, study, own).blocks for kind, own in turns.split(rows).items()}
    assert {kind: len(found) for kind, found in blocks.items()} == {"search": 26, "grid": 36, "held out": 36}
    assert sorted(block.place for block in blocks["grid"]) == list(range(36))
    assert [block.place for block in blocks["grid"]] != list(range(36))
    assert sorted(block.place for block in blocks["held out"]) == list(range(36))
    seeds = {(row["cell"], design_plan.block_seed(study, cell, row["block"]))
             for row in rows for cell in design_plan.cells(study) if cell.key == row["cell"]}  # fmt: skip
    assert len(seeds) == len(rows) // 3


def test_held_out_places_lie_one_in_a_tile():
    for count, side in ((64, 8), (40, 6), (1, 1), (0, 0)):
        places = turns.held_out_places(16, 16, count, np.random.default_rng(1))
        tiles = {(place // 16 * side // 16, place % 16 * side // 16) for place in places}
        assert len(places) == side * side
        assert len(tiles) >= 0.7 * len(places)  # exactly one each where the side divides the plane
        assert side != 8 or len(tiles) == 64


def test_the_kinds_take_turns(done):
    rows, _ = done
    kinds = [turns.kind_of(row) for row in rows[::3]]
    half = Counter(kinds[: len(kinds) // 2])
    assert (half["search"], half["grid"], half["held out"]) == pytest.approx((13, 18, 18), abs=1)


def test_an_interrupted_run_goes_on_as_it_would_have(contest, study, done):
    rows, _ = done
    begun = list(rows[:70])  # in the middle of a block
    assert _run(contest, study, begun, np.random.default_rng(0), most=3) is None
    assert [(row["cell"], row["block"], row["arm"]) for row in begun] == [
        (row["cell"], row["block"], row["arm"]) for row in rows[: len(begun)]
    ]
    assert len(begun) == 70 + 2 + 6


def test_the_time_ends_it_and_says_how_far_it_came(contest, study):
    rows = []
    stop = _run(contest, study, rows, np.random.default_rng(0), budget_ns=MINUTE_NS)
    assert stop.kind == "budget"
    assert 50 <= len(rows) <= 60
    assert "grid 7 of 36" in stop.reason


def test_a_contest_reads_back(contest):
    assert read_contest(json.loads(json.dumps(contest.document()))) == contest


def test_errors_are_those_against_the_truth_although_every_block_scatters():
    rng = np.random.default_rng(1)
    places, scatter, off = 4000, 0.1, 0.05
    truth = rng.normal(0, 0.3, places)
    grid = truth + rng.normal(0, scatter, places)
    held = dict(enumerate(truth + rng.normal(0, scatter, places)))
    guess = truth + rng.choice([-off, off], places)
    blocks = compare.Blocks(np.zeros((places, 2)), grid, held, None, 0.05)
    found = compare.errors(blocks, guess, grid, rng)
    assert found["rmse"]["grid"][0] == pytest.approx(scatter, rel=0.05)
    assert found["rmse"]["search"][0] == pytest.approx(off, rel=0.15)
    low, high = found["rmse"]["search"][1:]
    assert low < off < high < 0.06
    assert found["mean_square_search_to_grid"][2] < 0.4
    assert found["wrong_side_search_less_grid"][2] < 0
    worse = compare.errors(blocks, truth + rng.choice([-0.4, 0.4], places), grid, rng)
    assert worse["mean_square_search_to_grid"][1] > 1


def test_places_on_the_wrong_side_are_counted_where_the_reference_is_sure():
    grid = np.array([0.1, -0.1, 0.1, np.nan])
    reference = compare.Reference(
        np.array([0.2, 0.2, 0.0, 0.2]), np.array([0.1, 0.1, -0.1, 0.1]), np.array([0.3, 0.3, 0.1, 0.3])
    )
    sides = compare.PlaceIntervals(
        np.array([-0.2, 0.1, 0.1, 0.1]), np.zeros(4), np.zeros(4), np.array([0.01, 0.9, 0.9, 0.1]),
        ("slower", "open", "open", "slower"),
    )  # fmt: skip
    wrong, counted = compare.wrong_sides(grid, sides, reference)
    assert wrong["grid"].tolist() == [False, True, False, False]
    assert wrong["search"].tolist() == [True, False, False, False]
    assert (counted["sure"], counted["without_a_block"], counted["search_claims_wrong"]) == (2, 1, 1)


def test_a_place_is_not_judged_by_its_own_block(contest):
    shares = np.array(contest.plan.shares())
    grid = np.array([_truth(x, y) for x, y in shares])
    grid[21] = 2.0
    reference = compare.cross_fitted(shares, grid, 1, 1)
    assert abs(reference.mean[21] - _truth(*shares[21])) < 0.4
    assert np.isfinite(reference.mean).all()


def test_the_whole_comparison_with_its_files(contest, study, done, tmp_path, capsys):
    rows, stop = done

    class Run:
        facts = {"ended_because": stop.reason, "trifecta": "1"}  # noqa: RUF012

        def rows(self):
            return rows

    assert real.judge(tmp_path, contest, study, Run()) == 0
    said = capsys.readouterr().out
    assert "| grid | 36 | 36 |" in said and "met" in said
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document["rmse"]["search"][0] < document["rmse"]["grid"][2]
    assert document["reference"]["search_claims_wrong"] == 0
    assert (tmp_path / "comparison.png").stat().st_size > 20_000
    made = work_out(contest.plan, study, turns.split(rows)["search"])
    assert json.loads((tmp_path / "search" / "map.json").read_text())["blocks"] == made.blocks == 26

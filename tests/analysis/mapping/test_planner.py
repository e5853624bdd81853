"""The planner of a map: what it decides from rows, and that an interrupted map goes on as it would have."""

import json
import math

import numpy as np
import pytest

from tests.analysis.mapping.plane import SECOND_NS, a_plan, a_study, explore, rows_of
from trifecta.analysis.mapping.noise import noise_of
from trifecta.analysis.mapping.planner import MapPlanner, blocks_of_rows
from trifecta.analysis.mapping.result import read, work_out
from trifecta.analysis.mapping.search import first_blocks
from trifecta.analysis.planner import Decision, Stop
from trifecta.design import plan as design_plan
from trifecta.design.errors import UserError


def _truth(x, y):
    return 0.7 * (x - 0.5) + 0.1 * y


@pytest.fixture(scope="module")
def done():
    plan = a_plan()
    study = a_study(plan)
    return plan, study, *explore(plan, study, _truth)


def test_it_ends_when_every_place_is_decided_and_names_the_right_winners(done):
    plan, study, rows, stop, taken = done
    assert stop.kind == "decided"
    made = work_out(plan, study, rows)
    sides = made.sides()
    says = {"faster": 1, "slower": -1, "same": 0}
    for (x, y), outcome in zip(plan.shares(), sides.outcomes, strict=True):
        real = _truth(x, y)
        assert says[outcome] * real >= 0
        assert outcome != "same" or abs(real) < 0.08
    assert len(taken) * 3 == len(rows) == made.trials


def test_it_ends_by_what_the_map_will_say_where_the_reference_differs_from_itself():
    plan = a_plan("4x4", blocks=60)
    study = a_study(plan)
    planner, rng, rows = MapPlanner(plan, study, design_plan.cells(study)), np.random.default_rng(3), []
    while isinstance(decision := planner.next(rows, len(rows) * SECOND_NS), Decision):
        made = rows_of(plan, study, decision, lambda x, y: 0.16 * (x - 0.5), rng, len(rows), 0.005)
        rows += [row | {"latency_mean_ns": row["latency_mean_ns"] * 1.06} if row["arm"] == "h2#aa" else row
                 for row in made]  # fmt: skip
    found = work_out(plan, study, rows)
    assert found.noise.biased and 0.05 < found.noise.floor < 0.08
    assert (decision.kind == "decided") == (not found.sides().is_open().any())


def test_the_noise_of_a_map_is_the_median_that_its_interval_is_of():
    """In a fifth of the blocks the second run of the reference has a mode at twice the time, in one no time at all."""
    plan = a_plan("4x4")
    study = a_study(plan)
    cell = design_plan.cells(study)[0].key
    some = {"cell": cell, "valid": True, "samples": 20, "success_rate": 1.0}
    logs = np.random.default_rng(1).normal(0, 0.002, 40)
    logs[::5] = math.log(2)
    blocks = [
        [{**some, "block": number, "arm": "h2", "latency_mean_ns": 1e8},
         {**some, "block": number, "arm": "h2#aa", "latency_mean_ns": 1e8 * math.exp(log)}]
        for number, log in enumerate(logs)
    ]  # fmt: skip
    blocks[0][1] |= {"latency_mean_ns": None, "success_rate": 0.5}
    found = noise_of(study, blocks)
    assert found.blocks == 40  # the one without a time is worse than all others
    assert found.low < found.ratio < found.high < 1.01
    assert not found.biased


def test_the_first_blocks_lie_where_they_should_in_their_order(done):
    plan, _, _, _, taken = done
    first = first_blocks(np.array(plan.shares()))
    assert [plan.place_of(one.cell) for one in taken[: len(first)]] == first


def test_an_interrupted_map_goes_on_as_it_would_have(done):
    plan, study, rows, _, taken = done
    for blocks in (0, 3, 24, 26, 29):
        fresh = MapPlanner(plan, study, design_plan.cells(study))
        assert fresh.next(rows[: 3 * blocks], 0) == taken[blocks]
    part = MapPlanner(plan, study, design_plan.cells(study)).next(rows[: 3 * 5 + 1], 0)
    assert isinstance(part, Decision)
    assert (part.cell.key, part.block) == (taken[5].cell.key, taken[5].block)
    assert "completed" in part.reason


def test_the_sign_is_that_of_the_metric():
    plan = a_plan("4x4")
    study = a_study(plan, "metric=requests_per_s")
    decision = MapPlanner(plan, study, design_plan.cells(study)).next([], 0)
    rows = [
        {"cell": decision.cell.key, "block": 0, "arm": arm, "valid": True, "requests_per_s": rate, "samples": 20,
         "success_rate": 1.0}
        for arm, rate in (("h2", 100.0), ("h2#aa", 100.0), ("h3", 150.0))
    ]  # fmt: skip
    assert blocks_of_rows(plan, study, rows).blocks[0].value == pytest.approx(math.log(1.5))


def test_it_ends_with_its_blocks_or_its_budget(done):
    _, study, rows, _, _ = done
    cells = design_plan.cells(study)
    few = MapPlanner(a_plan(blocks=4), study, cells)
    assert isinstance(few.next(rows[:9], 0), Decision)
    assert few.next(rows[:12], 0).kind == "blocks"
    short = MapPlanner(a_plan(budget_ns=30 * SECOND_NS), study, cells)
    assert isinstance(short.next(rows[:12], 12 * SECOND_NS), Decision)
    assert short.next(rows[:12], 28 * SECOND_NS).kind == "budget"


def test_a_place_where_nothing_counts_is_not_tried_a_third_time(done):
    plan, study, rows, _, taken = done
    bad = taken[0].cell.key
    spoiled = [row | {"valid": row["cell"] != bad} for row in rows[: 3 * 40]]
    found = blocks_of_rows(plan, study, spoiled)
    assert found.barred() == {plan.place_of(taken[0].cell)}
    planner = MapPlanner(plan, study, design_plan.cells(study))
    decision = planner.next(spoiled[: 3 * 24], 0)
    assert isinstance(decision, Decision)
    assert decision.cell.key != bad


def test_where_no_trial_counts_it_gives_up(done):
    plan, study, rows, _, _ = done
    reasons = json.dumps([{"check": "path", "status": "fail"}])
    nothing = [row | {"valid": False, "checks_json": reasons} for row in rows[: 3 * 24]]
    stop = MapPlanner(plan, study, design_plan.cells(study)).next(nothing, 0)
    assert isinstance(stop, Stop)
    assert stop.kind == "unmeasurable"
    made = work_out(plan, study, nothing)
    assert made.sides() is None
    assert made.spots[0].reasons == {"path": 6}
    assert read(json.loads(json.dumps(made.document()))).document() == made.document()
    with pytest.raises(UserError, match="no block that counts"):
        made.at(35e6, 0.005)


def test_a_censored_arm_counts_as_slow_and_a_censored_pair_not_at_all(done):
    plan, study, rows, _, _ = done
    dead = {"success_rate": 0.2, "latency_mean_ns": None}
    one = [row | (dead if row["arm"] == "h3" else {}) for row in rows[:3]]
    assert blocks_of_rows(plan, study, one).blocks[0].value == -math.inf
    both = [row | dead for row in rows[:3]]
    assert blocks_of_rows(plan, study, both).blocks[0].value is None


def test_answers_between_the_places(done):
    plan, study, rows, stop, _ = done
    made = read(json.loads(json.dumps(work_out(plan, study, rows, ending=stop.reason).document())))
    assert made.document()["summary"] == work_out(plan, study, rows).outcome_of_border()
    for x, y in ((0.93, 0.41), (0.11, 0.2)):
        answer = made.at(plan.x.at(x), plan.y.at(y))
        real = _truth(x, y)
        assert answer.low <= real <= answer.high
        assert answer.winner == ("h3" if real > 0 else "h2")
        low, high = answer.factors()
        assert 1 < low <= math.exp(abs(real)) <= high
        assert answer.document()["times_faster"] == [low, high]


@pytest.mark.parametrize(
    "damage", [{"format": 0}, {"plan": {}}, {"surface": {"unknowns": []}}, {"spots": [1]}, {"noise": {"x": 1}}]
)
def test_a_damaged_map_is_one_line(done, damage):
    plan, study, rows, _, _ = done
    document = json.loads(json.dumps(work_out(plan, study, rows[:72]).document()))
    with pytest.raises(UserError, match=r"map\.json: is not a map"):
        read(document | damage)


def test_a_reference_that_differs_from_itself_raises_what_is_claimed(done):
    plan, study, rows, _, _ = done
    biased = [
        row | ({"latency_mean_ns": row["latency_mean_ns"] * 1.3} if row["arm"] == "h2#aa" else {}) for row in rows
    ]
    made = work_out(plan, study, biased)
    assert made.noise.biased
    assert made.noise.floor > 0.2
    assert not work_out(plan, study, rows).noise.biased
    claims = [made.sides().outcomes.count(side) for side in ("faster", "slower", "same")]
    assert sum(claims) < len(plan.places())
    assert claims[2] == 0

"""Maps of several nodes: intervals of such nodes, no place that one of them decides, and blocks that run beside."""

import heapq
import json
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.analysis.mapping.plane import SECOND_NS, a_plan, a_study, rows_of
from tests.analysis.mapping.test_surface import UNKNOWNS, _kernel, _scatter
from trifecta.analysis import node_faults
from trifecta.analysis.mapping.documents import read_surface, surface_document
from trifecta.analysis.mapping.likelihood import Point, as_data, log_likelihood
from trifecta.analysis.mapping.planner import MapPlanner, blocks_of_rows
from trifecta.analysis.mapping.result import read, work_out
from trifecta.analysis.mapping.search import first_blocks, first_points, sides_of
from trifecta.analysis.mapping.surface import fit
from trifecta.analysis.planner import Decision, SpreadPlanner, Stop
from trifecta.design import plan as design_plan
from trifecta.report.map import words

OF_NODES = np.column_stack([UNKNOWNS, [-3.0, -2.0]])
POINTS = [Point(0.1, 0.2, (0.1, 0.2), "a"), Point(0.1, 0.2, (0.15,), "b"), Point(0.9, 0.1, (0.4,), "b"),
          Point(0.5, 0.8, (-0.2, -0.1), "c")]  # fmt: skip


def test_the_likelihood_is_that_of_blocks_which_share_their_node():
    known = [(p.x, p.y, p.node, value) for p in POINTS for value in p.values]
    direct = []
    for line in OF_NODES:
        covariance = np.array(
            [[_kernel(line, a[:2], b[:2]) + math.exp(2 * line[9]) * (a[2] == b[2]) for b in known] for a in known]
        ) + np.diag([_scatter(line, one[:2]) ** 2 for one in known])
        direct.append(multivariate_normal(cov=covariance).logpdf([one[3] for one in known]))
    found = log_likelihood(as_data(POINTS), OF_NODES)
    assert found[0] - found[1] == pytest.approx(direct[0] - direct[1], rel=1e-9)


def test_one_node_is_as_none():
    of_one = [Point(p.x, p.y, p.values, "a") for p in POINTS if p.node != "b"]
    of_none = [Point(p.x, p.y, p.values) for p in POINTS if p.node != "b"]
    assert np.array_equal(fit(of_one).draws, fit(of_none).draws)
    assert fit(of_one).between_nodes(0.95) is None
    assert fit(of_one).without_each_node(np.zeros((1, 2))) == []


PLACES = [(x, y) for x in (0.0, 0.33, 0.67, 1.0) for y in (0.0, 0.5, 1.0)]


def a_cluster(rng, nodes, between, blocks, scatter=0.05):
    """A plane in truth; blocks at twelve places, each on one of the nodes, which are off by a normal each."""
    slope, shift = rng.normal(0, 0.3, 2)
    off = rng.normal(0, between, nodes)
    seen = {}
    for block in range(blocks):
        place, node = PLACES[block // nodes % len(PLACES)], block % nodes
        value = shift + slope * place[0] + off[node] + scatter * rng.standard_normal()
        seen.setdefault((place, f"n{node}"), []).append(float(value))
    return seen, lambda places: shift + slope * places[:, 0]


def of_one(seen):
    """The same blocks, as if all were of one machine."""
    joined = {}
    for (place, _), values in seen.items():
        joined.setdefault(place, []).extend(values)
    return [Point(*place, tuple(values)) for place, values in joined.items()]


def held(nodes, between, seeds, *, blocks=36, known=True):
    """How often an interval holds, and how often that of how much nodes differ."""
    places = np.array([(x, y) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)])
    inside, about = [], []
    for seed in range(seeds):
        seen, truth = a_cluster(np.random.default_rng([seed, nodes]), nodes, between, blocks)
        of_nodes = [Point(*place, tuple(values), node) for (place, node), values in seen.items()]
        surface = fit(of_nodes if known else of_one(seen), population=128)
        sides, real = sides_of(surface, places, 0.05, 0.95), truth(places)
        inside.append(((sides.low <= real) & (real <= sides.high)).mean())
        if known:
            _, low, high = surface.between_nodes(0.95)
            about.append(low <= between <= high)
    return float(np.mean(inside)), float(np.mean(about)) if known else math.nan


@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_intervals_hold_for_such_nodes(nodes):
    inside, about = held(nodes, 0.15, 12)
    assert inside > 0.9
    assert nodes < 8 or about > 0.8  # two or three say next to nothing of that


def test_intervals_that_do_not_know_of_nodes_do_not_hold():
    inside, _ = held(3, 0.2, 20, blocks=72)
    assert inside > 0.9
    blind, _ = held(3, 0.2, 20, blocks=72, known=False)
    assert blind < 0.75


@pytest.mark.long
@pytest.mark.parametrize("nodes", [2, 3, 8, 16])
@pytest.mark.parametrize("between", [0.0, 0.02, 0.08, 0.2])
def test_intervals_hold_however_many_nodes_differ_by_how_much(nodes, between):
    inside, _ = held(nodes, between, 60)
    print(nodes, between, inside)
    assert inside > 0.92


def test_no_place_is_decided_by_one_node_alone():
    """Two nodes see no difference; the third, which has most of the blocks, sees one everywhere."""
    rng = np.random.default_rng(2)
    points = []
    for block in range(48):
        node = "c" if block % 2 else "ab"[block // 2 % 2]
        x, y = rng.random(2)
        points.append(Point(x, y, (0.5 * (node == "c") + 0.02 * float(rng.standard_normal()),), node))
    places = np.array([(x, y) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)])
    alone = sides_of(fit([Point(p.x, p.y, p.values) for p in points]), places, 0.05, 0.95)
    assert "faster" in alone.outcomes, "as of one machine some would be decided"
    surface = fit(points)
    assert set(sides_of(surface, places, 0.05, 0.95).outcomes) == {"open"}
    middle, low, high = surface.between_nodes(0.95)
    assert low < middle < high
    assert 0.1 < middle < 1


def test_a_corner_that_one_node_alone_has_seen_stays_open():
    """Three nodes agree on the left; of the right only one says anything."""
    rng = np.random.default_rng(4)
    points = []
    for block in range(60):
        node = "abc"[block % 3]
        x, y = rng.random() * (1 if node == "a" else 0.4), rng.random()
        points.append(Point(x, y, (0.15 + 1.5 * max(0, x - 0.5) + 0.01 * float(rng.standard_normal()),), node))
    right = np.array([[0.95, 0.5]])
    surface = fit(points)
    alone = surface.at(right)
    with_others = sides_of(surface, right, 0.05, 0.95)
    assert with_others.low[0] < alone.quantile(0.025)[0] - 0.1
    assert sides_of(surface, np.array([[0.2, 0.5]]), 0.05, 0.95).outcomes == ("faster",)


def test_a_map_of_nodes_reads_back_and_says_by_how_much_they_differ():
    surface = fit(POINTS)
    document = surface_document(surface)
    again = read_surface(document)
    places = np.array([[0.3, 0.3]])
    assert again.at(places).mean == pytest.approx(surface.at(places).mean)
    assert [one.mean[0] for one in again.without_each_node(places)] == pytest.approx(
        [one.mean[0] for one in surface.without_each_node(places)]
    )
    assert again.between_nodes(0.95) == surface.between_nodes(0.95)
    for damage in (
        {"nodes": [0]},
        {"at": [9, 9, 9, 9]},
        {"unknowns": document["unknowns"][:-1]},
        {"between_nodes": []},
    ):
        with pytest.raises(ValueError, match="surface"):
            read_surface(document | damage)


def explore(plan, study, truth, nodes, *, seed=0, off=None, most=400):
    """Run the planner on nodes that take unequal times; rows, how it stopped, and the decisions in their order."""
    rng = np.random.default_rng(seed)
    planner = MapPlanner(plan, study, design_plan.cells(study))
    assert isinstance(planner, SpreadPlanner)
    rows, taken, running, idle, now = [], [], [], list(range(nodes)), 0.0
    while True:
        while idle:
            beside = {}
            for _, _, _, decision in running:
                beside.setdefault(decision.cell.key, set()).add(decision.block)
            planner.beside(beside, nodes)
            decision = planner.next(rows, round(now * SECOND_NS))
            if isinstance(decision, Stop):
                break
            assert len(taken) < most, "the planner does not stop"
            taken.append(decision)
            node = idle.pop(0)
            heapq.heappush(running, (now + rng.uniform(0.5, 2), len(taken), node, decision))
        if not running:
            return rows, decision, taken
        now, _, node, done = heapq.heappop(running)
        idle.append(node)
        made = rows_of(plan, study, done, truth, rng, len(rows), 0.05)
        shift = math.exp(-(off or [0.0] * nodes)[node])
        for row in made:
            row["node"] = f"n{node}"
            row["latency_mean_ns"] *= shift if row["arm"] == plan.arm else 1.0
        rows += made


def _truth(x, y):
    return 0.7 * (x - 0.5) + 0.1 * y


@pytest.fixture(scope="module")
def spread():
    plan = a_plan(blocks=72)
    study = a_study(plan)
    return plan, study, *explore(plan, study, _truth, 5, off=[0.0, 0.02, -0.02, 0.03, -0.03])


def test_blocks_that_run_beside_each_other_are_chosen_once_and_decide_the_same(spread):
    plan, study, rows, stop, taken = spread
    assert stop.kind in ("blocks", "decided")
    blocks = [(one.cell.key, one.block) for one in taken]
    assert len(set(blocks)) == len(blocks) == len(rows) // 3
    points = first_points(np.array(plan.shares()))
    begun = [plan.place_of(one.cell) for one in taken[: 2 * len(points)]]
    assert begun == points + points[1:] + points[:1]
    made = work_out(plan, study, rows)
    says = {"faster": 1, "slower": -1}
    outcomes = made.sides().outcomes
    for (x, y), outcome in zip(plan.shares(), outcomes, strict=True):
        assert says.get(outcome, 0) * _truth(x, y) >= 0
    assert sum(outcome in says for outcome in outcomes) > 0.6 * len(outcomes)
    assert made.nodes()["count"] == 5
    assert made.nodes()["low"] < 0.025 < made.nodes()["high"]
    assert made.document()["nodes"] == made.nodes()
    said = words.nodes(read(made.document()))
    assert said.startswith("Measured on 5 nodes, between which the speed-up differs by ")
    assert "no place is decided by one of them alone" in said


def test_a_batch_beside_blocks_that_run_is_that_of_one_machine(spread):
    plan, study, rows, _, _ = spread
    first = len(first_blocks(np.array(plan.shares())))
    alone = [{**row, "node": None} for row in rows[: 3 * first]]
    machine = MapPlanner(plan, study, design_plan.cells(study))
    one_by_one, known = [], list(alone)
    rng = np.random.default_rng(1)
    for _ in range(4):
        decision = machine.next(known, 0)
        one_by_one.append((decision.cell.key, decision.block))
        known += rows_of(plan, study, decision, _truth, rng, len(known), 0.05)
    together, running = MapPlanner(plan, study, design_plan.cells(study)), {}
    for expected in one_by_one:
        together.beside(running, 4)
        decision = together.next(alone, 0)
        assert (decision.cell.key, decision.block) == expected
        running.setdefault(decision.cell.key, set()).add(decision.block)


def test_the_number_of_blocks_counts_those_that_run(spread):
    _, study, rows, _, taken = spread
    planner = MapPlanner(a_plan(blocks=8), study, design_plan.cells(study))
    planner.beside({taken[6].cell.key: {0}}, 2)
    assert isinstance(planner.next(rows[:18], 0), Decision)
    planner.beside({taken[6].cell.key: {0}, taken[7].cell.key: {0}}, 2)
    assert planner.next(rows[:18], 0).kind == "blocks"


def test_a_first_block_that_was_lost_with_its_head_is_run(spread):
    plan, study, rows, _, taken = spread
    missing = taken[2].cell.key
    there = [row for row in rows[: 3 * 12] if row["cell"] != missing]
    decision = MapPlanner(plan, study, design_plan.cells(study)).next(there, 0)
    assert (decision.cell.key, decision.block) == (missing, 0)


def test_more_nodes_than_first_blocks_wait_for_what_they_say():
    plan = a_plan("4x4", blocks=90)
    study = a_study(plan)
    rows, stop, taken = explore(plan, study, lambda x, y: 0.02 * x, 40)
    assert stop.kind in ("blocks", "decided")
    assert len(rows) == 3 * len(taken)
    assert len({(one.cell.key, one.block) for one in taken}) == len(taken)


def _left_out(rows, node):
    """The rows once a node does not count, as the judge marks them."""
    mark = json.dumps([{"check": node_faults.CHECK, "scope": "t", "status": "fail", "evidence": "it differs"}])
    return [row | {"valid": False, "checks_json": mark} if row["node"] == node else row for row in rows]


def test_where_one_of_two_nodes_counts_nothing_is_decided_and_that_is_said():
    plan = a_plan("4x4", blocks=40)
    study = a_study(plan)
    rows, _, _ = explore(plan, study, lambda x, y: 0.5, 2)
    assert "faster" in work_out(plan, study, rows).sides().outcomes
    made = work_out(plan, study, _left_out(rows, "n1"))
    assert set(made.sides().outcomes) == {"open"}
    assert made.nodes()["count"] == 1
    assert words.nodes(made) == (
        "Measured on several nodes, of which only one counts, and no place is decided by one node alone."
    )


def test_a_node_that_is_left_out_takes_no_place_with_it(spread):
    plan, study, rows, _, _ = spread
    marked = _left_out(rows, "n2")
    found = blocks_of_rows(plan, study, marked)
    assert any(block.left_out for block in found.blocks)
    assert found.barred() == set()
    spoiled = [row | {"valid": False} if row["node"] == "n2" else row for row in rows]
    assert blocks_of_rows(plan, study, spoiled).barred() != set(), "by another check it does"


def test_what_stops_counting_is_not_decided_on_any_more():
    plan = a_plan("4x4")
    study = a_study(plan)
    rows, stop, _ = explore(plan, study, lambda x, y: 0.5, 3)
    assert stop.kind == "decided"
    planner = MapPlanner(plan, study, design_plan.cells(study))
    planner.beside({}, 3)
    assert planner.next(rows, 0).kind == "decided"
    for name in ("n1", "n2"):
        rows[:] = _left_out(rows, name)
    assert isinstance(planner.next(rows, 0), Decision), "of one node that counts nothing is decided"


def test_many_nodes_take_little_room():
    """Matrices are of places: 600 blocks of 60 nodes at 20 places are fitted as quickly as of few."""
    rng = np.random.default_rng(3)
    places = rng.random((20, 2))
    points = [Point(*places[block % 20], (float(rng.normal(0.1, 0.05)),), f"n{block // 20}") for block in range(600)]
    surface = fit(points, population=64)
    inverse, weights = surface._solution(None)
    assert inverse.shape[1:] == (20, 20)
    assert weights.shape[1:] == (20,)
    low, high = surface.at(places).quantile(0.025), surface.at(places).quantile(0.975)
    assert ((low < 0.1) & (high > 0.1)).mean() > 0.8

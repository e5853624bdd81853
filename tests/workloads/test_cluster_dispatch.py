"""Blocks over nodes, in simulated time: each once, in order, whole again when lost; what it gains and what it costs."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

from tests.analysis.worlds import make_study, one_cell_study
from tests.workloads.simulated_nodes import SimulatedHead, SimulatedNodes, run
from trifecta.analysis.planner import Stop
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.lab.engine import Stopped
from trifecta.workloads.cluster import loop
from trifecta.workloads.cluster.dispatch import BlockFinished, Dispatch, Joined, LeftOut, Order, whole_blocks
from trifecta.workloads.cluster.loop import carry_on


def steady(seconds):
    rng = np.random.default_rng(5)
    return lambda node, order: seconds * rng.uniform(0.9, 1.1)


def blocks_of(head):
    return [(one.order.cell, one.order.block) for one in head.kept]


def assert_each_once_in_order(head):
    found = blocks_of(head)
    assert len(set(found)) == len(found)
    for cell in head.cells:
        own = [block for key, block in found if key == cell]
        assert own == list(range(len(own)))
    names = [row["trial"] for row in head.rows]
    assert len(set(names)) == len(names)


def test_the_first_of_two_results_waits_for_the_block_before_it():
    dispatch = Dispatch(4, 0, {"c": 0})
    dispatch.joined("a")
    dispatch.joined("b")
    first, second = dispatch.order("c", 0, ""), dispatch.order("c", 1, "")
    assert (first.first_trial, second.first_trial) == (0, 4)
    assert (dispatch.begin(first), dispatch.begin(second)) == ("a", "b")
    assert dispatch.ran(BlockFinished("b", second, {})) == []
    assert dispatch.running() == {"c": {0, 1}}
    assert [one.order.block for one in dispatch.ran(BlockFinished("a", first, {}))] == [0, 1]
    assert dispatch.running() == {}
    assert dispatch.whole == {"c": 2}
    assert list(dispatch.idle) == ["b", "a"]


def test_a_lost_block_is_ordered_again_under_its_names_and_what_comes_late_counts_for_nothing():
    dispatch = Dispatch(4, 8, {"c": 2})
    dispatch.joined("a")
    order = dispatch.order("c", 2, "why")
    dispatch.begin(order)
    assert dispatch.lost("a") == order
    assert dispatch.lost_blocks == [order]
    assert not dispatch.over
    assert dispatch.ran(BlockFinished("a", order, {})) == []
    dispatch.joined("b")
    assert dispatch.begin(dispatch.lost_blocks.pop(0)) == "b"
    assert [one.node for one in dispatch.ran(BlockFinished("b", order, {}))] == ["b"]
    assert dispatch.lost("b") is None


def test_a_node_that_runs_a_block_cannot_join_and_none_runs_where_none_is_idle():
    dispatch = Dispatch(4, 0, {})
    dispatch.joined("a")
    dispatch.begin(Order("c", 0, 0, ""))
    with pytest.raises(ValueError, match="joined while"):
        dispatch.joined("a")
    with pytest.raises(KeyError, match="no node"):
        dispatch.begin(Order("c", 1, 4, ""))


def test_a_busy_node_has_one_block_ahead_and_loses_both():
    dispatch = Dispatch(4, 0, {"c": 0})
    dispatch.joined("a")
    first, second = dispatch.order("c", 0, ""), dispatch.order("c", 1, "")
    with pytest.raises(ValueError, match="cannot be given a block ahead"):
        dispatch.begin_ahead("a", first)
    dispatch.begin(first)
    dispatch.begin_ahead("a", second)
    with pytest.raises(ValueError, match="cannot be given a block ahead"):
        dispatch.begin_ahead("a", second)
    assert dispatch.running() == {"c": {0, 1}}
    assert dispatch.lost("a") == first, "the one that it was running is lost"
    assert dispatch.lost_blocks == [first, second]
    dispatch.joined("b")
    dispatch.begin(dispatch.lost_blocks.pop(0))
    dispatch.begin_ahead("b", dispatch.lost_blocks.pop(0))
    assert [one.order for one in dispatch.ran(BlockFinished("b", first, {}))] == [first]
    assert dispatch.busy == {"b": second}
    assert not dispatch.idle
    dispatch.ran(BlockFinished("b", second, {}))
    assert dispatch.over
    assert list(dispatch.idle) == ["b"]


def test_short_blocks_do_not_wait_for_the_way_to_the_head_and_back():
    """0.7 s on the way: an eighth of a block of 5 s, and after a node's first block nothing of it is waited for."""
    nodes = SimulatedNodes(4, steady(5), way_s=0.35)
    study = make_study(min_blocks=3, max_blocks=100_000, budget_ns=300 * 10**9)
    _, head = run(study, nodes, sigma=0.8, judge_every=50)
    assert_each_once_in_order(head)
    assert len(head.kept) >= 0.95 * 4 * 300 / 5
    assert nodes.now_s <= 300 + 5.5 + 0.7, "what is ordered ahead has to fit into the budget as well"


def test_what_a_lost_node_had_ahead_is_run_elsewhere_though_no_node_is_ever_idle():
    nodes = SimulatedNodes(3, steady(5), {"n0": [12.0], "n1": [40.0, 80.0]}, way_s=0.2)
    study = make_study(min_blocks=3, max_blocks=100_000, budget_ns=200 * 10**9)
    _, head = run(study, nodes, sigma=0.8, judge_every=50)
    assert_each_once_in_order(head)
    assert len(head.lost) == 3
    again = Counter((order.cell, order.block) for _, order in nodes.begun())
    assert sum(count - 1 for count in again.values()) == 3
    assert len(nodes.offered) > len(nodes.begun()), "nothing was lost that waited, so nothing is shown"


def test_whole_blocks_are_counted_and_a_gap_is_none():
    assert whole_blocks(["a", "b"], [("a", 0), ("a", 1), ("a", 1)]) == {"a": 2, "b": 0}
    with pytest.raises(ValueError, match="missing"):
        whole_blocks(["a"], [("a", 1)])


@pytest.mark.parametrize("many", [1, 3, 16])
def test_a_study_with_a_number_of_blocks_has_all_of_them_once(many):
    study = make_study(min_blocks=5, max_blocks=5, budget_ns=None)
    stop, head = run(study, SimulatedNodes(many, steady(10)), judge_every=20)
    assert stop.kind in ("blocks", "decided")
    assert Counter(cell for cell, _ in blocks_of(head)) == dict.fromkeys(head.cells, 5)
    assert_each_once_in_order(head)


def test_all_nodes_work_on_the_first_blocks_of_a_single_cell():
    study = one_cell_study(min_blocks=40, max_blocks=40, budget_ns=None)
    nodes = SimulatedNodes(16, lambda node, order: 10.0)
    _, head = run(study, nodes, judge_every=10)
    assert len(head.kept) == 40
    assert nodes.now_s < 35  # 40 blocks on 16 nodes: three rounds of 10 s


@pytest.mark.parametrize("seed", range(5))
def test_lost_nodes_cost_their_running_block_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    lost = {f"n{number}": sorted(rng.uniform(1, 150, 3)) for number in range(6)}
    study = make_study(min_blocks=8, max_blocks=8, budget_ns=None)
    nodes = SimulatedNodes(6, steady(10), lost)
    _, head = run(study, nodes, judge_every=30)
    assert_each_once_in_order(head)
    assert len(head.kept) == 8 * len(head.cells)
    assert head.lost, "no block was lost, so nothing is shown"
    begun = [order for _, order in nodes.begun()]
    assert len(begun) == len(head.kept) + len(head.lost)
    again = [order for order in begun if order in head.lost]
    assert all(again.count(order) == head.lost.count(order) + 1 for order in head.lost)


def test_at_every_look_there_are_the_blocks_that_one_machine_would_have():
    """Slow results must not be missing from a look: here a block takes the longer the slower HTTP/3 was in it."""
    study = one_cell_study(min_blocks=3, max_blocks=200, budget_ns=None)
    looks = []

    class Looking(SimulatedHead):
        def keep(self, done):
            bad = super().keep(done)
            looks.append([row["latency_p50_ns"] for row in self.rows])
            return bad

    nodes = SimulatedNodes(8, lambda node, order: 1.0)
    head = Looking(study, nodes, sigma=0.3, ratio=1.02, judge_every=4)
    nodes._duration = lambda node, order: max(row["latency_p50_ns"] for row in head.measured(order)) / 1e6
    dispatch = Dispatch(len(plan.arms(study)), 0, dict.fromkeys(head.cells, 0))
    carry_on(dispatch, nodes, head, lambda: False, now_s=lambda: nodes.now_s)
    (key,) = head.cells
    orders = [Order(key, block, 0, "") for block in range(len(head.kept))]
    alone = [row["latency_p50_ns"] for order in orders for row in head.measured(order)]
    assert len(looks) > 5
    assert all(alone[: len(look)] == look for look in looks)


def test_what_is_decided_is_what_one_machine_decides():
    study = one_cell_study(min_blocks=5, budget_ns=None, max_blocks=60)
    _, alone = run(study, SimulatedNodes(1, steady(10)), ratio=0.8, judge_every=1)
    _, spread = run(study, SimulatedNodes(12, steady(10)), ratio=0.8, judge_every=1)
    cells = list(alone.cells.values())
    pairs = zip(verdicts(study, alone.rows, cells), verdicts(study, spread.rows, cells), strict=True)
    for one, other in pairs:
        if one.arm == "h3":
            assert (one.verdict, other.verdict) == ("faster", "faster")
        bounds = (one.low, one.high, other.low, other.high)
        assert None not in bounds
        assert max(one.low, other.low) <= min(one.high, other.high)


def test_a_slow_node_and_a_wrong_clock_change_no_verdict():
    """A node that is twice as slow does half as many blocks; another's clock is 3 s off."""
    study = one_cell_study(min_blocks=40, max_blocks=40, budget_ns=None)
    nodes = SimulatedNodes(4, lambda node, order: 20.0 if node == "n0" else 10.0)
    _, head = run(study, nodes, ratio=0.8, judge_every=1)
    done = Counter(one.node for one in head.kept)
    assert max(done["n1"], done["n2"], done["n3"]) - 2 <= 2 * done["n0"] <= min(done["n1"], done["n2"], done["n3"]) + 2
    off = [
        row | {name: row[name] + 3 * 10**9 for name in ("started_ns", "ended_ns") if row["node"] == "n1"}
        for row in head.rows
    ]
    assert off != head.rows
    cells = list(head.cells.values())
    assert verdicts(study, off, cells) == verdicts(study, head.rows, cells)
    assert {one.verdict for one in verdicts(study, off, cells) if one.arm == "h3"} == {"faster"}


def test_a_node_that_does_not_count_gets_nothing_more_and_its_block_is_run_again():
    study = one_cell_study(min_blocks=30, max_blocks=30, budget_ns=None)
    nodes = SimulatedNodes(3, steady(10))
    _, head = run(study, nodes, judge_every=30, bad={"n1": 9})
    assert_each_once_in_order(head)
    assert len(head.kept) == 30
    assert nodes.dismissed == ["n1"]
    (left,) = [one for one in head.said if isinstance(one, LeftOut)]
    assert (left.node, left.reason) == ("n1", "it was simulated to be bad")
    assert len(head.lost) <= 1
    assert len([node for node, _ in nodes.begun() if node == "n1"]) <= 4
    assert len(nodes.begun()) == 30 + len(head.lost)


def test_when_it_is_enough_what_has_begun_is_waited_for():
    study = one_cell_study(min_blocks=2, max_blocks=500, budget_ns=60 * 10**9)
    nodes = SimulatedNodes(4, lambda node, order: 11.0)
    stop, head = run(study, nodes, sigma=0.5)
    assert stop.kind == "budget"
    assert len(nodes.offered) == len(head.kept)
    assert nodes.now_s < 60 + 11 + 2


def test_ctrl_c_ends_it():
    study = one_cell_study(min_blocks=50, max_blocks=50, budget_ns=None)
    nodes = SimulatedNodes(2, lambda node, order: 10.0)
    head = SimulatedHead(study, nodes)
    with pytest.raises(Stopped):
        dispatch = Dispatch(4, 0, dict.fromkeys(head.cells, 0))
        carry_on(dispatch, nodes, head, lambda: len(head.kept) > 3, now_s=lambda: nodes.now_s)
    assert_each_once_in_order(head)


def test_without_nodes_it_ends_with_the_reasons():
    class Refusing(SimulatedNodes):
        told = False

        def poll(self, timeout_s, gather_s=0.0):
            self.now_s += timeout_s
            events = [] if self.told else [Joined("n0"), LeftOut("n0", "its engine is another")]
            self.told = True
            return events

    nodes = Refusing(0, lambda node, order: 1.0)
    head = SimulatedHead(one_cell_study(min_blocks=2), nodes)
    with pytest.raises(CannotError, match="n0: its engine is another") as said:
        carry_on(Dispatch(4, 0, {}), nodes, head, lambda: False, now_s=lambda: nodes.now_s)
    assert "\n" not in str(said.value)
    assert nodes.now_s == pytest.approx(loop.ALONE_S, abs=3)


def test_what_is_complete_needs_no_node():
    study = one_cell_study(min_blocks=2, max_blocks=2, budget_ns=None)
    _, head = run(study, SimulatedNodes(1, lambda node, order: 1.0))
    nodes = SimulatedNodes(0, lambda node, order: 1.0)
    done = SimulatedHead(study, nodes, rows=list(head.rows))
    stop = carry_on(Dispatch(4, 8, dict.fromkeys(head.cells, 2)), nodes, done, lambda: False, now_s=lambda: nodes.now_s)
    assert isinstance(stop, Stop)


@pytest.mark.long
def test_16_nodes_do_15_times_the_blocks_of_one():
    study = make_study(min_blocks=3, max_blocks=100_000, budget_ns=900 * 10**9)
    done = {}
    for many in (1, 16):
        _, head = run(study, SimulatedNodes(many, steady(20)), sigma=0.8, judge_every=50)
        assert_each_once_in_order(head)
        done[many] = len(head.kept)
    print(done)
    assert done[16] >= 15 * done[1], done


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_planning_and_gathering_for_1000_nodes_costs_less_than_a_core_and_little_of_their_time():
    """Blocks of 60 s, the planner and all verdicts at their true cost; files are not in it (`test_node_blocks`)."""
    study = make_study(min_blocks=3, max_blocks=100_000, budget_ns=300 * 10**9)
    nodes = SimulatedNodes(1000, steady(60), looks_cost=True)
    began_s = time.process_time()
    _, head = run(study, nodes, sigma=0.8)
    used_s = time.process_time() - began_s
    ideal_s = len(head.kept) * 60 / 1000
    said = f"{len(head.kept)} blocks in {nodes.now_s:.0f} s (ideal {ideal_s:.0f}), the head used {used_s:.0f} s"
    print(said)
    assert len(head.kept) >= 4000, said
    assert used_s < nodes.now_s, said
    assert nodes.now_s <= ideal_s * 1.05 + 60, said

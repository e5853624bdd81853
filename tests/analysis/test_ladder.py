"""What a ladder concludes: effects that add up, an honest remainder, answers that are wrong as rarely as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trifecta.analysis.answers import HELD_THEN
from trifecta.analysis.intervals import Estimate, linear
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OPEN, OTHER_SIZE
from trifecta.analysis.ladder import answer, climb, compare_orders
from trifecta.analysis.ladder_planner import LadderPlanner, block_of
from trifecta.analysis.planner import Decision, Stop
from trifecta.analysis.statements import Assertion
from trifecta.design import plan
from trifecta.design.study import requests, study

ABOVE = Assertion("requests_per_s", ("h3",), ("h2",), "above", size=(5.1, 5.9))
PLAIN = Assertion("latency_p50_ns", ("h3",), ("h2",), "above")


def world(random, effects, rounds, *, noise=0.05, drift=0.05):
    """The values of a ladder: what each rung is, what its round has in common, and the noise of each block."""
    levels = np.concatenate([[0.0], np.cumsum(effects)])
    shared = random.normal(0, drift, rounds)
    made = []
    for place, level in enumerate(levels):
        own = {block_of(r): level + shared[r] + random.normal(0, noise) for r in range(rounds)}
        if place in (0, len(levels) - 1):
            own |= {block_of(r, end=True): level + shared[r] + random.normal(0, noise) for r in range(rounds)}
        made.append(own)
    return made


def test_steps_add_up_and_the_whole_comes_from_blocks_of_its_own():
    values = [{0: 0.0, 1: 0.1, 2: 0.2, 3: 0.1}, {0: 1.0, 2: 1.4}, {0: 3.0, 1: 4.0, 2: 3.4, 3: 4.2}]
    made = climb(values, 2, 0.95)
    assert [step.change.value for step in made.steps] == pytest.approx([1.1, 2.0])
    assert made.summed.value == pytest.approx(3.1)
    assert made.end_to_end.value == pytest.approx(4.0)
    assert made.left.value == pytest.approx(0.9)
    assert (made.rounds, made.complete) == (2, 2)
    assert made.rungs[0].value == pytest.approx(0.1)


def test_a_round_without_a_rung_is_left_out_of_its_steps_and_of_the_sum():
    values = [{0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, {2: 1.0}, {0: 3.0, 1: 3.0, 2: 3.0, 3: 3.0}]
    made = climb(values, 2, 0.95)
    assert [step.change.blocks for step in made.steps] == [1, 1]
    assert (made.complete, made.end_to_end.blocks, made.left.blocks) == (1, 2, 1)
    assert made.meets is None


def test_intervals_of_steps_and_of_the_remainder_hold_as_often_as_they_say():
    random = np.random.default_rng(20)
    effects, runs = [1.0, -0.3, 0.0, 0.2], 800
    held = np.zeros(len(effects) + 2)
    false = 0
    for _ in range(runs):
        made = climb(world(random, effects, 6), 6, 0.95)
        inside = [one.change.low <= true <= one.change.high for one, true in zip(made.steps, effects, strict=True)]
        held += [*inside, bool(made.meets), made.end_to_end.low <= sum(effects) <= made.end_to_end.high]
        false += made.steps[2].counts(0.95)
    assert all(0.93 <= share <= 0.97 for share in held / runs), held / runs
    assert false / runs <= 0.05


def test_a_session_that_drifts_between_the_blocks_of_a_round_is_left_and_said():
    """The second blocks of the upper end ran under other conditions: the steps do not add up to the whole."""
    random = np.random.default_rng(3)
    values = world(random, [0.5, 0.5], 10)
    values[-1] = {block: value + 0.4 * (block % 2) for block, value in values[-1].items()}
    made = climb(values, 10, 0.95)
    assert made.meets is False
    assert made.left.low < 0.4 < made.left.high


@pytest.mark.parametrize(
    ("says", "truth"), [(PLAIN, math.log(1.05)), (PLAIN, 0.0), (PLAIN, 0.4), (ABOVE, math.log(4.2))]
)
def test_what_did_not_change_is_called_held_then_in_at_most_one_of_twenty(says, truth):
    random = np.random.default_rng(7)
    runs = 600
    called = 0
    for _ in range(runs):
        values = world(random, [0.0, 0.0], 6)
        made = climb([{block: value + truth for block, value in one.items()} for one in values], 6, 0.95)
        ends = [linear([(1.0, np.array(list(values[place].values())) + truth)], 0.95) for place in (0, -1)]
        called += answer(says, ends[0], ends[1], made.end_to_end, margin=0.05, sessions=0.0)[0] == HELD_THEN
    assert called / runs <= 0.05


def test_what_changed_is_called_held_then():
    random = np.random.default_rng(8)
    values = world(random, [-2.8, 0.0], 6)
    values = [{block: value + math.log(16) for block, value in one.items()} for one in values]
    made = climb(values, 6, 0.95)
    ends = [linear([(1.0, np.array(list(values[place].values())))], 0.95) for place in (0, -1)]
    found = answer(ABOVE, ends[0], ends[1], made.end_to_end, margin=0.05, sessions=0.01)
    assert (found[0], found[2], found[3]) == ("held then", OTHER_SIZE, CONTRADICTED)
    assert "in another size than published" in found[1]


def at(low, high):
    return Estimate((low + high) / 2, low, high, 6)


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (at(0.5, 0.6), at(0.5, 0.6), "confirmed"),
        (at(0.5, 0.6), at(-0.3, -0.2), "held then"),
        (at(-0.3, -0.2), at(-0.3, -0.2), "contradicted"),
        (at(-0.3, -0.2), at(0.5, 0.6), "open"),
        (at(-0.1, 0.2), at(0.5, 0.6), "open"),
        (at(0.5, 0.6), at(-0.1, 0.2), "open"),
    ],
)
def test_the_answer_follows_from_both_ends(then, now, said):
    assert answer(PLAIN, then, now, at(-0.9, -0.7), margin=0.05, sessions=0.0)[0] == said


def test_without_a_difference_from_end_to_end_nothing_held_then():
    found = answer(PLAIN, at(0.5, 0.6), at(-0.3, -0.2), at(-0.9, 0.1), margin=0.05, sessions=0.0)
    assert found[0] == "open"


def test_an_effect_that_is_smaller_today_held_then_in_its_size_alone():
    found = answer(ABOVE, at(1.64, 1.76), at(0.4, 0.5), at(-1.3, -1.1), margin=0.05, sessions=0.0)
    assert (found[0], found[2], found[3]) == ("held then", CONFIRMED, OTHER_SIZE)


def test_an_open_end_gives_its_reason():
    found = answer(PLAIN, at(0.5, 0.6), at(-0.1, 0.2), at(-0.9, -0.7), margin=0.05, sessions=0.0)
    assert found[3] == OPEN
    assert found[1].startswith("confirmed as published; today: the interval reaches across the margin")
    both = answer(PLAIN, at(-0.1, 0.2), at(-0.1, 0.2), at(-0.9, 0.7), margin=0.05, sessions=0.0)
    assert both[1].startswith("as published: the interval") and "; today: the interval" in both[1]


def test_steps_that_act_on_their_own_have_no_interaction_and_others_have():
    below, first, second, top = ({0: 0.0, 2: 0.1}, {0: 1.0, 2: 1.2}, {0: 2.0, 2: 2.1}, {0: 3.0, 2: 3.2})
    assert compare_orders(below, first, second, top, 0.95).difference.value == pytest.approx(0.0)
    more = {block: value + 0.7 for block, value in top.items()}
    found = compare_orders(below, first, second, more, 0.95)
    assert found.difference.value == pytest.approx(0.7)
    assert (found.before.value, found.after.value) == pytest.approx((1.05, 1.75))


def small(rounds=3):
    return study(
        "climb",
        workload=requests(requests=5),
        factors={"path": ["clean"], "tcp_nodelay": [True, False], "tls_version": ["1.2/1.3", "1.3"]},
        cells=["tcp_nodelay=false,tls_version=1.2/1.3", "tcp_nodelay=true,tls_version=1.2/1.3",
               "tcp_nodelay=true,tls_version=1.3"],
        blocks={"at_least": rounds, "at_most": rounds},
    )  # fmt: skip


def run_through(planner, of, rows, stop_after=10_000):
    order = []
    while len(rows) < stop_after:
        found = planner.next(rows, 0)
        if isinstance(found, Stop):
            return order, found
        order.append((found.cell.key, found.block))
        rows += [{"cell": found.cell.key, "block": found.block, "arm": arm} for arm in plan.arms(of)]
    return order, None


def test_every_rung_runs_once_a_round_and_the_ends_twice_in_an_order_that_differs():
    of = small()
    cells = plan.cells(of)
    ends = [cells[0].key, cells[-1].key]
    order, end = run_through(LadderPlanner(of, cells, ends), of, [])
    assert end is not None
    assert end.kind == "blocks"
    rounds = [order[place : place + 5] for place in range(0, len(order), 5)]
    assert len(rounds) == 3
    for number, one in enumerate(rounds):
        assert {block // 2 for _, block in one} == {number}
        assert sorted(one) == sorted(
            [(cell.key, 2 * number) for cell in cells] + [(key, 2 * number + 1) for key in ends]
        )
    assert len({tuple(key for key, _ in one) for one in rounds}) > 1


def test_an_interrupted_ladder_goes_on_where_it_was():
    of = small()
    cells = plan.cells(of)
    ends = [cells[0].key, cells[-1].key]
    whole, _ = run_through(LadderPlanner(of, cells, ends), of, [])
    rows = []
    run_through(LadderPlanner(of, cells, ends), of, rows, stop_after=20)
    del rows[-2:]  # an arm or two of the last block were not finished
    found = LadderPlanner(of, cells, ends).next(rows, 0)
    assert isinstance(found, Decision)
    assert (found.cell.key, found.block) == whole[4]


@pytest.mark.parametrize(("within_ns", "rounds"), [(22e9, 4), (1e9, 2), (None, 10)])
def test_a_round_that_would_end_too_late_is_not_begun_but_for_two(within_ns, rounds):
    of = small(10)
    cells = plan.cells(of)
    ends = [cells[0].key, cells[-1].key]
    planner, rows, blocks = LadderPlanner(of, cells, ends, within_ns), [], 0
    while isinstance(found := planner.next(rows, blocks * 10**9), Decision):  # a block takes a second
        rows += [{"cell": found.cell.key, "block": found.block, "arm": arm} for arm in plan.arms(of)]
        blocks += 1
    assert blocks == 5 * rounds
    said = "every rung has had its 10 rounds" if rounds == 10 else f"the time was over after {rounds} of 10 rounds"
    assert (found.reason, found.kind) == (said, "blocks" if rounds == 10 else "budget")
    if rounds == 2:  # one that is begun ends
        begun = LadderPlanner(of, cells, ends).next(rows, 0)
        rows.append({"cell": begun.cell.key, "block": begun.block, "arm": plan.arms(of)[0]})
        assert isinstance(planner.next(rows, 10**12), Decision)

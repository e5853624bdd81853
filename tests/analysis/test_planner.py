"""The planner: rotation, where it spends the rest, when it stops; it follows from the rows alone."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

from tests.analysis.worlds import make_row, make_study, one_cell_study
from trifecta.analysis.planner import Decision, Planner, Stop, rest_words
from trifecta.design import plan
from trifecta.design.study_file import parse_study

SECOND = 1_000_000_000


def run(study, value, sigma=0.05, seed=0, cost_ns=lambda cell: 100_000_000, rows=None, limit=10_000, **columns):
    """Run a simulated study to its end: rows, the decisions, the stop, the time it took."""
    rng = np.random.default_rng(seed)
    planner = Planner(study, plan.cells(study))
    rows = [] if rows is None else rows
    decisions, now = [], 0
    while len(decisions) < limit:
        decision = planner.next(rows, now)
        decisions.append(decision)
        if isinstance(decision, Stop):
            break
        for trial in plan.block_trials(study, decision.cell, decision.block, len(rows)):
            began = now + 10_000_000
            now = began + cost_ns(decision.cell)
            latency = value(decision.cell, trial.protocol) * np.exp(rng.normal(0, sigma))
            rows.append(make_row(trial, latency, started_ns=began + 1, ended_ns=now, **columns))
    return rows, decisions, planner, now


def flat(cell, protocol):
    return 1e6


def ordered(cell, protocol):
    return {"h1": 1.5e6, "h2": 1e6, "h3": 0.7e6}[protocol]


def test_every_cell_gets_its_first_blocks_in_rounds_of_random_order():
    study = make_study(min_blocks=4)
    _, decisions, _, _ = run(study, flat, limit=48)
    rounds = [[d.cell.key for d in decisions[i : i + 12]] for i in range(0, 48, 12)]
    everything = sorted(cell.key for cell in plan.cells(study))
    assert all(sorted(one) == everything for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1  # not the same order each time
    assert [d.block for d in decisions] == [0] * 12 + [1] * 12 + [2] * 12 + [3] * 12
    assert decisions[0].reason == "block 1 of the 4 that every cell gets first"


def test_where_the_budget_cannot_give_all_cells_their_first_blocks_some_get_all_of_theirs():
    study = make_study(min_blocks=6, budget_ns=50 * SECOND)  # they would take 12 cells x 6 blocks x 4 trials: 80 s

    def cost_ns(cell):
        return {"clean": 100, "far": 300, "rough": 400}[cell.levels["path"]] * 1_000_000

    _, decisions, _, now = run(study, ordered, sigma=0.02, cost_ns=cost_ns)
    had = Counter(d.cell.key for d in decisions if isinstance(d, Decision))
    whole = [key for key, count in had.items() if count >= 6]
    assert now <= 50.5 * SECOND
    assert all(count >= 1 for count in had.values())
    assert len(had) == 12
    assert {key for key in had if "path=clean" in key} <= set(whole), "the cheapest first"
    assert len(whole) >= 6, "and not five blocks in each"
    assert any(d.reason.endswith("that the budget gives some cells first") for d in decisions)
    assert not any(count >= 6 for key, count in had.items() if "path=rough" in key)


UNEVEN = """
study: uneven
workload: {response: 100 kB, requests: 50, warmup: 0 requests}
factors: {protocol: [h2, h3], path: [clean, slow], server: [origin], connection: [reused]}
paths: {slow: {rtt: 20 ms, rate: 1 Mbit/s}}
blocks: {at_least: 6, at_most: 8}
"""  # a block of slow is to take some 130 s


def test_a_block_is_not_begun_that_is_expected_to_take_more_than_is_left():
    study = parse_study(UNEVEN + "budget: 1 min", "uneven.yaml")

    def cost_ns(cell):
        return (0.5 if cell.levels["path"] == "clean" else 40) * SECOND

    _, decisions, planner, now = run(study, ordered, sigma=0.02, cost_ns=lambda cell: round(cost_ns(cell)))
    assert {d.cell.levels["path"] for d in decisions if isinstance(d, Decision)} == {"clean"}
    assert decisions[0].reason == "block 1 of the 6 that the budget gives some cells first"
    assert now < 60 * SECOND
    assert (decisions[-1].kind, len(planner.verdicts)) == ("budget", 2)
    enough = parse_study(UNEVEN + "budget: 20 min", "uneven.yaml")
    _, decisions, _, _ = run(enough, ordered, sigma=0.02, cost_ns=lambda cell: round(cost_ns(cell)))
    assert {d.cell.levels["path"] for d in decisions[:2]} == {"clean", "slow"}


def test_where_nothing_fits_one_block_is_begun_all_the_same():
    alone = parse_study(UNEVEN.replace("[clean, slow]", "[slow]") + "budget: 1 min", "uneven.yaml")
    _, decisions, _, _ = run(alone, ordered, cost_ns=lambda cell: 40 * SECOND)
    assert [type(one) for one in decisions] == [Decision, Stop]


def test_it_stops_as_soon_as_every_verdict_is_decided():
    _, decisions, planner, _ = run(make_study(), ordered, sigma=0.02)
    assert isinstance(decisions[-1], Stop)
    assert (decisions[-1].kind, decisions[-1].reason) == ("decided", "all 36 verdicts are decided")
    assert len(decisions) < 12 * 12
    assert all(v.verdict != "undecided" for v in planner.verdicts)


def test_further_blocks_go_to_open_cells_only_and_take_turns():
    study = make_study(budget_ns=120 * SECOND)
    hard = {cell.key for cell in plan.cells(study) if cell.levels["path"] == "rough"}

    def value(cell, protocol):
        return 1.04e6 if cell.key in hard and protocol == "h3" else ordered(cell, protocol)

    _, decisions, _, _ = run(study, value, sigma=0.1)  # 0.06 decides all but one cell before that
    later = [d.cell.key for d in decisions if isinstance(d, Decision)][12 * 12 :]
    assert len(later) > 20
    assert set(later) <= hard
    in_a_row = sum(a == b for a, b in itertools.pairwise(later))
    assert in_a_row < 2 * len(later) / 3


def test_it_spends_first_where_a_decision_is_likely_within_the_time_left():
    study = make_study(budget_ns=90 * SECOND)
    keys = [cell.key for cell in plan.cells(study)]
    near, far = set(keys[:3]), set(keys[3:6])
    rng = np.random.default_rng(8)

    def value(cell, protocol):
        if cell.key in far:
            return 1e6 * np.exp(rng.normal(0, 1))
        return 0.93e6 if cell.key in near and protocol == "h3" else ordered(cell, protocol)

    _, decisions, planner, _ = run(study, value, sigma=0.04, seed=3)
    keys = [d.cell.key for d in decisions if isinstance(d, Decision)][12 * 6 :]
    until = max(place for place, key in enumerate(keys) if key in near)
    chosen = Counter("near" if key in near else "far" for key in keys[: until + 1] if key in near | far)
    assert chosen["near"] > 1.5 * chosen["far"]
    assert all(v.verdict != "undecided" for v in planner.verdicts if v.cell in near)
    assert any("can be decided in the time left" in d.reason for d in decisions)


def test_the_budget_is_kept_and_the_reason_says_what_is_left():
    study = make_study(budget_ns=20 * SECOND)
    _, decisions, _, now = run(study, flat, sigma=0.3)
    assert decisions[-1].kind == "budget"
    assert now <= 20 * SECOND
    assert now > 18 * SECOND
    assert "verdicts are open, but a block takes about 0.4 s or more and only 0." in decisions[-1].reason
    assert decisions[-1].reason.endswith(" of the budget is left")
    assert {rest_words(0.4e9, left) for left in (None, -5, 49_000_000)} == {"the budget is used up"}
    assert rest_words(0.4e9, 2_340_000_000).endswith("only 2.3 s of the budget is left")
    assert isinstance(Planner(study, plan.cells(study)).next([], 21 * SECOND), Stop)


def test_what_the_budget_has_not_enough_for_is_a_block_of_an_open_cell():
    study = make_study(budget_ns=160 * SECOND)
    hard = {cell.key for cell in plan.cells(study) if cell.levels["path"] == "rough"}

    def value(cell, protocol):
        return 1e6 if cell.key in hard else ordered(cell, protocol)

    def cost_ns(cell):
        return 600_000_000 if cell.key in hard else 50_000_000

    _, decisions, planner, now = run(study, value, sigma=0.1, cost_ns=cost_ns)
    assert decisions[-1].kind == "budget"
    assert {v.cell for v in planner.verdicts if v.verdict == "undecided"} <= hard
    assert 0.3 * SECOND < 160 * SECOND - now < 2.4 * SECOND, "a block of the others would fit"
    assert "but a block takes about 2.5 s or more and only" in decisions[-1].reason


def test_a_cell_too_dear_for_the_rest_does_not_keep_cheaper_ones_from_running():
    study = make_study(budget_ns=60 * SECOND)

    def cost(cell):
        return 2 * SECOND if cell.levels["path"] == "far" else SECOND // 20

    _, decisions, _, now = run(study, flat, sigma=0.3, cost_ns=cost)
    assert now <= 60 * SECOND
    assert decisions[-1].kind == "budget"
    assert now > 58 * SECOND


def test_without_a_budget_it_ends_at_max_blocks():
    study = one_cell_study(max_blocks=9)
    rows, decisions, _, _ = run(study, flat, sigma=0.5)
    assert decisions[-1].kind == "blocks"
    assert max(row["block"] for row in rows) == 8


def test_what_cannot_be_measured_is_given_up_and_named():
    study = dataclasses.replace(one_cell_study(), min_blocks=6)
    rows, decisions, _, _ = run(study, flat, valid=False)
    assert decisions[-1].kind == "unmeasurable"
    assert max(row["block"] for row in rows) == 2
    assert "no block had two usable trials" in decisions[-1].reason


def test_an_arm_that_never_counts_is_named_where_others_do():
    study = dataclasses.replace(one_cell_study(), min_blocks=3)
    cells, rows = plan.cells(study), []
    planner = Planner(study, cells)
    while isinstance(decision := planner.next(rows, 0), Decision):
        trials = plan.block_trials(study, decision.cell, decision.block, len(rows))
        slow = {"h1": 2e6, "h2": 1e6, "h2#aa": 1e6, "h3": 1e6}
        rows += [make_row(trial, slow[trial.arm], valid=trial.arm != "h3") for trial in trials]
    assert decision.kind == "unmeasurable"
    assert decision.reason == "2 of 3 verdicts are open and cannot be decided: no trial of HTTP/3 counts"


def test_a_cell_that_is_given_up_is_not_said_to_have_had_its_blocks():
    study = dataclasses.replace(make_study(min_blocks=5, max_blocks=5), budget_ns=None)
    cells, rows = plan.cells(study)[:3], []
    planner = Planner(study, cells)
    while isinstance(decision := planner.next(rows, 0), Decision):
        usable = decision.cell.key != cells[0].key
        trials = plan.block_trials(study, decision.cell, decision.block, len(rows))
        rows += [make_row(trial, 1e6, valid=usable) for trial in trials]
    by_cell = [len({row["block"] for row in rows if row["cell"] == cell.key}) for cell in cells]
    assert by_cell == [3, 5, 5]
    words = "each of the other cells has had its 5 blocks, as set in advance"
    assert (decision.kind, decision.reason) == ("blocks", f"{words}; 1 cell given up: no block had two usable trials")


def test_a_study_that_does_not_give_up_gives_every_cell_its_first_blocks():
    study = dataclasses.replace(make_study(min_blocks=5, max_blocks=5), give_up=False)
    _, decisions, _, _ = run(study, flat, valid=False)
    assert [d.block for d in decisions[:-1]] == [number for number in range(5) for _ in range(12)]
    assert decisions[-1].kind == "unmeasurable"


def test_an_interrupted_block_is_completed_first():
    study = one_cell_study()
    rows, _, _, now = run(study, flat, limit=3)
    rows.pop()
    decision = Planner(study, plan.cells(study)).next(rows, now)
    assert isinstance(decision, Decision)
    assert decision.block == 2
    assert "interrupted" in decision.reason


def test_it_decides_from_the_rows_alone_so_a_resumed_run_goes_on_the_same_way():
    study = make_study(budget_ns=40 * SECOND)
    rows, decisions, _, _ = run(study, ordered, sigma=0.2, seed=5)
    middle = len(rows) // 8 * 4
    fresh = Planner(study, plan.cells(study))
    assert fresh.next(rows[:middle], rows[middle - 1]["ended_ns"]) == decisions[middle // 4]


def test_a_study_without_cells_is_refused():
    with pytest.raises(ValueError, match="at least one cell"):
        Planner(make_study(), [])


def test_captured_trials_that_do_not_count_end_after_the_first_blocks_of_every_cell():
    study = make_study(min_blocks=4, capture=True)
    _, decisions, planner, _ = run(study, ordered, valid=False)
    assert [d.block for d in decisions[:-1]] == [number for number in range(4) for _ in range(12)]
    assert decisions[-1].kind == "captured"
    assert all(verdict.verdict == "undecided" for verdict in planner.verdicts)


def test_captured_trials_that_do_not_count_end_with_the_budget_too():
    study = make_study(min_blocks=4, capture=True, budget_ns=5 * SECOND)
    _, decisions, _, now = run(study, ordered, valid=False)
    assert decisions[-1].kind == "budget"
    assert now <= 6 * SECOND


def test_a_cell_of_an_extended_run_gets_no_more_than_was_asked_for_it():
    study = make_study(min_blocks=2, max_blocks=9)
    cells = plan.cells(study)[:2]
    study = dataclasses.replace(study, budget_ns=None)
    planner = Planner(study, cells, most={cells[0].key: 5, cells[1].key: 3})
    rows, ran = [], Counter()
    rng = np.random.default_rng(1)
    while isinstance(decision := planner.next(rows, len(rows) * SECOND), Decision):
        ran[decision.cell.key] += 1
        trials = plan.block_trials(study, decision.cell, decision.block, len(rows))
        rows += [make_row(trial, 1e6 * np.exp(rng.normal(0, 0.05))) for trial in trials]
    assert ran == {cells[0].key: 5, cells[1].key: 3}
    assert decision.kind == "blocks"
    assert "each open cell has had the further blocks that were asked for" in decision.reason


def test_what_could_not_be_measured_is_tried_anew_when_a_run_is_extended():
    study = dataclasses.replace(make_study(min_blocks=6), budget_ns=None)
    cells = plan.cells(study)[:1]
    rows = []
    for block in range(3):
        rows += [make_row(trial, 1e6, valid=False) for trial in plan.block_trials(study, cells[0], block, len(rows))]
    assert Planner(study, cells).next(rows, 0).kind == "unmeasurable"
    assert isinstance(Planner(study, cells, before={cells[0].key: 3}).next(rows, 0), Decision)


def test_one_protocol_alone_ends_after_its_first_blocks_and_says_that_nothing_is_decided():
    study = dataclasses.replace(make_study(min_blocks=6), budget_ns=None)
    study = dataclasses.replace(study, factors={**study.factors, "protocol": ("h2",)})
    planner, rows = Planner(study, plan.cells(study)[:1]), []
    while isinstance(decision := planner.next(rows, 0), Decision):
        rows += [make_row(t, 1e6) for t in plan.block_trials(study, decision.cell, decision.block, len(rows))]
    assert (len(rows), decision.kind) == (12, "blocks")
    assert decision.reason == "every cell has had its 6 blocks; one protocol alone gives no verdict"


def test_one_block_and_one_verdict_are_counted_as_one():
    once = dataclasses.replace(make_study(min_blocks=1, max_blocks=1), budget_ns=None)
    assert run(once, ordered)[1][-1].reason == "every cell has had its 1 block, as set in advance"
    two = make_study(factors={**one_cell_study().factors, "protocol": ("h2", "h3")})
    assert run(two, ordered, sigma=0.02)[1][-1].reason == "the one verdict is decided"
    short = dataclasses.replace(two, min_blocks=2, max_blocks=2, budget_ns=None)
    planner = run(short, ordered)[2]
    assert planner._open_text() == "the one verdict is open"


def test_a_block_that_runs_elsewhere_is_not_chosen_again():
    study = one_cell_study(min_blocks=4)
    (cell,) = plan.cells(study)
    planner = Planner(study, [cell])
    chosen = []
    for _ in range(4):
        decision = planner.next([], 0, [])
        chosen.append(decision.block)
        planner.running = {cell.key: set(chosen)}
    assert chosen == [0, 1, 2, 3]


def test_cells_of_which_less_runs_have_their_turn_first():
    study = make_study(min_blocks=2)
    cells = plan.cells(study)
    planner = Planner(study, cells)
    running: dict[str, set[int]] = {}
    for _ in range(2 * len(cells)):
        decision = planner.next([], 0, [])
        running.setdefault(decision.cell.key, set()).add(decision.block)
        planner.running = running
    assert running == {cell.key: {0, 1} for cell in cells}


def test_three_blocks_that_run_are_no_three_blocks_without_a_result():
    study = one_cell_study(min_blocks=9)
    (cell,) = plan.cells(study)
    planner = Planner(study, [cell])
    planner.running = {cell.key: {0, 1, 2, 3}}
    assert planner.next([], 0, []).block == 4


def test_a_budget_goes_as_far_as_blocks_run_at_a_time():
    """72 blocks of 4 trials would take 80 s on one machine: eight at a time take ten."""
    study = make_study(min_blocks=6, budget_ns=50 * SECOND)
    rows = []
    for cell in plan.cells(study):
        for trial in plan.block_trials(study, cell, 0, len(rows)):
            cost_ns = {"clean": 100, "far": 300, "rough": 400}[cell.levels["path"]] * 1_000_000
            rows.append(make_row(trial, 1e6, started_ns=1, ended_ns=1 + cost_ns))
    alone, many = Planner(study, plan.cells(study)), Planner(study, plan.cells(study))
    many.at_once = 8
    assert alone.next(rows, 13 * SECOND).reason.endswith("that the budget gives some cells first")
    assert many.next(rows, 2 * SECOND).reason.endswith("that every cell gets first")

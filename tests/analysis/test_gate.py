"""Gates: who passes, fails and stays open, how often that is wrong, and when they end."""

import math
from collections import Counter

import numpy as np
import pytest

from tests.analysis.gates import gate_of, load_json, simulate, some_rows, times
from trifecta.analysis.confidence import LAMBDAS, mix
from trifecta.analysis.gate import judge_gate
from trifecta.analysis.gate_planner import GatePlanner
from trifecta.analysis.planner import Planner
from trifecta.design import plan


def outcomes(gate, worse, sigma, gates):
    return Counter(simulate(gate, times(worse, sigma, seed, gate))[0].state for seed in range(gates))


def test_a_baseline_against_itself_fails_at_most_once_in_twenty():
    found = outcomes(gate_of(candidate="origin", protocols="HTTP/2, HTTP/3"), 1.0, 0.015, 200)
    assert found["fail"] <= 10
    assert found["pass"] >= 190


def test_a_candidate_at_the_limit_fails_and_passes_as_rarely_as_promised():
    found = outcomes(gate_of(), 1.03, 0.02, 200)
    for state in ("fail", "pass"):
        assert found[state] <= 18, "of 200 with 5 % each, more are so in one of a hundred such tests"


def test_at_the_limit_the_stakes_that_decide_err_at_most_once_in_twenty():
    """The same for 20,000 gates of 30 blocks, from the stakes behind the interval: fails are 3.3 %, passes too."""
    logs = np.random.default_rng(0).normal(0, 0.02, (20_000, 30, 3))
    votes = np.sign(logs[..., :1] - logs[..., 1:]).mean(axis=-1)
    for side in (votes, -votes):
        with np.errstate(divide="ignore"):
            stakes = np.maximum(np.log(1 + side[..., None] * LAMBDAS), -1e6).cumsum(axis=1)
        assert 0.02 < (mix(stakes) >= np.log(20)).any(axis=1).mean() <= 0.05


def test_a_candidate_beyond_the_limit_is_found():
    found = outcomes(gate_of(), 1.05, 0.01, 40)
    assert found["fail"] >= 38
    assert found["pass"] == 0


@pytest.mark.long
@pytest.mark.parametrize("protocols", ["HTTP/2", "HTTP/1.1, HTTP/2, HTTP/3"])
def test_among_more_cells_a_gate_at_its_limits_fails_no_more_often(protocols):
    gate = gate_of(["slower:3%", "latency_mean:3%"], protocols=protocols, budget="3 min")
    assert outcomes(gate, 1.03, 0.02, 400)["fail"] <= 20


def test_the_values_of_a_gate_are_the_medians_that_sql_gives():
    gate = gate_of()
    own = some_rows(gate, 4, latency_p50_ns=lambda trial: 1e6 * (trial.block + (2 if trial.arm == "caddy" else 1)))
    found = judge_gate(gate, own, plan.cells(gate.study)).tests[0]
    assert (found.baseline, found.candidate) == pytest.approx((2.5e6, 3.5e6))
    censored = [{**row, "latency_p50_ns": None, "success_rate": 0.2} if row["block"] < 2 else row for row in own]
    assert judge_gate(gate, censored, plan.cells(gate.study)).tests[0].candidate is None


def test_one_cell_that_fails_ends_the_gate_at_once():
    gate = gate_of(protocols="HTTP/2, HTTP/3")

    def value(trial):
        return 2e6 if trial.arm == "caddy" and trial.protocol == "h3" else 1e6

    found, stop, rows = simulate(gate, value)
    assert (found.state, stop.kind, stop.reason) == ("fail", "decided", "1 of 2 tests fail")
    states = {plan.level_text(one.cell.levels["protocol"]): one.state for one in found.tests}
    assert states["h3"] == "fail"
    assert len(rows) <= 3 * 6 * 2, "six blocks of each cell at the most"


def test_all_cells_must_pass():
    gate = gate_of(protocols="HTTP/2, HTTP/3")
    found, stop, rows = simulate(gate, lambda trial: 1e6)
    assert (found.state, stop.reason) == ("pass", "all 2 tests pass")
    assert [one.blocks for one in found.tests] == [5, 5]
    assert (
        judge_gate(gate, [row for row in rows if "h3" not in row["cell"]], plan.cells(gate.study)).state == "undecided"
    )


def test_among_more_tests_a_test_needs_more_evidence_to_fail_and_no_more_to_pass():
    for worse, blocks in ((2.0, {1: 5, 2: 6}), (1.0, {1: 5, 2: 5})):
        for cells, needs in blocks.items():
            gate = gate_of(protocols=", ".join(["HTTP/2", "HTTP/3"][:cells]))

            def value(trial, gate=gate, worse=worse):
                return (worse if trial.arm == gate.candidate else 1.0) * 1e6

            states = [
                judge_gate(gate, some_rows(gate, n, latency_p50_ns=value), plan.cells(gate.study)).tests[0].state
                for n in (needs - 1, needs)
            ]
            assert states == ["open", "fail" if worse > 1 else "pass"]


def test_the_interval_that_is_told_is_what_decides():
    gate = gate_of()
    for seed in range(20):
        (one,) = simulate(gate, times(1.04, 0.01, seed, gate))[0].tests
        assert (one.state == "fail") == (one.low > 1.03)
        assert (one.state == "pass") == (one.high is not None and one.high < 1.03)
        assert one.low < one.ratio < (one.high or math.inf)


def test_of_what_should_be_more_less_is_worse():
    gate = gate_of(["requests_per_s:3%"])
    rate = {"origin": 1000.0, "origin#aa": 1000.0}
    for own, state in ((900.0, "fail"), (1100.0, "pass"), (1000.0, "pass"), (975.0, "pass")):
        rows = some_rows(gate, 6, requests_per_s=lambda trial, own=own: rate.get(trial.arm, own))
        (one,) = judge_gate(gate, rows, plan.cells(gate.study)).tests
        assert one.state == state, own
        assert (one.baseline, one.candidate) == (pytest.approx(1000), pytest.approx(own))
        assert one.ratio == pytest.approx(own / 1000), "candidate by baseline, whatever is better"


def test_octets_on_the_wire_are_counted_by_request():
    gate = gate_of(["more-bytes:2%"])
    octets = {"caddy": 10_300}
    rows = some_rows(gate, 6, load_json=lambda trial: load_json(octets.get(trial.arm, 10_000), 50 + trial.block))
    (one,) = judge_gate(gate, rows, plan.cells(gate.study)).tests
    assert (one.state, one.ratio) == ("fail", pytest.approx(1.03))
    assert one.baseline == pytest.approx(10_000)
    (none,) = judge_gate(gate, some_rows(gate, 6), plan.cells(gate.study)).tests
    assert (none.state, none.reason) == ("open", "no block holds a value of both")


def test_a_candidate_without_a_finite_value_is_worse_than_any():
    gate = gate_of()
    rows = some_rows(gate, 6, success_rate=lambda trial: 0.4 if trial.arm == "caddy" else 1.0)
    (one,) = judge_gate(gate, rows, plan.cells(gate.study)).tests
    assert (one.state, one.candidate, one.ratio, one.high) == ("fail", None, None, None)
    assert set(one.values) == {math.inf}


def test_a_baseline_that_differs_from_itself_widens_the_limit():
    gate = gate_of()
    for own, state in ((1.05e6, "open"), (1.5e6, "fail"), (0.5e6, "pass")):
        value = {"origin": 1e6, "origin#aa": 1.1e6, "caddy": own}
        rows = some_rows(gate, 12, latency_p50_ns=lambda trial, value=value: value[trial.arm])
        (one,) = judge_gate(gate, rows, plan.cells(gate.study)).tests
        assert one.state == state
        if state == "open":
            assert one.reason.startswith("the baseline differs from itself here")


def test_trials_that_failed_a_check_do_not_count():
    gate = gate_of()
    rows = some_rows(gate, 8, latency_p50_ns=lambda trial: 2e6 if trial.arm == "caddy" else 1e6)
    for row in rows:
        row["valid"] = row["arm"] != "caddy"
    (one,) = judge_gate(gate, rows, plan.cells(gate.study)).tests
    assert (one.state, one.blocks, one.reason) == ("open", 0, "no usable block: 8 trials failed a check")


def test_a_disturbed_machine_is_tried_until_it_is_quiet():
    gate = gate_of()
    cells = plan.cells(gate.study)
    rows = some_rows(gate, 10)
    for row in rows:
        row["valid"] = False
    assert GatePlanner(gate, cells, cells).next(rows, 0).block == 10
    assert Planner(gate.study, cells).next(rows, 0).kind == "unmeasurable"
    rows += [{**row, "block": row["block"] + 10} for row in rows] + [
        {**row, "block": row["block"] + 20} for row in rows
    ]
    assert GatePlanner(gate, cells, cells).next(rows, 0).kind == "unmeasurable"


def test_a_spent_budget_leaves_it_undecided():
    gate = gate_of(budget="20 s")
    rng = np.random.default_rng(1)
    found, stop, rows = simulate(gate, lambda trial: 1e6 * float(rng.lognormal(0, 0.5)))
    assert (found.state, stop.kind) == ("undecided", "budget")
    assert stop.reason.startswith("the one test is open, but a block takes about 3.0 s")
    assert len(rows) <= 20


def test_a_cell_whose_server_has_failed_keeps_the_gate_from_passing():
    gate = gate_of(protocols="HTTP/2, HTTP/3")
    cells = plan.cells(gate.study)
    rows = [row for row in some_rows(gate, 6) if row["cell"] == cells[0].key]
    planner = GatePlanner(gate, cells, cells[:1])
    step = planner.next(rows, 0)
    assert (step.kind, step.reason) == ("unmeasurable", "a server has failed in each cell that is open")


def test_what_is_open_is_told_how_many_blocks_it_needs():
    gate = gate_of()
    (one,) = judge_gate(gate, some_rows(gate, 4), plan.cells(gate.study)).tests
    assert one.state == "open"
    assert 5 <= one.needed <= 40

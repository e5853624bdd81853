"""Where a program becomes the bottleneck: made-up sweeps with a known answer."""

import json
import math
import re

import pytest

from tests.analysis.checks.test_foreign_client import foreign
from trifecta.analysis.checks import TRIAL_CHECKS
from trifecta.analysis.knee import bracket, knees, used_share
from trifecta.design import plan
from trifecta.design.study_file import parse_study

SWEEP = """
study: sweep
workload: {loop: open, in_flight: 10, duration: 1 s}
factors:
  protocol: [HTTP/2, HTTP/3]
  server: [origin]
  client_cpu: [none, 5 %]
  rate: [100/s, 200/s, 400/s, 800/s]
margin: 0.1
"""
KEEPS, DEPARTS, OPEN = "keeps up", "departs", "open"


def rows(study, latency, loud=lambda rate, limited: False, blocks=4):
    """Trials whose median latency is ``latency(rate, limited, arm)`` in ms, but for 1 % from block to block."""
    made = []
    for cell in plan.cells(study):
        rate = plan.workload_for(study, plan.treatments_of(study, cell)[0]).rate_per_s
        limited = cell.levels["client_cpu"] != "none"
        for block in range(blocks):
            for arm in plan.arms(study):
                value = latency(rate, limited, arm) * 1e6 * (1 + 0.01 * (block - 1.5))
                said = [{"check": "headroom", "status": "fail"}] if loud(rate, limited) else []
                made.append(
                    {
                        "cell": cell.key, "arm": arm, "block": block, "valid": True, "error": None,
                        "latency_p50_ns": None if math.isinf(value) else value, "requests_per_s": min(rate, 300.0),
                        "success_rate": 0.0 if math.isinf(value) else 1.0, "factors_json": json.dumps(cell.levels),
                        "checks_json": json.dumps(said), "samples": 100, "errors": 0, "load_json": None,
                        "server_json": None,
                    }
                )  # fmt: skip
    return made


def find(study, made, limited, arm):
    level = "5 %" if limited else "none"
    (one,) = (k for k in knees(study, made, "headroom") if k.arm == arm and k.levels["client_cpu"] == level)
    return one


def test_the_knee_lies_between_the_last_rate_that_keeps_up_and_the_first_that_does_not():
    study = parse_study(SWEEP, "s.yaml")
    made = rows(study, lambda rate, limited, arm: 50.0 if limited and rate > 200 and arm == "h3" else 5.0)
    found = find(study, made, True, "h3")
    assert [step.state for step in found.steps] == [KEEPS, KEEPS, DEPARTS, DEPARTS]
    assert (found.low, found.high, found.against) == (200.0, 400.0, "without the limit")
    assert found.steps[2].ratio == pytest.approx(10, rel=0.01)
    assert found.most_per_s == pytest.approx(300)
    for other in (find(study, made, False, "h3"), find(study, made, True, "h2")):
        assert (other.low, other.high) == (800.0, None), "keeps up all the way"


def test_without_a_limit_latencies_are_compared_with_those_of_the_lowest_rate():
    study = parse_study(SWEEP.replace("[none, 5 %]", "[none]"), "s.yaml")
    made = rows(study, lambda rate, limited, arm: 5.0 if rate < 800 else 8.0)
    found = knees(study, made, "headroom")[0]
    assert (found.low, found.high, found.against) == (400.0, 800.0, "at the lowest rate")
    assert found.steps[0].ratio is None


def test_the_check_alone_and_requests_without_end_depart():
    study = parse_study(SWEEP, "s.yaml")
    loud = rows(study, lambda rate, limited, arm: 5.0, loud=lambda rate, limited: limited and rate >= 400)
    assert find(study, loud, True, "h2").high == 400.0
    machine = rows(study, lambda rate, limited, arm: 5.0, loud=lambda rate, limited: rate >= 400)
    for busy, high in ((0.4, None), (0.6, 400.0)):
        load = json.dumps({"busy_ratio": busy})
        assert find(study, [one | {"load_json": load} for one in machine], False, "h2").high == high
    late = rows(study, lambda rate, limited, arm: math.inf if limited and rate >= 800 else 5.0)
    found = find(study, late, True, "h2")
    assert (found.low, found.high, found.steps[-1].latency_ns) == (400.0, 800.0, None)


def test_a_trial_that_another_check_leaves_out_does_not_count():
    study = parse_study(SWEEP, "s.yaml")
    made = rows(study, lambda rate, limited, arm: 5.0 if rate < 800 else 50.0)
    for one in made:
        said = [{"check": name, "status": "fail"} for name in ("headroom", "steady_state")]
        if one["latency_p50_ns"] > 20e6:
            one |= {"valid": False, "checks_json": json.dumps(said)}
    assert find(study, made, False, "h2").high == 800.0
    for one in made:
        if not one["valid"]:
            one["checks_json"] = json.dumps([*json.loads(one["checks_json"]), {"check": "path", "status": "fail"}])
    found = find(study, made, False, "h2").steps[-1]
    assert (found.latency_ns, found.trials) == (None, 0)
    assert (find(study, made, False, "h2").low, find(study, made, False, "h2").high) == (400.0, None)


@pytest.mark.parametrize(
    ("states", "ends"),
    [
        ([KEEPS, OPEN, DEPARTS], (1, 3)),
        ([KEEPS, DEPARTS, KEEPS], (1, None)),
        ([DEPARTS, DEPARTS, DEPARTS], (None, 1)),
        ([OPEN, KEEPS, DEPARTS], (None, 3)),
    ],
)
def test_a_rate_that_is_open_widens_the_interval(states, ends):
    assert bracket([(place + 1, state) for place, state in enumerate(states)]) == ends


def test_the_share_used_is_of_what_was_given():
    load = {"busy_ratio": 0.04, "cpu_share": 0.05, "started_ns": 0, "ended_ns": 1_000}
    assert used_share({"load_json": json.dumps(load), "server_json": None}) == pytest.approx(0.8)
    server = {"cpu_ns": 450, "cpu_share": 0.5}
    row = {"load_json": json.dumps(load), "server_json": json.dumps(server)}
    assert used_share(row) == pytest.approx(0.9)
    assert used_share({"load_json": None, "server_json": None}) is None


STARTED = {"client": "python-client", "busy_ratio": 0.95, "cpu_user_ns": 900, "cpu_system_ns": 100, "started_ns": 1_000}


@pytest.mark.parametrize("start", [None, 0, 700, 5_000])
def test_the_check_and_the_sweep_give_one_answer_to_how_busy_a_client_was(start):
    load = STARTED | {"ended_ns": 2_000, "start_cpu_ns": start, "wall_ns": 2_000, "run_delay_ns": 0}
    used = used_share({"load_json": json.dumps(load), "server_json": None})
    (judged,) = TRIAL_CHECKS["headroom"].function(foreign(load=load))
    said = re.search(r"curl used (\d+) % of its core", judged.evidence)
    assert said is not None, judged.evidence
    assert used == pytest.approx(int(said[1]) / 100, abs=0.005)
    assert used == pytest.approx({None: 0.95, 0: 1.0, 700: 0.3, 5_000: 0.0}[start])


def test_a_study_without_rates_has_no_knee():
    study = parse_study("study: s\nworkload: {requests: 10}\n", "s.yaml")
    assert knees(study, [], "headroom") == []

"""Nodes whose baseline differs from itself: found, left out with a reason, marked; sound ones seldom are."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.analysis.clusters import cluster_rows
from tests.analysis.worlds import one_cell_study
from trifecta.analysis.checks import RUN_CHECKS
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.node_faults import CHECK, left_out, node_baselines
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan
from trifecta.workloads.judge import Judge

NODES = [f"n{node}" for node in range(8)]
PASSED = {"checks_json": "[]", "path": "clean", "error": None}
TRUTH = {"h1": 1.5e6, "h2": 1e6, "h2#aa": 1e6, "h3": 0.7e6}


def with_a_bad_node(study, blocks=10, seed=1):
    """On n3 the second run of the baseline takes twice as long, and so does HTTP/3."""

    def value(arm, node):
        return TRUTH[arm] * (2 if node == "n3" and arm in ("h2#aa", "h3") else 1)

    return cluster_rows(study, value, dict.fromkeys(NODES, blocks), seed, sigma=0.01, **PASSED)


def judge_of(study, rows, folder):
    return Judge(study, plan.cells(study), rows, {}, folder)


def test_one_bad_node_of_eight_is_left_out_with_a_reason_and_the_others_decide():
    study = one_cell_study()
    rows = with_a_bad_node(study)
    out = left_out(study, rows)
    assert list(out) == ["n3"]
    assert out["n3"].startswith("its baseline differs from itself, ratio ")
    assert "over 10 blocks, beyond chance among 8 nodes (e-value " in out["n3"]
    found = verdicts(study, rows)
    assert {(one.arm, one.reference): one.verdict for one in found} == {
        ("h1", "h2"): "slower",
        ("h3", "h2"): "faster",
        ("h3", "h1"): "faster",
    }
    assert {one.nodes for one in found} == {7}
    assert {one.left_out_nodes_json for one in found} == {json.dumps([{"node": "n3", "reason": out["n3"]}])}
    assert all("node n3 does not count, because its baseline differs from itself" in one.reason for one in found)
    without = verdicts(study, [row for row in rows if row["node"] != "n3"])
    assert [(one.ratio, one.low, one.high) for one in found] == [(one.ratio, one.low, one.high) for one in without]


def test_where_no_node_agrees_with_itself_nothing_is_said():
    study = one_cell_study()
    rows = cluster_rows(study, lambda arm, node: TRUTH[arm] * (2 if arm == "h2#aa" else 1), dict.fromkeys("ab", 12))
    found = verdicts(study, rows)
    assert {one.verdict for one in found} == {"undecided"}
    said = "no usable block on a node that agrees with itself; node a does not count, because "
    assert all(one.reason.startswith(said) for one in found)
    assert {one.nodes for one in found} == {0}


def test_few_blocks_of_a_node_condemn_nothing():
    study = one_cell_study()
    assert left_out(study, with_a_bad_node(study, blocks=5)) == {}
    alone = [row for row in with_a_bad_node(study) if row["node"] == "n3"]
    assert node_baselines(study, alone) == [], "of one machine the check noise_floor tells"


def test_its_trials_are_kept_marked_and_out_of_every_verdict_from_then_on(tmp_path):
    study = one_cell_study()
    rows = with_a_bad_node(study)
    before = verdicts(study, rows)
    judge = judge_of(study, rows, tmp_path)
    changed = judge.distrust(rows)
    assert {row["node"] for row in changed} == {"n3"}
    assert len(changed) == 40
    assert not any(row["valid"] for row in changed)
    marks = [json.loads(row["checks_json"]) for row in changed]
    assert {(one["check"], one["status"]) for (one,) in marks} == {(CHECK, "fail")}
    assert {one["scope"] for (one,) in marks} == {row["trial"] for row in changed}
    assert judge.distrust(rows) == [], "once"
    assert verdicts(study, rows) == before, "the mark is not evidence against itself"
    (failed,) = (one for one in judge.run(rows) if one.check == CHECK and one.scope == "run" and one.status == "fail")
    assert failed.evidence.startswith("node n3 is left out: its baseline differs from itself")
    # Blocks that come later, however sound, do not bring it back, and are marked as well.
    later = cluster_rows(study, lambda arm, node: TRUTH[arm], {"n3": 40}, 2, **PASSED)
    for row in later:
        row["block"] += 1000
        row["trial"] = f"t{90000 + int(row['trial'][1:])}"
    assert list(left_out(study, rows + later)) == ["n3"]
    assert {row["trial"] for row in judge_of(study, rows, tmp_path).distrust(rows + later)} == {
        row["trial"] for row in later
    }


def test_a_trial_that_failed_another_check_too_is_no_evidence(tmp_path):
    study = one_cell_study()
    rows = with_a_bad_node(study)
    spoiled = [row for row in rows if row["node"] == "n3" and row["block"] % 3 == 0]
    for row in spoiled:
        row["valid"], row["checks_json"] = False, json.dumps([{"check": "errors", "status": "fail", "evidence": "e"}])
    before = node_baselines(study, rows)[3]
    assert before.blocks == 10 - len({row["block"] for row in spoiled})
    for row in rows:
        if row["node"] == "n3":
            mark = {"check": CHECK, "status": "fail", "evidence": "why"}
            row["valid"], row["checks_json"] = False, json.dumps([*json.loads(row["checks_json"]), mark])
    after = node_baselines(study, rows)[3]
    assert (after.blocks, after.ratio, after.reason) == (before.blocks, before.ratio, "why")


def test_the_check_says_of_each_node_how_its_baseline_agrees_with_itself():
    study = one_cell_study()
    evidence = RunEvidence(study, plan.cells(study), with_a_bad_node(study))
    found = RUN_CHECKS["nodes"].function(evidence)
    assert len(found) == 8
    assert [one.status for one in found].count("fail") == 1
    assert found[3].status == "fail"
    assert found[3].remedy
    assert found[3].value == pytest.approx(2, rel=0.02)
    few = RUN_CHECKS["nodes"].function(RunEvidence(study, plan.cells(study), with_a_bad_node(study, blocks=3)))
    assert {one.status for one in few} == {"unknown"}
    lone = [{**row, "node": None} for row in with_a_bad_node(study)]
    assert RUN_CHECKS["nodes"].function(RunEvidence(study, plan.cells(study), lone)) == []


@pytest.mark.parametrize("nodes", [2, 8, 16])
def test_sound_nodes_are_seldom_left_out_at_any_look(nodes):
    """Nodes of different speed and noise, looked at five times: one run in twenty may leave out any."""
    study, runs, wrong = one_cell_study(), 60, 0
    names = [str(node) for node in range(nodes)]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        speed = dict(zip(names, rng.lognormal(0, 0.5, nodes), strict=True))
        blocks = dict.fromkeys(names, 15)
        rows = cluster_rows(study, lambda arm, node, speed=speed: 1e6 * speed[node], blocks, seed, sigma=0.1)
        own = [row for row in rows if row["arm"] in ("h2", "h2#aa")]
        wrong += any(left_out(study, own[: len(own) * look // 5]) for look in range(1, 6))
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)

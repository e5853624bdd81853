"""Checks of a run as a whole. The noise floor's are in tests/analysis/test_verdict.py."""

from tests.analysis.worlds import make_rows, one_cell_study
from trifecta.analysis.checks import RUN_CHECKS, check_run
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.design import plan


def judge(rows, **changes):
    study = one_cell_study(**changes)
    return RUN_CHECKS["blocks"].function(RunEvidence(study, plan.cells(study), rows))[0]


def rows(blocks):
    return make_rows(one_cell_study(), lambda cell, protocol: 1e6, blocks)


def test_a_cell_that_has_not_had_its_turn_says_so():
    found = judge([])
    assert (found.status, found.remedy) == ("fail", "raise `--budget`")
    assert found.evidence == "not measured yet, 6 blocks required"
    assert judge(rows(1), min_blocks=1, max_blocks=2).evidence.startswith("1 block with every arm usable, 1 required")


def test_enough_blocks_pass_and_few_warn():
    assert judge(rows(6)).status == "pass"
    few = judge(rows(5))
    assert (few.status, few.value, few.limit) == ("warn", 5.0, 6.0)
    assert "5 blocks with every arm usable, 6 required" in few.evidence
    assert judge(rows(3), max_blocks=3).status == "pass"
    assert judge([]).status == "fail"
    single = judge(rows(1), min_blocks=1, max_blocks=1)
    assert (single.status, single.value, single.limit) == ("warn", 1.0, 1.0)
    assert "does not show how much its loads vary" in single.evidence


def test_excluded_trials_are_counted_by_arm():
    some = rows(10)
    for row in some:
        row["valid"] = not (row["arm"] == "h3" and row["block"] < 5)
    result = judge(some)
    assert result.status == "warn"
    assert "5 of 40 trials left out (h3 5)" in result.evidence
    for row in some:
        row["valid"] = row["block"] > 6
    assert judge(some).status == "fail"


def test_every_check_of_a_run_answers_for_every_cell():
    study = one_cell_study()
    results = check_run(RunEvidence(study, plan.cells(study), rows(7)))
    assert [result.check for result in results] == ["blocks", "noise_floor"]
    assert {result.scope for result in results} == {plan.cells(study)[0].key}

"""The check `capture`: a captured trial counts only where the study says so, and its capture is whole."""

import dataclasses

import pytest

from tests.analysis.checks.sound import LINK, evidence
from trifecta.analysis.checks import TRIAL_CHECKS

WHOLE = {"captured_packets": 40, "capture_missed": 0, "log_rows_dropped": 0, "capture": {"keys": 5, "whole": True}}


def judge(link, *, count=True):
    given = evidence(link=link)
    study = dataclasses.replace(given.study, capture=True, captured_trials_count=count)
    (result,) = TRIAL_CHECKS["capture"].function(dataclasses.replace(given, study=study))
    return result


def test_a_trial_that_was_not_captured_has_no_such_check():
    assert TRIAL_CHECKS["capture"].function(evidence()) == []


def test_a_captured_trial_counts_only_where_the_study_says_so():
    assert judge(LINK | WHOLE).status == "pass"
    refused = judge(LINK | WHOLE, count=False)
    assert (refused.status, "captured_trials_count" in refused.remedy) == ("fail", True)


@pytest.mark.parametrize(
    "change",
    [
        {"capture_missed": 3},
        {"log_rows_dropped": 1},
        {"a_to_b": LINK["a_to_b"] | {"device_drops": 2}},
        {"capture": {"keys": 5, "whole": False}},
        {"capture": {"keys": 0, "whole": True}},
        {"captured_packets": None},
    ],
)
def test_what_is_missing_in_a_capture_is_said(change):
    assert judge(LINK | WHOLE | change).status == "warn"


def test_every_wire_is_looked_at_and_none_is_not_known():
    good = LINK | WHOLE
    assert judge({"links": {"client-router": good, "router-switch": good}}).status == "pass"
    bad = judge({"links": {"client-router": good, "router-switch": good | {"capture_missed": 7}}})
    assert (bad.status, "router-switch" in bad.evidence, bad.value) == ("warn", True, 7.0)
    assert judge(None).status == "unknown"


def test_a_client_without_qlog_is_named():
    said = {}
    for files in (0, 2):
        link = {**WHOLE, "capture": {**WHOLE["capture"], "client_qlog": files}}
        said[files] = judge(LINK | link).evidence
    assert "wrote no qlog" in said[0]
    assert "qlog" not in said[2]

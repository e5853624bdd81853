"""Costs by 1,000 requests and by MB, from what was used and a trial's row."""

import json

import pytest

from trifecta.analysis.costs import Work, work

TRIAL = {
    "samples": 180,
    "bytes_in": 1_500_000,
    "bytes_out": 300_000,
    "load_json": json.dumps({"samples": 200}),
}


def test_cost_counts_the_warm_up_that_the_readings_have_too():
    found = work(TRIAL)
    assert found == Work(200, 2_000_000)
    assert found.per_1000_requests(1_000) == pytest.approx(1_000 / 0.2)
    assert found.per_mb(1_000) == pytest.approx(1_000 / 2.0)
    assert found.per_1000_requests(None) is None and found.per_mb(None) is None


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        ({"samples": 10, "bytes_in": 50, "bytes_out": None, "load_json": None}, Work(10, 50)),
        ({"samples": 0, "bytes_in": 0, "bytes_out": 0, "load_json": '{"samples": 5}'}, Work(5, None)),
        ({"samples": None, "load_json": "null"}, Work(0, 0)),
    ],
)
def test_a_trial_without_content_or_requests_has_no_such_cost(trial, expected):
    found = work(trial)
    assert found == expected
    if expected.requests == 0:
        assert found.per_1000_requests(1) is None
    if not expected.content_bytes:
        assert found.per_mb(1) is None

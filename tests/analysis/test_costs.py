"""Costs by 1,000 requests and by MB, from readings and a trial's row."""

import json
import random

import pytest

from tests.analysis.costing import trial_costs
from trifecta.analysis.costs import usages, work


def reading(process, time_ns, **values):
    return {"trial": "t00001", "process": process, "time_ns": time_ns, **values}


ROWS = (
    reading("B", 0, cpu_ns=1_000, rss_bytes=5_000, threads=2, voluntary_switches=10, sent_bytes=None),
    reading("A", 0, cpu_ns=50, rss_bytes=100),
    reading("B", 500, cpu_ns=1_400, rss_bytes=9_000, threads=3, voluntary_switches=40),
    reading("B", 1_000, cpu_ns=2_000, rss_bytes=7_000, threads=2, voluntary_switches=50),
    reading("A", 1_000, cpu_ns=250, rss_bytes=None),
    reading("host host1", 0, sent_bytes=1_000_000, sent_packets=7),
    reading("host host1", 1_000, sent_bytes=4_000_000, sent_packets=2_007),
    reading("C", 1_000, cpu_ns=77, rss_bytes=1),
)
TRIAL = {
    "samples": 180,
    "bytes_in": 1_500_000,
    "bytes_out": 300_000,
    "load_json": json.dumps({"samples": 200}),
}


def test_usage_is_the_growth_of_counters_and_the_peak_of_levels():
    found = usages(ROWS)
    b = found["B"]
    assert (b.readings, b.span_ns) == (3, 1_000)
    assert (b.counted["cpu_ns"], b.counted["voluntary_switches"]) == (1_000, 40)
    assert (b.peak["rss_bytes"], b.peak["threads"]) == (9_000, 3)
    assert b.cpu_share == 1.0
    assert b.counted["sent_bytes"] is None, "a service that shares its host's devices"
    assert found["A"].peak["rss_bytes"] == 100, "its last reading was taken when it had ended"
    assert found["host host1"].counted["sent_packets"] == 2_000


def test_one_reading_tells_no_usage():
    only = usages(ROWS)["C"]
    assert (only.counted["cpu_ns"], only.cpu_share, only.peak["rss_bytes"]) == (None, None, 1)


def test_readings_may_come_in_any_order():
    mixed = list(ROWS)
    random.Random(3).shuffle(mixed)
    assert usages(mixed) == usages(ROWS)


def test_cost_counts_the_warm_up_that_the_readings_have_too():
    assert work(TRIAL) == (200, 2_000_000)
    costs = trial_costs(TRIAL, ROWS)
    assert costs["B"].per_1000_requests("cpu_ns") == pytest.approx(1_000 / 0.2)
    assert costs["B"].per_mb("cpu_ns") == pytest.approx(1_000 / 2.0)
    assert costs["A"].per_1000_requests("cpu_ns") == pytest.approx(200 / 0.2)
    assert costs["host host1"].per_1000_requests("sent_bytes") == pytest.approx(3_000_000 / 0.2)
    assert costs["C"].per_1000_requests("cpu_ns") is None


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        ({"samples": 10, "bytes_in": 50, "bytes_out": None, "load_json": None}, (10, 50)),
        ({"samples": 0, "bytes_in": 0, "bytes_out": 0, "load_json": '{"samples": 5}'}, (5, None)),
        ({"samples": None, "load_json": "null"}, (0, 0)),
    ],
)
def test_a_trial_without_content_or_requests_has_no_such_cost(trial, expected):
    assert work(trial) == expected
    cost = trial_costs(trial, ROWS)["B"]
    if expected[0] == 0:
        assert cost.per_1000_requests("cpu_ns") is None
    if not expected[1]:
        assert cost.per_mb("cpu_ns") is None

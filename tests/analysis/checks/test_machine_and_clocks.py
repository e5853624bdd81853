"""The checks `machine` and `clocks`: what they say of readings."""

import pytest

from tests.analysis.checks.sound import LOAD, MACHINE, judge


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"steal_share": 0.05}, "warn"),
        ({"steal_share": 0.3}, "fail"),
        ({"other_cpu_share": 0.3}, "warn"),
        ({"other_cpu_share": 1.3}, "fail"),
        ({"other_cpu_share": 1.3, "resolution": 0.5}, "warn"),
        ({"pressure_share": {"memory": 0.5}}, "warn"),
        ({"cpu_mhz": [800.0, 3000.0]}, "warn"),
    ],
)
def test_a_machine_with_other_work_warns_or_fails(changes, status):
    assert judge("machine", machine=MACHINE | changes).status == status


def test_clock_readings_out_of_order_fail_and_a_slow_source_warns():
    result = judge("clocks", load=LOAD | {"ended_ns": 1_010_000_000})
    assert result.status == "fail"
    assert "10 ms outside the trial" in result.evidence
    assert judge("clocks", load=LOAD | {"started_ns": 2_000_000_000}).status == "fail"
    assert judge("clocks", facts={"clocksource": "hpet"}).status == "warn"

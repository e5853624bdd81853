"""`trifecta link measure` judges what it measured: a link that was given something else is named."""

from __future__ import annotations

import json

import pytest

from tests.lab.inside import run_inside

pytestmark = pytest.mark.lab

_MEASURE = """
import json
from trifecta.workloads import path_probe
from trifecta.cli import option_parsing

asked = option_parsing.path_of(None, None, {asked!r})
told = option_parsing.path_of(None, None, {told!r})
found = path_probe.measure(asked, packets=400, interval_ns=500_000, seed=3, given=told)
print(json.dumps([one.text for one in path_probe.judge(found) if one.status == "fail"]))
"""
_PLAN = {"rtt": "20 ms", "rate": "20 Mbit/s", "loss": "1 %"}


_SLOW = """
import json
from trifecta.cli import option_parsing
from trifecta.design.probe_packets import least_interval_ns
from trifecta.workloads import path_probe

asked = option_parsing.path_of(None, None, {"rtt": "10 ms", "rate": "400 kbit/s", "queue": "4 packets"})
interval_ns = least_interval_ns(asked, "IPv4", 500_000)
found = path_probe.measure(asked, packets=100, interval_ns=interval_ns, seed=3)
wrong = [one.text for one in path_probe.judge(found) if one.status == "fail"]
print(json.dumps([interval_ns, found.probe.rtt_ns.p50, wrong]))
"""


def test_a_slow_path_is_as_asked() -> None:
    """Its packets of 106 octets take 2.1 ms each way: they neither wait for each other nor count as delay."""
    done = run_inside(_SLOW)
    assert done.returncode == 0, done.stderr
    interval_ns, rtt_ns, wrong = json.loads(done.stdout)
    assert interval_ns == 4_240_000
    assert 14_240_000 <= rtt_ns < 15_000_000
    assert not [text for text in wrong if "left within" not in text]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"loss": "1.3 %"}, "probability 0.013, planned 0.01"),
        ({"loss": "2 %"}, "probability 0.02, planned 0.01"),
        ({"rtt": "22 ms"}, "median RTT"),
        ({"rate": "18 Mbit/s"}, "bits_per_s 18000000, planned 20000000"),
        ({"duplicate": "1 %"}, "planned loss, rate, delay"),
    ],
)
def test_a_link_that_was_told_something_else_is_not_as_asked(changed: dict[str, str], said: str) -> None:
    done = run_inside(_MEASURE.format(asked=_PLAN, told={**_PLAN, **changed}))
    assert done.returncode == 0, done.stderr
    wrong = json.loads(done.stdout)
    # Packets that a busy machine lets leave late are said, and are no fault of the link.
    wrong = [text for text in wrong if "left within" not in text]
    assert any(said in text for text in wrong) if said else not wrong, wrong

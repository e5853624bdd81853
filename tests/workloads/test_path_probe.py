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

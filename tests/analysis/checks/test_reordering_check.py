"""A path that reorders is told."""

from tests.analysis.checks.sound import DIRECTION, LINK, evidence, judge
from trifecta.analysis.checks import TRIAL_CHECKS

ORDERLY = {**DIRECTION, "delivered": 10_000, "out_of_order": 3}


def test_packets_behind_later_ones_warn():
    unruly = {**LINK, "a_to_b": ORDERLY, "b_to_a": {**ORDERLY, "out_of_order": 2_500}}
    result = judge("reordering", link=unruly)
    assert (result.status, result.value) == ("warn", 0.25)
    assert "to the client: 2500 of 10000 packets (25.0 %)" in result.evidence
    assert "--without jitter-reordering" in result.remedy


def test_a_path_in_order_passes_and_no_link_says_nothing():
    assert judge("reordering", link={**LINK, "a_to_b": ORDERLY, "b_to_a": ORDERLY}).status == "pass"
    assert TRIAL_CHECKS["reordering"].function(evidence(link=None)) == []

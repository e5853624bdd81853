"""Parts of a cycle: in the order of time, under the study's names, with failures as longer than everything."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trifecta.analysis.cycles import elapsed, parts, whole_name


def hop(ordinal: int, depth: int, caller: str, callee: str, block: int = 0, **values: float | None) -> dict[str, Any]:
    times = {"handshake_ns": None, "there_ns": 1e6, "back_ns": 2e6, "whole_ns": 9e6} | values
    own = {"ordinal": ordinal, "depth": depth, "caller": caller, "callee": callee}
    return own | {"arm": "h3", "block": block, "trial": f"t{block}", **times}


def test_a_chain_goes_there_and_comes_back_in_reverse() -> None:
    rows = [
        hop(place, place, caller, callee, block)
        for block in range(3)
        for place, (caller, callee) in enumerate(["AB", "BC", "CD"])
    ]
    found = parts(rows, "h3", 0.95)
    names = ["elapsedAB", "elapsedBC", "elapsedCD", "elapsedDC", "elapsedCB", "elapsedBA", "elapsedABCDA"]
    assert [part.name for part in found] == names
    assert [part.position for part in found] == list(range(7))
    assert [part.mean.value for part in found] == pytest.approx([1e6] * 3 + [2e6] * 3 + [9e6])
    assert parts(rows, "h2", 0.95) == []


def test_calls_one_after_the_other_and_one_within_another() -> None:
    rows = [hop(0, 0, "UE", "AMF"), hop(1, 1, "AMF", "AUSF"), hop(2, 2, "AUSF", "UDM"), hop(3, 1, "AMF", "AUSF")]
    assert [part.name for part in parts(rows, "h3", 0.95)] == [
        "0: UE → AMF",
        "1: AMF → AUSF",
        "2: AUSF → UDM",
        "2: UDM → AUSF",
        "1: AUSF → AMF",
        "3: AMF → AUSF",
        "3: AUSF → AMF",
        "0: AMF → UE",
        "whole cycle",
    ]


def test_a_handshake_is_named_where_there_is_one() -> None:
    found = parts([hop(0, 0, "A", "B", handshake_ns=4e5)], "h3", 0.95)
    assert [part.name for part in found] == ["elapsedAB", "elapsedAB, of it handshake", "elapsedBA", "elapsedABA"]
    assert found[1].mean.value == pytest.approx(4e5)


def test_a_trial_whose_median_cycle_failed_is_censored_not_left_out() -> None:
    rows = [hop(0, 0, "A", "B", block, whole_ns=math.inf if block else 9e6, there_ns=None) for block in range(3)]
    whole = parts(rows, "h3", 0.95)[-1]
    assert (whole.mean.value, whole.mean.blocks, whole.mean.censored) == (None, 3, 2)
    assert [part.name for part in parts(rows, "h3", 0.95)] == ["elapsedBA", "elapsedABA"]


def test_names() -> None:
    assert elapsed("A", "B") == "elapsedAB"
    assert elapsed("AMF", "UDM") == "AMF → UDM"
    assert whole_name([hop(0, 0, "A", "B"), hop(1, 1, "B", "C")]) == "elapsedABCA"
    assert whole_name([hop(0, 0, "A", "B"), hop(1, 1, "B", "C"), hop(2, 1, "B", "D")]) == "whole cycle"

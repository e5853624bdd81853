"""Trials that stand apart are told by the side on which they lie: of both, no mean says anything."""

from __future__ import annotations

import pytest

from trifecta.analysis.modes import MinorityMode, merged, minority_modes
from trifecta.design.metrics import METRICS

METRIC = METRICS["latency_p50_ns"]


def found(h2: dict[int, float], blocks: int = 20):
    """Modes of a cell whose trials take 10 ms, those of HTTP/2 in some blocks so many times that."""
    rows = [
        {"arm": arm, "block": block, "valid": True, "latency_p50_ns": 1e7 * (1 + 0.001 * ((block * step) % 5)) * factor}
        for block in range(blocks)
        for arm, step, factor in (("h1", 3, 1.0), ("h2", 2, h2.get(block, 1.0)), ("h3", 1, 1.0))
    ]
    return minority_modes(rows, METRIC, 0.05)


def test_those_of_one_side_have_its_mean():
    (one,) = found({3: 1.4, 9: 1.44}).values()
    assert (one.apart, one.trials, one.across) == (2, 20, None)
    assert one.words("HTTP/2", METRIC) == "2 of 20 trials of HTTP/2 form a mode at 1.42 times the others"


def test_those_of_both_sides_are_told_each_by_its_own():
    (one,) = found({3: 1.5, 9: 1.5, 12: 0.7}).values()
    assert one.words("HTTP/2", METRIC) == (
        "3 of 20 trials of HTTP/2 stand apart: 1 at 0.70 and 2 at 1.50 times the others"
    )
    # One round trip more and one less are not a round trip.
    assert "round trip" not in one.words("HTTP/2", METRIC, rtt_ns=one.shift)


def test_both_runs_of_the_baseline_together_keep_their_sides():
    """As a race once said it: 4 of 12 trials "stand apart at 1.00 times the others"."""
    slow = MinorityMode("h2", 6, 2, 1.5, is_mode=True, shift=5e6)
    fast = MinorityMode("h2#aa", 6, 2, 1 / 1.5, is_mode=True, shift=-5e6)
    both = merged({"h2": slow, "h2#aa": fast}, "h2", "h2#aa", 0)
    assert both is not None
    assert (both.trials, both.apart, both.is_mode) == (12, 4, False)
    assert both.words("HTTP/2", METRIC) == (
        "4 of 12 trials of HTTP/2 stand apart: 2 at 0.67 and 2 at 1.50 times the others"
    )
    mixed = MinorityMode("h2#aa", 6, 3, 1.4, is_mode=False, shift=4e6, across=(1, 0.8))
    together = merged({"h2": slow, "h2#aa": mixed}, "h2", "h2#aa", 0)
    assert together is not None
    assert together.sides == [(4, pytest.approx((1.5**2 * 1.4**2) ** 0.25)), (1, pytest.approx(0.8))]
    near = merged({"h2": slow, "h2#aa": MinorityMode("h2#aa", 6, 1, 1.45, is_mode=False, shift=4e6)}, "h2", "h2#aa", 0)
    assert near is not None
    assert near.words("HTTP/2", METRIC) == "3 of 12 trials of HTTP/2 form a mode at 1.48 times the others"


def test_a_run_of_the_baseline_without_any_counts_its_trials():
    slow = MinorityMode("h2#aa", 6, 3, 1.5, is_mode=False, shift=5e6, across=(1, 0.7))
    one = merged({"h2#aa": slow}, "h2", "h2#aa", 6)
    assert one is not None
    assert (one.arm, one.trials, one.across) == ("h2", 12, (1, 0.7))

"""One estimate and one published statement: confirmed, of another size, contradicted or open, and why.

Where a study gives a size, only what goes its way and is about as large confirms it: a ratio within a factor of `ABOUT`
of the published one, whose log is at least half and at most twice as large (1.5 is not about 1.2, nor 1.03 about 1.08).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from trifecta.analysis.intervals import Estimate
from trifecta.analysis.sessions import (
    OF_CPU,
    OF_LEVELS_OF_CPU_SHARES,
    OF_LEVELS_OF_MEMORY,
    OF_LEVELS_OF_TIMES,
    OF_TIMES,
)
from trifecta.analysis.statements import ABOUT, Assertion
from trifecta.design import metrics, numbers
from trifecta.design.metrics import of_all

State = Literal["confirmed", "same direction, other size", "contradicted", "open", "not compared"]
CONFIRMED: State = "confirmed"
OTHER_SIZE: State = "same direction, other size"
CONTRADICTED: State = "contradicted"
OPEN: State = "open"
NOT_COMPARED: State = "not compared"
THAT_WAY: frozenset[State] = frozenset({CONFIRMED, OTHER_SIZE})
"""What goes the way that was published, in its size or another."""
_RANK: Mapping[State, int] = {CONTRADICTED: 0, OPEN: 1, OTHER_SIZE: 2, CONFIRMED: 3, NOT_COMPARED: 4}
_MOST_BLOCKS = 200  # an estimate beyond that is no advice
_NORMAL = 1.96  # of 95 %

# Standard deviation of a ratio between sessions (logs), by what is compared (analysis/sessions.py).
SESSIONS = {
    "cpu_ns_per_request": OF_CPU,
    "cpu_share": OF_CPU,
    "rss_bytes": 0.003,
    "wire_bytes": 0.002,
    "setup_packets": 0.002,
}


# The same of the levels of one arm in two runs (analysis/sessions.py).
LEVELS = SESSIONS | {
    "cpu_ns_per_request": OF_LEVELS_OF_TIMES,
    "cpu_share": OF_LEVELS_OF_CPU_SHARES,
    "rss_bytes": OF_LEVELS_OF_MEMORY,
}


def rank(state: State) -> int:
    """Of what is said against several the lowest is true of all: each must confirm it, any may contradict it."""
    return _RANK[state]


def between_sessions(assertion: Assertion, *, apart: bool = False) -> float:
    """The standard deviation between sessions of what a statement compares; 0 for counts and shares.

    ``apart``: of levels that two runs have, one after the other. Ratios of two arms are of one block each.
    """
    if assertion.by_difference:
        return 0.0
    if apart and not assertion.to:
        return LEVELS.get(of_all(assertion.metric), OF_LEVELS_OF_TIMES)
    return SESSIONS.get(of_all(assertion.metric), OF_TIMES)


def judge(
    assertion: Assertion, estimate: Estimate, margin: float, sessions: float = 0.0, *, apart: bool = False
) -> tuple[State, str]:
    """A statement about one estimate. ``margin`` is a ratio - 1; a difference has the statement's, in its unit.

    ``sessions`` is the standard deviation between sessions (or, ``apart``, between two runs). What its interval decides
    must hold with that as well (a guard band, JCGM 106:2012), or the same truth near an edge is decided one way today
    and the other tomorrow.
    """
    state, reason = _within_session(assertion, estimate, margin)
    if not sessions or state == OPEN:
        return state, reason
    wider, _ = _within_session(assertion, over_sessions(estimate, sessions), margin)
    if wider == state:
        return state, reason
    percent = f"({100 * math.expm1(_NORMAL * sessions):.1f} %)"
    if apart:
        return OPEN, f"it is {state} here, but by less than two runs one after the other may differ {percent}"
    return OPEN, f"it is {state} here, but by less than sessions differ {percent}: another day may say otherwise"


def over_sessions(estimate: Estimate, sessions: float, reach: float = _NORMAL) -> Estimate:
    """The interval as it would be over sessions: the squares of both reaches add up.

    ``sessions`` is a standard deviation, of which ``reach`` make up the interval (1.96 of 95 %).
    """
    guard = reach * sessions
    low, high = estimate.low, estimate.high
    if estimate.value is None:
        return Estimate(
            None, None if low is None else low - guard, None if high is None else high + guard, estimate.blocks
        )
    low = None if low is None else estimate.value - math.hypot(estimate.value - low, guard)
    high = None if high is None else estimate.value + math.hypot(high - estimate.value, guard)
    return Estimate(estimate.value, low, high, estimate.blocks)


def _within_session(assertion: Assertion, estimate: Estimate, margin: float) -> tuple[State, str]:
    if estimate.blocks == 0:
        return OPEN, "no usable block"
    band = size_band(assertion)
    edge = (assertion.margin or 0.0) if assertion.by_difference else math.log1p(margin)
    if band is not None:
        edge = min(edge, band[0])  # else a published effect within the margin could not be confirmed as large as it is
    named = _difference(edge, assertion.metric) if assertion.by_difference else f"{100 * math.expm1(edge):.2g} %"
    if estimate.low is None and estimate.high is None:
        return OPEN, f"too few usable blocks for an interval: {estimate.blocks}"
    if assertion.by_difference and estimate.low == estimate.high == 0:
        return OPEN, "it is the same in every block, so this run cannot distinguish them"
    low, high = (
        -math.inf if estimate.low is None else estimate.low,
        math.inf if estimate.high is None else estimate.high,
    )
    state, reason = (
        _judge_sameness(low, high, edge, named)
        if assertion.relation == "same"
        else _beyond(assertion, low, high, edge, named)
    )
    if state == CONFIRMED and band is not None:
        return _sized(assertion, low, high, band)
    return (
        (state, reason)
        if reason
        else (OPEN, f"the interval reaches across the margin of {named}{_needed(estimate, edge)}")
    )


def _difference(value: float, metric: str) -> str:
    """A difference of a metric in its unit, where that is a time; else the number."""
    return numbers.in_unit(value, "ns") if metrics.unit(metric) == "ns" else f"{value:g}"


def size_band(assertion: Assertion) -> tuple[float, float] | None:
    """How large an effect is that is about as large as published, as magnitudes (logs, or of a difference itself)."""
    if assertion.size is None or assertion.relation in ("same", "whole"):
        return None
    if assertion.by_difference:
        least, most = sorted(abs(end) for end in assertion.size)
        return least / ABOUT, most * ABOUT
    least, most = sorted(abs(math.log(end)) for end in assertion.size)
    reach = math.log(ABOUT)
    return max(least - reach, least / 2), min(most + reach, 2 * most)


def _sized(assertion: Assertion, low: float, high: float, band: tuple[float, float]) -> tuple[State, str]:
    """Of an effect that goes the way that was published: is it as large?"""
    below = assertion.direction == "below"
    ends = sorted(-end if below else end for end in band)
    if not assertion.by_difference:
        ends = [math.exp(end) for end in ends]
    named = f"as large as published would be {ends[0]:.3g} to {ends[1]:.3g}"
    if below:
        low, high = -high, -low
    if band[0] <= low and high <= band[1]:
        return CONFIRMED, f"direction and size agree: {named}"
    if low > band[1]:
        return OTHER_SIZE, f"it goes that way, and further: {named}"
    if high < band[0]:
        return OTHER_SIZE, f"it goes that way, but not so far: {named}"
    return OPEN, f"it goes that way; how far is open: {named}"


def _judge_sameness(low: float, high: float, edge: float, named: str) -> tuple[State, str]:
    if -edge <= low and high <= edge:
        return CONFIRMED, f"the whole interval lies within the margin of {named}"
    if low > edge or high < -edge:
        return CONTRADICTED, f"the whole interval lies outside the margin of {named}"
    return OPEN, ""


def _beyond(assertion: Assertion, low: float, high: float, edge: float, named: str) -> tuple[State, str]:
    if assertion.direction == "below":
        low, high = -high, -low
    if low > edge:
        return CONFIRMED, f"the whole interval lies beyond the margin of {named}"
    if high < -edge:
        return CONTRADICTED, "the whole interval lies on the other side"
    if high < edge:
        return CONTRADICTED, f"there is no such difference beyond the margin of {named}"
    return OPEN, ""


def _needed(estimate: Estimate, edge: float) -> str:
    """How many blocks would decide, if further ones were like these."""
    if estimate.value is None or estimate.reach is None or estimate.reach == 0:
        return ""
    distance = min(abs(estimate.value - edge), abs(estimate.value + edge))
    blocks = math.ceil(estimate.blocks * (estimate.reach / distance) ** 2) if distance else _MOST_BLOCKS
    if blocks >= _MOST_BLOCKS:
        return "; more blocks hardly help"
    return f"; about {max(blocks, estimate.blocks + 1)} blocks would decide"


def without_forecast(reason: str) -> str:
    """A reason without how many blocks would decide, which is said of a number of blocks that is set in advance."""
    parts = (one for one in reason.split("; ") if not one.endswith(("blocks would decide", "more blocks hardly help")))
    return "; ".join(parts)


def size_words(assertion: Assertion, state: State, value: float | None) -> str:
    """How large our effect is beside the published one, where that is decided: ``as large``, ``larger``, ``smaller``.

    ``value`` is a log, or a difference.
    """
    band = size_band(assertion)
    if band is None or value is None or state not in (CONFIRMED, OTHER_SIZE):
        return ""
    if state == CONFIRMED:
        return "as large"
    return "larger" if abs(value) > band[1] else "smaller"

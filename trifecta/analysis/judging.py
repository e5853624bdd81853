"""One estimate and one published statement: confirmed, contradicted or open, and why."""

from __future__ import annotations

import math
from typing import Literal

from trifecta.analysis.intervals import Estimate
from trifecta.analysis.statements import ABOUT, Says, Statement

State = Literal["confirmed", "contradicted", "open", "not compared"]
CONFIRMED: State = "confirmed"
CONTRADICTED: State = "contradicted"
OPEN: State = "open"
NOT_COMPARED: State = "not compared"
_MOST_BLOCKS = 200  # an estimate beyond that is no advice
_NORMAL = 1.96  # of 95 %

# Standard deviation of a ratio between sessions (logs), which the blocks of one session do not hold: another morning,
# another temperature, another placing of pages. From two runs of all quick reproductions on one machine (Paule and
# Mandel 1982; of the 6 statements and 8 cells of times that are known to 2 % or better 0.9 and 0.5 %, of 28 cells of
# CPU time 1.7 %, of memory and octets 0), rounded up; docs/reproduce.md.
SESSIONS = {"cpu_ns_per_request": 0.02, "rss_bytes": 0.003, "wire_bytes": 0.002, "setup_packets": 0.002}
_SESSIONS_OF_TIMES = 0.01


def between_sessions(says: Says) -> float:
    """The standard deviation between sessions of what a statement compares; 0 for counts and shares."""
    return 0.0 if says.by_difference else SESSIONS.get(says.metric, _SESSIONS_OF_TIMES)


def judge(says: Says, one: Estimate, margin: float, sessions: float = 0.0) -> tuple[State, str]:
    """A statement about one estimate. ``margin`` is a ratio - 1; a difference has the statement's, in its unit.

    ``sessions`` is the standard deviation between sessions. What its interval decides must hold with that as well
    (a guard band, JCGM 106:2012), or the same truth near an edge is decided one way today and the other tomorrow.
    """
    state, reason = _within_session(says, one, margin)
    if not sessions or state not in (CONFIRMED, CONTRADICTED):
        return state, reason
    wider, _ = _within_session(says, _over_sessions(one, sessions), margin)
    if wider == state:
        return state, reason
    percent = 100 * math.expm1(_NORMAL * sessions)
    return (
        OPEN,
        f"it is {state} here, but by less than sessions differ ({percent:.1f} %): another day may say otherwise",
    )


def _over_sessions(one: Estimate, sessions: float) -> Estimate:
    """The interval as it would be over sessions: the squares of both reaches add up."""
    guard = _NORMAL * sessions
    low, high = one.low, one.high
    if one.value is None:
        return Estimate(None, None if low is None else low - guard, None if high is None else high + guard, one.blocks)
    low = None if low is None else one.value - math.hypot(one.value - low, guard)
    high = None if high is None else one.value + math.hypot(high - one.value, guard)
    return Estimate(one.value, low, high, one.blocks)


def _within_session(says: Says, one: Estimate, margin: float) -> tuple[State, str]:
    if one.blocks == 0:
        return OPEN, "no usable block"
    edge = (says.margin or 0.0) if says.by_difference else math.log1p(margin)
    named = f"{edge:g}" if says.by_difference else f"{100 * margin:g} %"
    if one.low is None and one.high is None:
        return OPEN, f"too few usable blocks for an interval: {one.blocks}"
    if says.by_difference and one.low == one.high == 0:
        return OPEN, "it is the same in every block, so this run has nothing to tell them apart by"
    low, high = -math.inf if one.low is None else one.low, math.inf if one.high is None else one.high
    if says.ratio is not None:
        return _about(says.ratio, low, high)
    state, reason = _same(low, high, edge, named) if says.relation == "same" else _beyond(says, low, high, edge, named)
    return (
        (state, reason) if reason else (OPEN, f"the interval reaches across the margin of {named}{_needed(one, edge)}")
    )


def _same(low: float, high: float, edge: float, named: str) -> tuple[State, str]:
    if -edge <= low and high <= edge:
        return CONFIRMED, f"the whole interval lies within the margin of {named}"
    if low > edge or high < -edge:
        return CONTRADICTED, f"the whole interval lies outside the margin of {named}"
    return OPEN, ""


def _about(ratio: float, low: float, high: float) -> tuple[State, str]:
    middle, reach = math.log(ratio), math.log(ABOUT)
    named = f"{ratio / ABOUT:.3g} to {ratio * ABOUT:.3g}"
    if middle - reach <= low and high <= middle + reach:
        return CONFIRMED, f"the whole interval lies within what 'about' allows, {named}"
    if low > middle + reach or high < middle - reach:
        side = low if middle > 0 else -high
        if side > 0 and abs(low + high) < 2 * abs(middle):
            return CONTRADICTED, f"it goes that way, but not so far: about would be {named}"
        if side > 0:
            return CONTRADICTED, f"it goes that way, and further: about would be {named}"
        return CONTRADICTED, f"there is nothing like it: about would be {named}"
    return OPEN, f"the interval reaches across an end of what 'about' allows, {named}"


def _beyond(says: Says, low: float, high: float, edge: float, named: str) -> tuple[State, str]:
    if says.relation == "below":
        low, high = -high, -low
    if low > edge:
        return CONFIRMED, f"the whole interval lies beyond the margin of {named}"
    if high < -edge:
        return CONTRADICTED, "the whole interval lies on the other side"
    if high < edge:
        return CONTRADICTED, f"there is no such difference beyond the margin of {named}"
    return OPEN, ""


def _needed(one: Estimate, edge: float) -> str:
    """How many blocks would decide, if further ones were like these."""
    if one.value is None or one.reach is None or one.reach == 0:
        return ""
    distance = min(abs(one.value - edge), abs(one.value + edge))
    blocks = math.ceil(one.blocks * (one.reach / distance) ** 2) if distance else _MOST_BLOCKS
    if blocks >= _MOST_BLOCKS:
        return "; more blocks hardly help"
    return f"; about {max(blocks, one.blocks + 1)} blocks would decide"


def size_words(statement: Statement, state: State, estimate: tuple[float | None, float | None, float | None]) -> str:
    """How large a confirmed ratio is beside the published one: ``as large``, ``larger``, ``smaller``."""
    said, says = statement.published, statement.says
    value, low, high = estimate
    if said is None or said <= 0 or says is None or says.by_difference or state != CONFIRMED:
        return ""
    if says.relation not in ("above", "below"):
        return ""
    if value is None or low is None or high is None:
        return ""
    if low <= said <= high:
        return "as large"
    return "larger" if abs(math.log(value)) > abs(math.log(said)) else "smaller"

"""What further blocks of an open statement are worth: the chance that they decide it.

A forecast, by which time is spent and on which no answer rests. With blocks like those seen the mean of more blocks
lies around that of today as Student's t has it, the interval shrinks with the root of their number, and the rule that
judges (`judging`) says of each such mean whether it decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.analysis.deciding import Decided, Rule, decide_whole
from trifecta.analysis.interim_looks import blocks_at, confidence_at
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import CONTRADICTED, OPEN, between_sessions, judge
from trifecta.analysis.published import Evaluation
from trifecta.analysis.statements import Says
from trifecta.analysis.student import t_quantile

LIKELY = 0.5  # from here on one says "about so many blocks would decide"
LEAST = 0.05  # a chance below that is none worth time
UNKNOWN = 0.5  # of blocks too few for an interval
MOST_BLOCKS = 200  # a forecast beyond that is worth nothing
_DRAWS = 21


def no_use(one: Evaluation) -> str:
    """Why no further block decides an open statement; empty where one may."""
    says = one.statement.says
    whole = says is not None and says.relation == "whole"
    if says is None or (whole and not one.rates):
        return one.reason
    parting = [against.reason for against in one.against if against.why and against.to == one.to]
    if parting:
        return parting[0]
    pooled = [against.pooled for against in one.against]
    if any(each.value is None and each.low is None and each.high is None and each.blocks > 1 for each in pooled):
        return f"{one.reason}: some trials have no finite value, and a mean over cells needs all"
    nothing = not pooled or any(each.blocks == 0 for each in pooled)
    alike = all(each.low is not None and each.low == each.high for each in pooled)
    return one.reason if not whole and (nothing or alike) else ""


def chance(one: Evaluation, first: int, look: int) -> float:
    """The chance that an open statement is decided at a later look; ``first``: the blocks of its cells' depth."""
    says = one.statement.says
    if says is None or one.rule is None or no_use(one):
        return 0.0
    grown = blocks_at(first, look) / blocks_at(first, one.look)
    base = 1 - (1 - one.rule.confidence) * one.look * (one.look + 1)
    ahead = _Ahead(one.rule, grown, confidence_at(base, look))
    if says.relation == "whole":
        return _whole(says, one, ahead)
    if any(against.pooled.reach is None and against.pooled.blocks < 2 for against in one.against):
        return UNKNOWN
    return sum(_decides(says, one.against, (number + 0.5) / _DRAWS, ahead) for number in range(_DRAWS)) / _DRAWS


@dataclass(frozen=True)
class _Ahead:
    """A later look: today's rule, how many times the blocks there are then, and how sure its intervals are."""

    rule: Rule
    grown: float
    confidence: float


def _whole(says: Says, one: Evaluation, ahead: _Ahead) -> float:
    trials = len(one.rates)
    there = max(trials + 1, round(trials * ahead.grown))
    if decide_whole(says, [(1, 1)] * there, ahead.confidence)[0] != OPEN:
        return 1.0
    return 1 - (trials + 1) / (there + 1)  # that one fails, by Laplace's rule of succession


def _decides(says: Says, found: Sequence[Decided], share: float, ahead: _Ahead) -> bool:
    """Whether it is decided where the mean moves to this quantile of what it may come to."""
    states, margin = [], ahead.rule.margin
    stricter = 1 - (1 - ahead.confidence) / len(found)
    for one in found:
        state, _ = judge(says, _later(one.pooled, share, ahead, ahead.confidence), margin, between_sessions(says))
        if state == CONTRADICTED and len(found) > 1:
            state, _ = judge(says, _later(one.pooled, share, ahead, stricter), margin, between_sessions(says))
        states.append(state)
    return CONTRADICTED in states or OPEN not in states


def _later(one: Estimate, share: float, ahead: _Ahead, confidence: float) -> Estimate:
    """An estimate as it may be at that look."""
    if one.value is None or one.reach is None or one.blocks < 2:
        return Estimate(None, None, None, one.blocks)
    blocks = one.blocks * ahead.grown
    error = one.reach / t_quantile((1 + ahead.rule.confidence) / 2, one.blocks - 1)
    value = one.value + t_quantile(share, one.blocks - 1) * error * math.sqrt(1 - 1 / ahead.grown)
    reach = t_quantile((1 + confidence) / 2, round(blocks - 1, 6)) * error / math.sqrt(ahead.grown)
    return Estimate(value, value - reach, value + reach, round(blocks))

"""What further blocks of an open statement are worth: the chance that they decide it.

A forecast, by which time is spent and on which no answer rests. With blocks like those seen the mean of more blocks
lies around that of today as Student's t has it, the interval shrinks with the root of their number, and the rule that
judges (`judging`) says of each such mean whether it decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.analysis.deciding import Decided, Rule, decide_whole, guarded
from trifecta.analysis.interim_looks import blocks_at, confidence_at
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import CONTRADICTED, OPEN
from trifecta.analysis.published import Evaluation
from trifecta.analysis.statements import Assertion
from trifecta.analysis.student import t_quantile

LIKELY = 0.5  # from here on one says "about so many blocks would decide"
LEAST = 0.05  # a chance below that is none worth time
UNKNOWN = 0.5  # of blocks too few for an interval
MOST_BLOCKS = 200  # a forecast beyond that is worth nothing
_DRAWS = 21


def no_use(evaluation: Evaluation) -> str:
    """Why no further block decides an open statement; empty where one may."""
    assertion = evaluation.statement.says
    is_absolute = assertion is not None and assertion.relation == "whole"
    if assertion is None or (is_absolute and not evaluation.rates):
        return evaluation.reason
    parting = [against.reason for against in evaluation.against if against.why and against.to == evaluation.to]
    if parting:
        return parting[0]
    pooled = [against.pooled for against in evaluation.against]
    if any(each.value is None and each.low is None and each.high is None and each.blocks > 1 for each in pooled):
        return f"{evaluation.reason}: some trials have no finite value, and a mean over cells needs all"
    nothing = not pooled or any(each.blocks == 0 for each in pooled)
    alike = all(each.low is not None and each.low == each.high for each in pooled)
    return evaluation.reason if not is_absolute and (nothing or alike) else ""


def chance(evaluation: Evaluation, first: int, look: int) -> float:
    """The chance that an open statement is decided at a later look; ``first``: the blocks of its cells' depth."""
    assertion = evaluation.statement.says
    if assertion is None or evaluation.rule is None or no_use(evaluation):
        return 0.0
    grown = blocks_at(first, look) / blocks_at(first, evaluation.look)
    base = 1 - (1 - evaluation.rule.confidence) * evaluation.look * (evaluation.look + 1)
    ahead = _FutureLook(evaluation.rule, grown, confidence_at(base, look))
    if assertion.relation == "whole":
        return _chance_of_all(assertion, evaluation, ahead)
    if any(against.pooled.reach is None and against.pooled.blocks < 2 for against in evaluation.against):
        return UNKNOWN
    return (
        sum(_decides(assertion, evaluation.against, (number + 0.5) / _DRAWS, ahead) for number in range(_DRAWS))
        / _DRAWS
    )


@dataclass(frozen=True)
class _FutureLook:
    """A later look: today's rule, how many times the blocks there are then, and how sure its intervals are."""

    rule: Rule
    grown: float
    confidence: float


def _chance_of_all(assertion: Assertion, evaluation: Evaluation, ahead: _FutureLook) -> float:
    trials = len(evaluation.rates)
    there = max(trials + 1, round(trials * ahead.grown))
    if decide_whole(assertion, [(1, 1)] * there, ahead.confidence)[0] != OPEN:
        return 1.0
    return 1 - (trials + 1) / (there + 1)  # that one fails, by Laplace's rule of succession


def _decides(assertion: Assertion, decisions: Sequence[Decided], share: float, ahead: _FutureLook) -> bool:
    """Whether it is decided where the mean moves to this quantile of what it may come to."""
    states, margin = [], ahead.rule.margin
    stricter = 1 - (1 - ahead.confidence) / len(decisions)
    for one in decisions:
        cells = [(effect.run, effect.against) for effect in one.effects]
        state, _ = guarded(assertion, _with_more_blocks(one.pooled, share, ahead, ahead.confidence), margin, cells)
        if state == CONTRADICTED and len(decisions) > 1:
            state, _ = guarded(assertion, _with_more_blocks(one.pooled, share, ahead, stricter), margin, cells)
        states.append(state)
    return CONTRADICTED in states or OPEN not in states


def _with_more_blocks(estimate: Estimate, share: float, ahead: _FutureLook, confidence: float) -> Estimate:
    """An estimate as it may be at that look."""
    if estimate.value is None or estimate.reach is None or estimate.blocks < 2:
        return Estimate(None, None, None, estimate.blocks)
    blocks = estimate.blocks * ahead.grown
    error = estimate.reach / t_quantile((1 + ahead.rule.confidence) / 2, estimate.blocks - 1)
    value = estimate.value + t_quantile(share, estimate.blocks - 1) * error * math.sqrt(1 - 1 / ahead.grown)
    reach = t_quantile((1 + confidence) / 2, round(blocks - 1, 6)) * error / math.sqrt(ahead.grown)
    return Estimate(value, value - reach, value + reach, round(blocks))

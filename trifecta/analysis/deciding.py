"""What the cells of a published statement add up to, from the values of their blocks alone.

The values are kept with every answer (`reproduction.json`, `cells[].values`), so that each can be judged again from the
file (`conclude.reproduction.rejudge`) by the very functions that judged it first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trifecta.analysis.confidence import LARGEST_LOG_RATIO
from trifecta.analysis.intervals import NOTHING, Estimate, Part, linear
from trifecta.analysis.judging import (
    CONFIRMED,
    CONTRADICTED,
    OPEN,
    OTHER_SIZE,
    THAT_WAY,
    State,
    between_sessions,
    judge,
    rank,
    size_words,
)
from trifecta.analysis.statements import Assertion
from trifecta.analysis.success import Rate, success_rate
from trifecta.design import numbers
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.design.phrases import counted

_WHOLE_MARGIN = 0.01
_AA_CONFIDENCE = 0.99  # that of "the baseline differs from itself", which is asked of every cell
PLACES, UNLIKE_ITSELF = "places", "unlike itself"


@dataclass(frozen=True)
class Sample:
    """What a cell, or a pair of cells, has of a statement against one reference.

    ``values``: by block, logs of ratios or differences (infinite: censored); of a pair those of the other cell, too.
    ``retest``: of the baseline's second run against its first, where it is the reference. ``alone``: the interval of
    the run's own verdict, where it holds and this does not.
    """

    run: str
    cell: str
    against: str
    values: tuple[tuple[float, ...], ...]
    retest: tuple[float, ...] = ()
    alone: Estimate | None = None

    def parts(self, share: float = 1.0) -> list[Part]:
        """What it adds to the sum of so many cells."""
        return [(sign * share, np.array(one)) for sign, one in zip((1.0, -1.0), self.values, strict=False)]


@dataclass(frozen=True)
class Effect:
    """What one cell, or one pair of cells, says. Estimates are ratios, or differences where those are compared."""

    run: str
    cell: str
    against: str
    """The other cell of a pair; empty for one."""
    state: State
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    to: str = ""
    values: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    """As `Sample` has them."""
    again: tuple[float, ...] = field(default=(), repr=False)
    """`Sample.retest`, under the name that it has where it is stored."""


@dataclass(frozen=True)
class Decided:
    """What all cells say against one reference, or of one arm (``to``). ``pooled`` has logs, or a difference.

    ``why`` names what no further block changes: cells that part (``places``), or a baseline that is ``unlike itself``.
    """

    to: str
    state: State
    reason: str
    pooled: Estimate = NOTHING
    effects: tuple[Effect, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Rule:
    """By what is judged: ``margin`` a ratio - 1 (a difference has the statement's), and how sure an interval is."""

    margin: float
    confidence: float


def of_two_runs(run: str, against: str) -> bool:
    """Whether the other cell of a pair, ``RUN/CELL``, is of another run than the first; False where there is none."""
    return bool(against) and not against.startswith(f"{run}/")


def guarded(
    assertion: Assertion, estimate: Estimate, margin: float, cells: Iterable[tuple[str, str]]
) -> tuple[State, str]:
    """`judge`, with the standard deviation between sessions of a statement about these cells, (run, against) each."""
    apart = not assertion.to and any(of_two_runs(*one) for one in cells)
    return judge(assertion, estimate, margin, between_sessions(assertion, apart=apart), apart=apart)


def decide(assertion: Assertion, samples: Sequence[Sample], to: str, rule: Rule) -> Decided:
    """What cells of which each has a block say against one reference, or of one arm (``to``)."""
    pooled = (samples[0].alone if len(samples) == 1 else None) or _sum(samples, rule.confidence)
    cells = [(one.run, one.against) for one in samples]
    state, reason = guarded(assertion, pooled, rule.margin, cells)
    family = len(assertion.sides)
    if state == CONTRADICTED and family > 1 and not (len(samples) == 1 and samples[0].alone):
        # Any of the sides may contradict it, so each has a share of the error.
        stricter = _sum(samples, 1 - (1 - rule.confidence) / family)
        state, reason = guarded(assertion, stricter, rule.margin, cells)
    unlike = state != OPEN and _unlike_itself(assertion, samples, pooled)
    why = ""
    if unlike:
        state, reason, why = OPEN, unlike, UNLIKE_ITSELF
    own = 1 - (1 - rule.confidence) / len(samples)
    estimates = [one.alone or linear(one.parts(), own) for one in samples]
    effects = _effects(assertion, samples, estimates, to, rule)
    # Cells may differ in size; what one of them contradicts while another goes that way is no one statement.
    there = {one.state for one in effects} | ({state} if len(effects) > 1 else set())
    if CONTRADICTED in there and there & THAT_WAY:
        state, reason, why = OPEN, f"it depends on the place: {_where_states(effects)}", PLACES
    elif state != OPEN and pooled.value is not None:
        other = _other_way(assertion, estimates, pooled.value, state, rule.margin)
        if other:
            found = f"{other} of {len(effects)} cells {'differs' if other == 1 else 'differ'} from the mean of all"
            goes = "goes the other way" if other == 1 else "go the other way"
            state, reason, why = OPEN, f"it depends on the place: {found}, and {goes}", PLACES
    return Decided(to, state, reason, pooled, effects, why)


def _other_way(assertion: Assertion, estimates: Sequence[Estimate], mean: float, state: State, margin: float) -> int:
    """How many cells differ from the mean beyond their own interval, and by their own value say what it does not.

    None of them has to be decided alone: the mean of cells at 1.2 and at 0.4 is that of no place.
    """
    count = 0
    for one in estimates:
        differs = (one.low is not None and mean < one.low) or (one.high is not None and one.high < mean)
        if one.value is not None and differs:
            says, _ = judge(assertion, replace(one, low=one.value, high=one.value), margin)
            count += says != OPEN and (says in THAT_WAY) != (state in THAT_WAY)
    return count


def worst(assertion: Assertion, decisions: Sequence[Decided]) -> Decided:
    """The answer of a statement against several references, or of several arms: each must confirm it, any may
    contradict it. Of arms that differ the reason says what each says.
    """
    one = min(decisions, key=lambda one: (rank(one.state), _favour(assertion, one)))
    if assertion.to or len({each.state for each in decisions}) == 1:
        return one
    sentence = ", ".join(f"{PROTOCOL_NAMES.get(each.to, each.to)} {each.state}" for each in decisions)
    return replace(one, reason=f"{one.reason}; by itself {sentence}")


def whole_margin(assertion: Assertion) -> float:
    """How much may fail of what is to be whole, as a share."""
    return assertion.margin if assertion.margin is not None else _WHOLE_MARGIN


def decide_whole(assertion: Assertion, trials: Sequence[tuple[int, int]], confidence: float) -> tuple[State, str, Rate]:
    """A rate that is 100 %, of trials (asked, succeeded): a failure contradicts it, and none takes many trials."""
    rate = success_rate(trials, confidence)
    failed, requests = rate.requests - rate.succeeded, counted(rate.requests, "request")
    if failed:
        return CONTRADICTED, f"{numbers.count(failed)} of {requests} failed", rate
    limit = 1 - whole_margin(assertion)
    if rate.low is not None and rate.low >= limit:
        return CONFIRMED, f"none of {requests} failed", rate
    return (
        OPEN,
        f"none of {requests} failed; those of a trial may fail together, and {counted(rate.trials, 'trial')} "
        f"{'is' if rate.trials == 1 else 'are'} too few to rule out 1 in {1 / (1 - limit):.0f}",
        rate,
    )


def sized(assertion: Assertion, decision: Decided) -> str:
    """How large the effect is beside the published one, in a word."""
    return size_words(assertion, decision.state, decision.pooled.value)


def from_log(value: float | None, by_difference: bool) -> float | None:
    """A log as a ratio; a difference as it is."""
    if value is None or by_difference:
        return value
    # An end further out than that is none; with two blocks an interval reaches anywhere.
    return math.exp(value) if abs(value) < LARGEST_LOG_RATIO else None


def _favour(assertion: Assertion, decision: Decided) -> float:
    value = decision.pooled.value
    if value is None:
        return -math.inf
    return -value if assertion.direction == "below" else value


def _sum(samples: Sequence[Sample], confidence: float) -> Estimate:
    return linear([part for one in samples for part in one.parts(1 / len(samples))], confidence)


def _effects(
    assertion: Assertion, samples: Sequence[Sample], estimates: Sequence[Estimate], to: str, rule: Rule
) -> tuple[Effect, ...]:
    effects = []
    for one, estimate in zip(samples, estimates, strict=True):
        state, _ = guarded(assertion, estimate, rule.margin, [(one.run, one.against)])
        value, low, high = (from_log(e, assertion.by_difference) for e in (estimate.value, estimate.low, estimate.high))
        judged = ((), ()) if one.alone else (one.values, one.retest)  # values that were not judged tell nothing
        effects.append(Effect(one.run, one.cell, one.against, state, value, low, high, estimate.blocks, to, *judged))
    return tuple(effects)


def _unlike_itself(assertion: Assertion, samples: Sequence[Sample], effect: Estimate) -> str:
    """The reason, where the baseline's two runs differ from each other by as much as the arm differs from it."""
    if assertion.between_cells or assertion.by_difference or effect.low is None or effect.high is None:
        return ""
    for one in samples:
        retest = linear([(1.0, np.array(one.retest))], _AA_CONFIDENCE) if one.retest else NOTHING
        if retest.low is None or retest.high is None or retest.low <= 0 <= retest.high or retest.low == retest.high:
            continue
        if max(abs(retest.low), abs(retest.high)) >= min(abs(effect.low), abs(effect.high)):
            return f"the baseline differs from itself in {one.cell}, by {100 * math.expm1(retest.value or 0):+.1f} %"
    return ""


def _where_states(effects: Sequence[Effect]) -> str:
    sentences = []
    for state in (CONFIRMED, OTHER_SIZE, CONTRADICTED):
        cells = [one.cell for one in effects if one.state == state]
        if cells:
            sentences.append(f"{state} in {len(cells)} of {len(effects)} cells")
    return ", ".join(sentences)

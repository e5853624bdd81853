"""Published statements and what was measured: each is confirmed, contradicted, or open (not decidable here).

An effect counts when it is larger than a margin. Confirmed: the whole interval lies beyond the margin on the side that
was claimed and, where the study gives a size, is about as large; else it has the same direction and another size.
Contradicted: all of it lies short of the margin, so there is no such difference, or the opposite one. All three have
at most the nominal rate of error. What sessions differ by beside their blocks is added to the interval that judges
(not to the one that is shown), so that the same truth is not confirmed on one day and contradicted on the next.
Where a statement is about several cells, their mean effect decides, unless a cell by itself says the opposite: then it
depends on the place, and is open. Intervals of single cells hold together (Bonferroni).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trifecta.analysis import interim_looks
from trifecta.analysis.deciding import (
    PLACES,
    Decided,
    Effect,
    Rule,
    Sample,
    decide,
    decide_whole,
    from_log,
    sized,
    whole_margin,
    worst,
)
from trifecta.analysis.intervals import Estimate, Floats
from trifecta.analysis.judging import CONFIRMED, NOT_COMPARED, OPEN, State, without_forecast
from trifecta.analysis.places import Group, Place, arm_values, block_values, groups_of, matching, metric_value, paired
from trifecta.analysis.statements import Assertion, Statement
from trifecta.contract.trial import TrialValues, value_of
from trifecta.design.metrics import label
from trifecta.design.model import AA_SUFFIX, PROTOCOL_NAMES

__all__ = ["NOT_RUN", "Effect", "Evaluation", "Place", "change_words", "evaluate", "matching"]

NOT_RUN = "nothing was run that it is about"


@dataclass(frozen=True)
class Evaluation:
    """What all cells together say to a statement. ``size`` compares the effect with the published one.

    ``arms`` has the value of every protocol in the metric's unit, the mean over the cells; ``against`` what was decided
    against each reference; ``rates`` of what is to be whole, by trial, what was asked and what succeeded. ``look`` is
    the one at which it was judged (`interim_looks`), 0 where the number of blocks was set in advance.
    """

    statement: Statement
    state: State
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    to: str = ""
    size: str = ""
    depends: bool = False
    effects: tuple[Effect, ...] = ()
    checks: Mapping[str, int] = field(default_factory=dict)
    arms: Mapping[str, float] = field(default_factory=dict)
    against: tuple[Decided, ...] = ()
    rates: tuple[tuple[int, int], ...] = ()
    rule: Rule | None = None
    look: int = 0

    @property
    def difference(self) -> bool:
        """Whether the estimate is a difference."""
        return self.statement.says is not None and self.statement.says.by_difference

    def change(self) -> str:
        """What the ratio is of: ``HTTP/3 ÷ HTTP/2``, ``path=lag ÷ path=normal``, ``CPU of B ÷ CPU of A, HTTP/3``."""
        assertion = self.statement.says
        return "" if assertion is None else change_words(assertion, self.to)


def change_words(assertion: Assertion, to: str = "") -> str:
    """What an effect is the ratio (÷) or the difference (−) of."""
    sign = " − " if assertion.by_difference else " ÷ "
    reference = (to or assertion.to[0]) if assertion.to else ""
    arms = _names(assertion.arms if assertion.to or not to else (to,))
    pair = f"{arms}{sign}{_names((reference,))}" if reference else arms
    if assertion.relation == "whole":
        return arms
    if assertion.over:
        pair = f"{label(assertion.metric)}{sign}{label(assertion.over)}, {pair}"
    if assertion.along:
        return f"({pair}) at the largest {assertion.along}{sign}at the smallest"
    if assertion.at:
        at, against = (
            ",".join(f"{name}={level}" for name, level in of.items()) for of in (assertion.at, assertion.against)
        )
        whom = f" of {pair}" if reference or assertion.over else f", {arms}"
        return (
            f"{at}{sign}{against}"
            if len(assertion.arms) > 2 and not (reference or assertion.over)
            else f"{at}{sign}{against}{whom}"
        )
    return pair


def _names(arms: Sequence[str]) -> str:
    return " and ".join(PROTOCOL_NAMES.get(arm, arm) for arm in arms)


def evaluate(statement: Statement, places: Sequence[Place]) -> Evaluation:
    """What the cells that a statement is about say to it."""
    if statement.says is None or statement.not_compared:
        reason = statement.not_compared or "an absolute value from another machine, other programs and another path"
        evaluation = Evaluation(statement, NOT_COMPARED, reason)
        return (
            evaluation
            if statement.says is None
            else replace(evaluation, arms=_arm_values(statement, matching(statement, places)))
        )
    here = matching(statement, places)
    if not here:
        return Evaluation(statement, OPEN, NOT_RUN)
    look = interim_looks.look_at(here)
    if look == 0:
        return Evaluation(statement, OPEN, "the first blocks of its cells are not over")
    if look is not None:
        here = interim_looks.cut(here, look)
    evaluated = (
        _evaluate_absolute(statement, here)
        if statement.says.relation == "whole"
        else _evaluate_comparison(statement, here)
    )
    checks: Counter[str] = Counter()
    for place in here:
        checks.update(place.checks)
    evaluated = replace(evaluated, checks=dict(checks), arms=_arm_values(statement, here), look=look or 0)
    return replace(evaluated, reason=without_forecast(evaluated.reason)) if look else evaluated


def _evaluate_comparison(statement: Statement, places: Sequence[Place]) -> Evaluation:
    assertion = statement.says
    assert assertion is not None
    groups = groups_of(assertion, statement.where, places)
    if not groups:
        return Evaluation(statement, OPEN, "one of the two cells that it compares was not run")
    rule = Rule(_margin(assertion, groups), groups[0].place.confidence)
    matched = [_against(statement, groups, side, rule) for side in assertion.sides]
    one = worst(assertion, matched)
    reason = one.reason
    if one.state == CONFIRMED and assertion.size is None and assertion.relation in ("above", "below"):
        reason += "; the study gives no size"
    value, low, high = (
        from_log(end, assertion.by_difference) for end in (one.pooled.value, one.pooled.low, one.pooled.high)
    )
    return Evaluation(
        statement,
        one.state,
        reason,
        value,
        low,
        high,
        one.pooled.blocks,
        one.to if assertion.to or one.pooled.blocks else "",
        size=sized(assertion, one),
        depends=one.why == PLACES,
        effects=tuple(effect for against in matched for effect in against.effects),
        against=tuple(matched),
        rule=rule,
    )


def _against(statement: Statement, groups: Sequence[Group], reference: str, rule: Rule) -> Decided:
    """``reference``: one of `Assertion.sides`."""
    assertion = statement.says
    assert assertion is not None
    samples = [sample for group in groups if (sample := _sample(assertion, group, reference)) is not None]
    if not samples:
        return Decided(reference, OPEN, _why_nothing(groups, assertion, reference))
    one = decide(assertion, samples, reference, rule)
    measured_groups = [group for group in groups if all(_has_metric(place, assertion) for place in group.places)]
    if len(samples) < len(measured_groups):
        missing = f"; {len(measured_groups) - len(samples)} of {len(measured_groups)} cells have no usable block"
        one = replace(one, reason=one.reason + missing)
    return one


def _sample(assertion: Assertion, group: Group, reference: str) -> Sample | None:
    """What a group adds up to; None where one side has no block."""
    values = [
        paired(assertion, place, reference) if assertion.to else arm_values(assertion, place, reference)
        for place in group.places
    ]
    if not all(len(one) for one in values):
        return None
    return Sample(
        *group.names,
        tuple(_plain(one) for one in values),
        _retest(assertion, group, reference),
        _verdict_interval(assertion, group, reference, len(values[0])),
    )


def _plain(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _retest(assertion: Assertion, group: Group, reference: str) -> tuple[float, ...]:
    """The baseline's second run against its first, by block, where it is the reference: its log ratio."""
    place = group.place
    if not assertion.to or reference != place.baseline or assertion.between_cells or assertion.by_difference:
        return ()
    pairs: dict[int, dict[str, float]] = {}
    for row in place.rows:
        value = metric_value(row, assertion.metric, assertion.over, by_difference=False)
        if row["arm"] in (reference, reference + AA_SUFFIX) and value is not None and math.isfinite(value):
            pairs.setdefault(int(row["block"]), {})[str(row["arm"])] = value
    return tuple(one[reference + AA_SUFFIX] - one[reference] for one in pairs.values() if len(one) == 2)


def _verdict_interval(assertion: Assertion, group: Group, reference: str, blocks: int) -> Estimate | None:
    """The interval of the run's own verdict, where it has one that holds although the run may end when decided."""
    if group.against is not None or len(assertion.arms) != 1 or assertion.over:
        return None
    verdict = group.place.verdicts.get((assertion.metric, assertion.arms[0], reference))
    if verdict is None or verdict[0] is None:
        return None
    ends = [None if end is None or end <= 0 else math.log(end) for end in verdict]
    return Estimate(ends[0], ends[1], ends[2], blocks)


def _margin(assertion: Assertion, groups: Sequence[Group]) -> float:
    return max(group.place.margin for group in groups) if assertion.margin is None else assertion.margin


def _has_metric(place: Place, assertion: Assertion) -> bool:
    """Whether any trial of a cell has a metric; one without a valid trial could have had it."""
    return not place.rows or any(_has_value(row, assertion) for row in place.rows)


def _has_value(row: TrialValues, assertion: Assertion) -> bool:
    return all(value_of(row, name) is not None for name in (assertion.metric, assertion.over) if name)


def _why_nothing(groups: Sequence[Group], assertion: Assertion, reference: str) -> str:
    sides = [place for group in groups for place in group.places]
    if not any(_has_value(row, assertion) for place in sides for row in place.rows) and any(
        place.rows for place in sides
    ):
        measured = " over ".join(label(name) for name in (assertion.metric, assertion.over) if name)
        return f"not measured in its cells: {measured}"
    failed: Counter[str] = Counter()
    for place in sides:
        failed.update(place.checks)
    names = ", ".join(f"{name} in {number}" for name, number in failed.most_common(2))
    trials = sum(place.trials for place in sides)
    spoke = f"; of {trials} trials checks warned or failed: {names}" if names else ""
    if not any(place.rows for place in sides):
        return f"none of {trials} trials counts{spoke}"
    arms = (*assertion.arms, *([reference] if reference else [])) if assertion.to or not reference else (reference,)
    return f"no block has a trial of {_names(arms)} that counts{spoke}"


def _evaluate_absolute(statement: Statement, places: Sequence[Place]) -> Evaluation:
    """A rate that is 100 %: a failure is a counterexample, and no failure says how many there may be at most."""
    assertion = statement.says
    assert assertion is not None
    trials = [
        (int(requested), int(row.get("succeeded") or 0))
        for place in places
        for row in place.rows
        if str(row["arm"]).removesuffix(AA_SUFFIX) in assertion.arms and (requested := row.get("requests"))
    ]
    if not trials:
        return Evaluation(statement, OPEN, "no request was counted in the cells that it is about")
    confidence = places[0].confidence
    state, reason, rate = decide_whole(assertion, trials, confidence)
    rule = Rule(whole_margin(assertion), confidence)
    return Evaluation(
        statement, state, reason, rate.rate, rate.low, rate.high, rate.trials, rates=tuple(trials), rule=rule
    )


def _arm_values(statement: Statement, places: Sequence[Place]) -> dict[str, float]:
    """The mean of every protocol over blocks and cells, in the metric's unit; of one over another their ratio."""
    assertion = statement.says
    if assertion is None or assertion.between_cells:
        return {}
    values = {}
    for arm in ("h1", "h2", "h3"):
        blocks = [
            block_values(place, assertion.metric, arm, assertion.over, by_difference=assertion.by_difference)
            for place in places
        ]
        means = [float(np.mean(list(one.values()))) for one in blocks if one]
        if means and all(math.isfinite(mean) for mean in means):
            middle = float(np.mean(means))
            values[arm] = middle if assertion.by_difference else math.exp(min(middle, 700.0))
    return values

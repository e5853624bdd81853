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

from trifecta.analysis.confidence import LARGEST_LOG_RATIO
from trifecta.analysis.intervals import NOTHING, Estimate, Part, linear
from trifecta.analysis.judging import (
    CONFIRMED,
    CONTRADICTED,
    NOT_COMPARED,
    OPEN,
    OTHER_SIZE,
    State,
    between_sessions,
    judge,
    size_words,
)
from trifecta.analysis.places import Group, Place, block_values, groups_of, matching, paired, plain
from trifecta.analysis.statements import Says, Statement
from trifecta.analysis.success import success_rate
from trifecta.contract.trial import value_of
from trifecta.design.model import AA_SUFFIX, PROTOCOL_NAMES

__all__ = ["Effect", "Evaluation", "Place", "change_words", "evaluate", "matching"]
_THAT_WAY = {CONFIRMED, OTHER_SIZE}
_AA_CONFIDENCE = 0.99  # that of "the baseline differs from itself", which is asked of every cell


@dataclass(frozen=True)
class Effect:
    """What one cell, or one pair of cells, says. Estimates are ratios, or differences where ``difference`` is set."""

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


@dataclass(frozen=True)
class Evaluation:
    """What all cells together say to a statement. ``size`` compares the effect with the published one.

    ``arms`` has the value of every protocol in the metric's unit, the mean over the cells.
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

    @property
    def difference(self) -> bool:
        """Whether the estimate is a difference."""
        return self.statement.says is not None and self.statement.says.by_difference

    def change(self) -> str:
        """What the ratio is of: ``HTTP/3 ÷ HTTP/2``, ``path=lag ÷ path=normal``."""
        says = self.statement.says
        return "" if says is None else change_words(says, self.to)


def change_words(says: Says, to: str = "") -> str:
    """What an effect is the ratio (÷) or the difference (−) of."""
    sign = " − " if says.by_difference else " ÷ "
    arms = " and ".join(PROTOCOL_NAMES.get(arm, arm) for arm in says.arms)
    reference = to or (says.to[0] if says.to else "")
    pair = f"{arms}{sign}{PROTOCOL_NAMES.get(reference, reference)}" if reference else arms
    if says.relation == "whole":
        return arms
    if says.along:
        return f"({pair}) at the largest {says.along}{sign}at the smallest"
    if says.at:
        at, against = (",".join(f"{name}={level}" for name, level in of.items()) for of in (says.at, says.against))
        whom = f" of {pair}" if reference else f", {arms}"
        return f"{at}{sign}{against}{whom}" if len(says.arms) < 3 or reference else f"{at}{sign}{against}"
    return pair


def evaluate(statement: Statement, places: Sequence[Place]) -> Evaluation:
    """What the cells that a statement is about say to it."""
    if statement.says is None or statement.not_compared:
        reason = statement.not_compared or "an absolute value from another machine, other programs and another path"
        said = Evaluation(statement, NOT_COMPARED, reason)
        return (
            said if statement.says is None else replace(said, arms=_arm_values(statement, matching(statement, places)))
        )
    here = matching(statement, places)
    if not here:
        return Evaluation(statement, OPEN, "nothing was run that it is about")
    made = _whole(statement, here) if statement.says.relation == "whole" else _compared(statement, here)
    checks: Counter[str] = Counter()
    for place in here:
        checks.update(place.checks)
    return replace(made, checks=dict(checks), arms=_arm_values(statement, here))


def _compared(statement: Statement, places: Sequence[Place]) -> Evaluation:
    says = statement.says
    assert says is not None
    groups = groups_of(says, statement.where, places)
    if not groups:
        return Evaluation(statement, OPEN, "one of the two cells that it compares was not run")
    references = says.to or ("",)
    # The statement is against all references: each must confirm, and any may contradict (so with a share of alpha).
    found = [_against(statement, groups, reference, len(references)) for reference in references]
    worst = min(found, key=lambda one: (_RANK[one.state], _favour(says, one)))
    effects = tuple(effect for one in found for effect in one.effects)
    reason = worst.reason
    if worst.state == CONFIRMED and says.size is None and says.relation in ("above", "below"):
        reason += "; the study gives no size"
    log = worst.value if says.by_difference or not worst.value else math.log(worst.value)
    return replace(worst, reason=reason, effects=effects, size=size_words(says, worst.state, log))


_RANK: dict[State, int] = {CONTRADICTED: 0, OPEN: 1, OTHER_SIZE: 2, CONFIRMED: 3, NOT_COMPARED: 4}


def _favour(says: Says, one: Evaluation) -> float:
    value = one.value if one.value is not None else math.nan
    if math.isnan(value):
        return -math.inf
    return -value if says.direction == "below" else value


def _against(statement: Statement, groups: Sequence[Group], reference: str, family: int) -> Evaluation:
    says = statement.says
    assert says is not None
    margin, sessions = _margin(says, groups), between_sessions(says)
    confidence = groups[0].place.confidence
    parts = [(group, made) for group in groups if (made := _parts(says, group, reference))]
    if not parts:
        return Evaluation(statement, OPEN, _why_nothing(groups, says, reference), to=reference)
    alone = _alone(says, parts, reference)
    pooled = alone or linear([(w / len(parts), v) for _, made in parts for w, v in made], confidence)
    state, reason = judge(says, pooled, margin, sessions)
    if state == CONTRADICTED and family > 1 and alone is None:
        stricter = linear([(w / len(parts), v) for _, made in parts for w, v in made], 1 - (1 - confidence) / family)
        state, reason = judge(says, stricter, margin, sessions)
    state, reason = _if_unlike_itself(says, groups, reference, pooled, (state, reason))
    effects = _effects(says, parts, reference, margin, confidence)
    depends = False
    # Cells may differ in size; what one of them contradicts while another goes that way is no one statement.
    there = {one.state for one in effects} | ({state} if len(effects) > 1 else set())
    if CONTRADICTED in there and there & _THAT_WAY:
        depends = True
    if depends:
        state, reason = OPEN, f"it depends on the place: {_where_states(effects)}"
    told = [group for group in groups if all(_measured(place, says.metric) for place in group.places)]
    if len(parts) < len(told):
        reason += f"; {len(told) - len(parts)} of {len(told)} cells have no usable block"
    value, low, high = (_write(end, says.by_difference) for end in (pooled.value, pooled.low, pooled.high))
    return Evaluation(
        statement, state, reason, value, low, high, pooled.blocks, reference, depends=depends, effects=effects
    )


def _effects(
    says: Says, parts: Sequence[tuple[Group, list[Part]]], reference: str, margin: float, confidence: float
) -> tuple[Effect, ...]:
    made = []
    own = 1 - (1 - confidence) / len(parts)
    for group, one in parts:
        estimate = _alone(says, [(group, one)], reference) or linear(one, own)
        state, _ = judge(says, estimate, margin, between_sessions(says))
        ends = [_write(end, says.by_difference) for end in (estimate.value, estimate.low, estimate.high)]
        made.append(Effect(*group.names, state, ends[0], ends[1], ends[2], estimate.blocks, reference))
    return tuple(made)


def _parts(says: Says, group: Group, reference: str) -> list[Part]:
    """What a group adds up to; nothing where one side has no block."""
    sides = [(1.0, group.place)] + ([(-1.0, group.against)] if group.against is not None else [])
    made: list[Part] = []
    for weight, place in sides:
        values = paired(says, place, reference) if reference else plain(says, place)
        if not len(values):
            return []
        made.append((weight, values))
    return made


def _alone(says: Says, parts: Sequence[tuple[Group, list[Part]]], reference: str) -> Estimate | None:
    """The interval of the run's own verdict, where it has one that holds although the run may end when decided."""
    if len(parts) != 1 or parts[0][0].against is not None or len(says.arms) != 1:
        return None
    group, made = parts[0]
    verdict = group.place.verdicts.get((says.metric, says.arms[0], reference))
    if verdict is None or verdict[0] is None:
        return None
    ends = [None if end is None or end <= 0 else math.log(end) for end in verdict]
    return Estimate(ends[0], ends[1], ends[2], len(made[0][1]))


def _margin(says: Says, groups: Sequence[Group]) -> float:
    return max(group.place.margin for group in groups) if says.margin is None else says.margin


def _if_unlike_itself(
    says: Says, groups: Sequence[Group], reference: str, effect: Estimate, judged: tuple[State, str]
) -> tuple[State, str]:
    """Open where the baseline's two runs differ from each other by as much as the arm differs from it."""
    if judged[0] == OPEN or says.between_cells or says.by_difference or effect.low is None or effect.high is None:
        return judged
    for group in groups:
        place = group.place
        if reference != place.baseline:
            continue
        pairs: dict[int, dict[str, float]] = {}
        for row in place.rows:
            value = value_of(row, says.metric)
            if row["arm"] in (reference, reference + AA_SUFFIX) and value and math.isfinite(value) and value > 0:
                pairs.setdefault(int(row["block"]), {})[str(row["arm"])] = math.log(value)
        both = [one[reference + AA_SUFFIX] - one[reference] for one in pairs.values() if len(one) == 2]
        again = linear([(1.0, np.array(both))], _AA_CONFIDENCE) if both else NOTHING
        if again.low is None or again.high is None or again.low <= 0 <= again.high or again.low == again.high:
            continue
        nearest = min(abs(effect.low), abs(effect.high))
        if max(abs(again.low), abs(again.high)) >= nearest:
            return (
                OPEN,
                f"the baseline differs from itself in {place.cell}, by {100 * math.expm1(again.value or 0):+.1f} %",
            )
    return judged


def _where_states(effects: Sequence[Effect]) -> str:
    said = []
    for state in (CONFIRMED, OTHER_SIZE, CONTRADICTED):
        cells = [one.cell for one in effects if one.state == state]
        if cells:
            said.append(f"{state} in {len(cells)} of {len(effects)} cells")
    return ", ".join(said)


def _measured(place: Place, metric: str) -> bool:
    """Whether any trial of a cell has a metric; one without a valid trial could have had it."""
    return not place.rows or any(value_of(row, metric) is not None for row in place.rows)


def _why_nothing(groups: Sequence[Group], says: Says, reference: str) -> str:
    sides = [place for group in groups for place in group.places]
    if not any(value_of(row, says.metric) is not None for place in sides for row in place.rows) and any(
        place.rows for place in sides
    ):
        return f"{says.metric} was not measured in the cells that it is about"
    failed: Counter[str] = Counter()
    for place in sides:
        failed.update(place.checks)
    names = ", ".join(f"{name} in {number}" for name, number in failed.most_common(2))
    trials = sum(place.trials for place in sides)
    spoke = f"; of {trials} trials checks warned or failed: {names}" if names else ""
    if not any(place.rows for place in sides):
        return f"none of {trials} trials counts{spoke}"
    arms = " and ".join(PROTOCOL_NAMES.get(arm, arm) for arm in (*says.arms, *([reference] if reference else [])))
    return f"no block has a trial of {arms} that counts{spoke}"


def _whole(statement: Statement, places: Sequence[Place]) -> Evaluation:
    """A rate that is 100 %: a failure is a counterexample, and no failure says how many there may be at most."""
    says = statement.says
    assert says is not None
    trials = [
        (int(asked), int(row.get("succeeded") or 0))
        for place in places
        for row in place.rows
        if str(row["arm"]).removesuffix(AA_SUFFIX) in says.arms and (asked := row.get("requests"))
    ]
    if not trials:
        return Evaluation(statement, OPEN, "no request was counted in the cells that it is about")
    rate = success_rate(trials, places[0].confidence)
    failed = rate.requests - rate.succeeded
    made = Evaluation(statement, OPEN, "", rate.rate, rate.low, rate.high, rate.trials)
    if failed:
        return replace(made, state=CONTRADICTED, reason=f"{failed} of {rate.requests} requests failed")
    limit = 1 - (says.margin if says.margin is not None else 0.01)
    if rate.low is not None and rate.low >= limit:
        return replace(made, state=CONFIRMED, reason=f"none of {rate.requests} requests failed")
    return replace(
        made,
        reason=f"none of {rate.requests} requests failed; those of a trial may fail together, and {rate.trials} trials "
        f"are too few to rule out 1 in {1 / (1 - limit):.0f}",
    )


def _arm_values(statement: Statement, places: Sequence[Place]) -> dict[str, float]:
    """The mean of every protocol over blocks and cells, in the metric's unit."""
    says = statement.says
    if says is None or says.between_cells:
        return {}
    made = {}
    for arm in ("h1", "h2", "h3"):
        blocks = [block_values(place, says.metric, arm, by_difference=says.by_difference) for place in places]
        means = [float(np.mean(list(one.values()))) for one in blocks if one]
        if means and all(math.isfinite(mean) for mean in means):
            middle = float(np.mean(means))
            made[arm] = middle if says.by_difference else math.exp(min(middle, 700.0))
    return made


def _write(value: float | None, by_difference: bool) -> float | None:
    if value is None or by_difference:
        return value
    # An end further out than that is none; with two blocks an interval reaches anywhere.
    return math.exp(value) if abs(value) < LARGEST_LOG_RATIO else None

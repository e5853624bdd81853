"""Two reproductions of the same published studies: do they say the same, and how far do sessions differ?

Whatever is decided in both must be decided alike. What is decided in one and open in the other is no contradiction: an
interval that crossed an edge on one day need not on another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, NOT_COMPARED, OTHER_SIZE
from trifecta.contract.reproduction import Judged

Relation = Literal["same", "differs", "only in the first", "only in the second", "open in both", "another statement"]
SAME: Relation = "same"
DIFFERS: Relation = "differs"
ONLY_FIRST: Relation = "only in the first"
ONLY_SECOND: Relation = "only in the second"
OPEN_IN_BOTH: Relation = "open in both"
ANOTHER: Relation = "another statement"
"""Of the same id, but about other cells or with another meaning: nothing to agree on."""
RELATIONS: tuple[Relation, ...] = (DIFFERS, SAME, ONLY_FIRST, ONLY_SECOND, OPEN_IN_BOTH, ANOTHER)
LEAST_BLOCKS = 4  # Student's t of fewer has no variance
WITHIN = "within the margin"
_DECIDED = (CONFIRMED, OTHER_SIZE, CONTRADICTED, "more", "less", WITHIN)  # claims and figures; what a threat does


@dataclass(frozen=True)
class Pair:
    """One statement in two reproductions; the side that lacks it is None."""

    id: str
    kind: str
    text: str
    relation: Relation
    first: Judged | None
    second: Judged | None
    changed: tuple[str, ...] = ()
    """What of the statement itself is not the same in both: then they did not judge the same."""


@dataclass(frozen=True)
class RatioSpread:
    """How far ratios of ``count`` statements lie apart: half of them by less than ``median``, one by ``most``, as a
    ratio - 1. ``between`` is the standard deviation between sessions that is left when what blocks of one session vary
    by is taken off, as a ratio - 1; 0 where that explains it all."""

    count: int
    median: float
    most: float
    most_id: str
    between: float


def compare(first: Sequence[Judged], second: Sequence[Judged]) -> list[Pair]:
    """Statement by statement, as `evaluation_data` writes them; those that neither compares are left out."""
    here, there = ({str(one["id"]): one for one in side} for side in (first, second))
    pairs = []
    for name in dict.fromkeys([*here, *there]):
        one, other = here.get(name), there.get(name)
        known = [side for side in (one, other) if side is not None]
        if all(side["state"] == NOT_COMPARED for side in known):
            continue
        in_both = one is not None and other is not None
        changed = tuple(key for key in _DEFINING if in_both and _field(one, key) != _field(other, key))
        comparable = known[0]
        pairs.append(
            Pair(name, str(comparable["kind"]), str(comparable["text"]), _relation(one, other), one, other, changed)
        )
    return pairs


_DEFINING = ("text", "metric", "is", "published", "form")


def _field(side: Judged | None, key: str) -> object:
    return None if side is None else cast(Mapping[str, object], side).get(key)


def _relation(judgement: Judged | None, other: Judged | None) -> Relation:
    if judgement is not None and other is not None and judgement.get("defined") != other.get("defined"):
        return ANOTHER
    states = [None if side is None or side["state"] not in _DECIDED else side["state"] for side in (judgement, other)]
    if None not in states:
        return SAME if states[0] == states[1] else DIFFERS
    if states == [None, None]:
        return OPEN_IN_BOTH
    return ONLY_SECOND if states[0] is None else ONLY_FIRST


def count_relations(pairs: Sequence[Pair]) -> dict[str, int]:
    """How many there are of each relation."""
    return {relation: sum(one.relation == relation for one in pairs) for relation in RELATIONS}


def agree(pairs: Sequence[Pair]) -> bool:
    """Whether everything that both decided is decided alike."""
    return all(one.relation != DIFFERS for one in pairs)


def session_spread(pairs: Sequence[Pair]) -> RatioSpread | None:
    """How far apart the ratios lie; None where no statement has one with an interval in both."""
    distances = []
    for pair in pairs:
        sides = [_log(side) for side in (pair.first, pair.second)]
        if sides[0] is not None and sides[1] is not None:
            (a, a_error), (b, b_error) = sides[0], sides[1]
            distances.append((abs(a - b), a_error**2 + b_error**2, pair.id))
    return ratio_spread(distances)


def ratio_spread(distances: Sequence[tuple[float, float, str]]) -> RatioSpread | None:
    """The same of distances (logs) with their variance within sessions and what each is of; None without any."""
    if not distances:
        return None
    ordered = sorted(distance for distance, _, _ in distances)
    half = len(ordered) // 2
    middle = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
    farthest = max(distances)
    between = _between([(distance, within) for distance, within, _ in distances])
    return RatioSpread(len(distances), math.expm1(middle), math.expm1(farthest[0]), farthest[2], math.expm1(between))


def _between(distances: Sequence[tuple[float, float]]) -> float:
    """The standard deviation between sessions with which the distances are as large as they are on average.

    By Paule and Mandel (1982); ``distances``: each with its variance within sessions. Two sessions lie apart by
    that and twice the variance between them.
    """

    def excess(deviation: float) -> float:
        return sum(distance**2 / (within + 2 * deviation**2) for distance, within in distances) - len(distances)

    low, high = 1e-9, 10.0
    if excess(low) <= 0:
        return 0.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low


def _log(side: Judged | None) -> tuple[float, float] | None:
    """The log of a ratio and its standard error, from the interval.

    A few blocks tell their own variance badly: a distance in such units varies as Student's t, by the more.
    """
    from trifecta.analysis.student import t_quantile

    if side is None or side.get("form") != "ratio":
        return None
    ratio, low, high, blocks = side.get("ratio"), side.get("low"), side.get("high"), int(side.get("blocks") or 0)
    if not ratio or not low or not high or blocks < LEAST_BLOCKS or ratio <= 0 or side.get("is") == "whole":
        return None
    freedom = blocks - 1
    sure = side.get("confidence") or 0.95  # documents of earlier versions do not say it
    error = math.log(high / low) / 2 / t_quantile((1 + sure) / 2, freedom)
    return math.log(ratio), error * math.sqrt(freedom / (freedom - 2))

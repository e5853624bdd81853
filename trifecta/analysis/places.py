"""Cells as published statements need them: which a statement is about, which two are compared, and their values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trifecta.analysis.intervals import Floats
from trifecta.analysis.statements import Assertion, Levels, Statement
from trifecta.contract.trial import TrialValues, value_of
from trifecta.design.model import AA_SUFFIX

# How long a trial is differs between scenarios and is no part of what a cell is.
_LENGTHS = frozenset(
    {"requests", "duration_ns", "warmup_requests", "warmup_ns", "visits", "warmup_visits", "watch_ns", "settle_ns"}
)
# A client's connections are as many as the clients, and so are its requests in flight.
_FOLLOW = {"clients": ("in_flight", "connections")}


@dataclass(frozen=True)
class Place:
    """A cell of a run: what it is (``levels``: its factors and its workload's fields, as text), and its valid trials.

    A row has ``arm``, ``block`` and the metrics: infinite is worse than every other, None was not measured. ``checks``
    has for every check that was not passed how many trials it struck. ``verdicts`` hold for runs that may end when
    they are decided: (metric, arm, to) -> ratio, low, high. Where blocks are added by looking (`interim_looks`),
    ``first`` is how many its depth has (0: their number was set in advance), ``done`` how many there are, whole ones,
    and ``block_ns`` the wall time of one more.
    """

    run: str
    cell: str
    levels: Mapping[str, str]
    rows: Sequence[TrialValues]
    baseline: str = "h2"
    margin: float = 0.05
    confidence: float = 0.95
    trials: int = 0
    checks: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, str, str], tuple[float | None, float | None, float | None]] = field(
        default_factory=dict
    )
    first: int = 0
    done: int = 0
    block_ns: int = 0


def matching(statement: Statement, places: Iterable[Place]) -> list[Place]:
    """The places that a statement is about; of one that needs two cells, those of either.

    Of levels of which the first that was run counts (``mode: {first: [live, on-demand]}``) the others are left out.
    """
    assertion = statement.says
    sides = [assertion.at, assertion.against] if assertion is not None and assertion.at else [{}]
    here = [place for place in places if any(_has_levels(place.levels, {**statement.where, **side}) for side in sides)]
    for name, wanted in statement.where.items():
        if isinstance(wanted, Mapping):
            there = {place.levels[name] for place in here}
            first = next((level for level in map(str, wanted["first"]) if level in there), None)
            here = [place for place in here if place.levels[name] == first]
    return here


def _has_levels(levels: Mapping[str, str], where: Levels) -> bool:
    for name, wanted_level in where.items():
        own, wanted = levels.get(name), wanted_level["first"] if isinstance(wanted_level, Mapping) else wanted_level
        if own is None:
            return False
        if name.endswith("_bytes") and isinstance(wanted, list):
            if not float(wanted[0]) <= float(own) <= float(wanted[1]):
                return False
        elif own not in ([str(one) for one in wanted] if isinstance(wanted, list) else [str(wanted)]):
            return False
    return True


@dataclass(frozen=True)
class Group:
    """One cell, or the two cells of a comparison."""

    place: Place
    against: Place | None = None

    @property
    def places(self) -> list[Place]:
        """The one cell, or both."""
        return [self.place] if self.against is None else [self.place, self.against]

    @property
    def names(self) -> tuple[str, str, str]:
        """Run and cell, and the other cell."""
        return (
            self.place.run,
            self.place.cell,
            "" if self.against is None else f"{self.against.run}/{self.against.cell}",
        )


def groups_of(assertion: Assertion, where: Levels, places: Sequence[Place]) -> list[Group]:
    """The cells, or the pairs of cells that are alike but for what is compared."""
    if assertion.along:
        lines: dict[tuple[Any, ...], list[tuple[float, Place]]] = {}
        for place in places:
            number = _number(place.levels, assertion.along)
            if number is not None:
                lines.setdefault(_identity(place, (assertion.along, f"{assertion.along}_bytes")), []).append(
                    (number, place)
                )
        ordered = [sorted(line, key=lambda step: step[0]) for line in lines.values()]
        return [Group(line[-1][1], line[0][1]) for line in ordered if line[-1][0] > line[0][0]]
    if not assertion.at:
        return [Group(place) for place in places]
    changed = tuple({*assertion.at, *assertion.against})
    others: dict[tuple[Any, ...], list[Place]] = {}
    for one in places:
        if _has_levels(one.levels, {**where, **assertion.against}):
            others.setdefault(_identity(one, changed), []).append(one)
    there = [one for one in places if _has_levels(one.levels, {**where, **assertion.at})]
    pairs = [(one, others.get(_identity(one, changed), [])) for one in there]
    return [Group(one, _of_one_run(one, alike)) for one, alike in pairs if alike]


def _of_one_run(place: Place, alike: Sequence[Place]) -> Place:
    """The other cell of a pair: that of the same run, where another run has such a cell, too (as one with captures)."""
    return next((one for one in alike if one.run == place.run), alike[0])


def _identity(place: Place, without: Sequence[str]) -> tuple[Any, ...]:
    ignored = {*without, *_LENGTHS, *(follower for name in without for follower in _FOLLOW.get(name, ()))}
    return tuple(sorted((name, level) for name, level in place.levels.items() if name not in ignored))


def _number(levels: Mapping[str, str], factor: str) -> float | None:
    for name in (f"{factor}_bytes", factor):
        try:
            return float(levels[name])
        except (KeyError, ValueError):
            continue
    return None


def metric_value(row: TrialValues, metric: str, over: str = "", *, by_difference: bool) -> float | None:
    """What a trial has of a metric, or of it by another (``over``): a log unless it is compared by difference.

    None where there is none, nor where both are censored.
    """
    value = value_of(row, metric)
    if value is None or math.isnan(value) or not (by_difference or value > 0):
        return None
    own = float(value) if by_difference else math.log(value)
    if not over:
        return own
    other = metric_value(row, over, by_difference=by_difference)
    return None if other is None or (math.isinf(own) and own == other) else own - other


def block_values(place: Place, metric: str, arm: str, over: str = "", *, by_difference: bool) -> dict[int, float]:
    """The value of every block, as `metric_value` has it of a trial; of the baseline's two runs the mean."""
    values_by_block: dict[int, list[float]] = {}
    for row in place.rows:
        if row["arm"] in (arm, arm + AA_SUFFIX):
            value = metric_value(row, metric, over, by_difference=by_difference)
            if value is not None:
                values_by_block.setdefault(int(row["block"]), []).append(value)
    return {block: float(np.mean(values)) for block, values in values_by_block.items()}


def log_ratios(place: Place, metric: str, arm: str, to: str) -> dict[int, float]:
    """By block the log of arm / reference; blocks in which either is censored are left out."""
    return {block: value for block, value in _logs(place, metric, arm, to).items() if math.isfinite(value)}


def censored(place: Place, metric: str, arm: str, to: str) -> int:
    """How many blocks are left out of these ratios because either is censored."""
    return sum(not math.isfinite(value) for value in _logs(place, metric, arm, to).values())


def _logs(place: Place, metric: str, arm: str, to: str) -> dict[int, float]:
    own, base = (block_values(place, metric, one, by_difference=False) for one in (arm, to))
    return {block: value - base[block] for block, value in own.items() if block in base}


def _of_arm(assertion: Assertion, place: Place, arm: str) -> dict[int, float]:
    return block_values(place, assertion.metric, arm, assertion.over, by_difference=assertion.by_difference)


def paired(assertion: Assertion, place: Place, reference: str) -> Floats:
    """Arm less reference by block; of several arms the mean. Two that are both censored are a tie."""
    base = _of_arm(assertion, place, reference)
    own = [_of_arm(assertion, place, arm) for arm in assertion.arms]
    shared = [block for block in sorted(base) if all(block in values for values in own)]
    differences = []
    for block in shared:
        value_pairs = [(values[block], base[block]) for values in own]
        differences.append(float(np.mean([0.0 if math.isinf(a) and a == b else a - b for a, b in value_pairs])))
    return np.array(differences, dtype=np.float64)


def arm_values(assertion: Assertion, place: Place, only: str = "") -> Floats:
    """The arms themselves by block, or ``only`` one of them; of several the mean."""
    own = [_of_arm(assertion, place, arm) for arm in ((only,) if only else assertion.arms)]
    shared = sorted(set.intersection(*(set(values) for values in own))) if own else []
    return np.array([float(np.mean([values[block] for values in own])) for block in shared], dtype=np.float64)

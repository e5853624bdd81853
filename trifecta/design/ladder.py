"""A ladder: the conditions of a published claim, exchanged one thing at a time for those that are sound.

The lowest rung has the conditions as published, the highest those of today. Each step between them exchanges levels of
factors, or the metric by which a trial is read. A ladder is a file of ``trifecta/studies/ladders``; its measurement is
a study whose cells are its rungs (``cells``).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trifecta.design import metrics, plan
from trifecta.design.document import Document, Section, did_you_mean, parse_text
from trifecta.design.factors import KNOWN_FACTORS, parse_level
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES, Study
from trifecta.design.overrides import apply_overrides
from trifecta.design.quantity import QuantityError, parse_count
from trifecta.design.resolve import Surroundings, resolve
from trifecta.design.yaml_text import parse_document

LADDER_FIELDS = ("ladder", "title", "claim", "arm", "to", "published", "lacks", "study", "rounds", "quick", "steps")
STEP_FIELDS = ("step", "title", "exchange", "metric", "threat", "checks", "source", "why")
LEAST_ROUNDS, MOST_ROUNDS = 2, 1_000
_STUDY_OWN = {
    "study": "it is the ladder's name",
    "compare": "a ladder compares protocols",
    "baseline": "it is 'to' of the ladder",
    "blocks": "use 'rounds' of the ladder",
    "cells": "they are the rungs",
    "budget": "a ladder has a number of rounds",
    "capture": "capturing costs time",
}


@dataclass(frozen=True)
class Exchange:
    """One level of a factor for another, as they stand in a cell's key."""

    factor: str
    before: str
    after: str


@dataclass(frozen=True)
class Step:
    """What is exchanged between two rungs, and what the study says of it.

    ``source`` is where the study has the published condition; ``why`` says in one sentence what the exchange takes
    away. ``checks``: those that see the published condition in a trial, which counts all the same here.
    """

    id: str
    title: str
    exchanges: tuple[Exchange, ...]
    metric: tuple[str, str] | None
    source: str
    why: str
    threat: str = ""
    checks: tuple[str, ...] = ()

    @property
    def factors(self) -> frozenset[str]:
        """What it exchanges."""
        return frozenset(one.factor for one in self.exchanges) | (frozenset({"metric"}) if self.metric else frozenset())


@dataclass(frozen=True)
class Rung:
    """The levels of all factors that any step exchanges, and the metric by which trials are read."""

    levels: tuple[tuple[str, str], ...]
    metric: str

    @property
    def cell(self) -> str:
        """As ``cells`` of a study has it; empty where no step exchanges a level."""
        return ",".join(f"{name}={level}" for name, level in self.levels)


@dataclass(frozen=True)
class Ladder:
    """A ladder as its file has it. ``claim`` is a statement of ``trifecta/studies/published``."""

    id: str
    title: str
    claim: str
    arm: str
    to: str
    metric: str
    published: str
    lacks: tuple[str, ...]
    steps: tuple[Step, ...]
    bottom: tuple[tuple[str, str], ...]
    quick_rounds: int
    full_rounds: int
    quick: tuple[str, ...]
    file: str
    tree: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> str:
        """The published study."""
        return self.claim.partition(".")[0]

    def ahead(self, rung: Rung) -> list[Step]:
        """The steps whose published condition a rung still has."""

        def made(one: Exchange) -> bool:
            order = self._order(one.factor)
            return order.index(dict(rung.levels)[one.factor]) >= order.index(one.after)

        return [step for step in self.steps if not all(made(one) for one in step.exchanges)]

    def rungs(self) -> list[Rung]:
        """From the published conditions to today's: one more than steps."""
        return self._climb(self.steps)

    def _climb(self, steps: Sequence[Step]) -> list[Rung]:
        levels, metric = dict(self.bottom), self.metric
        made = [Rung(tuple(levels.items()), metric)]
        for step in steps:
            levels |= {one.factor: one.after for one in step.exchanges}
            metric = metric if step.metric is None else step.metric[1]
            made.append(Rung(tuple(levels.items()), metric))
        return made

    def other_order(self, first: int, second: int) -> tuple[Rung, Rung] | None:
        """Two rungs for steps ``first`` < ``second`` the other way round: with only the second of them exchanged at
        the place of the first, and all up to the second but the first. None where one needs the other.
        """
        between = self.steps[first + 1 : second + 1]
        if any(self.steps[first].factors & one.factors for one in between) or any(
            self.steps[second].factors & one.factors for one in self.steps[first:second]
        ):
            return None
        below = self.steps[:first]
        return (
            self._climb([*below, self.steps[second]])[-1],
            self._climb([*below, *between])[-1],
        )

    def measured_by(
        self,
        rungs: Sequence[Rung],
        *,
        rounds: int,
        seed: int,
        overrides: Sequence[str] = (),
        surroundings: Surroundings | None = None,
        name: str = "",
    ) -> Study:
        """The study whose cells are these rungs, in their order, each once. UserError for a fault of the file."""
        document = Document(copy.deepcopy(dict(self.tree)), self.file, dict(self.lines))
        tree = document.tree
        apply_overrides(document, overrides)
        factors: dict[str, Any] = tree["factors"]
        for factor, _ in self.bottom:
            used = {dict(rung.levels)[factor] for rung in rungs}
            factors[factor] = sorted(used, key=self._order(factor).index)
        factors[PROTOCOL_FACTOR] = [PROTOCOL_NAMES[arm] for arm in PROTOCOL_NAMES if arm in (self.arm, self.to)]
        tree["study"] = name or self.id
        tree["title"] = self.title
        tree["baseline"] = PROTOCOL_NAMES[self.to]
        tree["cells"] = cells_of(rungs) if self.bottom else None
        # The ends are run twice a round (analysis/ladder_planner.py).
        tree["blocks"] = {"at_least": str(rounds), "at_most": str(rounds)}
        tree["seed"] = str(seed)
        tree.setdefault("conformance", "off")
        tree["give_up"] = "false"
        return resolve(document, surroundings)

    def _order(self, factor: str) -> list[str]:
        first = dict(self.bottom)[factor]
        after = (one.after for step in self.steps for one in step.exchanges if one.factor == factor)
        return list(dict.fromkeys([first, *after]))


def cells_of(rungs: Sequence[Rung]) -> list[str]:
    """The cells of rungs, each once: rungs that differ in their metric alone have one."""
    return list(dict.fromkeys(rung.cell for rung in rungs))


def parse_ladder(text: str, file: str) -> Ladder:
    """The ladder in a file; UserError with one line ``file:line: field: what; remedy`` for its first fault."""
    document = parse_document(text, file)
    root = document.root()
    root.allow(*LADDER_FIELDS)
    for name in ("ladder", "title", "claim", "arm", "to", "study", "steps", "rounds"):
        if name not in root:
            raise root.error(name, "is missing; every ladder has it")
    arm, to = (root.parse(name, _parse_protocol, "") for name in ("arm", "to"))
    if arm == to:
        raise root.error("to", "is the arm itself; name the protocol that it is compared with")
    inner = _inner(root)
    metric = _metric(inner, "metric") if "metric" in inner else "latency_p50_ns"
    bottom, steps = _steps(root, inner, metric)
    rounds = root.section("rounds")
    rounds.allow("quick", "full")
    tree = {name: value for name, value in inner.mapping.items() if name != "metric"}
    made = Ladder(
        id=root.parse("ladder", parse_text, ""),
        title=root.parse("title", parse_text, ""),
        claim=root.parse("claim", parse_text, ""),
        arm=arm,
        to=to,
        metric=metric,
        published=root.parse("published", parse_text, ""),
        lacks=tuple(_texts(root, "lacks")),
        steps=steps,
        bottom=bottom,
        quick_rounds=rounds.parse("quick", _parse_rounds, 6),
        full_rounds=rounds.parse("full", _parse_rounds, 20),
        quick=tuple(_texts(root, "quick")),
        file=file,
        tree=tree,
        lines={place[1:]: line for place, line in document.lines.items() if place[0:1] == ("study",)},
    )
    for overrides in ((), made.quick):  # so that what is wrong with the study is said when the ladder is read
        made.measured_by(made.rungs(), rounds=made.full_rounds, seed=1, overrides=overrides)
    return made


def _inner(root: Section) -> Section:
    inner = root.section("study")
    for name, remedy in _STUDY_OWN.items():
        if name in inner:
            raise inner.error(name, f"is not for the study of a ladder: {remedy}; remove it")
    factors = inner.section("factors")
    if PROTOCOL_FACTOR in factors:
        raise factors.error(PROTOCOL_FACTOR, "is 'arm' and 'to' of the ladder; remove it")
    for name in factors.mapping:
        if len(factors.items(name)) != 1:
            raise factors.error(name, "has several levels; the published conditions have one, steps exchange it")
    return inner


def _steps(root: Section, inner: Section, metric: str) -> tuple[tuple[tuple[str, str], ...], tuple[Step, ...]]:
    """The published levels of what steps exchange, and the steps; each begins where the one before it ended."""
    listed = root.mapping.get("steps")
    if not isinstance(listed, list) or not listed:
        raise root.error("steps", "has no step; list one or more")
    now: dict[str, str] = {}
    bottom: dict[str, str] = {}
    made: list[Step] = []
    for number, item in enumerate(listed):
        place = ("steps", number)
        if not isinstance(item, dict):
            raise root.document.error(place, "is not a mapping; write 'step: NAME' and its fields")
        step = _step(Section(root.document, place, item), inner.section("factors"), now, metric)
        if any(one.id == step.id for one in made):
            raise root.document.error((*place, "step"), f"{step.id!r} is the name of two steps; give each its own")
        for one in step.exchanges:
            bottom.setdefault(one.factor, one.before)
            now[one.factor] = one.after
        metric = metric if step.metric is None else step.metric[1]
        made.append(step)
    return tuple(bottom.items()), tuple(made)


def _step(step: Section, factors: Section, now: Mapping[str, str], metric: str) -> Step:
    """One step; ``now`` has the levels that the steps before it have changed, ``metric`` the one in force."""
    step.allow(*STEP_FIELDS)
    for name in ("step", "title", "source", "why"):
        if name not in step:
            raise step.error(name, "is missing; every step has it")
    exchanges = []
    section = step.section("exchange")
    for factor in section.mapping:
        before, after = _exchange(section, factor)
        if factor not in factors:
            raise section.error(factor, "has no level under 'study.factors'; write the published one there")
        (_, level), *_ = factors.items(factor)
        current = now.get(factor) or _level(factors, factor, level)
        if before != current:
            raise section.error(factor, f"begins with {before}, but is {current} there; mend one of them")
        exchanges.append(Exchange(factor, before, after))
    read_as = _pair(step, "metric", _known_metric) if "metric" in step else None
    if read_as is not None and read_as[0] != metric:
        raise step.error("metric", f"begins with {read_as[0]}, but is {metric} there; mend one of them")
    if not exchanges and read_as is None:
        raise step.error("exchange", "is missing; a step exchanges levels of factors, or the metric")
    return Step(
        id=step.parse("step", parse_text, ""),
        title=step.parse("title", parse_text, ""),
        exchanges=tuple(exchanges),
        metric=read_as,
        source=step.parse("source", parse_text, ""),
        why=step.parse("why", parse_text, ""),
        threat=step.parse("threat", parse_text, ""),
        checks=tuple(_texts(step, "checks")),
    )


def _exchange(section: Section, factor: str) -> tuple[str, str]:
    if factor not in KNOWN_FACTORS or factor == PROTOCOL_FACTOR:
        raise section.error(factor, f"is no factor that a step can exchange; {did_you_mean(factor, KNOWN_FACTORS)}")
    return _pair(section, factor, lambda value: plan.level_text(parse_level(factor, value)))


def _pair(section: Section, name: str, parse: Any) -> tuple[str, str]:
    items = section.items(name)
    if len(items) != 2:
        raise section.error(name, "is not [FROM, TO]; write the two levels")
    before, after = (str(section.parse_value(place, item, parse)) for place, item in items)
    if before == after:
        raise section.error(name, f"exchanges {before} for itself; write two levels")
    return before, after


def _level(section: Section, factor: str, value: Any) -> str:
    return plan.level_text(section.parse_value((*section.place, factor), value, lambda one: parse_level(factor, one)))


def _metric(section: Section, name: str) -> str:
    return section.parse(name, _known_metric, "")


def _known_metric(value: Any) -> str:
    """The column of a metric; of a time with or without its unit."""
    text = parse_text(value)
    found = metrics.find(text) or metrics.find(f"{text}_ns")
    if found is None:
        raise QuantityError(f"{text!r} is not a metric; see docs/metrics.md")
    return found.name


def _parse_protocol(value: Any) -> str:
    return str(parse_level(PROTOCOL_FACTOR, value))


def _parse_rounds(value: Any) -> int:
    rounds = parse_count(value)
    if not LEAST_ROUNDS <= rounds <= MOST_ROUNDS:
        raise QuantityError(f"{value!r} is not a number of rounds; give {LEAST_ROUNDS} to {MOST_ROUNDS}")
    return rounds


def _texts(section: Section, name: str) -> list[str]:
    return [section.parse_value(place, item, parse_text) for place, item in section.items(name)]


def pairs_of(ladder: Ladder) -> list[tuple[int, int]]:
    """The pairs of steps that can be in either order."""
    every = itertools.combinations(range(len(ladder.steps)), 2)
    return [pair for pair in every if ladder.other_order(*pair) is not None]


def ranked(sizes: Sequence[float | None], possible: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """These pairs of steps by their effects' magnitude, those of the largest two first; without those of no effect."""
    known = {pair: [abs(size) for one in pair if (size := sizes[one]) is not None] for pair in possible}
    whole = {pair: sum(both) for pair, both in known.items() if len(both) == 2}
    return sorted(whole, key=lambda pair: -whole[pair])

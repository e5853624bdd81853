"""The file of a ladder, read and checked: its study, and steps each of which begins where the one before it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trifecta.design import metrics, plan
from trifecta.design.document import Section, did_you_mean, parse_text
from trifecta.design.factors import KNOWN_FACTORS, parse_level
from trifecta.design.ladder import Exchange, Ladder, Step
from trifecta.design.model import PROTOCOL_FACTOR
from trifecta.design.quantity import QuantityError, parse_count
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
    ladder = Ladder(
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
    for overrides in ((), ladder.quick):  # so that what is wrong with the study is said when the ladder is read
        ladder.measured_by(ladder.rungs(), rounds=ladder.full_rounds, seed=1, overrides=overrides)
    return ladder


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
    steps: list[Step] = []
    for number, item in enumerate(listed):
        place = ("steps", number)
        if not isinstance(item, dict):
            raise root.document.error(place, "is not a mapping; write 'step: NAME' and its fields")
        step = _step(Section(root.document, place, item), inner.section("factors"), now, metric)
        if any(one.id == step.id for one in steps):
            raise root.document.error((*place, "step"), f"{step.id!r} is the name of two steps; give each its own")
        for one in step.exchanges:
            bottom.setdefault(one.factor, one.before)
            now[one.factor] = one.after
        metric = metric if step.metric is None else step.metric[1]
        steps.append(step)
    return tuple(bottom.items()), tuple(steps)


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
            raise section.error(factor, f"begins with {before}, but is {current} there; correct one of them")
        exchanges.append(Exchange(factor, before, after))
    read_as = _pair(step, "metric", _known_metric) if "metric" in step else None
    if read_as is not None and read_as[0] != metric:
        raise step.error("metric", f"begins with {read_as[0]}, but is {metric} there; correct one of them")
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


def _pair(section: Section, name: str, parse: Callable[[Any], str]) -> tuple[str, str]:
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
    metric = metrics.find(text) or metrics.find(f"{text}_ns")
    if metric is None:
        raise QuantityError(f"{text!r} is not a metric; see docs/metrics.md")
    return metric.name


def _parse_protocol(value: Any) -> str:
    return str(parse_level(PROTOCOL_FACTOR, value))


def _parse_rounds(value: Any) -> int:
    rounds = parse_count(value)
    if not LEAST_ROUNDS <= rounds <= MOST_ROUNDS:
        raise QuantityError(f"{value!r} is not a number of rounds; give {LEAST_ROUNDS} to {MOST_ROUNDS}")
    return rounds


def _texts(section: Section, name: str) -> list[str]:
    return [section.parse_value(place, item, parse_text) for place, item in section.items(name)]

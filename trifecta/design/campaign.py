"""A campaign: studies that are put together from parts and run one after the other.

Its file has fields ``common`` to every study, ``suites`` and ``scenarios`` that each add theirs, and two depths,
``full`` and ``quick``. Each pair of a scenario and a suite is a study, named ``SCENARIO-SUITE``. A scenario that runs
in several places can have a label for each. A depth may name the ``studies`` that it runs, of all of them.

``with_budget`` has layers over ``quick`` for when there is time for more: what minutes leave out of what is claimed.

A campaign that repeats a published study may have ``as_published``: layers as of a depth, over all others, that put the
study's own programs and conditions in the place of today's, with a ``quick`` and a ``full`` of its own, a
``description`` where today's is not true of it, and ``tolerate``, the checks that see such a condition at work and
exclude nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trifecta.contract.values import Level
from trifecta.design.document import Document, Section, did_you_mean, parse_text
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.overrides import apply_overrides, unused
from trifecta.design.resolve import resolve
from trifecta.design.yaml_text import parse_document

Depth = Literal["full", "quick"]
DEPTHS: tuple[Depth, ...] = ("full", "quick")
AS_PUBLISHED = "as_published"
WITH_BUDGET = "with_budget"
_PARTS = ("common", "tests", "suites", "scenarios", *DEPTHS, WITH_BUDGET, AS_PUBLISHED)
_FIELDS = ("campaign", "title", "description", *_PARTS)


@dataclass(frozen=True)
class Campaign:
    """Studies by name, in the order in which they run."""

    name: str
    title: str
    description: str
    depth: Depth
    studies: dict[str, Study]
    suites: dict[str, str]
    """Study -> its suite."""
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Study -> the names of its halves by place."""
    tests: dict[str, str] = field(default_factory=dict)
    """Suite -> the factor whose levels number its tests."""
    as_published: bool = False
    """Whether it is under the conditions of the study that it repeats."""
    tolerate: frozenset[str] = frozenset()
    """The checks that see one of these conditions at work: they exclude no trial."""

    def label(self, study: str, levels: Mapping[str, Level]) -> str:
        """The name of the scenario that a cell belongs to."""
        return self.labels[study].get(str(levels.get("place", "")), study.rpartition("-")[0])

    def test_names(self, study: str, levels: Mapping[str, Level]) -> str:
        """The tests of a cell, as the suite numbers them: ``A4-A6``; empty where it does not."""
        suite = self.suites[study]
        factor = self.tests.get(suite, "")
        known = self.studies[study].factors.get(factor, ())
        if levels.get(factor) not in known:
            return ""
        compared = self.studies[study]
        arms = len(compared.factors[compared.compare])
        first = list(known).index(levels[factor]) * arms + 1
        return f"{suite}{first}-{suite}{first + arms - 1}"


def is_campaign(text: str) -> bool:
    """Whether a file is that of a campaign, by its first field."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return next(lines, "").startswith("campaign:")


def parse_campaign(
    text: str,
    file: str,
    depth: Depth,
    *,
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    change: Callable[[Document], None] | None = None,
    as_published: bool = False,
    with_budget: bool = False,
) -> Campaign:
    """The campaign in ``text``; ``change`` and ``overrides`` are made to every study of it, ``only`` names those to
    run, with ``as_published`` under the conditions of the study that it repeats, ``with_budget`` with what the depth
    leaves out of what is claimed.

    A name in ``only`` is a study, a scenario or a suite. Raises UserError with one line.
    """
    root = parse_document(text, file).root()
    root.allow(*_FIELDS)
    suites, scenarios = root.section("suites"), root.section("scenarios")
    if not suites.mapping or not scenarios.mapping:
        raise root.error(None, "a campaign has 'suites' and 'scenarios', one of each at least")
    studies: dict[str, Study] = {}
    suite_of: dict[str, str] = {}
    idle: list[dict[str, str]] = []
    named = [(f"{scenario}-{suite}", scenario, suite) for scenario in scenarios.mapping for suite in suites.mapping]
    labels = {scenario: _labels(scenarios.section(scenario)) for scenario in scenarios.mapping}
    names = [name for name, _, _ in named]
    conditions = [_conditions(root)] if as_published else []
    more = [root.section(WITH_BUDGET)] if with_budget and depth == "quick" else []
    depths = [root.section(depth), *more, *conditions, *(one.section(depth) for one in conditions)]
    wanted = _chosen_parts(only, named, labels, _at_depth(depths, names))
    for name, scenario, suite in named:
        if name not in wanted:
            continue
        parts = _parts(root, depth, scenario, suite)
        for one in more:
            parts += _layers(root, one, scenario, suite)
        for one in conditions:
            parts += _published_parts(root, one, depth, scenario, suite)
        tree = _merged(*parts)
        document = Document(tree={"study": name, **tree}, name=f"{file} ({name})")
        places = [f"factors.place=[{', '.join(wanted[name])}]"] if wanted[name] else []
        apply_overrides(document, places, f"--only {', '.join(only)}")
        apply_overrides(document, overrides)
        if change is not None:
            change(document)
        studies[name] = resolve(document)
        idle.append(unused(document))
        suite_of[name] = suite
    for option, message in (idle[0] if idle else {}).items():
        if all(option in others for others in idle):  # what one of the studies has a use for is taken
            raise UserError(message)
    return Campaign(
        name=root.parse("campaign", parse_text, ""),
        title=root.parse("title", parse_text, ""),
        description=_description(root, *conditions),
        depth=depth,
        studies=studies,
        suites=suite_of,
        labels={name: labels[scenario] for name, scenario, _ in named},
        tests={suite: str(factor) for suite, factor in root.section("tests").mapping.items()},
        as_published=as_published,
        tolerate=frozenset(check for one in conditions for check in _tolerated(one)),
    )


def _labels(scenario: Section) -> dict[str, str]:
    return {str(place): str(name) for place, name in scenario.section("labels").mapping.items()}


def _conditions(root: Section) -> Section:
    """The conditions of the study that the campaign repeats; UserError where it has none."""
    if AS_PUBLISHED not in root.mapping:
        raise root.error(AS_PUBLISHED, "this campaign has no published conditions; run it as it is today")
    return root.section(AS_PUBLISHED)


def _description(*sections: Section) -> str:
    """That of the last section that has one."""
    return next((text for one in reversed(sections) if (text := one.parse("description", parse_text, "").strip())), "")


def _tolerated(conditions: Section) -> frozenset[str]:
    tolerated = conditions.mapping.get("tolerate", [])
    if not isinstance(tolerated, list):
        raise conditions.error("tolerate", "give a list of checks, such as [protocol]")
    return frozenset(str(check) for check in tolerated)


def _at_depth(depths: Sequence[Section], names: Sequence[str]) -> list[str]:
    """The studies of a depth: those that it names, the last of several, else all."""
    study_names: object = list(names)
    for section in depths:
        study_names = section.mapping.get("studies", study_names)
        for name in study_names if isinstance(study_names, list) else [study_names]:
            if name not in names:
                raise section.error("studies", f"no such study {name!r}; {did_you_mean(str(name), names)}")
    return [name for name in names if name in (study_names if isinstance(study_names, list) else [study_names])]


def _chosen_parts(
    only: Sequence[str],
    named: Sequence[tuple[str, str, str]],
    labels: Mapping[str, Mapping[str, str]],
    usual: Sequence[str],
) -> dict[str, list[str]]:
    """The studies that ``only`` selects, each with the places that it narrows them to; no place: all of them."""
    if not only:
        return {name: [] for name in usual}
    wanted: dict[str, list[str]] = {}
    known = dict.fromkeys(word for name, scenario, suite in named for word in (name, scenario, suite))
    by_label = {label: (scenario, place) for scenario, by in labels.items() for place, label in by.items()}
    for word in only:
        if word in known:
            wanted |= {name: [] for name, scenario, suite in named if word in (name, scenario, suite)}
        elif word.rpartition("-")[0] in by_label or word in by_label:
            label, suite_asked = (word, None) if word in by_label else word.rsplit("-", 1)
            scenario_asked, place = by_label[label]
            for name, scenario, suite in named:
                if scenario == scenario_asked and suite_asked in (None, suite):
                    wanted.setdefault(name, []).append(place)
        else:
            choices = [*known, *by_label]
            raise UserError(f"option --only {word}: no such study, scenario or suite; {did_you_mean(word, choices)}")
    return wanted


def _parts(root: Section, depth: Depth, scenario: str, suite: str) -> list[Mapping[str, Any]]:
    """What makes up one study, the later parts over the earlier."""
    own = root.section("scenarios").section(scenario)
    suites = root.section("suites").mapping
    return [
        root.section("common").mapping,
        root.section("suites").section(suite).mapping,
        {key: value for key, value in own.mapping.items() if key != "labels" and key not in suites},
        own.section(suite).mapping,
        *_layers(root, root.section(depth), scenario, suite),
    ]


def _published_parts(
    root: Section, conditions: Section, depth: Depth, scenario: str, suite: str
) -> list[Mapping[str, Any]]:
    """What the published conditions put over one study: at every depth, then at this one."""
    return [
        *_layers(root, conditions, scenario, suite, "description", "tolerate", *DEPTHS),
        *_layers(root, conditions.section(depth), scenario, suite),
    ]


def _layers(root: Section, over: Section, scenario: str, suite: str, *more: str) -> list[Mapping[str, Any]]:
    """The fields that a depth, or the published conditions, puts over one study; it may have ``more`` fields."""
    suites = root.section("suites").mapping
    over.allow("common", "scenarios", "studies", *suites, *more)
    over.section("scenarios").allow(*root.section("scenarios").mapping)
    own = over.section("scenarios").section(scenario)
    return [
        over.section("common").mapping,
        over.section(suite).mapping,
        {key: value for key, value in own.mapping.items() if key not in suites},
        own.section(suite).mapping,
    ]


def _merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merged field by field; any other value of a later part takes the place of the earlier."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            before = merged.get(key)
            merged[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged

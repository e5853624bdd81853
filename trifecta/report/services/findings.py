"""What holds across the cells of a run of services, in words, gathered from the derived views and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from trifecta.analysis.scaling import Axis, verdict_changes
from trifecta.conclude import queries
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.services import catalogue
from trifecta.conclude.services.derive import Services
from trifecta.conclude.services.rows import CombinationRow, ContrastRow, SuccessRow
from trifecta.report.services import words
from trifecta.report.verdict_words import place_words

Answers = Mapping[str, QueryResult]


@dataclass(frozen=True)
class Group:
    """Sentences under a heading."""

    heading: str
    sentences: list[str]
    changes: bool = False  # whether a verdict changes along it: what a reader looks for first


@dataclass(frozen=True)
class Findings:
    """What holds across cells, in words."""

    success: list[str]
    turning: list[str]
    along: list[Group]
    paths: list[Group]
    containers: list[str]
    mixed: list[Group]
    reordering: list[Group]

    def briefly(self) -> list[str]:
        """The same for a terminal: sentences, of the many places those where something changes."""
        changing = [f"{group.heading}: {' '.join(group.sentences)}" for group in self.along if group.changes]
        mixed = [f"{group.heading}: {' '.join(group.sentences)}" for group in self.mixed]
        causes = [sentence for group in self.reordering for sentence in group.sentences[1:]]
        along = [sentence for sentence in self.turning if sentence.startswith("Along")]
        return [*self.success[:1], *along, *changing, *self.containers, *mixed, *causes]


def findings(about: RunFacts, derived: Services, comparisons: Sequence[Comparison], answers: Answers) -> Findings:
    """All sentences, from the answers to the queries of the derived views."""
    contrasts, alpha = answers[catalogue.CONTRASTS.name], 1 - about.confidence
    more_is_better = "" if about.lower_is_better else about.metric_label
    metrics = metrics_of(about, contrasts)
    return Findings(
        success=words.success(answers[catalogue.SUCCESS.name].of(SuccessRow), derived.differences, alpha),
        turning=_turning_sentences(about, derived, comparisons),
        along=_along(about, derived, comparisons),
        paths=_along_paths(about, comparisons),
        containers=[
            sentence
            for level in dict.fromkeys(row["level"] for row in contrasts.where(factor="place"))
            for sentence in words.container(
                contrasts.of(ContrastRow, factor="place", level=level), level, metrics, more_is_better
            )
        ],
        mixed=_mixed(about, answers[catalogue.COMBINATIONS.name], alpha),
        reordering=_reordering(derived, contrasts, more_is_better),
    )


def brief(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Services, comparisons: Sequence[Comparison]
) -> list[str]:
    """The sentences for a terminal; the derived views must be attached."""
    needed = (catalogue.CONTRASTS, catalogue.SUCCESS, catalogue.COMBINATIONS)
    return findings(
        about, derived, comparisons, {query.name: queries.ask(connection, query) for query in needed}
    ).briefly()


def metrics_of(about: RunFacts, contrasts: QueryResult) -> list[str]:
    """What containers are compared by, the study's metric first."""
    metrics = dict.fromkeys(row["metric"] for row in contrasts.where(factor="place"))
    return sorted(metrics, key=lambda metric: metric != about.metric_label)


def place_of(cell: str) -> str:
    """A cell or a place in words."""
    return "everywhere" if cell in ("", "server=services") else place_words(cell, without="")


def _newest(about: RunFacts) -> list[tuple[str, str]]:
    """The comparisons that the newest protocol is in."""
    return [pair for pair in about.pairs if pair[0] == about.arms[-1]]


def _turning_sentences(about: RunFacts, derived: Services, comparisons: Sequence[Comparison]) -> list[str]:
    """The summary: on how many axes the verdict changes, and from path to path."""
    kinds = {(one.cell, one.arm, one.reference): one.kind for one in comparisons}
    by_factor: dict[str, list[Axis]] = {}
    for axis in derived.axes:
        by_factor.setdefault(axis.factor, []).append(axis)
    sentences = []
    for pair in _newest(about):
        by_path: dict[str, list[str]] = {}
        for one in comparisons:
            if (one.arm, one.reference) == pair:
                by_path.setdefault(levels(one.cell).get("path", ""), []).append(one.kind)
        sentences.append(words.everywhere(pair, by_path, about.of))
        for factor, axes in by_factor.items():
            along = [[kinds.get((step.cell, *pair), "undecided") for step in axis.steps] for axis in axes]
            sentences.append(words.turning(factor, pair, along))
    return [sentence for sentence in sentences if sentence]


def _along(about: RunFacts, derived: Services, comparisons: Sequence[Comparison]) -> list[Group]:
    groups = []
    kinds = {(one.cell, one.arm, one.reference): one.kind for one in comparisons}
    for axis in derived.axes:
        sentences = [words.along(axis, pair, comparisons) for pair in _newest(about)]
        heading = f"{words.FACTORS.get(axis.factor, axis.factor)}: {place_of(axis.place)}"
        changes = any(
            verdict_changes([kinds.get((step.cell, *pair), "undecided") for step in axis.steps])
            for pair in _newest(about)
        )
        groups.append(Group(heading, [sentence for sentence in sentences if sentence], changes))
    return [group for group in groups if group.sentences]


def _along_paths(about: RunFacts, comparisons: Sequence[Comparison]) -> list[Group]:
    places: dict[str, dict[tuple[str, str], dict[str, Comparison]]] = {}
    for one in comparisons:
        there = levels(one.cell)
        place = one.without("path")
        places.setdefault(place, {}).setdefault((one.arm, one.reference), {})[there.get("path", "")] = one
    groups = []
    for place, pairs in places.items():
        sentences = [words.along_paths(pair, pairs[pair]) for pair in _newest(about) if pair in pairs]
        groups.append(Group(place_of(place), [sentence for sentence in sentences if sentence]))
    return [group for group in groups if group.sentences]


def _mixed(about: RunFacts, answer: QueryResult, alpha: float) -> list[Group]:
    places = dict.fromkeys(row["cell"] for row in answer)
    rows = {place: answer.of(CombinationRow, cell=place) for place in places}
    return [
        Group(place_of(place), words.mixed(rows[place], about.baseline, alpha, about.metric_label)) for place in places
    ]


def _reordering(derived: Services, contrasts: QueryResult, more_is_better: str) -> list[Group]:
    other = dict(derived.variants)
    groups = []
    for path in derived.reordering:
        if any(there.get("path") == path for there in derived.measured.cells.values()):
            rows = contrasts.of(ContrastRow, factor="path", level=path)
            groups.append(Group(path, words.reordering(path, other.get(path), rows, more_is_better)))
    return groups

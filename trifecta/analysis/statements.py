"""What a study published, as statements that runs can test: its claims, and its figures by ratio, order or shape.

A statement says where it holds (``where``: a kind of workload and levels; what the study's own ``where`` has holds for
all of its statements), what (``says``), and where that stands: ``source`` is the section, ``quote`` the study's words.

* ``{metric, arm, to, is: above|below|same}``: an arm against others, within each cell. Several in ``to``: against each.
* ``is: about``: an arm against others, to the side of the ``published`` ratio.
* with ``at`` and ``against`` (levels): the same metric in two cells that differ in these; without ``to`` of the arms
  themselves (several: their mean), with it of their ratio.
* with ``along`` (a factor): at its largest level against its smallest.
* without any of these: the arms themselves against 1, each by itself.
* with ``over`` the metric is taken by another of the same trial: ``{metric: cpu_share[B], over: cpu_share[A], ...}``.
* ``{metric, arm, is: whole}``: a rate that is 100 %.

``published`` is the ratio (or difference) that the study gives, or the two that it lies between; with it the size is
judged beside the direction (`judging`). ``by: difference`` compares what can be zero, or what was said of a difference.
``here`` says what is not as the study had it. Absolute values of another machine are never compared: such a figure has
``not_compared`` with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, TypedDict, cast

from trifecta.design.metrics import BY_DIFFERENCE, MARGINS, of_all

Is = Literal["above", "below", "same", "about", "whole"]
Kind = Literal["claim", "figure"]
ABOUT = 1.25
"""A ratio that is as large as another is within this factor of it: 'about half' is 0.4 to 0.625."""
Level = str | int | float | bool
Levels = Mapping[str, Level | list[Level] | Mapping[str, list[Level]]]
"""By kind of workload, field or factor its level, several, or several of which the first that was run counts."""
NOT_COUNTS = "how many there are is a matter of the page and of the browser's version"

SaysDocument = TypedDict(
    "SaysDocument",
    {
        "metric": str,
        "over": str,
        "arm": str | list[str],
        "to": str | list[str],
        "is": Is,
        "by": str,
        "at": Mapping[str, Level],
        "against": Mapping[str, Level],
        "along": str,
        "margin": float,
    },
    total=False,
)
"""How a claim or a figure is compared, as a file of ``trifecta/studies/published`` has it."""


class WrittenDocument(TypedDict, total=False):
    """A claim or a figure in such a file."""

    id: str
    text: str
    source: str
    where: Levels
    says: SaysDocument
    published: float | list[float]
    said: str
    not_compared: str
    threats: list[str]
    quote: str
    here: str
    as_published: Levels
    """Levels of ``where`` that it has under the study's own conditions."""


class NumberDocument(TypedDict, total=False):
    """A row of a table in such a file; ``h1``, ``h2`` and ``h3`` are the numbers that the study gives."""

    metric: str
    label: str
    unit: str
    h1: float
    h2: float
    h3: float
    artefact: str
    not_compared: str
    here: str


class _TableDocument(TypedDict):
    subject: str
    id: str
    where: Levels
    metrics: list[NumberDocument]


class TableDocument(_TableDocument, total=False):
    """A table in such a file."""

    source: str
    quote: str
    here: str


class ConditionsDocument(TypedDict, total=False):
    """What of such a file is otherwise under the study's own conditions: levels of ``where``, and ``here``.

    ``instead``: by name and level of a statement's own ``where`` the level that it has then.
    """

    where: Levels
    instead: Mapping[str, Mapping[str, str]]
    here: str


class PublishedDocument(TypedDict, total=False):
    """A file of ``trifecta/studies/published``."""

    id: str
    title: str
    year: int
    stack: str
    facts: str
    here: str
    baseline: str
    where: Levels
    as_published: ConditionsDocument
    threats: Mapping[str, str]
    claims: list[WrittenDocument]
    figures: list[WrittenDocument]
    numbers: list[TableDocument]
    authors: str
    doi: str
    url: str


@dataclass(frozen=True)
class Assertion:
    """What is said, as the module's head has it."""

    metric: str
    arms: tuple[str, ...]
    to: tuple[str, ...] = ()
    relation: Is = "above"
    at: Mapping[str, str] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)
    along: str = ""
    by_difference: bool = False
    size: tuple[float, float] | None = None
    """Between which ratios (differences) the published one lies; twice the same where it is one; None: none given."""
    margin: float | None = None
    over: str = ""
    """A metric of the same trial by which ``metric`` is taken: divided by it, or less it."""

    @property
    def sides(self) -> tuple[str, ...]:
        """What is decided one by one: the references; of several arms that are held against 1 these."""
        if self.to:
            return self.to
        return self.arms if len(self.arms) > 1 and not self.between_cells else ("",)

    @property
    def between_cells(self) -> bool:
        """Whether it takes two cells."""
        return bool(self.at or self.along)

    @property
    def direction(self) -> Is:
        """The relation; of ``about`` the side of the published ratio."""
        if self.relation != "about" or self.size is None:
            return self.relation
        return "above" if self.size[0] > 1 else "below"


@dataclass(frozen=True)
class Statement:
    """A claim or a figure. ``published`` is a ratio (or a difference) where the study gives one, ``said`` its words.

    ``quote`` is what stands in the study at ``source``; ``here`` what is not as the study had it.
    """

    id: str
    study: str
    kind: Kind
    text: str
    source: str
    where: Levels
    says: Assertion | None
    published: float | None = None
    said: str = ""
    not_compared: str = ""
    threats: tuple[str, ...] = ()
    quote: str = ""
    here: str = ""

    @property
    def defined(self) -> str:
        """What tells it from another of the same id: of which cells it says what. Words and sources may change."""
        assertion_data = None if self.says is None else asdict(self.says)
        if assertion_data is not None and not assertion_data["over"]:
            del assertion_data["over"]  # so that what was kept before there was one is still of the same statement
        definition = json.dumps([self.where, assertion_data, bool(self.not_compared)], sort_keys=True, default=str)
        return hashlib.sha256(definition.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Published:
    """One study: what it was, what made its results doubtful, and what it said."""

    id: str
    title: str
    year: int
    stack: str
    facts: str
    threats: Mapping[str, str]
    statements: tuple[Statement, ...]
    document: PublishedDocument
    here: str = ""
    """What of its set-up is not here: programs that others stand in for."""
    where: Levels = field(default_factory=dict)
    """What holds for all of its statements."""

    @property
    def claims(self) -> list[Statement]:
        """The sentences a reader takes home."""
        return [one for one in self.statements if one.kind == "claim"]


def parse(document: PublishedDocument, *, as_published: bool = False) -> Published:
    """Read a file of ``trifecta/studies/published``; ValueError names what is wrong with it.

    ``as_published``: its statements are put to the study's own conditions, not to today's.
    """
    study = str(document["id"])
    conditions: ConditionsDocument = document.get("as_published", {}) if as_published else {}
    where: Levels = {**(document.get("where") or {}), **(conditions.get("where") or {})}
    written: list[tuple[Kind, WrittenDocument]] = [("claim", one) for one in document.get("claims") or ()]
    written += [("figure", one) for one in document.get("figures") or ()]
    statements = [_statement(study, where, kind, one, as_published=as_published) for kind, one in written]
    for subject in document.get("numbers") or ():
        statements += _numbers(study, where, str(document["baseline"]), subject)
    instead = conditions.get("instead") or {}
    statements = [replace(one, where=_instead(one.where, instead)) for one in statements]
    names = [one.id for one in statements]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"published/{study}.yaml: {', '.join(sorted(twice))} appears twice; give each its own id")
    return Published(
        id=study,
        title=str(document["title"]),
        year=int(document["year"]),
        stack=str(document["stack"]),
        facts=str(document["facts"]),
        threats={str(name): str(fact) for name, fact in (document.get("threats") or {}).items()},
        statements=tuple(statements),
        document=document,
        here=str(conditions.get("here", "") if as_published else document.get("here", "")),
        where=where,
    )


def _instead(where: Levels, instead: Mapping[str, Mapping[str, str]]) -> Levels:
    own = {name: known[str(where[name])] for name, known in instead.items() if str(where.get(name)) in known}
    return {**where, **own}


def _statement(study: str, where: Levels, kind: Kind, document: WrittenDocument, *, as_published: bool) -> Statement:
    """A claim, or a figure that is written out: its words, and how it is compared or why it is not."""
    then: Levels = document.get("as_published", {}) if as_published else {}
    size = _size(document.get("published"))
    return Statement(
        id=f"{study}.{document['id']}",
        study=study,
        kind=kind,
        text=str(document["text"]),
        source=str(document.get("source", "")),
        where={**where, **(document.get("where") or {}), **then},
        says=_assertion(document["says"], size) if "says" in document else None,
        published=_middle(size),
        said=str(document.get("said", "")),
        not_compared=str(document.get("not_compared", "")),
        threats=tuple(document.get("threats") or ()),
        quote=str(document.get("quote", "")),
        here=str(document.get("here", "")),
    )


def _size(published: float | list[float] | None) -> tuple[float, float] | None:
    if published is None:
        return None
    ends = published if isinstance(published, list) else [published, published]
    return float(ends[0]), float(ends[-1])


def _middle(size: tuple[float, float] | None) -> float | None:
    """The published value; of two the one between them by ratio."""
    if size is None or size[0] == size[1]:
        return None if size is None else size[0]
    return math.sqrt(size[0] * size[1])


def _assertion(document: SaysDocument, size: tuple[float, float] | None = None) -> Assertion:
    metric = str(document["metric"])
    relation = document["is"]
    difference = of_all(metric) in BY_DIFFERENCE or document.get("by") == "difference"
    if relation not in ("above", "below", "same", "about", "whole"):
        raise ValueError(f"'is' is {relation!r}; give above, below, same, about or whole")
    if relation == "about" and size is None:
        raise ValueError("'is: about' needs the ratio in 'published'")
    if relation == "whole" and "over" in document:
        raise ValueError("'is: whole' is of a rate by itself; remove 'over'")
    even = 0.0 if difference else 1.0
    if size is not None and relation in ("above", "below", "about"):
        sides = {end > even for end in size} | {end >= even for end in size}
        if len(sides) > 1 or (relation != "about" and sides != {relation == "above"}):
            raise ValueError(f"'published' is {size[0]:g} to {size[1]:g}, which is not all {relation} {even:g}")
    return Assertion(
        metric=metric,
        arms=_names(document["arm"]),
        to=_names(document.get("to")),
        relation=relation,
        at={str(name): str(level) for name, level in (document.get("at") or {}).items()},
        against={str(name): str(level) for name, level in (document.get("against") or {}).items()},
        along=str(document.get("along", "")),
        by_difference=difference,
        size=size if relation in ("above", "below", "about") else None,
        margin=document.get("margin", MARGINS.get(of_all(metric))),
        over=str(document.get("over", "")),
    )


def _names(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else tuple(value) if isinstance(value, list) else (str(value),)


def number_id(study: str, subject: TableDocument, number: NumberDocument, arm: str) -> str:
    """The id of the statement that a number of a table makes."""
    return f"{study}.{subject['id']}.{str(number['metric']).removesuffix('_ns')}-{arm}"


def given(number: NumberDocument, arm: str) -> float | None:
    """What the study gives for a protocol."""
    return cast(Mapping[str, float], number).get(arm)


def _numbers(study: str, where: Levels, base: str, subject: TableDocument) -> list[Statement]:
    """A table of a study: every number of an arm that is not the baseline, as a ratio to the baseline's."""
    statements = []
    for one in subject["metrics"]:
        metric = str(one["metric"])
        for arm in ("h1", "h3"):
            theirs, reference = given(one, arm), given(one, base)
            if theirs is None or reference is None:
                continue
            difference = metric in BY_DIFFERENCE
            value = theirs - reference if difference else theirs / reference
            even = 0.0 if difference else 1.0
            relation: Is = "above" if value > even else "below" if value < even else "same"
            size = None if relation == "same" else (float(value), float(value))
            artefact = one.get("artefact")
            reason = str(one.get("not_compared", ""))
            if artefact:
                reason = f"made by {artefact}: no property of the protocol"
            if metric == "requests":
                reason = reason or NOT_COUNTS
            statements.append(
                Statement(
                    id=number_id(study, subject, one, arm),
                    study=study,
                    kind="figure",
                    text=f"{subject['subject']}: {one.get('label', metric)}",
                    source=str(subject.get("source", "")),
                    where={**where, **subject["where"]},
                    says=Assertion(
                        metric,
                        (arm,),
                        (base,),
                        relation,
                        by_difference=difference,
                        size=size,
                        margin=MARGINS.get(metric),
                    ),
                    published=float(value),
                    not_compared=reason,
                    threats=(str(artefact),) if artefact else (),
                    quote=str(subject.get("quote", "")),
                    here=str(one.get("here", subject.get("here", ""))),
                )
            )
    return statements

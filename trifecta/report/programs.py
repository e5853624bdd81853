"""Is it the protocol or the program? What the report shows of servers and clients, when a study has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from trifecta.analysis.pooled import EVERYWHERE
from trifecta.analysis.programs import Program
from trifecta.analysis.shares import Decomposition
from trifecta.conclude import catalogue, queries
from trifecta.conclude.cells import cells_in_order
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.programs import Derived, derive, part_name
from trifecta.conclude.queries import QueryResult
from trifecta.design import naming, numbers
from trifecta.design.metrics import METRICS
from trifecta.design.phrases import listed
from trifecta.report import claims, tables
from trifecta.report import interactions as apart
from trifecta.report.claims import PARTS, PlaceClaims
from trifecta.report.figure import Figure
from trifecta.report.figures import decomposition as figures
from trifecta.report.figures import style
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table
from trifecta.report.verdict_words import place_words

_MOST_OPEN = 90  # rows of league tables


@dataclass(frozen=True)
class LeaguePlace:
    """The tables of a place, one a protocol."""

    place: str
    tables: list[Table]


@dataclass(frozen=True)
class Content:
    """What the report's section on programs shows."""

    claims: list[str]
    apart: list[str]  # a protocol that is slow behind one server only
    places: list[PlaceClaims]
    words: list[str]
    definition: str
    legend: list[tuple[str, str, str]]  # part, class of its hatching, CSS variable of its colour
    figures: list[Figure]
    effects: Table
    shares: Table
    leagues: list[LeaguePlace]
    open_leagues: bool  # few enough to be shown at once, also on paper
    proxies: str  # empty without any


def draw(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Derived, comparisons: Sequence[Comparison]
) -> Content | None:
    """Everything the section shows; None when the study has one program only. Ask within ``svg.drawing()``."""
    if not derived.standings and not derived.shares:
        return None
    standings = queries.ask(connection, catalogue.LEAGUE)
    return Content(
        claims=claims.claims(comparisons, about.pairs),
        apart=apart.sentences(derived.apart, about.metric),
        places=claims.claims_by_place(comparisons, about.pairs),
        words=claims.shares_in_words(derived.shares),
        definition=claims.definition(about),
        legend=_legend(derived.shares),
        figures=_figures(derived.shares),
        effects=_effects(about, derived, queries.ask(connection, catalogue.EFFECTS)),
        shares=_shares(derived, queries.ask(connection, catalogue.DECOMPOSITION)),
        leagues=_leagues(about, derived, standings),
        open_leagues=len(standings.rows) <= _MOST_OPEN,
        proxies=claims.about_proxies(derived.proxies()),
    )


def _legend(decompositions: Sequence[Decomposition]) -> list[tuple[str, str, str]]:
    there = {share.part for one in decompositions for share in one.shares}
    looks = figures.LOOKS
    return [
        (part_name(part).replace("_", " "), looks[part].texture, style.CSS_VARIABLES[looks[part].colour])
        for part in PARTS
        if part in there
    ]


def _figures(decompositions: Sequence[Decomposition]) -> list[Figure]:
    drawn = [
        Figure(
            f"{style.name(one.arm)} ÷ {style.name(one.reference)}: shares of the variation",
            "All places together, with equal weight. Mark: share. Line: interval, for these programs. The parts "
            "add up to 100 %.",
            figures.intervals(one.shares, claims.parts(), f"dw-{one.arm}"),
        )
        for one in decompositions
        if one.place == EVERYWHERE
    ]
    split = [one for one in decompositions if one.shares and not one.pooled]
    split.sort(key=lambda one: one.arm, reverse=True)  # the newest protocol first, as everywhere
    rows = [figures.Bar(_bar_label(one), one.shares) for one in split]
    if rows:
        drawn.append(
            Figure(
                "The same for every comparison",
                f"Parts from left to right as in the legend. Thin line: interval of the {naming.factor()}'s share. "
                "Where noise fills the bar there is next to no effect to split.",
                figures.bars(rows, "db"),
            )
        )
    return drawn


def _bar_label(decomposition: Decomposition) -> str:
    where = place_words(decomposition.place, without="")
    return (
        f"{style.name(decomposition.arm)} ÷ {style.name(decomposition.reference)}, {where}"
        if where
        else style.name(decomposition.arm)
    )


def _ordered(derived: Derived, answer: QueryResult) -> list[dict[str, Any]]:
    """Rows in the order of the places of the study, and of the parts."""
    places = list(dict.fromkeys((one.place, one.arm) for one in derived.shares))
    parts = [part_name(part) for part in PARTS]

    def position(row: Mapping[str, Any]) -> tuple[int, int]:
        return places.index((row["place"], row["arm"])), parts.index(row["part"]) if "part" in row else 0

    return sorted(answer.rows, key=position)


def _effects(about: RunFacts, derived: Derived, answer: QueryResult) -> Table:
    columns = [
        Column(naming.factor(), "arm", "protocol"),
        Column("ratio", "ratio", "ratio"),
        Column("for another program", "elsewhere_low,elsewhere_high", "interval"),
        Column("programs", "programs", "count"),
        Column("blocks", "blocks", "count"),
        Column("left out", "left_out"),
    ]
    notes = [
        f"ratio: of {about.metric_label} to that of {style.name(about.baseline)}, geometric mean over programs, with "
        "equal weight. for another program: where the ratio of a server and client that were not measured would "
        "be expected, if those measured are a random sample.",
    ]
    return tables.build(
        tables.with_rows(answer, _ordered(derived, answer)),
        "effects",
        "The effect over all programs",
        ("place", "place"),
        columns,
        notes=notes,
    )


def _shares(derived: Derived, answer: QueryResult) -> Table:
    columns = [
        Column(naming.factor(), "arm"),
        Column("part", "part"),
        Column("share", "share", "percent"),
        Column("for these programs", "low,high", "percent_interval"),
        Column("one left out", "without_low,without_high", "percent_interval"),
        Column("for any such programs", "population_low,population_high", "percent_interval"),
    ]
    notes = [
        "one left out: the least and the largest share with any one level of a factor of the places, one server or one "
        "client left out. for any such programs: if those measured are a random sample of all; with two servers or "
        "clients hardly anything is excluded.",
    ]
    return tables.build(
        tables.with_rows(answer, _ordered(derived, answer)),
        "decomposition",
        "Every share",
        ("place", "place"),
        columns,
        notes=notes,
    )


def _leagues(about: RunFacts, derived: Derived, answer: QueryResult) -> list[LeaguePlace]:
    metric = METRICS[about.metric]
    form = numbers.FORM_OF_UNIT[metric.unit]
    columns = [
        Column("place", "place"),
        Column(about.metric_label, "value", form),
        Column(f"{100 * about.confidence:.0f} % interval", "low,high", f"{form}_interval"),
        Column("blocks", "blocks", "count"),
        Column("starts", "starts", "count"),
        Column("without a value", "censored", "count"),
        Column("", "kind"),
    ]
    if not any(row["kind"].startswith("proxy") for row in answer):
        columns = columns[:-1]
    if not any(row["censored"] for row in answer):
        columns = [column for column in columns if column.name != "censored"]
    places = []
    for number, place in enumerate(cells_in_order(about, {row["cell"] for row in answer})):
        there = []
        for arm in about.arms:
            rows = answer.where(cell=place, arm=arm)
            if rows:
                standing = {Program(row["server"], row["client"]) for row in rows}
                missing = [one.words() for one in derived.programs.get(place, []) if one not in standing]
                there.append(
                    tables.build(
                        tables.with_rows(answer, rows),
                        f"league-{number}-{arm}",
                        style.name(arm),
                        ("program", "program"),
                        columns,
                        cell=place,
                        notes=[f"Without a usable trial: {listed(missing)}."] if missing else [],
                    )
                )
        places.append(LeaguePlace(_place(place), there))
    return places


def _place(place: str) -> str:
    """``far, new connections``."""
    path = levels(place).get("path", "")
    rest = place_words(place) if "," in place or "path=" not in place else ""
    return ", ".join(part for part in (path, rest) if part) or "everywhere"


SECTION = Section(
    "programs",
    "Protocol or program",
    derive=lambda run: derive(run.about.folder, run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, run.about, derived, run.comparisons),
    page="programs.html.j2",
)

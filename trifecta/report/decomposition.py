"""Is it the protocol or the program? What the report shows of servers and clients, when a study has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

import duckdb

from trifecta.analysis.decomposition import decompose
from trifecta.analysis.interactions import PARTS as PHASES
from trifecta.analysis.interactions import Interaction, interactions
from trifecta.analysis.layout import PROTOCOL
from trifecta.analysis.league import Standing, league
from trifecta.analysis.pooled import EVERYWHERE
from trifecta.analysis.programs import Program, place_of, program_of
from trifecta.analysis.shares import Decomposition, Share
from trifecta.contract.trial import TrialRow
from trifecta.design.metrics import METRICS
from trifecta.design.study_file import parse_study
from trifecta.report import catalogue, claims, naming, numbers, queries, tables
from trifecta.report import interactions as apart
from trifecta.report.claims import PARTS, PlaceClaims
from trifecta.report.comparisons import Comparison, levels, place_words
from trifecta.report.content import cells_in_order
from trifecta.report.facts import RunFacts
from trifecta.report.figure import Figure
from trifecta.report.figures import decomposition as figures
from trifecta.report.figures import style
from trifecta.report.queries import Answer
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table
from trifecta.report.words import listed
from trifecta.store.run import RunDirectory

_COLUMNS = ("cell", "arm", "block", "valid", "samples", "success_rate", "server", "client", "server_json", *PHASES)
_MOST_OPEN = 90  # rows of league tables


class DecompositionRow(TypedDict):
    """A row of the view ``decomposition``: one part of the effect of an arm in a place, or that nothing was split."""

    place: str
    arm: str
    reference: str
    part: str | None
    share: float | None
    low: float | None
    high: float | None
    population_low: float | None
    population_high: float | None
    without_low: float | None
    without_high: float | None
    ratio: float | None
    elsewhere_low: float | None
    elsewhere_high: float | None
    servers: int
    clients: int
    cells: int
    blocks: int
    left_out: str | None
    pooled: bool
    weighs: str | None


class LeagueRow(TypedDict):
    """A row of the view ``league``: the fields of a `Standing`."""

    place: str
    arm: str
    server: str
    client: str
    proxy: bool
    best: int
    worst: int
    value: float | None
    low: float | None
    high: float | None
    blocks: int
    censored: int
    starts: int


@dataclass(frozen=True)
class Derived:
    """What the trials say of the programs."""

    shares: list[Decomposition] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    programs: dict[str, list[Program]] = field(default_factory=dict)  # of each place, with usable trials or without
    apart: list[Interaction] = field(default_factory=list)

    def rows(self) -> dict[str, list[DecompositionRow] | list[LeagueRow]]:
        """Rows of the views ``decomposition`` and ``league``."""
        return {
            "decomposition": [row for one in self.shares for row in _rows_of(one)],
            "league": [cast(LeagueRow, asdict(one)) for one in self.standings],
        }

    def proxies(self) -> list[str]:
        """Servers that add a hop."""
        return list(dict.fromkeys(one.server for one in self.standings if one.proxy))


def _rows_of(one: Decomposition) -> list[DecompositionRow]:
    whole = {name: value for name, value in asdict(one).items() if name != "shares"}
    whole |= {"servers": len(one.servers), "clients": len(one.clients), "left_out": "; ".join(one.left_out) or None}
    nothing = dict.fromkeys(each.name for each in fields(Share))
    whole["weighs"] = _part(one.weighs) if one.weighs else None
    rows = [whole | asdict(share) | {"part": _part(share.part)} for share in one.shares] or [whole | nothing]
    return cast(list[DecompositionRow], rows)


def _part(part: str) -> str:
    """A part as views have it: that of what is compared is called by the compared factor."""
    return naming.compared() if part == PROTOCOL else part


def derive(run: Path, connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Derived:
    """Work it out from the trials; nothing with one server and one client."""
    text = RunDirectory.open(run).study_text
    there = {row[0] for row in connection.execute("DESCRIBE trials").fetchall()}
    columns = tuple(name for name in dict.fromkeys((*_COLUMNS, about.metric)) if name in there)
    cursor = connection.execute(f"SELECT {', '.join(columns)} FROM trials ORDER BY block, trial")  # noqa: S608 - known
    values = cursor.fetchall()
    order = tuple(cells_in_order(about, dict.fromkeys(row[columns.index("cell")] for row in values)))
    return _worked_out(text, columns, tuple(values), order, about.metric)


# A command writes the report and then prints its table: what takes seconds is worked out once for both.
@lru_cache(maxsize=1)
def _worked_out(
    text: str, columns: tuple[str, ...], values: tuple[tuple[Any, ...], ...], order: tuple[str, ...], metric: str
) -> Derived:
    study = parse_study(text, "study.yaml")
    rows = [cast(TrialRow, dict(zip(columns, row, strict=True))) for row in values]
    place = {cell: number for number, cell in enumerate(order)}
    rows.sort(key=lambda row: place[row["cell"]])
    programs: dict[str, list[Program]] = {}
    for cell, row in {row["cell"]: row for row in rows}.items():
        programs.setdefault(place_of(cell), []).append(program_of(row))
    stand_apart = interactions(study, rows, metric)
    return Derived(decompose(study, rows, metric), league(study, rows, metric), programs, stand_apart)


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
    connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Derived, found: Sequence[Comparison]
) -> Content | None:
    """Everything the section shows; None when the study has one program only. Ask within ``svg.drawing()``."""
    if not derived.standings and not derived.shares:
        return None
    standings = queries.ask(connection, catalogue.LEAGUE)
    return Content(
        claims=claims.claims(found, about.pairs),
        apart=apart.sentences(derived.apart, about.metric),
        places=claims.claims_by_place(found, about.pairs),
        words=claims.shares_in_words(derived.shares),
        definition=claims.definition(about.baseline, about.confidence),
        legend=_legend(derived.shares),
        figures=_figures(derived.shares),
        effects=_effects(about, derived, queries.ask(connection, catalogue.EFFECTS)),
        shares=_shares(derived, queries.ask(connection, catalogue.DECOMPOSITION)),
        leagues=_leagues(about, derived, standings),
        open_leagues=len(standings.rows) <= _MOST_OPEN,
        proxies=claims.about_proxies(derived.proxies()),
    )


def _legend(found: Sequence[Decomposition]) -> list[tuple[str, str, str]]:
    there = {share.part for one in found for share in one.shares}
    looks = figures.LOOKS
    return [
        (_part(part).replace("_", " "), looks[part].texture, style.CSS_VARIABLES[looks[part].colour])
        for part in PARTS
        if part in there
    ]


def _figures(found: Sequence[Decomposition]) -> list[Figure]:
    made = [
        Figure(
            f"{style.name(one.arm)} ÷ {style.name(one.reference)}: shares of the variation",
            "All places together, with equal weight. Mark: share. Line: interval, for these programs. The parts "
            "add up to 100 %.",
            figures.intervals(one.shares, claims.parts(), f"dw-{one.arm}"),
        )
        for one in found
        if one.place == EVERYWHERE
    ]
    split = [one for one in found if one.shares and not one.pooled]
    split.sort(key=lambda one: one.arm, reverse=True)  # the newest protocol first, as everywhere
    rows = [figures.Bar(_bar_label(one), one.shares) for one in split]
    if rows:
        made.append(
            Figure(
                "The same for every comparison",
                f"Parts from left to right as in the legend. Thin line: interval of the {naming.factor()}'s share. "
                "Where noise fills the bar there is next to no effect to split.",
                figures.bars(rows, "db"),
            )
        )
    return made


def _bar_label(one: Decomposition) -> str:
    where = place_words(one.place, without="")
    return f"{style.name(one.arm)} ÷ {style.name(one.reference)}, {where}" if where else style.name(one.arm)


def _ordered(derived: Derived, answer: Answer) -> list[dict[str, Any]]:
    """Rows in the order of the places of the study, and of the parts."""
    places = list(dict.fromkeys((one.place, one.arm) for one in derived.shares))
    parts = [_part(part) for part in PARTS]

    def position(row: Mapping[str, Any]) -> tuple[int, int]:
        return places.index((row["place"], row["arm"])), parts.index(row["part"]) if "part" in row else 0

    return sorted(answer.rows, key=position)


def _effects(about: RunFacts, derived: Derived, answer: Answer) -> Table:
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


def _shares(derived: Derived, answer: Answer) -> Table:
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


def _leagues(about: RunFacts, derived: Derived, answer: Answer) -> list[LeaguePlace]:
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
    made = []
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
        made.append(LeaguePlace(_place(place), there))
    return made


def _place(place: str) -> str:
    """``far, new connections``."""
    path = levels(place).get("path", "")
    rest = place_words(place) if "," in place or "path=" not in place else ""
    return ", ".join(part for part in (path, rest) if part) or "everywhere"


SECTION = Section(
    "programs",
    "Protocol or program",
    derive=lambda run: derive(run.about.folder, run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, run.about, derived, run.found),
    rows=Derived.rows,
    page="programs.html.j2",
)

"""The report's section on browsers, and what it adds to every cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.visits import catalogue
from trifecta.conclude.visits.derive import Visits, derive
from trifecta.conclude.visits.metrics import metrics_of
from trifecta.conclude.visits.published import Claim
from trifecta.design import naming
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import style
from trifecta.report.figures.metric_ratios import MetricRow, metric_ratios
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table
from trifecta.report.visits import words
from trifecta.report.visits.cell import CellPart, cell_part
from trifecta.report.visits.frames import MOST_BYTES
from trifecta.report.visits.published import published_table, sources, with_place
from trifecta.report.visits.words import cell_words

_MOST_RATIOS = 12  # cells whose ratios are drawn; their tables have all


@dataclass
class Pictures:
    """How many octets of pictures the report may still take."""

    left: int
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Content:
    """What the report's section on browsers shows."""

    heading: str
    ratios: list[Figure]  # one a cell
    claim_words: str
    claims: list[tuple[Claim, str]]  # with the cell in words, and ours
    published: Table
    published_sources: list[str]
    work: Table
    failed: Table
    left_out: Table
    cells: dict[str, CellPart]
    has_pictures: bool
    refused: list[str]


def draw(connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Visits) -> Content:
    """Everything the section and the cells show. Ask within ``svg.drawing()``."""

    answers = {query.name: queries.ask(connection, query) for query in catalogue.QUERIES}
    pictures = Pictures(MOST_BYTES)
    cells = {cell: cell_part(about, answers, cell, number, pictures) for number, cell in enumerate(derived.cells)}
    return Content(
        heading="Video" if about.is_video else "Page loads",
        ratios=_ratio_figures(about, derived),
        claim_words=words.claim_summary(derived.claims),
        claims=[with_place(one, cell_words(one.cell)) for one in derived.claims],
        published=published_table(answers[catalogue.PUBLISHED.name]),
        published_sources=sources(answers[catalogue.PUBLISHED.name]),
        work=_work_table(about, answers),
        failed=_failed_table(answers[catalogue.FAILED_VISITS.name]),
        left_out=_left_out_table(answers[catalogue.LEFT_OUT.name]),
        cells=cells,
        has_pictures=pictures.left < MOST_BYTES,
        refused=pictures.refused,
    )


def _ratio_figures(about: RunFacts, derived: Visits) -> list[Figure]:
    names = {one.name: one.ratio for one in metrics_of(about) if one.ratio}
    figures = []
    for number, cell in enumerate(derived.cells[:_MOST_RATIOS]):
        ratios: dict[str, dict[str, tuple[float, float | None, float | None]]] = {}
        for arm in reversed(about.arms):
            for row in derived.metrics:
                if (row["cell"], row["arm"]) == (cell, arm) and row["ratio"] is not None and row["metric"] in names:
                    ends = (row["ratio"], row["ratio_low"], row["ratio_high"])
                    ratios.setdefault(names[row["metric"]], {})[arm] = ends
        lines = [MetricRow(label, ratios[label]) for label in names.values() if label in ratios]
        if lines:
            svg = metric_ratios(lines, about.baseline, about.margin, f"vr{number}")
            figures.append(Figure(cell_words(cell), "", svg))
    return figures


def _work_table(about: RunFacts, answers: Mapping[str, QueryResult]) -> Table:
    columns = [
        Column(naming.factor(), "arm", "protocol"),
        Column("measured visits", "visits", "count"),
        Column("done", "done", "count"),
        Column("different works", "works", "count"),
        Column("requests, fewest", "fewest", "count"),
        Column("most", "most", "count"),
        Column("content, least", "least_bytes", "size"),
        Column("most", "most_bytes", "size"),
        Column("not in the recording", "missing", "count"),
        Column("failed requests", "failed", "count"),
    ]
    if about.is_video:
        notes = ["What is fetched depends on the rungs that the player chose."]
    else:
        notes = ["One work means: every visit asked for the same resources and got the same content."]
    return tables.build(
        answers[catalogue.WORK.name], "work", "Visits and what they fetched", ("cell", "cell"), columns, notes=notes
    )


def _failed_table(answer: QueryResult) -> Table:
    columns = [
        Column(naming.factor(), "arm", "protocol"),
        Column("error", "error"),
        Column("visits", "visits", "count"),
        Column("in excluded trials", "excluded", "count"),
    ]
    return tables.build(answer, "failed-visits", "Visits that failed", ("cell", "cell"), columns)


def _left_out_table(answer: QueryResult) -> Table:
    rows = [row | {"arms": ", ".join(style.name(arm) for arm in row["arms"].split(", "))} for row in answer.rows[:200]]
    columns = [
        Column("address", "url"),
        Column("why", "why"),
        Column("requests", "requests", "count"),
    ]
    notes = [f"The first 200 of {len(answer.rows)}."] if len(answer.rows) > len(rows) else []
    return tables.build(
        tables.with_rows(answer, rows), "left-out", "Requests without an answer", ("cell", "cell"), columns, notes=notes
    )


SECTION = Section(
    "visits",
    "Visits",
    derive=lambda run: derive(run.connection, run.about, run.comparisons),
    draw=lambda run, derived: draw(run.connection, run.about, derived),
    page="visits.html.j2",
    cell="visits-cell.html.j2",
)

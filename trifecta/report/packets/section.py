"""The report's section on packets, and what it adds to every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.packets import catalogue
from trifecta.conclude.packets.derive import Packets, RepresentativeCapture, derive
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.visits.published import Claim
from trifecta.design.phrases import listed
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import picture_files, style, svg
from trifecta.report.packets.picture import Picture
from trifecta.report.packets.pictures import pictures, stem
from trifecta.report.sections import CellPart, Section
from trifecta.report.tables import Column, Table
from trifecta.report.verdict_words import place_words
from trifecta.report.visits import words
from trifecta.report.visits.published import published_table, sources, with_place

MOST_BYTES = 3_000_000  # of all pictures of a report; the others are files


@dataclass(frozen=True)
class Content:
    """What the report's section on packets shows."""

    claim_words: str
    claims: list[tuple[Claim, str]]
    published: Table
    published_sources: list[str]
    cells: dict[str, CellPart]
    refused: list[str] = field(default_factory=list)


def draw(connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Packets) -> Content:
    """Everything the section and the cells show. Ask within ``svg.drawing()``."""
    answers = {query.name: queries.ask(connection, query) for query in catalogue.QUERIES}
    refused: list[str] = []
    left, cells = MOST_BYTES, {}
    for number, cell in enumerate(derived.cells):
        figures = _figures(derived, cell, number)
        size = sum(len(one.svg) for one in figures)
        if size > left:
            refused.append(cell)
            figures = []
        left -= size if figures else 0
        cells[cell] = _cell_part(about, answers, cell, number, (derived.shown[cell], figures))
    published = answers[catalogue.PUBLISHED.name] if not about.is_browser else QueryResult(catalogue.PUBLISHED, [])
    return Content(
        claim_words=words.claim_summary(derived.claims),
        claims=[with_place(one, place_words(one.cell, without="")) for one in derived.claims],
        published=published_table(published),
        published_sources=sources(published),
        cells=cells,
        refused=refused,
    )


def cell_pictures(derived: Packets, cell: str) -> list[Picture]:
    """All pictures of a cell: where the time of its requests went over all blocks, and what is in its captures."""
    return pictures([one.captured for one in derived.shown[cell].values()], derived.times.get(cell))


def write_run_figures(run: Path, derived: Packets) -> list[Path]:
    """Write the pictures of every cell's median trials as ``figures/CELL-PICTURE.svg`` and ``.png``; returns them."""
    written: list[Path] = []
    with svg.drawing():
        for cell in derived.cells:
            for picture in cell_pictures(derived, cell):
                name = f"{stem(cell.replace('=', '-').replace(',', '_'))}-{picture.name}"
                written += picture_files.write(picture.draw(), run / "figures", name, picture.legend)
    return written


def _figures(derived: Packets, cell: str, number: int) -> list[Figure]:
    return [
        Figure(one.title, one.caption, one.draw().svg(f"k{number}{one.name}"), one.wide, legend=one.legend)
        for one in cell_pictures(derived, cell)
    ]


def _cell_part(
    about: RunFacts,
    answers: dict[str, QueryResult],
    cell: str,
    number: int,
    stands: tuple[dict[str, RepresentativeCapture], list[Figure]],
) -> CellPart:
    shown, figures = stands
    chosen = [f"{style.name(arm)} {one.trial} of {one.trials}" for arm, one in shown.items()]
    whose = (
        f"The captured trial with the median duration of each protocol: {listed(chosen)}. Where the time of a request "
        "went is over all captured blocks."
        if chosen
        else ""
    )
    whose = " ".join(one for one in (whose, _not_shown(answers[catalogue.NOT_SHOWN.name], cell)) if one)
    tables = [
        *_metric_tables(about, answers, cell, number),
        _times_table(about, answers[catalogue.TIMES.name], cell, number),
        *_part_tables(answers[catalogue.PARTS.name], cell, number),
    ]
    sql = {"The trials that are shown": catalogue.CHOSEN.text(cell)}
    return CellPart(whose, figures, [one for one in tables if one.lines], sql)


def _not_shown(answer: QueryResult, cell: str) -> str:
    """A sentence for every protocol of which no captured trial is fit to be shown."""
    sentences = []
    for row in answer.where(cell=cell):
        trials = "its trial" if row["trials"] == 1 else f"all of its {row['trials']} trials"
        failed = [check.replace("_", " ") for check in row["failed"] or ()]
        why = [f"failed the check{'' if len(failed) == 1 else 's'} {listed(failed)}"] if failed else []
        if row["failing"] < row["trials"]:
            why.append(
                "broke off or were not captured completely" if row["trials"] > 1 else "was not captured completely"
            )
        sentences.append(f"{style.name(row['arm'])} is not shown: {trials} {', or '.join(why)}.")
    return " ".join(sentences)


def _metric_tables(about: RunFacts, answers: dict[str, QueryResult], cell: str, number: int) -> list[Table]:
    values = tables.values_of_arms(about.arms)
    ratios = tables.changes_of_arms(about.arms, about.baseline)
    notes = [
        "From captured trials, at the client's side of the link; of lost packets and of those sent again the "
        "sender's side. Geometric mean over blocks with a t interval; of what can be zero the mean. Descriptive: "
        "capturing costs time, so no verdict rests on them."
    ]
    heading = ("metric", "label")
    return [
        tables.build(
            answers[catalogue.METRICS.name], f"packet-metrics-{number}", "Packets", heading,
            [*values, Column("most blocks", "blocks", "count")], cell=cell, notes=notes,
        ),
        tables.build(
            answers[catalogue.METRIC_RATIOS.name], f"packet-ratios-{number}",
            f"Packets against {style.name(about.baseline)}", heading, ratios, cell=cell,
        ),
    ]  # fmt: skip


def _times_table(about: RunFacts, answer: QueryResult, cell: str, number: int) -> Table:
    base = style.name(about.baseline)
    columns = [
        Column("part", "label"),
        Column("a request", "value", "unit"),
        Column("of it", "share", "percent"),
        Column(f"less {base}", "difference", "unit"),
        Column("interval", "difference_low,difference_high", "unit_interval"),
        Column("blocks", "blocks", "count"),
    ]
    notes = [
        "Mean over requests, then over the captured blocks that have every protocol; the parts add up to the whole, "
        "and their differences to that of the whole. Intervals are Student's over blocks, each for its part alone."
    ]
    here = answer.where(cell=cell)
    there = {row["part"] for row in here if row["value"]}
    answer = tables.with_rows(answer, [row for row in here if row["part"] in there])
    caption = "Where the time of a request went"
    return tables.build(answer, f"packet-times-{number}", caption, ("protocol", "arm"), columns, cell=cell, notes=notes)


def _part_tables(answer: QueryResult, cell: str, number: int) -> list[Table]:
    def table(kind: str, caption: str, columns: Sequence[Column], note: str) -> Table:
        rows = [row for row in answer.where(cell=cell, kind=kind) if row["value"] or kind == "blocking"]
        return tables.build(
            tables.with_rows(answer, rows), f"packet-{kind}-{number}", caption, ("protocol", "arm"), columns,
            cell=cell, notes=[note],
        )  # fmt: skip

    return [
        table(
            "stalls",
            "What responses waited for at their sender",
            [Column("for", "label"), Column("time", "value", "unit"), Column("of it", "share", "percent")],
            "Of the trials that are shown: the time in which responses were being sent, by cause (docs/packets.md).",
        ),
        table(
            "overhead",
            "What the wire carried",
            [
                Column("part", "label"),
                Column("octets", "value", "unit"),
                Column("per octet of content", "share", "ratio"),
            ],
            "Of the trials that are shown. A packet that only acknowledges or repeats counts there with its headers.",
        ),
        table(
            "blocking",
            "Received and not deliverable",
            [
                Column("waited", "label"),
                Column("a request", "value", "unit"),
                Column("of its time", "share", "percent"),
            ],
            "Of the trials that are shown, mean over requests. Times of several causes overlap.",
        ),
    ]


SECTION = Section(
    "packets",
    "Packets",
    derive=lambda run: derive(run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, run.about, derived),
    page="packets.html.j2",
    cell="packets-cell.html.j2",
)

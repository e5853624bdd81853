"""The report's section on packets, and what it adds to every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from trifecta.analysis.transport.differences import difference, sentence
from trifecta.analysis.transport.overhead import overhead
from trifecta.report import numbers, queries, tables
from trifecta.report.facts import RunFacts
from trifecta.report.figures import style
from trifecta.report.figures.blocking import Waited, blocking
from trifecta.report.figures.part_bars import OCTETS, TIME, Bar, legend, part_bars
from trifecta.report.packets import catalogue
from trifecta.report.packets.derive import Packets, Shown
from trifecta.report.packets.pictures import Legend, Picture, pictures
from trifecta.report.queries import Answer
from trifecta.report.tables import Column, Table
from trifecta.report.visits import said
from trifecta.report.visits.published import Claim, published_table, sources
from trifecta.report.visits.said import cell_words
from trifecta.report.words import listed

MOST_BYTES = 3_000_000  # of all pictures of a report; the others are files


@dataclass(frozen=True)
class Figure:
    """A picture in the page."""

    title: str
    caption: str
    svg: str
    wide: bool
    legend: Legend


@dataclass(frozen=True)
class CellPart:
    """What a cell shows of its packets."""

    whose: str
    figures: list[Figure]
    tables: list[Table]
    sql: dict[str, str]


@dataclass(frozen=True)
class Section:
    """The report's section on packets."""

    claim_words: str
    claims: list[tuple[Claim, str]]
    published: Table
    published_sources: list[str]
    cells: dict[str, CellPart]
    refused: list[str] = field(default_factory=list)


def section(connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Packets) -> Section:
    """Everything the section and the cells show. Ask within ``svg.drawing()``."""
    answers = {query.name: queries.ask(connection, query) for query in catalogue.QUERIES}
    refused: list[str] = []
    left, cells = MOST_BYTES, {}
    for number, cell in enumerate(derived.cells):
        figures = _figures(derived.shown[cell], number)
        size = sum(len(one.svg) for one in figures)
        if size > left:
            refused.append(cell)
            figures = []
        left -= size if figures else 0
        cells[cell] = _cell_part(about, answers, cell, number, (derived.shown[cell], figures))
    published = answers[catalogue.PUBLISHED.name] if not about.is_browser else Answer(catalogue.PUBLISHED, [])
    return Section(
        claim_words=said.claim_summary(derived.claims),
        claims=[(one, cell_words(one.cell)) for one in derived.claims],
        published=published_table(published),
        published_sources=sources(published),
        cells=cells,
        refused=refused,
    )


def cell_pictures(shown: dict[str, Shown]) -> list[Picture]:
    """All pictures of a cell: those of its captures, then what its wire carried and how long requests waited."""
    made = _attribution(shown) + pictures([one.captured for one in shown.values()])
    bars = [Bar(one.captured.label, _octets(one)) for one in shown.values()]
    if any(bar.whole for bar in bars):
        caption = "Every octet of both directions, where it was sent, in one part; the parts add up to the whole."
        made.append(
            Picture(
                "overhead", "What the wire carried", caption,
                lambda: part_bars(bars, OCTETS, "octets on the wire", numbers.size), legend=legend(bars, OCTETS),
            )
        )  # fmt: skip
    waits = [(one.captured.label, arm, _waited(one)) for arm, one in shown.items()]
    if any(found for _, _, found in waits):
        caption = (
            "How long octets of a response lay received at the client and could not be delivered: because octets of "
            "other streams were missing, octets of its own, or only the rest of a TLS record."
        )
        marks = [("for other streams", "--part-crossed", ""), ("for octets of its own", "--phase-late", "tcp")]
        marks.append(("only for the rest of a TLS record", "--phase-send", ""))
        made.append(
            Picture("blocking", "Head-of-line blocking, by request", caption, lambda: blocking(waits), legend=marks)
        )
    return made


def _attribution(shown: dict[str, Shown]) -> list[Picture]:
    bars = [Bar(one.captured.label, one.parts) for one in shown.values() if one.parts]
    if not bars:
        return []
    arms = [arm for arm, one in shown.items() if one.parts]
    told = [
        sentence(found, style.name(arm), style.name(arms[0]))
        for arm in arms[1:]
        if (found := difference([(shown[arm].parts, shown[arms[0]].parts)])) is not None
    ]
    caption = (
        " ".join(told)
        + " A request's critical path, walked back from its last octet; the mean over requests. rest: the "
        "least delay of the path, once a round trip, and the waiting for acknowledgements. "
        "One trial each, so no interval."
    )
    return [
        Picture(
            "attribution", "Where the time of a request went", caption.strip(),
            lambda: part_bars(bars, TIME, "time of a request", numbers.duration), legend=legend(bars, TIME),
        )
    ]  # fmt: skip


def _octets(one: Shown) -> dict[str, float]:
    total: dict[str, float] = {}
    for connection in one.captured.analysed:
        for part, value in overhead(connection).parts.items():
            total[part] = total.get(part, 0.0) + value
    return total


def _waited(one: Shown) -> list[Waited]:
    found = sorted(one.waits, key=lambda wait: (wait.connection, wait.request if wait.request is not None else 0))
    return [
        Waited(
            str(wait.request),
            wait.by_others_ns,
            wait.by_own_ns,
            max(0, wait.blocked_ns - wait.by_others_ns - wait.by_own_ns),
            wait.load_ns,
        )
        for wait in found
    ]


def _figures(shown: dict[str, Shown], number: int) -> list[Figure]:
    return [
        Figure(one.title, one.caption, one.draw().svg(f"k{number}{one.name}"), one.wide, one.legend)
        for one in cell_pictures(shown)
    ]


def _cell_part(
    about: RunFacts,
    answers: dict[str, Answer],
    cell: str,
    number: int,
    stands: tuple[dict[str, Shown], list[Figure]],
) -> CellPart:
    shown, figures = stands
    chosen = [f"{style.name(arm)} {one.trial} of {one.trials}" for arm, one in shown.items()]
    whose = f"The captured trial with the median duration of each protocol: {listed(chosen)}." if chosen else ""
    made = [*_metric_tables(about, answers, cell, number), *_part_tables(answers[catalogue.PARTS.name], cell, number)]
    sql = {"The trials that are shown": catalogue.CHOSEN.text(cell)}
    return CellPart(whose, figures, [one for one in made if one.lines], sql)


def _metric_tables(about: RunFacts, answers: dict[str, Answer], cell: str, number: int) -> list[Table]:
    values = [
        column
        for arm in about.protocols
        for column in (
            Column(style.name(arm), f"{arm}_value", "unit"),
            Column("interval", f"{arm}_low,{arm}_high", "unit_interval"),
        )
    ]
    ratios = [
        column
        for arm in reversed(about.protocols)
        if arm != about.baseline
        for column in (
            Column(f"{style.name(arm)} ÷ {style.name(about.baseline)}", f"{arm}_ratio", "ratio"),
            Column("interval", f"{arm}_ratio_low,{arm}_ratio_high", "known_interval"),
            Column(f"{style.name(arm)} less {style.name(about.baseline)}", f"{arm}_difference", "unit"),
            Column("interval", f"{arm}_difference_low,{arm}_difference_high", "unit_interval"),
        )
    ]
    notes = [
        "Of captured trials, as the client's side of the link saw them; of lost packets and of those sent again the "
        "sender's side. Geometric mean over blocks with a t interval; of what can be zero the mean. They describe: "
        "capturing costs time, so no verdict rests on them."
    ]
    heading = ("metric", "label")
    return [
        tables.build(
            answers[catalogue.METRICS.name], f"packet-metrics-{number}", "Packets", heading,
            [*values, Column("blocks", "blocks", "count")], cell=cell, notes=notes,
        ),
        tables.build(
            answers[catalogue.METRIC_RATIOS.name], f"packet-ratios-{number}",
            f"Packets against {style.name(about.baseline)}", heading, ratios, cell=cell,
        ),
    ]  # fmt: skip


def _part_tables(answer: Answer, cell: str, number: int) -> list[Table]:
    def table(kind: str, caption: str, columns: Sequence[Column], note: str) -> Table:
        rows = [row for row in answer.where(cell=cell, kind=kind) if row["value"] or kind != "overhead"]
        return tables.build(
            tables.with_rows(answer, rows), f"packet-{kind}-{number}", caption, ("protocol", "arm"), columns,
            cell=cell, notes=[note],
        )  # fmt: skip

    return [
        table(
            "attribution",
            "Where the time of a request went",
            [Column("part", "label"), Column("a request", "value", "unit"), Column("of it", "share", "percent")],
            "Of the trials that are shown, mean over requests; the parts add up to the whole.",
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

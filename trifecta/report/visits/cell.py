"""What a cell shows of its browsers: film strips, waterfalls, connections, metrics; of a video the watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query
from trifecta.conclude.visits import catalogue
from trifecta.conclude.visits.films import find, progress
from trifecta.design import naming
from trifecta.design.phrases import listed
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import style
from trifecta.report.figures.connections import connections
from trifecta.report.figures.filmstrip import Strip, filmstrip
from trifecta.report.figures.page_waterfall import (
    SPANS,
    Fetch,
    FilmedMarks,
    Load,
    Marks,
    bars,
    end_of,
    rows_of,
    waterfall,
)
from trifecta.report.figures.picture_files import Legend
from trifecta.report.figures.playback import Event, Second, playback, watches
from trifecta.report.figures.visual_progress import visual_progress
from trifecta.report.tables import Column, Table
from trifecta.report.visits import frames

MOST_OPEN = 60  # lines of a waterfall that are shown at once


class Budget(Protocol):
    """How many octets of pictures may still be embedded, and which cells had to do without."""

    left: int
    refused: list[str]


@dataclass(frozen=True)
class CellPart:
    """What a cell shows of its browsers."""

    figures: list[Figure]
    metrics: list[Table]
    tables: list[Table]
    sql: dict[str, str]


def cell_part(about: RunFacts, answers: Mapping[str, QueryResult], cell: str, number: int, budget: Budget) -> CellPart:
    """The part of one cell, from the answers of all queries by name."""
    metrics = _metric_tables(about, answers, cell, number)
    spoken = _spoken_table(about, answers[catalogue.SPOKEN.name], cell, number)
    shown: tuple[Query, ...]
    if about.is_video:
        figures = _watch_figures(about, answers, cell, number)
        tables = [_segment_table(answers[catalogue.SEGMENTS.name], cell, number), spoken]
        shown = (catalogue.PLAYBACK, catalogue.STALLS, catalogue.WATCHES)
    else:
        figures = _load_figures(about, answers, cell, number, budget)
        tables = [spoken]
        shown = (catalogue.LOADS, catalogue.FETCHES, catalogue.FILMED)
    texts = {query.name: query.text(cell) for query in shown}
    return CellPart(figures, metrics, [one for one in tables if one.lines], texts)


def _load_figures(
    about: RunFacts, answers: Mapping[str, QueryResult], cell: str, number: int, budget: Budget
) -> list[Figure]:
    marks = {row["arm"]: row for row in answers[catalogue.LOADS.name].of(Marks, cell=cell)}
    fetches = answers[catalogue.FETCHES.name].of(Fetch, cell=cell)
    loads = {arm: Load([row for row in fetches if row["arm"] == arm], marks[arm]) for arm in about.arms if arm in marks}
    if not loads:
        return []
    chosen = [f"{style.name(arm)} {row['trial']}, visit {row['visit']}" for arm, row in marks.items()]
    whose = f"Shown for each {naming.noun()}: the visit with the median load time, {listed(chosen)}."
    missing = [style.name(arm) for arm in about.arms if arm not in loads]
    if missing:
        whose += f" None of {listed(missing)}: the median lies among failed visits."
    figures = _pictures(about, answers, cell, number, budget)
    lines = rows_of(loads, about.baseline)
    reading = (
        f"A resource stands on the same line for every {naming.noun()}. Left of it: its connection's number and, as "
        "a bar of one to five steps, its priority. Lines: first contentful paint (FCP), largest contentful paint "
        "(LCP), DOMContentLoaded (DCL), load."
    )
    figures.append(
        Figure(
            f"Waterfall: {len(lines)} resources",
            f"{whose} {reading}",
            waterfall(loads, about.baseline, f"v{number}w"),
            wide=True,
            shown=len(lines) <= MOST_OPEN,
            legend=_legend(loads),
        )
    )
    figures.append(
        Figure(
            "Connections",
            "One lane per connection: its handshake over the whole height, then the requests that it carried, "
            "concurrent ones on separate lines.",
            connections(loads, f"v{number}c"),
            wide=True,
            shown=len(lines) <= MOST_OPEN,
        )
    )
    return sorted(figures, key=lambda figure: not figure.wide)


def _legend(loads: Mapping[str, Load]) -> Legend:
    used = {span.column for load in loads.values() for fetch in load.fetches for span, _, _ in bars(fetch)}
    return [(span.name, style.CSS_VARIABLES[span.colour], span.texture) for span in SPANS if span.column in used]


def _pictures(
    about: RunFacts, answers: Mapping[str, QueryResult], cell: str, number: int, budget: Budget
) -> list[Figure]:
    """The film strips and the curves of visual progress; nothing where no pictures were kept."""
    marks = {row["arm"]: row for row in answers[catalogue.FILMED.name].of(FilmedMarks, cell=cell)}
    films = {
        arm: film
        for arm in about.arms
        if arm in marks and (film := find(about.folder, marks[arm]["trial"], marks[arm]["visit"])) is not None
    }
    if not films:
        return []
    high = end_of([Load([], marks[arm]) for arm in films])
    strips: dict[str, Strip] = {}
    for arm, film in films.items():
        if (strip := frames.strip(film, marks[arm], high)) is not None:
            strips[arm] = strip
    curves = {arm: points for arm, film in films.items() if (points := progress(film))}
    chosen = listed([f"{style.name(arm)} {marks[arm]['trial']}, visit {marks[arm]['visit']}" for arm in films])
    whose = f"Of the filmed visits the one with the median load time of each {naming.noun()}: {chosen}."
    if all(marks[arm]["warmup"] for arm in films):
        whose += " Filming slows a page down, so these visits are not measured ones."
    figures = []
    size = sum(len(data) for data in {picture.jpeg for strip in strips.values() for picture in strip.pictures})
    if strips and size > budget.left:
        budget.refused.append(cell)
    elif strips:
        budget.left -= size
        caption = f"The page as it looked at the time below the middle of each picture. {whose}"
        figures.append(Figure("Film strips", caption, filmstrip(strips, high, f"v{number}f"), wide=True))
    if curves:
        caption = "From the colours of the pictures of the film strips; Speed Index is the area above the curve."
        svg = visual_progress(curves, high, f"v{number}p")
        figures.append(Figure("Visual progress", caption, svg))
    return figures


def _watch_figures(about: RunFacts, answers: Mapping[str, QueryResult], cell: str, number: int) -> list[Figure]:
    drawn = watches(
        answers[catalogue.PLAYBACK.name].of(Second, cell=cell), answers[catalogue.STALLS.name].of(Event, cell=cell)
    )
    if not drawn:
        return []
    drawn.sort(key=lambda one: (about.arms.index(one.arm), one.name))
    bold = {row["arm"]: f"{row['trial']}-{row['visit']}" for row in answers[catalogue.WATCHES.name].where(cell=cell)}
    chosen = [f"{style.name(arm)} {name.replace('-', ', visit ')}" for arm, name in bold.items()]
    caption = "Thin: every watch; for the bitrate, their mean."
    if chosen:
        caption += f" Bold: the one with the median startup time of each {naming.noun()}, {listed(chosen)}."
    svg = playback(drawn, bold, f"v{number}b")
    return [Figure("Buffer, bitrate and stalls over time", caption, svg, wide=True)]


def _metric_tables(about: RunFacts, answers: Mapping[str, QueryResult], cell: str, number: int) -> list[Table]:
    values = tables.values_of_arms(about.arms)
    ratios = tables.changes_of_arms(about.arms, about.baseline)
    since = "play" if about.is_video else "the start of the navigation"
    notes = [
        "Geometric mean over blocks of the medians of trials, with a t interval of the logarithms: "
        "descriptive, for a number of blocks set in advance. What can be zero is a mean over blocks. Times "
        f"count from {since}. A dash for an interval: one block, no difference at all, or a block in which half "
        "of the visits failed."
    ]
    itself = f"{style.name(about.baseline)} against itself"
    ratio_notes = [
        "Ratios of the same block, their geometric mean over blocks; differences of what can be zero. noise: "
        f"how far a trial lies from the mean of its block (standard deviation), by {itself}."
    ]
    ratios.append(Column("noise", "noise", "percent"))
    heading = ("metric", "label")
    return [
        tables.build(
            answers[catalogue.METRICS.name], f"visit-metrics-{number}", "Metrics", heading,
            [*values, Column("blocks", "blocks", "count")], cell=cell, notes=notes,
        ),
        tables.build(
            answers[catalogue.METRIC_RATIOS.name], f"visit-ratios-{number}",
            f"Metrics against {style.name(about.baseline)}", heading, ratios, cell=cell, notes=ratio_notes,
        ),
    ]  # fmt: skip


def _spoken_table(about: RunFacts, answer: QueryResult, cell: str, number: int) -> Table:
    columns = [
        Column("with", "whose"),
        Column("spoken", "protocol", "protocol"),
        Column("requests", "requests", "count"),
        Column("of segments", "segments", "count"),
        Column("from cache", "from_cache", "count"),
        Column("connections opened", "opened", "count"),
        Column("resumed", "resumed", "count"),
        Column("0-RTT", "zero_rtt", "count"),
        Column("TLS", "tls_version"),
        Column("cipher", "cipher"),
        Column("failed", "failed", "count"),
        Column("not in the recording", "missing", "count"),
    ]
    idle = set() if about.is_video else {"segments"}
    if not answer.where(cell=cell, whose="third parties"):
        idle.add("whose")
    columns = [column for column in columns if column.name not in idle]
    return tables.build(
        answer,
        f"spoken-{number}",
        "The protocol of every request",
        ("asked for", "arm"),
        columns,
        cell=cell,
        order=about.arms,
    )


def _segment_table(answer: QueryResult, cell: str, number: int) -> Table:
    columns = [
        Column("rung", "rung", "count"),
        Column("segments", "segments", "count"),
        Column("spoken", "protocols"),
        Column("size", "body_bytes", "size"),
        Column("download", "download_ns", "duration"),
        Column("p95", "download_p95_ns", "duration"),
        Column("throughput", "throughput", "bit_rate"),
        Column("plays for", "media_ns", "duration"),
        Column("slower than they play", "slow", "count"),
        Column("failed", "failed", "count"),
    ]
    notes = ["Rung 0 is the lowest of the ladder. Medians over all segments of all measured watches."]
    return tables.build(
        answer, f"segments-{number}", "Segments, rung by rung", ("protocol", "arm"), columns, cell=cell, notes=notes
    )

"""What a cell shows of requests made one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from trifecta.analysis.sequential import Progress
from trifecta.conclude import queries
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.sequential import catalogue
from trifecta.conclude.sequential.derive import Sequential, derive, is_reused
from trifecta.conclude.visits import published
from trifecta.design import naming
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import sequential, style
from trifecta.report.sections import CellPart, Section
from trifecta.report.tables import Column, Table

STUDY = "milicevic2023"


@dataclass(frozen=True)
class Content:
    """The cells that have such requests."""

    cells: dict[str, CellPart]


def draw(connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Sequential) -> Content:
    """Everything the cells show. Ask within ``svg.drawing()``."""
    answers = {query.name: queries.ask(connection, query) for query in catalogue.QUERIES}
    parts = {cell: _part(about, answers, derived, (number, cell)) for number, cell in enumerate(derived.cells)}
    return Content(parts)


def _part(about: RunFacts, answers: dict[str, QueryResult], derived: Sequential, place: tuple[int, str]) -> CellPart:
    number, cell = place
    reused = is_reused(cell)
    word = f"round trip, {'sent to answered' if reused else 'from the first packet of its connection to the answer'}"
    histograms = derived.cells[cell]
    figures = [
        Figure(
            "Round trips",
            "All requests of all valid trials, warm-up excluded, in the same bins for each "
            f"{naming.noun()}; the longest 0.5 % may lie beyond the axis. The mark is on the fullest bin.",
            sequential.histogram(histograms, word, f"w{number}h"),
            wide=True,
        )
    ]
    if reused:
        points = [
            Progress(**{name: row[name] for name in Progress.__dataclass_fields__})
            for row in answers[catalogue.PROGRESS.name].where(cell=cell)
        ]
        caption = (
            "Requests answered so far by the time since the first was sent. Heavy: mean over trials, with its t "
            "interval over blocks; thin: the smallest and the largest trial."
        )
        figures.append(Figure("Progression", caption, sequential.progression(points, f"w{number}p"), wide=True))
    tables = [_round_trips(answers, cell, number), _tests(answers, cell, number)]
    if reused:
        tables.insert(1, _progressions(answers, cell, number))
    sql = {"Round trips": catalogue.ROUND_TRIPS.text(cell)}
    if reused:
        sql["Progression"] = catalogue.PROGRESS.text(cell)
    return CellPart(_published(reused), figures, [one for one in tables if one.lines], sql)


def _round_trips(answers: dict[str, QueryResult], cell: str, number: int) -> Table:
    columns = [
        Column("requests", "requests", "count"),
        Column("min", "smallest_ns", "duration"),
        Column("mode", "mode_low_ns,mode_high_ns", "duration_interval"),
        Column("median", "median_ns", "duration"),
        Column("mean", "mean_ns", "duration"),
        Column("max", "largest_ns", "duration"),
    ]
    notes = ["Of all successful requests together. The mode is the fullest of bins as wide as 1/20 of the median."]
    answer = answers[catalogue.ROUND_TRIPS.name]
    return tables.build(
        answer, f"round-trips-{number}", "Round trips", ("protocol", "arm"), columns, cell=cell, notes=notes
    )


def _progressions(answers: dict[str, QueryResult], cell: str, number: int) -> Table:
    columns = [
        Column("trials", "trials", "count"),
        Column("min", "smallest", "per_second"),
        Column("mean", "mean", "per_second"),
        Column("max", "largest", "per_second"),
        Column("at the end", "last", "per_second"),
        Column("of requests", "requests", "count"),
        Column("settled after", "settled", "count"),
    ]
    notes = [
        "Minimum and maximum over i and over trials, without the first hundredth (10 at least); the others are "
        "medians of trials. Settled: from here on within 5 % of its end."
    ]
    answer = answers[catalogue.PROGRESSIONS.name]
    return tables.build(
        answer, f"progression-{number}", "Progression, requests per second", ("protocol", "arm"), columns, cell=cell,
        notes=notes,
    )  # fmt: skip


def _tests(answers: dict[str, QueryResult], cell: str, number: int) -> Table:
    columns = [
        Column("ratio", "ratio", "ratio"),
        Column("interval", "ratio_low,ratio_high", "known_interval"),
        Column("difference", "difference_ns", "duration"),
        Column("interval", "difference_low_ns,difference_high_ns", "duration_interval"),
        Column("p, by blocks", "p_blocks", "p_value"),
        Column("blocks", "blocks", "count"),
        Column("shorter", "faster", "percent"),
        Column("distance", "distance", "percent"),
        Column("p, by samples (not valid)", "p_samples", "p_value"),
        Column("samples", "samples", "count"),
    ]
    notes = [
        "By blocks: paired, signed rank test of the log ratio with the interval that it does not reject (from six "
        "blocks), t interval of the difference; valid for a number of blocks set in advance, and not corrected for "
        "several cells. By samples: Mann and Whitney's test of all requests, which are not independent, so its p is "
        "not valid and only shows what a test of samples would have said. Shorter: the chance that a request of the "
        f"first {naming.noun()} took less time than one of the second; distance: the largest difference of the two "
        "distribution functions."
    ]
    answer = answers[catalogue.TESTS.name]
    return tables.build(
        answer, f"trip-tests-{number}", "Tests of no difference", ("hypothesis", "hypothesis"), columns, cell=cell,
        notes=notes,
    )  # fmt: skip


def _published(reused: bool) -> str:
    """What the study that measured so published of such requests; nothing where its file is not there."""
    statements = [one for study in published.load_studies() if study.id == STUDY for one in study.statements]
    wanted = "reused" if reused else "new"
    figures = [one for one in statements if one.kind == "figure" and one.where.get("connection") == wanted]
    sentences = [f"{one.text[0].lower()}{one.text[1:]}: {one.said}" for one in figures if one.said]
    if not sentences:
        return ""
    return (
        f"One request at a time, as {STUDY} measured. It published (its own path and machines; {style.name('h3')} "
        f"against {style.name('h2')}): {'; '.join(sentences)}."
    )


SECTION = Section(
    "trips",
    "",
    derive=lambda run: derive(run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, run.about, derived),
    cell="packets-cell.html.j2",
)

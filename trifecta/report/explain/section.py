"""The chains of evidence in a report: under each cell the links of its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain.derive import Derived, derive
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.query import Query
from trifecta.report import tables
from trifecta.report.explain import words
from trifecta.report.explain.words import Link
from trifecta.report.figures.style import name
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table

CAUSES = Query(
    "causes",
    """
SELECT t.cell, t.arm, t.reference, t.source, t.part, t.arm_ns, t.reference_ns, t.difference_ns, t.low_ns, t.high_ns,
       t.share, t.share_low, t.share_high, t.blocks
FROM causes AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm, t.reference, t.source, t.place
""",
    ("cell", "arm", "reference", "source", "part"),
)


@dataclass(frozen=True)
class ExplainedVerdict:
    """One verdict explained: its conclusion, the links of its chain, the table of its parts."""

    title: str
    conclusion: str
    links: list[Link]
    table: Table | None


@dataclass(frozen=True)
class CellPart:
    """The verdicts of a cell, explained."""

    verdicts: list[ExplainedVerdict]


@dataclass(frozen=True)
class Content:
    """The verdicts of every cell, explained."""

    cells: Mapping[str, CellPart]


def draw(connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Derived) -> Content:
    """What the report shows of every cell; the view ``causes`` must be attached."""
    answer = queries.ask(connection, CAUSES)
    cell_parts: dict[str, CellPart] = {}
    for chain in derived.explained.chains:
        one = chain.comparison
        part = cell_parts.setdefault(one.cell, CellPart([]))
        title = f"Why: {name(one.arm)} against {name(one.reference)}"
        table = _table(answer, one)
        links = words.links(about, chain)
        part.verdicts.append(
            ExplainedVerdict(title, words.conclusion(about, chain), links, table if table.lines else None)
        )
    return Content(cell_parts)


def _table(answer: queries.QueryResult, comparison: Comparison) -> Table:
    rows = answer.where(cell=comparison.cell, arm=comparison.arm, reference=comparison.reference)
    columns = [
        Column(name(comparison.arm), "arm_ns", "duration"),
        Column(name(comparison.reference), "reference_ns", "duration"),
        Column("difference", "difference_ns", "duration"),
        Column("interval", "low_ns,high_ns", "duration_interval"),
        Column("share", "share", "percent"),
        Column("interval", "share_low,share_high", "percent_interval"),
    ]
    table = tables.build(
        tables.with_rows(answer, rows),
        f"causes-{comparison.arm}-{comparison.reference}",
        "Parts of the difference, means over blocks",
        ("part", "part"),
        columns,
        cell=comparison.cell,
    )
    return table


SECTION = Section(
    "reasons",
    "",
    derive=lambda run: derive(run.connection, run.about, run.comparisons),
    draw=lambda run, derived: draw(run.connection, run.about, derived),
    cell="explain-cell.html.j2",
)

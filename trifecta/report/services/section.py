"""Tables and figures of services: a part of every cell, and a section on what holds across cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.services import catalogue
from trifecta.conclude.services.derive import EVERYWHERE, Services, derive
from trifecta.design import naming, numbers
from trifecta.design.metrics import METRICS
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import curves, style
from trifecta.report.figures.changes import Change, changes
from trifecta.report.figures.curves import Point
from trifecta.report.sections import Section
from trifecta.report.services import words
from trifecta.report.services.cell import CellPart, cell_part, success_table
from trifecta.report.services.findings import Findings, findings, metrics_of, place_of
from trifecta.report.tables import Column, Table

_MOST_CURVES = 12  # axes that get figures; the words and the table have all
_MOST_OPEN = 4  # axes whose figures are shown at once


@dataclass(frozen=True)
class Content:
    """What the report's section on services shows."""

    findings: Findings
    failing: Table
    container_figures: list[Figure]
    contrasts: Table
    curves: list[tuple[str, list[Figure]]]  # heading of the axis, its figures
    open_curves: bool
    curve_table: Table
    combinations: list[Table]
    cells: dict[str, CellPart]


def draw(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: Services, comparisons: Sequence[Comparison]
) -> Content:
    """Everything the section and the cells show. Ask within ``svg.drawing()``."""
    answers = {query.name: queries.ask(connection, query) for query in catalogue.QUERIES}
    contrasts, success_rows = answers[catalogue.CONTRASTS.name], answers[catalogue.SUCCESS.name]
    failed = [row for row in success_rows if row["failed"] or row["excluded_failed"]]
    order = list(derived.measured.cells)
    failed.sort(key=lambda row: (order.index(row["cell"]), about.arms.index(row["arm"])))
    drawn = _curves(about, derived, answers[catalogue.CURVES.name], comparisons)
    return Content(
        findings=findings(about, derived, comparisons, answers),
        failing=success_table(
            tables.with_rows(success_rows, failed),
            "success",
            ("cell", "cell"),
        ),
        container_figures=_container_figures(about, contrasts),
        contrasts=_contrast_table(contrasts),
        curves=drawn,
        open_curves=len(drawn) <= _MOST_OPEN,
        curve_table=_curve_table(about, answers[catalogue.CURVES.name]),
        combinations=_combination_tables(about, answers[catalogue.COMBINATIONS.name]),
        cells={cell: cell_part(about, answers, cell, number) for number, cell in enumerate(derived.measured.cells)},
    )


def _container_figures(about: RunFacts, contrasts: QueryResult) -> list[Figure]:
    here = [row for row in contrasts.where(factor="place", place=EVERYWHERE) if row["reference"] is None]
    figures = []
    for number, metric in enumerate(metrics_of(about, contrasts)):
        several = len({row["level"] for row in here}) > 1
        rows = [
            Change(
                f"{style.name(row['arm'])}{', ' + row['level'] if several else ''}",
                row["arm"],
                row["ratio"],
                row["low"],
                row["high"],
                row["outcome"] != "undecided",
            )
            for row in here
            if row["metric"] == metric
        ]
        svg = changes(rows, about.margin, f"ratio of {metric} to native", f"sc{number}")
        figures.append(Figure(metric[:1].upper() + metric[1:], "All places, with equal weight.", svg))
    return figures


def _contrast_table(answer: QueryResult) -> Table:
    rows = [row | {"what": f"{row['level']} ÷ {row['against']}"} for row in answer]
    columns = [
        Column("metric", "metric"),
        Column(naming.factor(), "arm", "protocol"),
        Column("beyond", "reference", "protocols"),
        Column("ratio", "ratio", "ratio"),
        Column("interval", "low,high", "interval"),
        Column("p, Holm", "p_holm", "p_value"),
        Column("place", "place"),
        Column("level", "level"),
        Column("blocks", "blocks", "count"),
        Column("against", "against_blocks", "count"),
    ]
    notes = [
        "Cells are not run side by side, so nothing is paired: Welch's interval of the logs, for a number of blocks "
        "set in advance. beyond: the ratio of the protocol's ratio to the other's, taken within blocks, which cancels "
        "what the machine did between the cells."
    ]
    return tables.build(
        tables.with_rows(answer, rows), "contrasts", "Every comparison", ("factor", "factor"), columns, notes=notes
    )


def _curves(
    about: RunFacts, derived: Services, answer: QueryResult, comparisons: Sequence[Comparison]
) -> list[tuple[str, list[Figure]]]:
    """Figures along each axis, those with the most levels first: two points make no curve, but better than nothing."""
    axes = sorted(derived.axes, key=lambda axis: -len(axis.steps))
    by_pair = {(one.cell, one.arm, one.reference): one for one in comparisons}
    drawn_curves = []
    for number, axis in enumerate(axes[:_MOST_CURVES]):
        label = words.FACTORS.get(axis.factor, axis.factor)
        here = {arm: answer.where(factor=axis.factor, place=axis.place, arm=arm) for arm in about.arms}
        points = {arm: [_point(row) for row in rows] for arm, rows in here.items() if rows}
        metric, unit = about.metric_label, derived.measured.metric.unit
        svg = curves.values(points, label, metric, unit, f"sv{number}")
        figures = [Figure(f"{metric[:1].upper()}{metric[1:]}", "Bars: intervals over blocks.", svg)]
        for pair in about.pairs[:1]:
            ones = [(step, by_pair.get((step.cell, *pair))) for step in axis.steps]
            ratio_points = [
                Point(step.value, step.text, one.row["ratio"], one.row["low"], one.row["high"], one.decided)
                for step, one in ones
                if one is not None
            ]
            if sum(point.value is not None for point in ratio_points) > 1:
                svg = curves.ratios(ratio_points, pair, label, about.margin, f"sr{number}")
                caption = "Filled: decided. Hollow: open. Bars: confidence sequences. Band: the margin."
                figures.append(Figure(f"{style.name(pair[0])} against {style.name(pair[1])}", caption, svg))
        drawn_curves.append((f"{label[:1].upper()}{label[1:]}: {place_of(axis.place)}", figures))
    return drawn_curves


def _point(row: Mapping[str, Any]) -> Point:
    return Point(row["level"], row["text"], row["value"], row["low"], row["high"])


def _curve_table(about: RunFacts, answer: QueryResult) -> Table:
    form = numbers.FORM_OF_UNIT[_unit(about)]
    columns = [
        Column("factor", "factor"),
        Column("level", "text"),
        Column(naming.factor(), "arm", "protocol"),
        Column(about.metric_label, "value", form),
        Column("interval", "low,high", f"{form}_interval"),
        Column("blocks", "blocks", "count"),
    ]
    return tables.build(answer, "curves", "Every level", ("place", "place"), columns)


def _unit(about: RunFacts) -> str:
    return METRICS[about.metric].unit


def _combination_tables(about: RunFacts, answer: QueryResult) -> list[Table]:
    form = numbers.FORM_OF_UNIT[_unit(about)]
    columns = [
        Column("edge", "edge", "protocol"),
        Column("inside", "inside", "protocols"),
        Column(about.metric_label, "value", form),
        Column("interval", "low,high", f"{form}_interval"),
        Column(f"to {style.name(about.baseline)} everywhere", "ratio", "ratio"),
        Column("interval", "ratio_low,ratio_high", "interval"),
        Column("p, Holm", "p_holm", "p_value"),
        Column("blocks", "blocks", "count"),
    ]
    return [
        tables.build(
            tables.with_rows(answer, answer.where(cell=place)),
            f"combinations-{number}",
            place_of(place),
            ("place", "rank"),
            columns,
        )
        for number, place in enumerate(dict.fromkeys(row["cell"] for row in answer))
    ]


SECTION = Section(
    "services",
    "Services",
    derive=lambda run: derive(run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, run.about, derived, run.comparisons),
    page="services.html.j2",
    cell="services-cell.html.j2",
)

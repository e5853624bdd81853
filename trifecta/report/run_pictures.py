"""Pictures of a run that somebody asks for by name, in a script or a notebook: figures of the report, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
from matplotlib.figure import Figure

from trifecta.conclude import catalogue, queries
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.query import Query, for_metric
from trifecta.design import naming, phrases
from trifecta.design.metric import Metric
from trifecta.report import drawing
from trifecta.report.figures import latency, ratios, svg
from trifecta.report.figures.by_block import TrialValue, by_block
from trifecta.report.figures.notebook import Where, displayed
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.verdict_words import place_words

# Trials that do not count are in it: a picture of the run shows what was left out.
BY_BLOCK = Query(
    "by_block",
    """
SELECT t.cell, t.arm, t.block, t.trial, t.{metric} AS value, t.valid
FROM trials AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm, t.block, t.trial
""",
    ("cell", "arm", "block", "trial"),
)


def distribution(about: RunFacts, connection: duckdb.DuckDBPyConnection, cell: str) -> Figure:
    """How long the requests of a cell took, arm by arm; a share that failed is never done."""

    def draw() -> tuple[DescribedFigure, Sequence[str]]:
        latencies = {row["arm"]: row["latency_ns"] for row in queries.ask(connection, catalogue.ECDF, cell)}
        curves = {arm: latencies[arm] for arm in about.arms if arm in latencies}
        samples = phrases.plural(about.sample_word)
        return latency.distribution(curves, catalogue.ECDF_SHARES, about.latency_word, samples), [*curves]

    return _show(about, draw, "lower right")


def cell_ratios(
    about: RunFacts, connection: duckdb.DuckDBPyConnection, arm: str, reference: str, cells: Sequence[str]
) -> Figure:
    """The ratio of an arm to a reference with its interval, a line a cell: filled when decided, hollow when open."""

    def draw() -> tuple[DescribedFigure, Sequence[str]]:
        verdicts = queries.ask(connection, catalogue.VERDICTS)
        every = comparisons_of(about, verdicts, cells_in_order(about, (row["cell"] for row in verdicts)))
        comparisons = [one for one in every if (one.arm, one.reference) == (arm, reference) and one.cell in cells]
        limits = drawing.overview_limits(about, comparisons)
        rows = [_row(one) for one in comparisons]
        axis = f"{naming.name(arm)} ÷ {naming.name(reference)}: ratio of {about.metric_label} (log)"
        return ratios.cells(rows, (arm, reference), limits, about.margin, sides=about.sides, axis=axis), []

    return _show(about, draw)


def trials_by_block(
    about: RunFacts, connection: duckdb.DuckDBPyConnection, cell: str, metric: Metric, label: str
) -> Figure:
    """A metric of every trial of a cell, block by block; trials that do not count stand apart."""

    def draw() -> tuple[DescribedFigure, Sequence[str]]:
        trial_values: dict[str, list[TrialValue]] = {}
        for row in queries.ask(connection, for_metric(BY_BLOCK, metric.name), cell):
            trial_values.setdefault(row["arm"], []).append(TrialValue(row["block"], row["value"], row["valid"]))
        return by_block(trial_values, label, metric.unit), [*trial_values]

    return _show(about, draw)


def _row(comparison: Comparison) -> ratios.ForestRow:
    return ratios.ForestRow(
        place_words(comparison.cell, without=""),
        comparison.row["ratio"],
        comparison.row["low"],
        comparison.row["high"],
        comparison.decided,
    )


def _show(about: RunFacts, draw: Callable[[], tuple[DescribedFigure, Sequence[str]]], where: Where = "best") -> Figure:
    with about.naming(), svg.drawing():
        figure, arms = draw()
        return displayed(figure, arms, where)

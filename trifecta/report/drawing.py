"""Sketches the figures of a report: the first screen's, six panels a cell, one overview a path and pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trifecta.analysis.estimate import Row
from trifecta.conclude import catalogue, pairs
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.pairs import PairSeries
from trifecta.conclude.query import Query
from trifecta.design import numbers, phrases
from trifecta.report.content import QueryResults
from trifecta.report.figure import Figure
from trifecta.report.figures import latency, load, ratios, scales, style
from trifecta.report.figures.ratios import ForestRow
from trifecta.report.overview import Overview
from trifecta.report.verdict_words import place_words

PANELS = 6
"""Figures of a cell."""


@dataclass(frozen=True)
class Sketch:
    """A figure that is still to be drawn (`figure.Figure`)."""

    title: str
    caption: str
    draw: partial[str]
    query: str = ""

    def figure(self, svg: str) -> Figure:
        """The figure, drawn."""
        return Figure(self.title, self.caption, svg, query=self.query)


def ratio_panels(
    facts: RunFacts,
    cell: str,
    number: int,
    *,
    rows: Sequence[Row],
    comparisons: Sequence[Comparison],
    answers: QueryResults,
) -> list[Sketch]:
    """The two panels that need no samples: ratios by block, and their interval over blocks."""
    series = pairs.series_of_cell(facts, cell, rows, comparisons, answers.small[catalogue.BLOCK_RATIOS.name])
    if not series:
        return []
    here = next((one for one in comparisons if one.cell == cell), None)
    margin = here.row["margin"] if here else facts.margin
    label = facts.metric_label
    compared = [one for one in series if (one.arm, one.reference) in facts.pairs]
    return [
        Sketch(
            "Paired ratios, block by block",
            "A mark is a block, the first on top; the bar is the "
            f"{numbers.percent(facts.confidence)} interval, the large mark the estimate. The band is the margin. "
            f"{style.name(facts.baseline)} against itself shows the noise.",
            partial(ratios.blocks, series, margin, label, facts.sides, f"c{number}r"),
            query=catalogue.BLOCK_RATIOS.name,
        ),
        Sketch(
            "What was known after each block",
            _sequence_caption(compared),
            partial(ratios.sequence, compared, margin, label, f"c{number}q"),
            query=catalogue.BLOCK_RATIOS.name,
        ),
    ]


def _sequence_caption(series: Sequence[PairSeries]) -> str:
    against = [one for one in series if one.reference == "h1"]
    sentence = (
        "Estimate and confidence sequence: valid under continuous monitoring, so stopping early does not invalidate it."
    )
    if against:
        sentence += f" Dotted without a band: {phrases.listed([one.label for one in against])}."
    return sentence


def sample_panels(facts: RunFacts, cell: str, number: int, answers: QueryResults) -> list[Sketch]:
    """The four panels over samples and costs; of browsers only the distribution."""
    arms = facts.arms
    sketches: list[Sketch] = []

    def by_arm(query: Query) -> dict[str, dict[str, Any]]:
        rows_by_arm = {row["arm"]: row for row in answers[query].where(cell=cell)}
        return {arm: rows_by_arm[arm] for arm in arms if arm in rows_by_arm}

    def add(title: str, caption: str, query: Query, draw: partial[str]) -> None:
        if answers[query].where(cell=cell):
            sketches.append(Sketch(title, caption, draw, query.name))

    curves = {arm: row["latency_ns"] for arm, row in by_arm(catalogue.ECDF).items()}
    word = facts.latency_word
    add(
        f"Distribution of {word}",
        f"All {phrases.plural(facts.sample_word)} of all valid trials, warm-up excluded; a failed one never completes."
        f"{_late(facts)}",
        catalogue.ECDF,
        partial(latency.ecdf, curves, catalogue.ECDF_SHARES, word, f"c{number}e", phrases.plural(facts.sample_word)),
    )
    if facts.is_browser:
        return sketches  # phases and throughput of single requests: report.visits has them
    parts = by_arm(catalogue.PHASES)
    add(
        "Where the time went",
        _phase_caption(parts),
        catalogue.PHASES,
        partial(latency.phases, parts, f"c{number}p"),
    )
    lines = {arm: line for arm in arms if (line := _line(answers[catalogue.THROUGHPUT].where(cell=cell, arm=arm)))}
    add(
        "Throughput over the time of a trial",
        "Requests completed, mean over the trials of an arm.",
        catalogue.THROUGHPUT,
        partial(load.throughput, lines, warmup_ns(facts, cell), f"c{number}t"),
    )
    add(
        "CPU cost",
        "User and system time of the client and server process per request: median over trials, line: quartiles. "
        "Solid: client. Hatched: server.",
        catalogue.COST,
        partial(load.cpu, by_arm(catalogue.COST), f"c{number}u"),
    )
    return sketches


def _line(rows: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """(Middle of the bucket in ns, requests per second); a bucket in which nothing was done is not in the answer."""
    if not rows:
        return []
    width, done = rows[0]["width_ns"], {row["bucket"]: row["requests_per_s"] for row in rows}
    return [((bucket + 0.5) * width, done.get(bucket, 0.0)) for bucket in range(catalogue.BUCKETS)]


def _late(facts: RunFacts) -> str:
    return "" if facts.closed_loop else " Counted from the moment the request was due."


def _phase_caption(rows: dict[str, dict[str, Any]]) -> str:
    sentence = "Means, because the means of the phases add up."
    if any(row["quic_handshake_ns"] is not None for row in rows.values()):
        sentence += " HTTP/3 has no TCP connect: its QUIC handshake includes TLS."
    elif not any(row["tcp_connect_ns"] or row["tls_ns"] for row in rows.values()):
        sentence += " Connections were opened before, so no request waited for one."
    return sentence


def warmup_ns(facts: RunFacts, cell: str) -> float:
    """Length of the warm-up in a cell, in ns; a path may have its own trial length."""
    spec = (facts.study.get("paths") or {}).get(levels(cell).get("path", "")) or {}
    length = spec.get("trial") or facts.workload
    return float(length.get("warmup_ns") or 0)


def overviews(
    facts: RunFacts, path: str, number: int, comparisons: Sequence[Comparison], limits: tuple[float, float]
) -> list[Sketch]:
    """A forest plot for each pair over the cells of a path."""
    drawn = []
    for arm, reference in facts.pairs:
        here = [
            one
            for one in comparisons
            if (one.arm, one.reference) == (arm, reference) and levels(one.cell).get("path", "") == path
        ]
        if not here:
            continue
        rows = [_forest_row(one) for one in here]
        title = f"{style.name(arm)} against {style.name(reference)}"
        identity = f"o{number}{arm}{reference}"
        pair, sides = (arm, reference), facts.sides
        draw = partial(ratios.forest, rows, pair, limits, facts.margin, identity, sides=sides)
        drawn.append(Sketch(title, "", draw))
    return drawn


def opening_forests(facts: RunFacts, overview: Overview) -> list[str]:
    """The small forest of every row of the first screen, on one axis."""
    limits = overview_limits(facts, [one for row in overview.rows for one in row.comparisons])
    return [
        ratios.small_forest(
            [_forest_row(one) for one in row.comparisons], overview.pair, limits, facts.margin, f"f{number}"
        )
        for number, row in enumerate(overview.rows)
    ]


def _forest_row(comparison: Comparison) -> ForestRow:
    return ForestRow(
        place_words(comparison.cell),
        comparison.row["ratio"],
        comparison.row["low"],
        comparison.row["high"],
        comparison.decided,
    )


def overview_limits(facts: RunFacts, comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """One axis for all overviews, so that they can be compared by eye."""
    ends = [one.row[name] for one in comparisons for name in ("ratio", "low", "high") if one.row[name]]
    return scales.ratio_limits([min(max(value, 1 / 8), 8.0) for value in ends], facts.margin)

"""A run as the page shows it: what the terminal and the report say of it, as data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import duckdb

from trifecta.conclude import catalogue, facts, ladder_results, maps, queries
from trifecta.conclude.comparisons import Comparison, VerdictRow, rank_arms
from trifecta.conclude.facts import RunFacts
from trifecta.contract.values import JsonObject
from trifecta.design import numbers
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.report import content, evidence, overview, terminal, verdict_words
from trifecta.report.ladder import words as ladder_words
from trifecta.report.map import page as map_page
from trifecta.report.map import words as map_words
from trifecta.report.terminal import Summary
from trifecta.store import damage
from trifecta.ui import history, results, tables

_WITH_CHECKS = ("failed", "warned", "unknown", "passed")


def answer(folder: Path, kind: str) -> str:
    """What a folder of this kind says, in a line or two."""
    if kind == "map":
        result = maps.load(folder)
        with map_page.naming_of(result):
            return map_words.headline(result)
    if kind == "ladder":
        return ladder_words.answer(ladder_results.load(folder))
    if kind == "reproduction":
        return results.reproduction_answer(folder)
    with damage.naming_damaged_file(folder):
        words = terminal.summarise(folder).words
    return " ".join([words.headline, *words.uneven])


def run(folder: Path, name: str) -> JsonObject:
    """A run, whole or not, without its samples: the first screen, its cells, and what can be asked of it."""
    with damage.naming_damaged_file(folder):
        summary = terminal.summarise(folder)
    about = summary.about
    with about.naming():
        texts = summary.words
        return {
            "name": name,
            "title": about.title,
            "state": str(about.rest.get("state", "")),
            "headline": texts.headline,
            "uneven": texts.uneven,
            "warnings": texts.warnings,
            "elsewhere": texts.elsewhere,
            "lines": [
                line for line in (texts.open, texts.checks, texts.noise, texts.scope, texts.seed, texts.more) if line
            ],
            "left_out": texts.left_out,
            "said": [*summary.program_words, *summary.service_words, *summary.visit_words],
            "next": "" if summary.opening is None else summary.opening.next,
            "arms": [tables.arm(arm) for arm in about.arms],
            "sides": about.sides,
            "margin": about.margin,
            "metric": about.metric,
            "opening": _opening(about, summary.opening),
            "cells": [_cell(summary, number, cell) for number, cell in enumerate(summary.cells)],
            "verdicts": verdicts_table(summary.comparisons),
            "report": (folder / "report.html").is_file(),
            **_choices(about),
        }


def verdict(comparison: Comparison) -> JsonObject:
    """A comparison: its numbers for the picture, its words for everything else."""
    numbers_of = {
        name: tables.json_value(comparison.row[name]) for name in ("ratio", "low", "high", "family_low", "family_high")
    }
    return {
        "cell": comparison.cell,
        "place": verdict_words.place_words(comparison.cell, without=""),
        "arm": comparison.arm,
        "reference": comparison.reference,
        "pair": pair_words(comparison.arm, comparison.reference),
        "mark": cast(int, tables.arm(comparison.arm)["mark"]),
        "kind": comparison.kind,
        "likely": comparison.likely,
        "headline": verdict_words.headline(comparison),
        "interval": verdict_words.ratio_interval(comparison),
        "family": verdict_words.family_interval(comparison),
        "needs": verdict_words.needed_blocks(comparison),
        "statement": verdict_words.statement(comparison, comparison.metric.label),
        "blocks": comparison.row["blocks"],
        **numbers_of,
    }


def pair_words(arm: str, reference: str) -> str:
    """``HTTP/3 ÷ HTTP/2``."""
    return f"{tables.arm(arm)['name']} ÷ {tables.arm(reference)['name']}"


def verdicts_table(comparisons: Sequence[Comparison]) -> JsonObject:
    """The table of the picture of intervals."""
    rows = [
        [
            f"{verdict_words.place_words(one.cell, without='')}: {pair_words(one.arm, one.reference)}",
            verdict_words.headline(one),
            numbers.ratio(one.row["ratio"]),
            verdict_words.ratio_interval(one),
            verdict_words.family_interval(one),
            numbers.count(one.row["blocks"]),
            verdict_words.needed_blocks(one),
        ]
        for one in comparisons
    ]
    columns = ["comparison", "verdict", "ratio", "alone", "among all", "blocks", "needs"]
    return tables.table("Comparisons", columns, rows, numeric=[2, 3, 4, 5], sql=catalogue.VERDICTS.text())


def order_words(arms: list[str], comparisons: Sequence[Comparison]) -> list[str]:
    """``1st HTTP/3`` and so on."""
    return verdict_words.standing_words(rank_arms(arms, comparisons)) if comparisons else []


def cell(folder: Path, key: str) -> JsonObject:
    """What the samples of a cell say: the report's tables, and the curve of each arm."""
    about = facts.read(folder)
    with damage.naming_damaged_file(folder), about.naming(), queries.connect(folder) as connection:
        queries.hold(connection, "request_sums")
        wanted = (catalogue.VERDICTS, catalogue.PERCENTILES, catalogue.ECDF, catalogue.PHASES, catalogue.COST)
        results = content.QueryResults({one.name: queries.ask(connection, one, key) for one in wanted}, {})
        makers = evidence.BROWSER_TABLES if about.is_browser else evidence.TABLES
        shown = [one for make in makers if (one := make(about, results, key, 0)).lines]
        curves = [
            {**tables.arm(row["arm"]), "ns": tables.json_value(row["latency_ns"])}
            for row in sorted(results[catalogue.ECDF].rows, key=lambda row: about.arms.index(row["arm"]))
        ]
        if not curves and not shown:
            raise UserError(f"{folder} has no cell {key!r} with a trial that counts")
        return {
            "shares": catalogue.ECDF_SHARES,
            "curves": curves,
            "closing": _closing(connection, about, key),
            "word": about.latency_word,
            "tables": [tables.of_report(one) for one in shown],
            "notes": evidence.cell_notes(about),
        }


def _closing(connection: duckdb.DuckDBPyConnection, about: RunFacts, key: str) -> list[JsonObject]:
    """How the intervals of a cell closed in, of comparisons of which more than one block is known."""
    rows = queries.select(connection, VerdictRow, history.query("intervals", key))
    return [
        {
            "pair": pair_words(arm, reference),
            "points": [history.point(one) for one in then],
            "sql": history.sql(cell, about.metric, arm, reference),
        }
        for (cell, arm, reference), then in history.comparisons(rows, about).items()
        if len(then) > 1
    ]


def _cell(summary: Summary, number: int, key: str) -> JsonObject:
    here = [one for one in summary.comparisons if one.cell == key]
    checked = content.checks_of(summary.checks, key) or content.CellChecks()
    return {
        "number": number,
        "cell": key,
        "place": verdict_words.place_words(key, without=""),
        "order": order_words(summary.about.arms, here),
        "verdicts": [verdict(one) for one in here],
        "checks": {word: checked.get(word, 0) for word in _WITH_CHECKS},  # type: ignore[misc]
    }


def _opening(about: RunFacts, first_screen: overview.Overview | None) -> JsonObject | None:
    """The first screen as a table: a row a path."""
    if first_screen is None:
        return None
    rows = [
        [
            row.path or "all cells",
            "; ".join(" ".join(part for part in winner if part) for winner in overview.winners(row, len(about.arms))),
            *(overview.spread(row, arm, about.metric) for arm in about.arms),
            f"{overview.ratio(row)} {overview.interval(row)}",
            row.next,
        ]
        for row in first_screen.rows
    ]
    names = [str(tables.arm(arm)["name"]) for arm in about.arms]
    columns = ["path", "first", *names, pair_words(*first_screen.pair), "verdicts"]
    wide = range(2, 3 + len(names))
    return tables.table(about.metric_label, columns, rows, numeric=list(wide), sql=first_screen.answer.query.text())


def _choices(about: RunFacts) -> JsonObject:
    """Which metrics can be put against which factors: the view ``trials`` has all of them (`store.views`)."""
    return {
        "metrics": [{"name": one.name, "label": one.label} for one in METRICS.values()],
        "factors": [*about.factors, about.compare, "block", "position"],
    }

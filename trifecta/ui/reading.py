"""A run as the page shows it: what the terminal and the report say of it, as data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import duckdb

from trifecta.conclude import catalogue, facts, ladder_results, maps, queries
from trifecta.conclude.comparisons import Comparison, VerdictRow, standing
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
        made = maps.load(folder)
        with map_page.naming_of(made):
            return map_words.headline(made)
    if kind == "ladder":
        return ladder_words.answer(ladder_results.load(folder))
    if kind == "reproduction":
        return results.reproduction_answer(folder)
    with damage.named(folder):
        said = terminal.summarise(folder).words
    return " ".join([said.headline, *said.uneven])


def run(folder: Path, name: str) -> JsonObject:
    """A run, whole or not, without its samples: the first screen, its cells, and what can be asked of it."""
    with damage.named(folder):
        summary = terminal.summarise(folder)
    about = summary.about
    with about.naming():
        said = summary.words
        return {
            "name": name,
            "title": about.title,
            "state": str(about.rest.get("state", "")),
            "headline": said.headline,
            "uneven": said.uneven,
            "warnings": said.warnings,
            "elsewhere": said.elsewhere,
            "lines": [line for line in (said.open, said.checks, said.noise, said.scope, said.seed, said.more) if line],
            "left_out": said.left_out,
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


def verdict(one: Comparison) -> JsonObject:
    """A comparison: its numbers for the picture, its words for everything else."""
    numbers_of = {name: tables.plain(one.row[name]) for name in ("ratio", "low", "high", "family_low", "family_high")}
    return {
        "cell": one.cell,
        "place": verdict_words.place_words(one.cell, without=""),
        "arm": one.arm,
        "reference": one.reference,
        "pair": pair_words(one.arm, one.reference),
        "mark": cast(int, tables.arm(one.arm)["mark"]),
        "kind": one.kind,
        "likely": one.likely,
        "headline": verdict_words.headline(one),
        "interval": verdict_words.ratio_interval(one),
        "family": verdict_words.family_interval(one),
        "needs": verdict_words.needs(one),
        "statement": verdict_words.statement(one, one.metric.label),
        "blocks": one.row["blocks"],
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
            verdict_words.needs(one),
        ]
        for one in comparisons
    ]
    columns = ["comparison", "verdict", "ratio", "alone", "among all", "blocks", "needs"]
    return tables.table("Comparisons", columns, rows, numeric=[2, 3, 4, 5], sql=catalogue.VERDICTS.text())


def order_words(arms: list[str], comparisons: Sequence[Comparison]) -> list[str]:
    """``1st HTTP/3`` and so on."""
    return verdict_words.standing_words(standing(arms, comparisons)) if comparisons else []


def cell(folder: Path, key: str) -> JsonObject:
    """What the samples of a cell say: the report's tables, and the curve of each arm."""
    about = facts.read(folder)
    with damage.named(folder), about.naming(), queries.connect(folder) as connection:
        queries.hold(connection, "request_sums")
        wanted = (catalogue.VERDICTS, catalogue.PERCENTILES, catalogue.ECDF, catalogue.PHASES, catalogue.COST)
        made = content.Answers({one.name: queries.ask(connection, one, key) for one in wanted}, {})
        makers = evidence.BROWSER_TABLES if about.is_browser else evidence.TABLES
        shown = [one for make in makers if (one := make(about, made, key, 0)).lines]
        curves = [
            {**tables.arm(row["arm"]), "ns": tables.plain(row["latency_ns"])}
            for row in sorted(made[catalogue.ECDF].rows, key=lambda row: about.arms.index(row["arm"]))
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


def _opening(about: RunFacts, made: overview.Overview | None) -> JsonObject | None:
    """The first screen as a table: a row a path."""
    if made is None:
        return None
    rows = [
        [
            row.path or "all cells",
            "; ".join(" ".join(part for part in said if part) for said in overview.winners(row, len(about.arms))),
            *(overview.spread(row, arm, about.metric) for arm in about.arms),
            f"{overview.ratio(row)} {overview.interval(row)}",
            row.next,
        ]
        for row in made.rows
    ]
    names = [str(tables.arm(arm)["name"]) for arm in about.arms]
    columns = ["path", "first", *names, pair_words(*made.pair), "verdicts"]
    wide = range(2, 3 + len(names))
    return tables.table(about.metric_label, columns, rows, numeric=list(wide), sql=made.answer.query.text())


def _choices(about: RunFacts) -> JsonObject:
    """Which metrics can be put against which factors: the view ``trials`` has all of them (`store.views`)."""
    return {
        "metrics": [{"name": one.name, "label": one.label} for one in METRICS.values()],
        "factors": [*about.factors, about.compare, "block", "position"],
    }

"""The verdicts in a terminal: the answer in words, a table that fits 80 columns, the noise floor, the report's path."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trifecta.analysis.verdict import SAME_BLOCKS
from trifecta.conclude import catalogue, evidence_queries, exclusions, more_blocks, queries
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.comparisons import UNTOLD, CellRanking, Comparison, levels, rank_arms
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.opened import OpenRun, opened
from trifecta.conclude.programs import Derived, derive
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.services.derive import Services
from trifecta.conclude.services.derive import derive as derive_services
from trifecta.conclude.visits.derive import Visits
from trifecta.conclude.visits.derive import derive as derive_visits
from trifecta.contract.values import JsonObject
from trifecta.design import naming, numbers, quantity
from trifecta.design.arms import level_words, server_words
from trifecta.design.metric import TIME
from trifecta.design.metrics import METRICS
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES
from trifecta.report import (
    claims,
    conformance,
    content,
    grids,
    interactions,
    next_commands,
    nodes,
    overview,
    overview_grid,
    services,
    single_protocol,
    verdict_words,
    visits,
    words,
)
from trifecta.report.figures import style
from trifecta.report.overview import Overview

WIDE = 170
_STYLES = {"faster": "green", "slower": "red", "same": "", "undecided": "dim"}
_LIKELY = "yellow"


@dataclass(frozen=True)
class Summary:
    """What a run says, before it is laid out."""

    about: RunFacts
    cells: list[str]
    comparisons: list[Comparison]
    checks: QueryResult
    words: words.Words
    totals: dict[str, Any]
    programs: Derived
    program_words: list[str]  # empty with one program only
    proxies: QueryResult  # servers that add a hop
    services: Services | None  # what was worked out of services, None without any
    service_words: list[str]
    visits: Visits | None  # the same of browsers
    visit_words: list[str]
    single: QueryResult | None  # the numbers of a study of one protocol
    opening: Overview | None  # the first screen


def summarise(run: Path | OpenRun) -> Summary:
    """Read the verdicts and checks of a run; ``UserError`` when the folder is no run."""
    with opened(run) as open_run:
        return _summary(open_run)


def _summary(run: OpenRun) -> Summary:
    about, connection = run.about, run.connection
    verdicts = queries.ask(connection, catalogue.VERDICTS)
    checks = queries.ask(connection, evidence_queries.CHECKS_BY_CELL)
    matrix = queries.ask(connection, evidence_queries.CHECK_MATRIX)
    totals = queries.ask(connection, catalogue.TOTALS).rows[0]
    by_arm = queries.ask(connection, exclusions.BY_ARM)
    single, values = single_protocol.ask(connection, about), overview.ask(connection, about)
    programs = run.derived("programs", lambda: derive(run.path, connection, about))
    proxies = queries.ask(connection, conformance.PROXIES)
    cells = cells_in_order(about, (row["cell"] for row in verdicts))
    comparisons = comparisons_of(about, verdicts, cells)
    calls = run.derived("services", lambda: derive_services(connection, about))
    loads = run.derived("visits", lambda: derive_visits(connection, about, comparisons))
    service_lines = []
    if calls:
        queries.attach(connection, {name: rows for name, rows in calls.rows.items() if name not in run.attached})
        service_lines = services.brief(connection, about, calls, comparisons)
    claim_lines = []
    if programs.shares:
        stands_apart = interactions.sentences(programs.apart, about.metric)
        claim_lines = claims.briefly(comparisons, about.pairs, stands_apart, programs.shares)
    answer = words.compose(about, comparisons, totals, matrix, by_arm)
    visit_lines = visits.brief(about, loads) if loads else []
    first = overview.overview(about, comparisons, values, totals, matrix, by_arm=by_arm)
    parts = (programs, claim_lines, proxies, calls, service_lines, loads, visit_lines, single, first)
    return Summary(about, cells, comparisons, checks, answer, totals, *parts)


def as_json(run: Path | OpenRun) -> str:
    """The verdicts of a run as one JSON document."""
    return json.dumps(as_data(run), indent=1, ensure_ascii=False, allow_nan=False)


def print_verdicts(run: Path | OpenRun, console: Console | None = None) -> None:
    """Print the verdicts of a run to standard output."""
    out = console or Console(highlight=False)
    with opened(run) as open_run:
        _print(out, _summary(open_run))
        report = open_run.path / "report.html"
    if report.exists():
        # Not wrapped: a path must stay in one piece to be copied.
        out.print(f"Report: {report}", soft_wrap=True, markup=False)


def _print(out: Console, summary: Summary) -> None:
    _print_words(out, summary)
    if summary.comparisons:
        grids.show(out, _table(out, summary))
        _print_notes(out, summary)
    elif summary.single is not None:
        single_protocol.show(out, summary.about, summary.single)
        for line in (
            summary.words.checks,
            *(f"Left out: {line}" for line in summary.words.left_out),
            summary.words.seed,
        ):
            out.print(Text(grids.plain(out, line)))


def as_data(run: Path | OpenRun) -> JsonObject:
    """The same as plain data for programs; keys are stable."""
    with opened(run) as open_run:
        return _data(open_run.path, _summary(open_run))


def _data(run_dir: Path, summary: Summary) -> dict[str, Any]:
    report = run_dir / "report.html"
    cells = []
    for cell in summary.cells:
        here = [one for one in summary.comparisons if one.cell == cell]
        places = rank_arms(summary.about.arms, here).places
        checks = content.checks_of(summary.checks, cell) or content.CellChecks()
        cells.append(
            {
                "cell": cell,
                "levels": levels(cell),
                "adds_hop": levels(cell).get("server") in summary.proxies.values("server"),
                "places": [list(arms) for arms in places],
                "verdicts": [
                    {
                        **_finite(one.row),
                        "resume": next_commands.command(summary.about, more_blocks.of(summary.about, one)),
                    }
                    for one in here
                ],
                "checks": {
                    "passed": checks.get("passed", 0),
                    "warned": checks.get("warned", 0),
                    "failed": checks.get("failed", 0),
                    "unknown": checks.get("unknown", 0),
                },
            }
        )
    return {
        "run": str(run_dir),
        "conformance": conformance.as_data(summary.about.conformance),
        "title": summary.about.title,
        "compare": summary.about.compare,
        "arms": summary.about.arms,
        "baseline": summary.about.baseline,
        "answer": " ".join([summary.words.headline, *summary.words.uneven]),
        "metric": summary.about.metric,
        "seed": summary.about.seed,
        "decided": sum(one.decided for one in summary.comparisons),
        "verdicts": len(summary.comparisons),
        "resume": next_commands.command(summary.about, more_blocks.blocks_needed(summary.about, summary.comparisons)),
        "trials": summary.totals["trials"],
        "excluded_trials": summary.totals["excluded_trials"],
        "warnings": summary.words.warnings,
        "nodes": {
            "said": summary.words.nodes,
            "left_out": [{"node": node, "reason": why} for node, why in nodes.left_out(summary.comparisons).items()],
        },
        "elsewhere": {"said": summary.words.elsewhere, "looks": [dict(look) for look in summary.about.looks]},
        "cells": cells,
        "alone": None if summary.single is None else single_protocol.as_data(summary.single),
        "programs": {
            "claims": claims.claims(summary.comparisons, summary.about.pairs),
            **{name: [_finite(row) for row in rows] for name, rows in summary.programs.rows.items()},
        },
        "services": {
            "said": summary.service_words,
            **{
                name: [_finite(row) for row in rows]
                for name, rows in (summary.services.rows if summary.services else {}).items()
            },
        },
        "visits": {
            "said": summary.visit_words,
            **{
                name: [_finite(row) for row in rows]
                for name, rows in (summary.visits.rows if summary.visits else {}).items()
            },
        },
        "report": str(report) if report.exists() else None,
    }


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose infinite values, which JSON does not have, are null: no bound."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def _print_words(out: Console, summary: Summary) -> None:
    out.print(Text(grids.plain(out, summary.about.title), style="bold"))
    out.print()
    for warning in summary.words.warnings:
        out.print(Text(grids.plain(out, warning), style="bold red"))
    out.print(Text(grids.plain(out, summary.words.headline), style="bold"))
    for warning in (*summary.words.uneven, *summary.words.elsewhere, *summary.words.nodes):
        out.print(Text(grids.plain(out, warning)))
    out.print()
    if summary.opening is not None:
        overview_grid.show(out, summary.about, summary.opening)
        step = summary.opening.next  # not wrapped with a command in it, which must stay in one piece to be copied
        out.print(Text(grids.plain(out, f"Next: {step.replace('`', '')}")), soft_wrap="`" in step)
        out.print()


def _print_notes(out: Console, summary: Summary) -> None:
    if summary.program_words:
        out.print(
            Text.assemble(
                (f"{naming.title()} or program? ", "bold"),
                grids.plain(out, " ".join(summary.program_words)),
            )
        )
    for number, line in enumerate(summary.service_words):
        out.print(Text.assemble(("Services. " if not number else "", "bold"), grids.plain(out, line)))
    for line in summary.visit_words:
        out.print(Text(grids.plain(out, line)))
    left_out = [f"Left out: {service_line}" for service_line in summary.words.left_out]
    probed = conformance.sentence(summary.about.conformance)
    notes = [f"Conformance: {probed}"] if probed else []
    notes += [note] if (note := conformance.proxy_note(summary.proxies)) else []
    out.print(Text(grids.plain(out, summary.words.open)))
    if summary.words.more and summary.opening is None:  # not wrapped: a command must stay in one piece to be copied
        out.print(Text(grids.plain(out, summary.words.more.replace("`", "").rstrip("."))), soft_wrap=True)
    for service_line in (summary.words.checks, summary.words.noise, *left_out, *notes):
        out.print(Text(grids.plain(out, service_line)))
    label = summary.about.metric_label
    metric = METRICS[summary.about.metric]
    how = f"1.43x {metric.word('faster')}: " + (
        "the other takes 1.43 times as long"
        if metric.wording is TIME
        else f"{'the other has ' if metric.lower_is_better else ''}1.43 times as much"
    )
    of_path = any(row.next != "decided" for row in summary.opening.rows) if summary.opening else False
    likely_half = ", of a path about as many as decide half of what is open there" if of_path else ""
    level, error = quantity.format_ratio(summary.about.confidence), numbers.percent(1 - summary.about.confidence)
    of_verdicts, others = "", ""
    if any("[" in one for one in (*summary.program_words, *summary.service_words, *summary.visit_words)):
        of_verdicts = " of a verdict"
        others = (
            f"Any other [a, b] is a {level} interval for a number of blocks set in advance; a ratio before it is a "
            "geometric mean over blocks. "
        )
    own = not summary.about.is_outside
    starts = ": unless a server is restarted for every block, another start may shift times by about 1 %" if own else ""
    out.print(
        Text(
            f"Metric: {label}. {how}. [a, b]{of_verdicts}: {level} confidence sequence of the median ratio of the "
            "first to the second, an interval that stays valid under continuous monitoring, for this comparison alone; "
            f"{{a, b}}: corrected for {_comparison_count(len(summary.comparisons))}; the verdict rests on it (on "
            f"average at most {error} of the verdicts are false). {others}likely: would be decided if it were the only "
            f"comparison; same from {SAME_BLOCKS} blocks on. more: further blocks needed, right in four of five "
            f"cases{likely_half}. All of it holds for this session{starts}.",
            style="dim",
        )
    )
    out.print(Text(summary.words.seed, style="dim"))


def _table(out: Console, summary: Summary) -> Table:
    """A row a cell, paths as headings; narrow terminals get stacked cells."""
    wide = out.width >= WIDE
    edges = box.SIMPLE_HEAD if out.encoding.lower().startswith("utf") else box.ASCII
    table = Table(box=edges, padding=0, show_edge=False)
    table.add_column("cell", overflow="fold", min_width=10)
    table.add_column("order", no_wrap=True)
    between = " vs " if wide else " vs\n"
    for arm, reference in summary.about.pairs:
        table.add_column(f"{style.name(arm)}{between}{style.name(reference)}", no_wrap=True)
    table.add_column("checks", no_wrap=True)
    for path, cells in groupby(summary.cells, key=lambda cell: levels(cell).get("path", "")):
        if path:
            if table.row_count:
                table.add_section()
            table.add_row(Text(grids.plain(out, path), style="bold"))
        for cell in cells:
            table.add_row(*_row(out, summary, cell, wide))
    return table


def _row(out: Console, summary: Summary, cell: str, wide: bool) -> list[Text]:
    here = {(one.arm, one.reference): one for one in summary.comparisons if one.cell == cell}
    places = rank_arms(summary.about.arms, here.values())
    place = conformance.hop(_place(cell), levels(cell), summary.proxies)
    shown = [Text(grids.plain(out, place)), _order(places, wide)]
    for pair in summary.about.pairs:
        one = here.get(pair)
        shown.append(
            Text("-")
            if one is None
            else Text(grids.plain(out, _pair(one, wide)), style=_LIKELY if one.likely else _STYLES[one.kind])
        )
    shown.append(_checks(content.checks_of(summary.checks, cell), wide))
    return shown


def _place(cell: str) -> str:
    """``new, caddy``: the levels alone, without the path, which stands above."""
    shown = {name: value for name, value in levels(cell).items() if name != "path" and (name, value) not in UNTOLD}
    return ", ".join(_short(name, value) for name, value in shown.items()) or cell


def _short(factor: str, level: str) -> str:
    if factor == PROTOCOL_FACTOR:
        return PROTOCOL_NAMES.get(level, level)
    if factor == "server":
        return server_words(level)
    return level if factor == "connection" else level_words(factor, level)


def _order(places: CellRanking, wide: bool) -> Text:
    """``HTTP/3 > HTTP/2 = HTTP/1.1`` where there is room, else a line an arm as in a result list: ``1= HTTP/2``."""
    if not any(places.places):
        return Text("open", style="dim")
    if wide:
        known = [
            " = ".join(style.name(arm) for arm in arms) if arms else "open" for _, arms in verdict_words.ranks(places)
        ]
        return Text(" > ".join(known))
    lines = []
    for rank, arms in verdict_words.ranks(places):
        tied = "=" if len(arms) > 1 else " "
        lines += [f"{rank[0]}{tied} {style.name(arm)}" for arm in arms] or [f"{rank[0]}  open"]
    return Text("\n".join(lines))


def _pair(comparison: Comparison, wide: bool) -> str:
    headline = verdict_words.headline(comparison, "x")
    if comparison.likely is not None and not wide:
        headline = headline.replace(" ", "\n", 1)
    parts = [headline, verdict_words.ratio_interval(comparison) if comparison.has_interval else "no interval"]
    parts.append(
        verdict_words.needed_short(comparison)
        if comparison.kind == "undecided"
        else verdict_words.family_interval(comparison)
    )
    return (" " if wide else "\n").join(parts)


def _checks(row: content.CellChecks | None, wide: bool) -> Text:
    if row is None:
        return Text("none", style="red")
    text = Text()
    for count, word, colour in (
        (row["failed"], "failed", "red"),
        (row["warned"], "warned", "yellow"),
        (row["unknown"], "unknown", "yellow"),
    ):
        if count:
            text.append((", " if wide else "\n") if text else "")
            text.append(f"{count} {word}", style=colour)
    return text or Text("passed")


def _comparison_count(comparisons: int) -> str:
    return "the one comparison" if comparisons == 1 else f"all {comparisons} comparisons"

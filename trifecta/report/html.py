"""The report: one HTML file that needs nothing else, neither a network nor this program."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from trifecta.conclude import catalogue, derived, evidence_queries, exclusions, queries
from trifecta.conclude.cells import cells_in_order, comparisons_of, trial_values
from trifecta.conclude.comparisons import CellRanking, Comparison, levels, rank_arms
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.opened import OpenRun, opened
from trifecta.conclude.packets.derive import Packets
from trifecta.conclude.packets.dissected import dissect_run
from trifecta.conclude.queries import Views
from trifecta.contract.trial import TrialRow
from trifecta.design import naming
from trifecta.design.numbers import FORM_OF_UNIT, FORMATS, MARKS, NO_VALUE, significant
from trifecta.report import (
    conformance,
    content,
    evidence,
    next_commands,
    overview,
    packets,
    page_templates,
    single_protocol,
    verdict_words,
    words,
)
from trifecta.report.drawing import (
    PANELS,
    Sketch,
    opening_forests,
    overview_limits,
    overviews,
    ratio_panels,
    sample_panels,
)
from trifecta.report.figure import Figure
from trifecta.report.figures import latency, parallel, style, svg
from trifecta.report.figures.parallel import Drawer
from trifecta.report.page_templates import TEMPLATES
from trifecta.report.sections import Run, Section, SectionIndex, load_sections
from trifecta.report.tables import Table, row_key
from trifecta.report.verdict_words import place_words
from trifecta.store.run import RunDirectory

if TYPE_CHECKING:
    from jinja2 import Environment

# A number and its unit stay on one line.
_UNIT = re.compile(r"(\d) (%|ns|µs|ms|s|B|[kMG]B|[kMG]?bit/s|×)(?!\w)")


@dataclass
class CellSection:
    """A cell of the study as the report shows it."""

    number: int
    cell: str
    place: str
    comparisons: dict[tuple[str, str], Comparison]
    standing: CellRanking
    checks: content.CellChecks
    panels: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    sql: dict[str, str] = field(default_factory=dict)  # title of a figure -> its SQL


@dataclass
class PathSection:
    """The cells of a path."""

    number: int
    path: str
    asked: str
    cells: list[CellSection]
    overviews: list[Figure] = field(default_factory=list)


def write_report(run: Path | OpenRun) -> Path:
    """Write ``report.html`` into the run directory and return its path.

    Raises ``UserError`` when the folder is no run and ``CannotError`` when the file cannot be written.
    """
    from trifecta.store import files

    with opened(run) as open_run:
        target = open_run.path / "report.html"
        dissect_run(open_run.path)  # before its views are opened
        text, captured = _render(open_run, partial(derived.write, open_run.path))
        with files.disk_errors(target):
            files.write_text(target, text)
        if captured is not None:
            packets.write_run_figures(open_run.path, captured)
        return target


def render(run_dir: Path) -> str:
    """The report of a run as HTML; nothing is written."""
    with opened(run_dir) as run:
        return _render(run, queries.attach)[0]


def _render(run: OpenRun, leave: Callable[[duckdb.DuckDBPyConnection, Views], None]) -> tuple[str, Packets | None]:
    """The page, and what is shown of packets; ``leave`` puts the derived tables where the page's SQL finds them."""
    about, every = run.about, load_sections()
    with ExitStack() as beside:
        # It imports what it draws with while this process still looks at the run's files.
        drawer = beside.enter_context(parallel.drawer(_figures(about), about.compare, about.arms))
        connection = run.connection
        queries.hold(connection, "request_sums")
        answers = content.ask_all(connection, about, beside.enter_context(ThreadPoolExecutor(1)))
        paths, comparisons = _sections(about, answers)
        rows = trial_values(connection, about.metric)
        by_itself = single_protocol.ask(connection, about)
        single = None if by_itself is None else single_protocol.table(about, by_itself)
        totals, matrix = answers[catalogue.TOTALS].rows[0], answers[evidence_queries.CHECK_MATRIX]
        values, by_arm = overview.ask(connection, about), answers[exclusions.BY_ARM]
        first = overview.overview(about, comparisons, values, totals, matrix, by_arm=by_arm)
        parts = Run(connection, about, comparisons)
        results = ((one, run.derived(one.name, partial(one.derive, parts))) for one in every.sections)
        concluded = [(one, result) for one, result in results if result is not None]
        views = {name: result for one, of in concluded for name, result in one.rows(of).items()}
        leave(connection, views)
        run.attached.update(views)
        with svg.drawing():
            if not about.is_map:  # which has its picture on a page of its own
                first_ones = _without_samples(about, answers, rows, paths, comparisons)
                _draw(about, answers, paths, first_ones, drawer)
            forests = opening_forests(about, first) if first else []
            shown = [(one, drawn) for one, of in concluded if (drawn := one.draw(parts, of)) is not None]
        page = _fill(about, answers, paths, comparisons, _Parts(every, shown, single, first, forests))
        captured = next((of for one, of in concluded if one.name == packets.SECTION.name), None)
        return page, captured


def _figures(about: RunFacts) -> int:
    """How many a run of all cells of the study has; a map's picture is on a page of its own."""
    levels_of = about.study.get("factors") or {}
    return 0 if about.is_map else PANELS * math.prod(len(levels_of[name]) for name in about.factors)


@dataclass(frozen=True)
class _Parts:
    """What the page has besides the verdicts of its cells."""

    known: SectionIndex
    shown: Sequence[tuple[Section, Any]]
    single: Table | None
    first: overview.Overview | None
    forests: Sequence[str]

    def by_name(self) -> dict[str, Any]:
        """What each section shows, by the name that its template has it by; None where the run has nothing for it."""
        return dict.fromkeys(one.name for one in self.known.sections) | {
            one.name: content for one, content in self.shown
        }

    def of_cell(self, cell: str) -> list[tuple[str, Any]]:
        """(template, part) of the sections that have something for the cell."""
        parts = ((one.cell, content.cells.get(cell)) for one, content in self.shown if one.cell)
        return [(template, part) for template, part in parts if part is not None]


def _sections(about: RunFacts, answers: content.QueryResults) -> tuple[list[PathSection], list[Comparison]]:
    known = {row["cell"] for row in answers[catalogue.COST]}
    if not about.is_map:  # most places of a map have no block
        known |= {row["cell"] for row in answers[catalogue.VERDICTS]}
    cells = cells_in_order(about, known)
    comparisons = [one for one in comparisons_of(about, answers[catalogue.VERDICTS], cells) if one.cell in known]
    cell_sections = [_cell_section(about, answers, number, cell, comparisons) for number, cell in enumerate(cells)]
    grouped = groupby(cell_sections, key=lambda one: levels(one.cell).get("path", ""))
    paths = [
        PathSection(number, path, about.path_words(path), list(here)) for number, (path, here) in enumerate(grouped)
    ]
    return paths, comparisons


def _cell_section(
    about: RunFacts, answers: content.QueryResults, number: int, cell: str, comparisons: Sequence[Comparison]
) -> CellSection:
    here = {(one.arm, one.reference): one for one in comparisons if one.cell == cell}
    checks = content.checks_of(answers[evidence_queries.CHECKS_BY_CELL], cell) or content.CellChecks()
    place = conformance.hop(place_words(cell), levels(cell), answers[conformance.PROXIES])
    return CellSection(number, cell, place, here, rank_arms(about.arms, here.values()), checks)


Wanted = list[tuple[list[Figure], Sequence[Sketch]]]
"""Sketches, and where each figure goes."""


def _without_samples(
    about: RunFacts,
    answers: content.QueryResults,
    rows: dict[str, list[TrialRow]],
    paths: list[PathSection],
    comparisons: Sequence[Comparison],
) -> Wanted:
    limits = overview_limits(about, comparisons)
    wanted: Wanted = [(path.overviews, overviews(about, path.path, path.number, comparisons, limits)) for path in paths]
    for one in (cell for path in paths for cell in path.cells):
        trials = rows.get(one.cell, [])
        wanted.append(
            (
                one.panels,
                ratio_panels(about, one.cell, one.number, rows=trials, comparisons=comparisons, answers=answers),
            )
        )
    return wanted


def _draw(
    about: RunFacts, answers: content.QueryResults, paths: list[PathSection], without_samples: Wanted, drawer: Drawer
) -> None:
    """Draw what needs no samples first: meanwhile the large queries run."""
    cells = [cell for path in paths for cell in path.cells]
    _fill_with(drawer, without_samples)
    _fill_with(drawer, [(one.panels, sample_panels(about, one.cell, one.number, answers)) for one in cells])
    for one in cells:
        makers = evidence.BROWSER_TABLES if about.is_browser else evidence.TABLES
        one.tables = [table for make in makers if (table := make(about, answers, one.cell, one.number)).lines]
        texts = {query.name: query.text(one.cell) for query in content.queries_of_cells(about)}
        one.sql = {panel.title: texts[panel.query] for panel in one.panels}


def _fill_with(drawer: Drawer, wanted: Wanted) -> None:
    """Draw the sketches, and add each to its list."""
    drawn = iter(drawer.draw([sketch.draw for _, sketches in wanted for sketch in sketches]))
    for panels, sketches in wanted:
        panels.extend(sketch.figure(next(drawn)) for sketch in sketches)


@lru_cache(maxsize=4)
def _environment(folders: tuple[Path, ...]) -> Environment:
    """What the templates of these folders use; it keeps them compiled, which takes longer than to fill them."""
    from markupsafe import Markup

    environment = page_templates.environment(folders, trim=True)
    environment.filters["as"] = lambda value, form: FORMATS[form](value)
    environment.filters["name"] = style.name
    environment.globals["arm_mark"] = style.mark
    environment.globals["noun"] = naming.noun
    environment.globals["factor"] = naming.factor
    environment.globals["title"] = naming.title
    environment.filters["tie"] = lambda text: _UNIT.sub("\\1\u00a0\\2", str(text))
    for filter_name in ("headline", "needed_blocks", "ranks", "ratio_interval", "standing_words", "statement"):
        environment.filters[filter_name] = getattr(verdict_words, filter_name)
    environment.filters["svg"] = Markup  # figures come from svg.render, which escapes their text
    return environment


def _fill(
    about: RunFacts,
    answers: content.QueryResults,
    paths: list[PathSection],
    comparisons: Sequence[Comparison],
    parts: _Parts,
) -> str:
    from markupsafe import Markup

    environment = _environment(tuple(dict.fromkeys(one.templates for one in parts.known.sections)))
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    totals = answers[catalogue.TOTALS].rows[0]
    cells = [one.cell for path in paths for one in path.cells]
    findings = groupby(
        answers[evidence_queries.CHECK_FINDINGS].rows, key=lambda row: (row["status"], row["check_name"])
    )
    page = environment.get_template("report.html.j2")
    return page.render(
        about=about,
        alone=parts.single,
        opening=parts.first,
        forests=parts.forests,
        factors=about.factors_in_words or "levels",
        spread=lambda row, arm: overview.spread(row, arm, about.metric),
        ratio_of=overview.ratio,
        winners=lambda row: overview.winners(row, len(about.arms)),
        known_in=overview.known_in,
        value_form=FORM_OF_UNIT[about.of.unit],
        words=words.compose(
            about, comparisons, totals, answers[evidence_queries.CHECK_MATRIX], answers[exclusions.BY_ARM]
        ),
        missing=parts.known.missing,
        sections=[one for one, _ in parts.shown if one.page],
        of_cell=parts.of_cell,
        **parts.by_name(),
        paths=paths,
        phases=[
            phase
            for phase in latency.PHASES
            if not about.is_browser and any(row[phase.column] for row in answers[catalogue.PHASES])
        ],
        phase_variable=style.CSS_VARIABLES,
        verdict_sql=catalogue.VERDICTS.text(),
        verdict_key=catalogue.VERDICTS.key,
        row_key=row_key,
        cell_notes=evidence.cell_notes(about),
        totals=evidence.totals(about, answers),
        conformance=conformance.section(answers[conformance.MATRIX], answers[conformance.FINDINGS], about.conformance),
        proxy_note=conformance.proxy_note(answers[conformance.PROXIES]),
        signs=MARKS,
        checks=evidence.checks(answers),
        findings=[(status, name, list(rows)) for (status, name), rows in findings],
        findings_sql=evidence_queries.CHECK_FINDINGS.text(),
        excluded=answers[evidence_queries.EXCLUDED].rows,
        excluded_sql=evidence_queries.EXCLUDED.text(),
        delivered=evidence.delivered(answers),
        noise=evidence.noise(answers, cells),
        parity=evidence.parity(answers),
        instrument=evidence.instrument(about, answers, cells),
        asked=[] if about.is_map else [(name, about.path_words(name)) for name in about.study.get("paths") or {}],
        place_words=place_words,
        run_facts=_flat(_said_once(about.rest)),
        study_text=_text(about.folder / "study.yaml"),
        decisions=_decisions(about.folder),
        command=next_commands.command_line(about.argv),
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _said_once(rest: dict[str, Any]) -> dict[str, Any]:
    """Of the nodes of a cluster only that in which they are not as the run is."""
    nodes: dict[str, dict[str, Any]] = rest.get("nodes") or {}
    differ = {
        node: {key: value for key, value in own.items() if value != rest.get(key)} or "as the run"
        for node, own in nodes.items()
    }
    return {**rest, "nodes": differ} if differ else rest


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """``{"machine": {"memory_bytes": 8e9}}`` as ``[("machine memory", "8.00 GB")]``."""
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in _flat(inner, f"{name} {key}".strip())]
    if isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        return [pair for place, inner in enumerate(value, 1) for pair in _flat(inner, f"{name} {place}")]
    for suffix, form in (("_ns", "duration"), ("_bytes", "size")):
        if name.endswith(suffix) and isinstance(value, int | float):
            return [(name.removesuffix(suffix).replace("_", " "), FORMATS[form](value))]
    return [(name.replace("_", " "), _plain(value))]


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: NO_VALUE}[value]
    if isinstance(value, list):
        return ", ".join(_plain(inner) for inner in value) or NO_VALUE
    return significant(value) if isinstance(value, float) else str(value)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _decisions(run: Path) -> list[str]:
    """The planner's last decisions, newest last, without how verdicts stood; a line cut by a crash is left out."""
    last = RunDirectory.open(run).decisions()[-5:]
    decisions = ({name: value for name, value in one.items() if name != "intervals"} for one in last)
    return [json.dumps(one, ensure_ascii=False).encode(errors="replace").decode() for one in decisions]

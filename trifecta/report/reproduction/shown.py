"""A reproduction in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from trifecta.analysis.published import Evaluation
from trifecta.report import threats
from trifecta.report.html import TEMPLATES
from trifecta.report.reproduction import figures, said
from trifecta.report.reproduction.result import Result, StudyResult, summary, write_data
from trifecta.store import files

PAGE = "reproduction.html"
_COLOURS = {"confirmed": "green", "contradicted": "red", "open": "yellow", "not compared": "dim"}


def write(result: Result) -> Path:
    """Write ``reproduction.json`` and ``reproduction.html``; the path of the page."""
    write_data(result)
    target = result.folder / PAGE
    with files.disk_errors(target):
        files.write_text(target, render(result))
    return target


def render(result: Result) -> str:
    """The page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {
        "published": said.published_words,
        "ours": said.our_words,
        "effect": said.effect_words,
        "reason": said.reason_words,
        "checked": said.check_words,
    }
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return environment.get_template("reproduction.html.j2").render(
        result=result,
        css=css,
        summary=summary,
        claims=[one for study in result.studies for one in study.claims],
        pictures=figures.of_studies(result.studies),
        threats=[(one, threats.sentences(dict(one))) for one in result.threats],
        measured={str(one["threat"]) for one in result.threats},
    )


def study_summary(result: Result, name: str) -> str:
    """``Of 14 claims: 6 confirmed, 4 contradicted and 4 open.``."""
    found = next(one for one in result.studies if one.published.id == name)
    return summary(found.claims, "claim")


def print_result(result: Result, console: Console | None = None) -> None:
    """Print the tables: published, ours, and whether they agree; then the threats and what could not be run."""
    out = console or Console(highlight=False)
    for study in result.studies:
        _print_study(out, study)
    if result.threats:
        out.print(Text("Threats", style="bold"))
        for one in result.threats:
            out.print(Text(f"{one['threat']}: {'; '.join(threats.sentences(dict(one)))}"), soft_wrap=True)
        out.print()
    everything = list(result.evaluations())
    out.print(Text(summary([one for one in everything if one.statement.kind == "claim"], "claim"), style="bold"))
    out.print(Text(summary([one for one in everything if one.statement.kind == "figure"], "published figure")))
    out.print(f"Page: {result.folder / PAGE}", soft_wrap=True, markup=False)


def _print_study(out: Console, study: StudyResult) -> None:
    about = study.published
    out.print(Text(f"{about.id} ({about.year}): {about.title}", style="bold"))
    if study.runs:
        out.print(_grid(out, study.claims, "claim"))
        out.print(_grid(out, study.figures, "published figure"))
    else:
        out.print(Text("nothing of it was run"))
    for name, reason in study.missing.items():
        out.print(Text(f"not run: {name}: {reason}", style="yellow"))
    out.print()


def _grid(out: Console, evaluations: list[Evaluation], what: str) -> Grid:
    edges = box.SIMPLE_HEAD if out.encoding.lower().startswith("utf") else box.ASCII
    grid = Grid(box=edges, show_edge=False, padding=(0, 1, 0, 0))
    grid.add_column(what, overflow="fold", ratio=4)
    grid.add_column("published", overflow="fold", ratio=2)
    grid.add_column("ours", overflow="fold", ratio=3)
    grid.add_column("agree?", no_wrap=True)
    grid.add_column("why", overflow="fold", ratio=3, style="dim")
    for one in evaluations:
        change = one.change()
        ours = said.our_words(one)
        text = one.statement.text
        if change and one.state != "not compared":
            ours = f"{change}: {ours}"
        grid.add_row(
            Text(text),
            said.published_words(one.statement),
            Text(ours),
            Text(one.state, _COLOURS[one.state]),
            Text(said.reason_words(one)),
        )
    return grid

"""A reproduction in the terminal and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from trifecta import __version__
from trifecta.analysis.answers import HELD_THEN, NOT_TODAY, Answer
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, NOT_COMPARED, OPEN, OTHER_SIZE
from trifecta.analysis.published import Evaluation
from trifecta.conclude.reproduction.chance import by_chance
from trifecta.conclude.reproduction.result import Result, StudyResult, machine_of, write_data
from trifecta.report import grids, threats
from trifecta.report.ladder import section
from trifecta.report.ladder import words as ladder_words
from trifecta.report.next_commands import command_line
from trifecta.report.page_templates import Filter, page
from trifecta.report.reproduction import figures, words
from trifecta.report.reproduction.own import section as own_figures
from trifecta.report.reproduction.own.study_figure import StudyFigure
from trifecta.store import files, reproduction

PAGE = "reproduction.html"
_WIDE = 110  # columns that five columns of a table need
_COLOURS: dict[Answer, str] = {
    CONFIRMED: "green",
    OTHER_SIZE: "cyan",
    HELD_THEN: "magenta",
    NOT_TODAY: "red",
    CONTRADICTED: "red",
    OPEN: "yellow",
    NOT_COMPARED: "dim",
}


def write(result: Result, kept: own_figures.Kept | None = None) -> Path:
    """Write ``reproduction.json``, ``reproduction.html`` and the studies' own figures; the path of the page.

    ``kept`` has figures of studies that did not change since they were drawn.
    """
    write_data(result)
    own = own_figures.drawn(result, kept)
    own_figures.write(result.folder, own)
    target = result.folder / PAGE
    with files.disk_errors(target):
        files.write_text(target, render(result, own))
    return target


def render(result: Result, own: Mapping[str, Sequence[StudyFigure]] | None = None) -> str:
    """The page, with the figures of each study that were drawn."""
    filters: dict[str, Filter] = {
        "published": words.published_words,
        "ours": words.our_words,
        "effect": words.effect_words,
        "reason": words.reason_words,
        "answer": lambda one: result.answer(one)[0],
        "why": lambda one: result.answer(one)[1],
        "then": lambda one: _published_words(one, result),
        "checked": words.check_words,
        "source": words.source_words,
        "spent": words.spent_words,
        "step_cost": words.step_words,
        "command": command_line,
    }
    return page(
        "reproduction.html.j2",
        filters,
        result=result,
        summary=lambda evaluations, what: _summary(result, evaluations, what),
        claims=[one for study in result.studies for one in study.claims],
        by_chance=words.by_chance(by_chance(result.evaluations())),
        pictures=figures.study_pictures(result),
        own={name: own_figures.figure_views(every) for name, every in (own or {}).items()},
        ladders=section.shown_ladders(result.ladders),
        threats=[(one, threats.sentences(one)) for one in result.threats],
        measured={str(one["threat"]) for one in result.threats},
        provenance=_provenance(result),
    )


def _provenance(result: Result) -> dict[str, Any] | None:
    """Version, seed and machine of the first run; None before there is one."""
    facts = machine_of(result)
    if facts is None:
        return None
    machine = facts.get("machine") or {}
    named = (machine.get("cpu_model"), machine.get("cpus") and f"{machine['cpus']} CPUs", machine.get("kernel"))
    return {"version": __version__, "seed": facts.get("seed"), "machine": ", ".join(str(one) for one in named if one)}


def study_summary(result: Result, name: str) -> str:
    """``Of 14 claims: 6 confirmed, 4 contradicted and 4 open.``."""
    decision = next(one for one in result.studies if one.published.id == name)
    return _summary(result, decision.claims, "claim")


def _summary(result: Result, evaluations: Sequence[Evaluation], what: str) -> str:
    return words.summary([result.answer(one)[0] for one in evaluations], what)


def print_result(result: Result, console: Console | None = None) -> None:
    """Print the tables: published, ours, and whether they agree; then the threats and what could not be run."""
    out = console or Console(highlight=False)
    for study in result.studies:
        _print_study(out, study, result)
    if result.threats:
        out.print(Text("Threats", style="bold"))
        for one in result.threats:
            out.print(Text(f"{one['threat']}: {'; '.join(threats.sentences(one))}"), soft_wrap=True)
        out.print()
    for ladder in result.ladders:
        out.print(Text(f"ladder {ladder['ladder']}: {ladder_words.answer(ladder)}"), soft_wrap=True)
    everything = list(result.evaluations())
    claims = [one for one in everything if one.statement.kind == "claim"]
    out.print(Text(_summary(result, claims, "claim"), style="bold"))
    others = [one for one in everything if one.statement.kind == "figure"]
    out.print(Text(_summary(result, others, "published figure")))
    if chance := words.by_chance(by_chance(everything)):
        out.print(Text(chance, style="dim"), soft_wrap=True)
    not_today = [one for one in claims if result.answer(one)[0] == NOT_TODAY]
    if untried := [one for one in not_today if one.statement.id not in result.then]:
        out.print(Text(_untried(result, len(untried)), style="dim"), soft_wrap=True)
    if result.spending is not None:
        out.print(Text(f"Budget: {words.spent_words(result.spending)}."))
        for still in result.spending["open"]:
            out.print(Text(f"open: {still['claim']}: {still['why']}", style="dim"), soft_wrap=True)
    out.print(f"Page: {result.folder / PAGE}", soft_wrap=True, markup=False)


def _untried(result: Result, number: int) -> str:
    """What to do about statements that do not hold today and were not tried as published."""
    they = "it was" if number == 1 else "they were"
    folder = result.folder / reproduction.AS_PUBLISHED_FOLDER
    names = " ".join(one.published.id for one in result.studies)
    return (
        f"not today: no such effect under today's conditions; whether {they} true of the study's is not known. "
        f"`trifecta reproduce {names} --as-published --out {folder}` tries, `trifecta resume {result.folder}` adds it."
    )


def _print_study(out: Console, study: StudyResult, result: Result) -> None:
    about = study.published
    conditions = ", as published" if result.as_published else ""
    out.print(Text(f"{about.id} ({about.year}){conditions}: {about.title}", style="bold"))
    if study.runs:
        for what, evaluations in (("claim", study.claims), ("published figure", study.figures)):
            if out.width < _WIDE:
                out.print(Text(f"{what}s", style="underline"))
                out.print(_list(evaluations, result))
            else:
                out.print(_grid(out, evaluations, what, result))
        if about.here:
            out.print(Text(f"other than in the study: {about.here}", style="dim"))
    else:
        out.print(Text("none of it was run"))
    for name, reason in study.missing.items():
        out.print(Text(f"not run: {name}: {reason}", style="yellow"))
    out.print()


def _list(evaluations: list[Evaluation], result: Result) -> Grid:
    """Where five columns have no room: the state, and beside it what was said, what was found, and why."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold", max_width=14)
    grid.add_column(overflow="fold")
    for one in evaluations:
        published, ours = words.published_words(one.statement), _ours(one)
        text = Text(one.statement.text)
        text.append(f"\npublished: {published or 'nothing to compare'}; here: {ours}")
        text.append(f"\n{_why(one, result)}", "dim")
        answer, _ = result.answer(one)
        grid.add_row(Text(answer, _COLOURS[answer]), text)
    return grid


def _ours(evaluation: Evaluation) -> str:
    """Our value, and what it is the ratio of."""
    change, ours = evaluation.change(), words.our_words(evaluation)
    return f"{change}: {ours}" if change and evaluation.state != "not compared" else ours


def _published_words(evaluation: Evaluation, result: Result) -> str:
    return words.then_words(result.then.get(evaluation.statement.id), words.metric_of(evaluation))


def _why(evaluation: Evaluation, result: Result) -> str:
    """Why it stands as it does, and what it was as published."""
    _, why = result.answer(evaluation)
    then = _published_words(evaluation, result)
    return f"{why or words.reason_words(evaluation)}. {then}" if then else why or words.reason_words(evaluation)


def _grid(out: Console, evaluations: list[Evaluation], what: str, result: Result) -> Grid:
    grid = grids.grid(out)
    grid.add_column(what, overflow="fold", ratio=4)
    grid.add_column("published", overflow="fold", ratio=2)
    grid.add_column("ours", overflow="fold", ratio=3)
    grid.add_column("agree?", min_width=14)
    grid.add_column("why", overflow="fold", ratio=3, style="dim")
    for one in evaluations:
        answer, _ = result.answer(one)
        grid.add_row(
            Text(one.statement.text),
            words.published_words(one.statement),
            Text(_ours(one)),
            Text(answer, _COLOURS[answer]),
            Text(_why(one, result)),
        )
    return grid

"""``trifecta why``."""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.cli import options

if TYPE_CHECKING:
    from trifecta.conclude.why.evidence import WhyQuestion
    from trifecta.contract.why import WhyDocument, WhyRequest
    from trifecta.design.model import Study
    from trifecta.design.why.rungs import Case

DEFAULT_BUDGET = "5 min"


@click.command(
    epilog="""\
\b
Exit code: 0 a cause is named, 1 none is (there is no difference, or no cause proves to explain it), 2 bad input,
3 not possible on this machine, 130 interrupted (finished trials are kept; continue with `trifecta resume`, or the same
command again).

\b
Examples:
  trifecta why runs/race
  trifecta why runs/race --list
  trifecta why runs/race --cell path=far,connection=reused,server=origin --arm h3 --budget "10 min"
"""
)
@options.run_directory
@click.option(
    "--cell",
    metavar="CELL",
    help="The cell: its key, or levels that no other cell has.  [default: the one with the largest effect]",
)
@click.option(
    "--arm",
    metavar="LEVEL",
    help="The arm (compared level) to set against the baseline.  [default: the one with the largest effect]",
)
@click.option("--budget", metavar="TIME", default=DEFAULT_BUDGET, show_default=True, help="About how long to measure.")
@click.option("--list", "listed", is_flag=True, help="Run nothing; list the possible causes in this cell.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    help="Seed of trial order, losses and arrivals; give a search's seed to repeat it.",
)
@options.folder("Folder for everything, new or empty.  [default: RUN/why/ARM-CELL, which the report of RUN shows]")
@options.quiet
@options.as_json
def command(
    *,
    run: Path,
    cell: str | None,
    arm: str | None,
    budget: str,
    listed: bool,
    seed: int | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find the causes of a difference in RUN by experiment: remove each possible cause, and see what remains.

    Takes one cell of RUN and one difference in it: an arm (a compared level, such as h3) against the baseline. Lists
    the causes that the run's checks and times point to. Then runs the cell unchanged and without each cause, in
    interleaved blocks, and last without the two largest causes together. A cause is removed from every arm that has it.
    Reports what remains of the difference without each cause, and what stays unexplained.
    """
    from trifecta.cli.option_parsing import time_ns
    from trifecta.design.study_file import parse_study
    from trifecta.design.why.rungs import cell_named, refuse_unasked
    from trifecta.store.run import RunDirectory

    budget_ns = time_ns("--budget", budget)
    study = parse_study(RunDirectory.open(run).study_text, str(run / "study.yaml"))
    refuse_unasked(study, cell, arm)
    if listed:
        from trifecta.conclude.why import evidence

        return _list(evidence.read(run, cell, arm), as_json=as_json)
    if out is not None and _is_there(out):  # before the lab: as far as it is known what is asked
        _require_same(out, run, budget_ns, seed, cell and cell_named(study, cell).key, arm)
    _enter(study)

    from trifecta.conclude.why import evidence

    question = evidence.read(run, cell, arm)
    folder = out if out is not None else _folder(run, question.case)
    if _is_there(folder):
        there = _require_same(folder, run, budget_ns, seed, question.case.cell.key, question.case.evidence.arm)
        return _carry_out(folder.resolve(), there, quiet=quiet, as_json=as_json)
    return _begin(question, run, folder, budget_ns, secrets.randbelow(2**31) if seed is None else seed, quiet, as_json)


def go_on(folder: Path, *, quiet: bool, as_json: bool) -> int:
    """Go on with a search; the exit code."""
    from trifecta.design.why.search_plan import case_asked
    from trifecta.store import why

    request = why.read(folder)
    _enter(case_asked(request).study)
    return _carry_out(folder.resolve(), request, quiet=quiet, as_json=as_json)


def _enter(study: Study) -> None:
    from trifecta.cli.running import enter_lab

    enter_lab([study])


def _is_there(folder: Path) -> bool:
    from trifecta.store import why

    return why.is_why(folder)


def _require_same(  # noqa: PLR0917
    folder: Path, run: Path, budget_ns: int, seed: int | None, cell: str | None, arm: str | None
) -> WhyRequest:
    """What the folder was made for, where that is what is asked for again; UserError where not. None is not asked."""
    from trifecta.design.errors import UserError
    from trifecta.store import why

    there = why.read(folder)
    given = {"cell": cell, "arm": arm, "seed": seed, "budget_s": budget_ns / 1e9, "run": str(run.resolve())}
    other = [name for name, value in given.items() if value is not None and there.get(name) != value]
    if other:
        raise UserError(
            f"{folder} holds another search for causes (of another {other[0].removesuffix('_s')}); choose another "
            f"folder with --out, or continue it: `trifecta resume {folder}`"
        )
    return there


def _folder(run: Path, case: Case) -> Path:
    from trifecta.store.why import FOLDER

    levels = "-".join([case.evidence.arm, *case.evidence.levels.values()])
    return run / FOLDER / re.sub(r"[^A-Za-z0-9_.-]+", "_", levels)


def _list(question: WhyQuestion, *, as_json: bool) -> int:
    from trifecta.report.why import output
    from trifecta.workloads import why as searches

    case = question.case
    reason = searches.unable(case, 0)
    if reason:
        click.echo(
            f"trifecta: the unchanged cell cannot run here: {reason}; so whether the causes can is not checked",
            err=True,
        )
    candidates = searches.candidates(case, 0, (lambda _: "") if reason else searches.why_not_here)
    if as_json:
        lines = [
            {
                "cause": one.cause.id,
                "title": one.cause.title,
                "suspicion": one.suspect.suspicion,
                "suspected": one.suspect.reason,
                # Where nothing can remove it, what would.
                "levels": {name: levels[0] for name, levels in one.suspect.levels.items()}
                | ({} if one.change is None else dict(one.change.levels)),
                "path": dict(one.suspect.path),
                "problem": one.problem,
                "nearest": one.nearest,
                "only": one.only,
                **{name.lower().replace(" ", "_"): text for name, text in one.cause.documentation.sections.items()},
            }
            for one in candidates
        ]
        click.echo(json.dumps(lines, indent=1, ensure_ascii=False))
    else:
        click.echo(f"{case.evidence.arm} against {case.evidence.to} in {case.cell.key}, the most suspected first:")
        output.print_list(candidates)
    return 0


def _begin(  # noqa: PLR0917
    question: WhyQuestion, run: Path, folder: Path, budget_ns: int, seed: int, quiet: bool, as_json: bool
) -> int:
    from trifecta.store import why
    from trifecta.workloads import why as searches

    case = question.case
    causes, rounds, refused, late = searches.ask(case, question.block_ns, budget_ns, seed)
    request: WhyRequest = {
        "run": str(run.resolve()),
        "study": case.study.source,
        "cell": case.cell.key,
        "arm": case.evidence.arm,
        "to": case.evidence.to,
        "budget_s": budget_ns / 1e9,
        "block_s": question.block_ns / 1e9,
        "rounds": rounds,
        "seed": seed,
        "causes": causes,
        "not_switched": refused,
        "not_measured": late,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "argv": sys.argv,
    }
    if not quiet:
        names = ", ".join(one["cause"] for one in causes)
        sentence = f"{case.evidence.arm} against {case.evidence.to} in {case.cell.key}: {rounds} rounds without {names}"
        click.echo(f"{sentence}; then the two largest together", err=True)
    return _carry_out(why.create(folder, request), request, quiet=quiet, as_json=as_json)


def _carry_out(folder: Path, request: WhyRequest, *, quiet: bool, as_json: bool) -> int:
    """Measure what is not over, inside the lab; the exit code."""
    from trifecta.cli.campaigns import rounds_runner
    from trifecta.cli.running import INTERRUPTED
    from trifecta.conclude.why import result
    from trifecta.design.why.search_plan import case_asked
    from trifecta.report import html
    from trifecta.report.why import output
    from trifecta.store import why
    from trifecta.workloads import why as searches
    from trifecta.workloads.stopping import StopFlag

    with StopFlag() as stop:
        problem = searches.measure(request, case_asked(request), folder, rounds_runner(stop, quiet=quiet), stop)
        if not (folder / result.SEARCH / "run.json").is_file():
            return INTERRUPTED
        document: WhyDocument = result.read(folder, request, problem)
        output.write(document, folder)
        run = Path(request["run"])
        if folder.parent == run / why.FOLDER and (run / "run.json").is_file():
            html.write_report(run)  # which has a section of it
        if as_json:
            click.echo(json.dumps({**document, "folder": str(folder)}, indent=1, ensure_ascii=False))
        else:
            output.print_result(document, folder)
        if stop():
            return INTERRUPTED
    return 0 if any(one["state"] == "explains" for one in document["causes"]) else 1

"""``trifecta ladder``."""

from __future__ import annotations

import json
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from trifecta.cli import options
from trifecta.contract.ladder import LaddersRequest

if TYPE_CHECKING:
    from trifecta.contract.ladder import LadderDocument
    from trifecta.design.ladder import Ladder
    from trifecta.design.model import Study


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trifecta.studies import ladder_files

    return [CompletionItem(name) for name in (*ladder_files.bundled(), ladder_files.ALL) if name.startswith(incomplete)]


@click.command(
    epilog="""\
\b
Exit code: 0 done (whatever was found), 1 no step has a value, 2 bad input, 3 none of the ladders can run on this
machine, 130 interrupted (finished trials are kept; continue with `trifecta resume`, or the same command and --out).

\b
Examples:
  trifecta ladder --list
  trifecta ladder milicevic2023-twenty --quick
  trifecta ladder milicevic2023 --blocks 10 --out runs/ladders
  trifecta ladder all --full
"""
)
@click.argument("names", nargs=-1, metavar="CLAIM|STUDY|all", shell_complete=_complete)
@click.option("--list", "listed", is_flag=True, help="Run nothing; list the claims and the steps of each.")
@click.option(
    "--quick/--full", default=True, help="Few rounds of short trials, or many of long ones.  [default: quick]"
)
@click.option("--blocks", type=click.IntRange(2), help="Run this many rounds; a round is one block of every step.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    help="Seed of trial order, losses and arrivals; give a ladder's seed to repeat it.",
)
@options.folder(
    "Folder for everything, new or empty; use DIR/ladders to put it inside the reproduction DIR.  [default: "
    "runs/ladder-DATE-TIME]"
)
@options.quiet
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    *,
    names: tuple[str, ...],
    listed: bool,
    quick: bool,
    blocks: int | None,
    seed: int | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Go from the published conditions of a claim to today's, changing one condition at each step.

    Reports by what factor each step changes the ratio, whether the steps together explain the difference between the
    first and the last, and the outcome: the claim is confirmed, contradicted, or "held then" (true under the study's
    conditions but not today's).
    """
    from trifecta import studies
    from trifecta.store import ladders
    from trifecta.studies import ladder_files

    if not names and not listed:
        raise click.UsageError("missing argument 'CLAIM|STUDY|all'", context)
    paths = {name: path for each in names or (ladder_files.ALL,) for name, path in ladder_files.find(each).items()}
    texts = {name: (path.name, studies.read_text(path)) for name, path in paths.items()}
    read = {name: ladder_files.read(text, file) for name, (file, text) in texts.items()}
    if listed:
        return _list(list(read.values()), as_json=as_json)
    request: LaddersRequest = {
        "ladders": {name: {"file": file, "text": text} for name, (file, text) in texts.items()},
        "depth": "quick" if quick else "full",
        "blocks": blocks,
        "seed": secrets.randbelow(2**31) if seed is None else seed,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "argv": sys.argv,
    }
    folder = out if out is not None else Path("runs") / f"ladder-{time.strftime('%Y%m%d-%H%M%S')}"
    if ladders.is_ladders(folder):  # the same command again goes on
        folder, request = folder.resolve(), ladders.require_same(folder, request)
    else:
        folder = ladders.create(folder, request)
    return _carry_out(folder, request, read, quiet=quiet, as_json=as_json)


def go_on(folder: Path, *, quiet: bool, as_json: bool) -> int:
    """Go on with ladders; the exit code."""
    from trifecta.store import ladders
    from trifecta.studies import ladder_files

    folder = folder.resolve()
    request = ladders.read(folder)
    read = {name: ladder_files.read(one["text"], one["file"]) for name, one in request["ladders"].items()}
    return _carry_out(folder, request, read, quiet=quiet, as_json=as_json)


def _list(ladders: list[Ladder], *, as_json: bool) -> int:
    from trifecta.report.ladder import output

    if as_json:
        rows = [
            {
                "ladder": one.id,
                "title": one.title,
                "claim": one.claim,
                "published": one.published,
                "lacks": list(one.lacks),
                "steps": [{"step": step.id, "title": step.title, "why": step.why} for step in one.steps],
            }
            for one in ladders
        ]
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        output.print_list(ladders)
    return 0


def _carry_out(folder: Path, request: LaddersRequest, read: dict[str, Ladder], *, quiet: bool, as_json: bool) -> int:
    """Measure what is not over, inside the lab; the exit code."""
    from trifecta.cli.campaigns import rounds_runner
    from trifecta.cli.running import INTERRUPTED, enter_lab
    from trifecta.workloads import ladder as ladders

    depth, blocks, seed = request["depth"], request["blocks"], request["seed"]
    studies = {name: ladders.study_of(one, depth=depth, blocks=blocks, seed=seed) for name, one in read.items()}
    enter_lab(studies.values())

    from trifecta.conclude import ladder as concluded
    from trifecta.design.errors import CannotError
    from trifecta.report.ladder import output
    from trifecta.workloads.stopping import StopFlag

    documents: dict[str, LadderDocument] = {}
    problems: dict[str, str] = {}
    with StopFlag() as stop:
        run_one = rounds_runner(stop, quiet=quiet)
        for name, one in read.items():
            if stop():
                break
            own = folder / name
            if not quiet:
                click.echo(f"{name}: {_plan_in_words(one, studies[name])}", err=True)
            try:
                why = ladders.measure(one, own, run_one, stop, depth=depth, blocks=blocks, seed=seed)
            except CannotError as error:
                problems[name] = str(error)
                click.echo(f"{name}: {error}", err=True)
                continue
            documents[name] = concluded.read(own, one, why)
            output.write(documents[name], own)
        if as_json:
            rows = {"ladders": list(documents.values()), "missing": problems, "folder": str(folder)}
            click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        else:
            for name, each in documents.items():
                output.print_ladder(each, folder / name)
        if stop():
            return INTERRUPTED
    if problems and not documents:
        raise CannotError("; ".join(problems.values()))
    return 0 if any(rung["ratio"] is not None for one in documents.values() for rung in one["rungs"]) else 1


def _plan_in_words(ladder: Ladder, study: Study) -> str:
    """What is to be done of a ladder that is new: its rounds, and about how long they take."""
    from trifecta.design import duration, numbers, plan

    cells = plan.cells(study)
    every = [*cells, cells[0], cells[-1]]  # the ends are run twice
    took_ns = study.min_blocks * sum(duration.block_ns(study, cell) for cell in every)
    trials = study.min_blocks * len(every) * len(plan.arms(study))
    rungs = f"{len(ladder.steps) + 1} rungs in {study.min_blocks} rounds"
    return f"{rungs}, {trials} trials, about {numbers.wall(took_ns)}; then the two largest steps in the other order"

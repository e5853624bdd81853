"""What ``race``, ``run`` and ``resume`` share: enter the lab, run, write the report, show the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trifecta.cli import consent

if TYPE_CHECKING:
    from trifecta.cli.clusters import OnCluster
    from trifecta.contract.run import RunDocument
    from trifecta.design.model import Study
    from trifecta.workloads.extending import RunExtension
    from trifecta.workloads.progress import Progress
    from trifecta.workloads.runner import MakePlanner, StudyOutcome

INTERRUPTED = 130


def default_folder(study: Study) -> Path:
    """``runs/STUDY-DATE-TIME`` in local time; a number is added to a name that is taken."""
    stem = Path("runs") / f"{study.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = stem, 2
    while folder.exists():
        folder, number = stem.with_name(f"{stem.name}-{number}"), number + 1
    return folder


def enter_lab(studies: Iterable[Study]) -> None:
    """Enter the sandbox; the control groups of containers and of limited programs are removed however it ends.

    Studies between hosts have no lab: what they need is this machine's own network, to which no way leads back.
    UserError where some need the one and some the other, and for one of a server elsewhere: nobody was asked whether it
    may leave the machine (`carry_out` asks).
    """
    from trifecta.design.errors import UserError
    from trifecta.design.plan import leaves_groups
    from trifecta.lab import cgroups, sandbox

    every = list(studies)
    consent.refuse(every)
    inside = [study for study in every if not study.hosts]
    if not inside:
        return
    if len(inside) < len(every):
        between = next(study for study in every if study.hosts)
        text = f"study {between.name} needs this machine's own network, and study {inside[0].name} a lab"
        raise UserError(f"{text}: one command cannot run both; run them separately")
    sandbox.enter(cgroups.forget if any(map(leaves_groups, inside)) else None)


def enter(studies: Iterable[Study], cluster: OnCluster | None) -> None:
    """Enter the lab, or check the cluster where one is named: nothing is measured here then."""
    if cluster is None:
        enter_lab(studies)
        return
    from trifecta.cli import clusters

    clusters.check(studies, cluster)


def carry_out(
    study: Study,
    folder: Path,
    *,
    resume: bool,
    quiet: bool,
    as_json: bool,
    any_levels: RunDocument | None = None,
    blocks: int | None = None,
    budget_ns: int | None = None,
    yes: bool = False,
    may_leave: bool = False,
    cluster: OnCluster | None = None,
) -> int:
    """Run a study into a folder, or go on with it, and show the result; the exit code.

    ``any_levels``: what ``any`` stood for in the study, as ``Finder.facts`` says it. ``blocks`` and ``budget_ns``: how
    much more of a run that is gone on with (``workloads.extending.RunExtension``). ``yes``: what a study sends to
    servers elsewhere needs no further consent; ``may_leave``: it was agreed to already. ``cluster``: where blocks are
    run instead of here.

    Everything after the sandbox is entered happens in a child process, whose exit code the command ends with. What
    starts threads (numpy, DuckDB) is imported after that. A study of servers elsewhere enters none.
    """
    if cluster is not None or not study.workload.outside:
        enter([study], cluster)
    elif not may_leave:
        consent.ask(study, yes=yes, quiet=quiet)

    from trifecta.workloads.extending import RunExtension
    from trifecta.workloads.stopping import StopFlag

    stop = StopFlag()
    run = runner(stop, quiet=quiet, more=RunExtension(blocks, budget_ns), any_levels=any_levels, cluster=cluster)
    with stop:
        outcome: StudyOutcome = run(study, folder, resume)
        show(outcome.run_path, as_json=as_json)
    return exit_code(outcome)


def runner(
    stop: Callable[[], bool],
    *,
    quiet: bool,
    more: RunExtension | None = None,
    planner: MakePlanner | None = None,
    planned: int | None = None,
    tolerated: AbstractSet[str] | Mapping[str, AbstractSet[str]] = frozenset(),
    any_levels: RunDocument | None = None,
    cluster: OnCluster | None = None,
) -> Callable[[Any, Path, bool], Any]:
    """What runs a study into a folder, or goes on with it (``more`` than it was to be), and shows how far it is.

    ``planner`` chooses the blocks, where the study's own does not; it plans so many trials. What checks that are
    ``tolerated`` say, in all cells or by cell, is no reason to leave trials out of what is made of the run.
    ``any_levels``: as of `carry_out`. ``cluster``: where blocks are run.
    """
    from trifecta.analysis.planner import Planner
    from trifecta.cli import clusters
    from trifecta.workloads.progress import NoProgress
    from trifecta.workloads.run_on import runner_on
    from trifecta.workloads.runner import NO_MORE

    if cluster is not None and planner is not None:
        raise ValueError("blocks on a cluster are chosen by the study's own planner")
    facts: RunDocument = {**any_levels} if any_levels else {}
    if tolerated:
        in_cells = tolerated.values() if isinstance(tolerated, Mapping) else [tolerated]
        facts["counted_elsewhere"] = sorted(set[str]().union(*in_cells))
    how = {"planner": planner or Planner, "more": more or NO_MORE, "more_facts": facts}
    run = partial(runner_on(clusters.launching(cluster)), stop=stop, **how)

    def run_one(study: Any, path: Path, resume: bool) -> Any:
        if quiet:
            return run(study, path, NoProgress(), resume=resume)
        from trifecta.report.progress import LiveProgress

        with LiveProgress(planned=planned, tolerated=tolerated) as progress:
            return run(study, path, progress, resume=resume)

    return run_one


def showing_question(*, quiet: bool) -> AbstractContextManager[Progress]:
    """What shows how far a run is that ends by a question of its own, a map's or a gate's."""
    from trifecta.report.question_progress import QuestionProgress
    from trifecta.workloads.progress import NoProgress

    return nullcontext(NoProgress()) if quiet else QuestionProgress()


def show(run: Path, *, as_json: bool) -> None:
    """Write the report of a run and show its verdicts, or print them as JSON."""
    from trifecta.conclude.opened import opened
    from trifecta.report import html, terminal
    from trifecta.store import damage

    with damage.naming_damaged_file(run), opened(run) as open_run:
        html.write_report(open_run)
        if as_json:
            click.echo(terminal.as_json(open_run))
        else:
            terminal.print_verdicts(open_run)


def exit_code(outcome: StudyOutcome) -> int:
    """130 when the user ended it; 1 when no trial is fit for a verdict; else 0, however much stays undecided.

    Where captured trials do not count, 0 when there is a whole one.
    """
    if outcome.interrupted:
        return INTERRUPTED
    if outcome.kind == "captured":
        return 0 if outcome.whole_trials else 1
    return 1 if outcome.valid_trials == 0 or outcome.kind == "unmeasurable" else 0

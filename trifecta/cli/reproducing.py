"""Carries a reproduction out: study by study, its campaign and the threats to it, and what they say so far."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.contract.invocation import CampaignInvocation, ReproductionInvocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trifecta.cli.clusters import OnCluster
    from trifecta.conclude.reproduction.result import Result, StudyResult
    from trifecta.contract.threats import ThreatDocument
    from trifecta.design.campaign import Campaign
    from trifecta.design.model import Study
    from trifecta.report.reproduction.own.study_figure import StudyFigure
    from trifecta.threats import Threat
    from trifecta.workloads.remaining_time import Remaining

AS_PUBLISHED = "as published"
"""The part of ``elapsed_s`` that the study's own conditions took."""


@dataclass(frozen=True)
class Part:
    """A reproduction under one kind of conditions: its folder, what was asked for, and its campaigns by study."""

    folder: Path
    invocation: ReproductionInvocation
    campaigns: dict[str, Campaign]
    cluster: OnCluster | None = None
    """Where its blocks are run instead of here."""

    def studies(self) -> list[Study]:
        """The studies of its campaigns."""
        return [study for one in self.campaigns.values() for study in one.studies.values()]


def carry_out(part: Part, under: Part | None, *, quiet: bool, as_json: bool) -> int:
    """Run what is not over of a reproduction, inside the lab; the exit code.

    ``under`` is the same as published, in its folder; it comes first, so that nothing is contradicted untried.
    """
    from trifecta.cli.running import INTERRUPTED, enter_lab

    experiments = _experiments(part.invocation)
    if part.cluster is None:
        enter_lab([*part.studies(), *(under.studies() if under is not None else ()), *experiments.values()])

    from trifecta.cli import budgets
    from trifecta.conclude.reproduction.result import as_data
    from trifecta.report import reproduction as shown
    from trifecta.workloads.stopping import StopFlag

    parts = _parts(part.folder, part.campaigns, experiments)
    if under is not None:
        parts = _parts(under.folder, under.campaigns, {}) | parts
    budgets.recover(part.folder, part.invocation)
    if not quiet:
        click.echo(_plan_in_words(parts, part.folder), err=True)
    has_valid = False
    with StopFlag() as stop:
        if under is not None:
            with _timed(part.folder, part.invocation, AS_PUBLISHED):
                reproduced = _run(under, parts, stop, quiet=quiet, as_json=as_json)
            has_valid = any(run["valid"] for study in reproduced.studies for run in study.runs)
        result = _run(part, parts, stop, quiet=quiet, as_json=as_json)
        page = _reconcile(part.folder) if part.invocation["all"] and not result.as_published else None
        if as_json:
            click.echo(json.dumps(as_data(result), indent=1, ensure_ascii=False, default=str))
        else:
            shown.print_result(result)
            if page is not None:
                click.echo(f"Reconciliation: {page}")
        if stop():
            return INTERRUPTED
    return 0 if has_valid or any(run["valid"] for study in result.studies for run in study.runs) else 1


def _run(part: Part, parts: dict[Path, Study], stop: Callable[[], bool], *, quiet: bool, as_json: bool) -> Result:
    """Run its campaigns and threats and spend its budget; what there is then, also on its page.

    ``parts``: every run of the command, by its folder.
    """
    from trifecta.cli import budgets
    from trifecta.conclude.reproduction.result import read
    from trifecta.report import reproduction as shown

    folder, invocation, campaigns = part.folder, part.invocation, part.campaigns
    problems: dict[str, dict[str, str]] = {}
    measured: dict[str, ThreatDocument] = {}
    study_results: dict[str, StudyResult] = {}
    figures: dict[str, tuple[StudyResult, list[StudyFigure]]] = {}
    for name, campaign in campaigns.items():
        if stop():
            break
        with _timed(folder, invocation, name) as note:
            left = partial(_left, parts, note)
            problems[name] = _run_campaign(
                campaign,
                folder / name,
                invocation["campaigns"][name],
                stop,
                left=left,
                quiet=quiet,
                cluster=part.cluster,
            )
        if invocation["threats"] and not stop():
            with _timed(folder, invocation, f"{name}, threats"):
                _measure(name, folder, invocation, measured, stop, quiet=quiet)
        study_results.pop(name, None)
        result = read(folder, campaigns, problems, study_results)
        shown.write(result, figures)
        if not quiet and not as_json:
            click.echo(f"{_study_name(name, result)}: {shown.study_summary(result, name)}", err=True)
    result = read(folder, campaigns, problems, study_results)
    if invocation.get("budget_ns") and not stop():
        with _timed(folder, invocation, budgets.PART) as note:
            lab = budgets.Lab(folder, campaigns, problems, stop, quiet=quiet, cluster=part.cluster)
            result = budgets.spend(folder, invocation, lab, note)
    shown.write(result, figures)
    return result


def _study_name(study: str, result: Result) -> str:
    return f"{study} as published" if result.as_published else study


@contextmanager
def _timed(folder: Path, invocation: ReproductionInvocation, part: str) -> Iterator[Callable[[], None]]:
    """Keep how long a part took, over all sessions; what is yielded keeps how long it took by then."""
    from trifecta.store import reproduction

    began, before = time.monotonic(), invocation["elapsed_s"].get(part, 0.0)

    def note() -> None:
        invocation["elapsed_s"][part] = round(before + time.monotonic() - began, 1)
        reproduction.write(folder, invocation)

    try:
        yield note
    finally:
        note()


def _parts(folder: Path, campaigns: dict[str, Campaign], experiments: dict[str, Study]) -> dict[Path, Study]:
    """Every run that belongs to it, by its folder."""
    from trifecta.store import reproduction

    parts = {
        folder / name / run: study for name, campaign in campaigns.items() for run, study in campaign.studies.items()
    }
    threats = folder / reproduction.THREATS_FOLDER
    return parts | {threats / name: study for name, study in experiments.items()}


def _plan_in_words(parts: dict[Path, Study], folder: Path) -> str:
    """What is left before it begins, how long it will take, and how it is stopped."""
    from trifecta.workloads.remaining_time import remaining

    ahead = remaining(parts)
    begun = f"{ahead.done:,} trials are finished; " if ahead.done else ""
    return f"{begun}{_words(ahead)}. Ctrl-C keeps finished trials; `trifecta resume {folder}` continues."


def _left(parts: dict[Path, Study], note: Callable[[], None], cannot: Iterable[Path]) -> str:
    """What is left now, without what cannot run; ``note`` keeps how long it took so far."""
    from trifecta.workloads.remaining_time import remaining

    note()
    for run in cannot:
        parts.pop(run, None)
    return _words(remaining(parts))


def _words(ahead: Remaining) -> str:
    """``36 runs, 6,966 trials, about 4 days``, ``9 of 36 runs left, 1,240 trials, about 9 h``."""
    from trifecta.design import numbers
    from trifecta.design.phrases import counted

    if not ahead.runs:
        return "no run is left"
    fresh = ahead.runs == ahead.of and not ahead.done
    runs = counted(ahead.of, "run") if fresh else f"{ahead.runs} of {counted(ahead.of, 'run')} left"
    trials = "" if ahead.trials is None else f", {counted(ahead.trials, 'trial')}"
    return f"{runs}{trials}, about {numbers.wall(ahead.left_ns)}"


def _run_campaign(
    campaign: Campaign,
    folder: Path,
    invocation: CampaignInvocation,
    stop: Callable[[], bool],
    *,
    left: Callable[[Iterable[Path]], str],
    quiet: bool,
    cluster: OnCluster | None,
) -> dict[str, str]:
    """Run what is not over of one study; what could not run, with the reason."""
    from trifecta.cli.campaigns import run_in_turn
    from trifecta.store import campaign as campaigns

    if not campaigns.is_campaign(folder):
        campaigns.create(folder, campaign, invocation)

    def still(cannot: Iterable[str]) -> str:
        return left([folder / name for name in cannot])

    return dict(run_in_turn(campaign, folder, stop, quiet=quiet, left=still, cluster=cluster).problems)


def _reconcile(folder: Path) -> Path:
    """Write the page that takes the claims of all studies that contradict each other."""
    from trifecta.conclude.reconcile.read import read
    from trifecta.report import reconcile

    reconcile.write(read(folder))
    return folder / reconcile.PAGE


def _experiments(invocation: ReproductionInvocation) -> dict[str, Study]:
    """The experiments of the threats to the studies, by name: they run in the same lab."""
    from trifecta.workloads import experiments

    if not invocation["threats"]:
        return {}
    quick = invocation["depth"] == "quick"
    return {
        study.name: study
        for name in invocation["studies"]
        for threat in _threats_of(name)
        for study in experiments.studies_of(threat, quick=quick, without=_left_out(threat, invocation))
    }


def _left_out(threat: Threat, invocation: ReproductionInvocation) -> tuple[str, ...]:
    """The experiments of a threat that do not belong to a reproduction of this depth."""
    return threat.by_itself if invocation["depth"] == "quick" else ()


def _runs(folder: Path) -> list[Path]:
    """The runs of a study."""
    return sorted(path.parent for path in folder.glob("*/run.json"))


def _threats_of(name: str) -> list[Threat]:
    from trifecta.threats import THREATS

    return [threat for threat in THREATS.values() if name in threat.studies]


def _measure(
    name: str,
    folder: Path,
    invocation: ReproductionInvocation,
    measured: dict[str, ThreatDocument],
    stop: Callable[[], bool],
    *,
    quiet: bool,
) -> None:
    """Measure the threats to a study that are not yet measured; one that threatens several studies runs once."""
    from trifecta.cli.campaigns import experimenter
    from trifecta.conclude.reproduction.resampled import concluded, read_stored
    from trifecta.report.reproduction import resampled
    from trifecta.store import files, reproduction
    from trifecta.workloads import experiments

    target = folder / reproduction.THREATS_FOLDER
    with files.disk_errors(target):
        target.mkdir(exist_ok=True)
    procedures = concluded(_runs(folder / name)) if any(not t.experiment for t in _threats_of(name)) else {}

    for threat in _threats_of(name):
        if (threat.id in measured and threat.experiment) or stop():
            continue
        if threat.experiment is None:
            before = measured[threat.id].get("resampled", []) if threat.id in measured else []
            procedures_found = [*read_stored(before), *procedures.get(threat.id, ())]
            document = experiments.not_measured(threat, threat.elsewhere)
            measured[threat.id] = (
                resampled.with_resampling(document, procedures_found) if procedures_found else document
            )
        else:
            quick = invocation["depth"] == "quick"
            without = _left_out(threat, invocation)
            measured[threat.id] = experiments.run_experiment(
                threat, target, experimenter(threat, stop, quiet=quiet), quick=quick, without=without, stop=stop
            )
            if not quiet:
                click.echo(f"{threat.id}: {measured[threat.id]['outcome']}", err=True)
        experiments.write(target, list(measured.values()))

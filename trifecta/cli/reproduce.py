"""``trifecta reproduce``."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from trifecta.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trifecta.design.campaign import Campaign
    from trifecta.threats import Threat

ALL = "all"


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trifecta import studies

    return [CompletionItem(name) for name in (*studies.published(), ALL) if name.startswith(incomplete)]


@click.command(
    epilog="""\
\b
Exit code: 0 done (whatever was found), 1 no trial passed the checks, 2 bad input, 3 this machine cannot,
130 interrupted (what is finished is kept; `trifecta resume` goes on).

\b
Examples:
  trifecta reproduce milicevic2023 --quick
  trifecta reproduce all --quick
  trifecta reproduce bourbon2020 --full --without jitter-reordering
  trifecta resume runs/reproduce-20260101-120000
"""
)
@click.argument("names", nargs=-1, required=True, metavar="STUDY...|all", shell_complete=_complete)
@click.option(
    "--quick/--full", default=True, help="Minutes on two cores, or hours as they were published.  [default: quick]"
)
@click.option("--only", multiple=True, metavar="NAME,...", help="Only these scenarios, suites or runs of the studies.")
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a factor or a field of every run.")
@click.option("--with", "threats_on", multiple=True, metavar="ID,...", help="Switch these threats to validity on.")
@click.option("--without", "threats_off", multiple=True, metavar="ID,...", help="Switch these threats off.")
@click.option("--threats/--no-threats", default=True, help="Measure the threats to each study as well.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of it all, new or empty.  [default: runs/reproduce-DATE-TIME]",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the result.")
@options.as_json
def command(
    *,
    names: tuple[str, ...],
    quick: bool,
    only: tuple[str, ...],
    overrides: tuple[str, ...],
    threats_on: tuple[str, ...],
    threats_off: tuple[str, ...],
    threats: bool,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run what published studies ran, and say which of their figures and claims hold here, and why not.

    Ratios, orders and shapes are compared, never absolute times of another machine.
    """
    from trifecta.workloads import reproduction

    chosen = _chosen(names)
    parts = _only(chosen, options.split_names(only))
    chosen = list(parts)
    asked: dict[str, Any] = {
        "studies": chosen,
        "all": ALL in names,
        "depth": "quick" if quick else "full",
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "argv": sys.argv,
        "threats": threats,
        "elapsed_s": {},
        "campaigns": {
            name: {
                **_file(name),
                "depth": "quick" if quick else "full",
                "overrides": list(overrides),
                "only": parts[name],
                "threats_on": options.split_names(threats_on),
                "threats_off": options.split_names(threats_off),
            }
            for name in chosen
        },
    }
    read = _read(asked)  # a fault in any of them is said before anything runs
    folder = out if out is not None else Path("runs") / f"reproduce-{time.strftime('%Y%m%d-%H%M%S')}"
    return _carry_out(reproduction.create(folder, asked), asked, read, quiet=quiet, as_json=as_json)


def go_on(folder: Path, *, quiet: bool, as_json: bool) -> int:
    """Go on with a reproduction; the exit code."""
    from trifecta.workloads import reproduction

    folder = folder.resolve()
    asked = reproduction.read(folder)
    return _carry_out(folder, asked, _read(asked), quiet=quiet, as_json=as_json)


def _chosen(names: Sequence[str]) -> list[str]:
    from trifecta import studies
    from trifecta.design.document import did_you_mean
    from trifecta.design.errors import UserError

    known = list(studies.published())
    for name in names:
        if name != ALL and name not in known:
            raise UserError(f"no published study {name!r}; {did_you_mean(name, [*known, ALL])}")
    return known if ALL in names else list(dict.fromkeys(names))


def _only(names: Sequence[str], only: Sequence[str]) -> dict[str, list[str]]:
    """The parts of each study that are asked for; of several studies those that have any of them."""
    from trifecta.cli.campaigns import read_asked
    from trifecta.design.errors import UserError

    if not only:
        return {name: [] for name in names}
    found: dict[str, list[str]] = {}
    for word in only:
        refusal: UserError | None = None
        knowing = []
        for name in names:
            try:
                read_asked({**_file(name), "depth": "quick", "overrides": [], "only": [word]})
                knowing.append(name)
            except UserError as error:
                refusal = error
        if not knowing and refusal is not None:
            raise refusal
        for name in knowing:
            found.setdefault(name, []).append(word)
    return {name: found[name] for name in names if name in found}


def _file(name: str) -> dict[str, str]:
    from trifecta import studies

    path = studies.campaigns()[name]
    return {"text": studies.read_text(path), "file": path.name}


def _read(asked: dict[str, Any]) -> dict[str, Campaign]:
    from trifecta.cli.campaigns import read_asked

    return {name: read_asked(asked["campaigns"][name]) for name in asked["studies"]}


def _carry_out(
    folder: Path, asked: dict[str, Any], campaigns: dict[str, Campaign], *, quiet: bool, as_json: bool
) -> int:
    from trifecta.cli.running import INTERRUPTED, enter_lab

    experiments = _experiments(asked)
    enter_lab([*(study for one in campaigns.values() for study in one.studies.values()), *experiments.values()])

    from trifecta.report import reproduction as shown
    from trifecta.workloads.stopping import StopFlag

    problems: dict[str, dict[str, str]] = {}
    measured: dict[str, Any] = {}
    kept: dict[str, shown.StudyResult] = {}
    with StopFlag() as stop:
        for name, campaign in campaigns.items():
            if stop():
                break
            with _timed(folder, asked, name):
                problems[name] = _run_campaign(campaign, folder / name, asked["campaigns"][name], stop, quiet=quiet)
            if asked["threats"] and not stop():
                with _timed(folder, asked, f"{name}, threats"):
                    _measure(name, folder, asked, measured, stop, quiet=quiet)
            kept.pop(name, None)
            result = shown.read(folder, campaigns, problems, kept)
            shown.write(result)
            if not quiet and not as_json:
                click.echo(f"{name}: {shown.study_summary(result, name)}", err=True)
        result = shown.read(folder, campaigns, problems, kept)
        shown.write(result)
        page = _reconcile(folder) if asked["all"] else None
        if as_json:
            click.echo(json.dumps(shown.as_data(result), indent=1, ensure_ascii=False, default=str))
        else:
            shown.print_result(result)
            if page is not None:
                click.echo(f"Reconciliation: {page}")
        if stop():
            return INTERRUPTED
    return 0 if any(run.valid for study in result.studies for run in study.runs) else 1


@contextmanager
def _timed(folder: Path, asked: dict[str, Any], part: str) -> Iterator[None]:
    """Keep how long a part took, over all sessions."""
    from trifecta.workloads import reproduction

    began = time.monotonic()
    try:
        yield
    finally:
        asked["elapsed_s"][part] = round(asked["elapsed_s"].get(part, 0.0) + time.monotonic() - began, 1)
        reproduction.write(folder, asked)


def _run_campaign(
    campaign: Campaign, folder: Path, asked: dict[str, Any], stop: Callable[[], bool], *, quiet: bool
) -> dict[str, str]:
    """Run what is not over of one study; what could not run, with the reason."""
    from trifecta.cli.campaigns import run_in_turn
    from trifecta.workloads import campaign as campaigns

    if not campaigns.is_campaign(folder):
        campaigns.create(folder, campaign, asked)
    return dict(run_in_turn(campaign, folder, stop, quiet=quiet).problems)


def _reconcile(folder: Path) -> Path:
    """Write the page that takes the claims of all studies that contradict each other."""
    from trifecta.report import reconcile

    reconcile.write(reconcile.read(folder))
    return folder / reconcile.PAGE


def _experiments(asked: dict[str, Any]) -> dict[str, Any]:
    """The experiments of the threats to the studies, by threat: they run in the same lab."""
    from trifecta.workloads import experiments

    quick = asked["depth"] == "quick"
    if not asked["threats"]:
        return {}
    return {
        threat.id: experiments.study_of(threat, quick=quick)
        for name in asked["studies"]
        for threat in _threats_of(name)
        if threat.experiment
    }


def _runs(folder: Path) -> list[Path]:
    """The runs of a study."""
    return sorted(path.parent for path in folder.glob("*/run.json"))


def _threats_of(name: str) -> list[Threat]:
    from trifecta.threats import THREATS

    return [threat for threat in THREATS.values() if name in threat.studies]


def _measure(
    name: str, folder: Path, asked: dict[str, Any], measured: dict[str, Any], stop: Callable[[], bool], *, quiet: bool
) -> None:
    """Measure the threats to a study that are not yet measured; one that threatens several studies runs once."""
    from trifecta.cli.campaigns import runner
    from trifecta.report import html
    from trifecta.report.reproduction import resampled
    from trifecta.store import files
    from trifecta.workloads import experiments, reproduction

    target = folder / reproduction.THREATS_FOLDER
    with files.disk_errors(target):
        target.mkdir(exist_ok=True)
    run = runner(stop, quiet=quiet)
    procedures = resampled.concluded(_runs(folder / name)) if any(not t.experiment for t in _threats_of(name)) else {}

    def run_one(study: Any, path: Path, resume: bool) -> Any:
        outcome = run(study, path, resume)
        html.write_report(outcome.run_path)
        return outcome

    for threat in _threats_of(name):
        if (threat.id in measured and threat.experiment) or stop():
            continue
        if threat.experiment is None:
            found = [*measured.get(threat.id, {}).get("resampled", ()), *procedures.get(threat.id, ())]
            told = experiments.not_measured(threat, threat.elsewhere)
            measured[threat.id] = resampled.measured(told, found) if found else told
        else:
            quick = asked["depth"] == "quick"
            measured[threat.id] = experiments.run_experiment(threat, target, run_one, quick=quick)
            if not quiet:
                click.echo(f"{threat.id}: {measured[threat.id]['outcome']}", err=True)
        experiments.write(target, list(measured.values()))

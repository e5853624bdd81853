"""What ``run`` and ``resume`` do with a campaign: its studies in turn, then the table of all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trifecta.cli.running import INTERRUPTED, enter_lab, runner
from trifecta.contract.invocation import CampaignInvocation

if TYPE_CHECKING:
    from trifecta.cli.clusters import OnCluster
    from trifecta.design.campaign import Campaign
    from trifecta.report.campaign import Overview
    from trifecta.threats import Threat
    from trifecta.workloads.ladder import Rounds
    from trifecta.workloads.ladder import RunOne as RunRounds


def begin(invocation: CampaignInvocation, out: Path | None, *, cluster: OnCluster | None = None, **how: bool) -> int:
    """Run a campaign, its blocks on the nodes of a cluster where one is named; the exit code.

    ``invocation``: its ``text``, ``file``, ``depth``, ``overrides``, ``only``, ``threats_on`` and ``threats_off``.
    """
    from trifecta.store import campaign as campaigns

    read = read_asked(invocation)
    _check(read, cluster)
    folder = out if out is not None else Path("runs") / f"{read.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return _carry_out(read, campaigns.create(folder, read, invocation), cluster=cluster, **how)


def go_on(folder: Path, *, cluster: OnCluster | None = None, **how: bool) -> int:
    """Go on with a campaign, on a cluster or not, however it began; the exit code."""
    from trifecta.store import campaign as campaigns

    read = read_asked(campaigns.read(folder))
    _check(read, cluster)
    return _carry_out(read, folder.resolve(), cluster=cluster, **how)


def _check(campaign: Campaign, cluster: OnCluster | None) -> None:
    from trifecta.cli import clusters

    if cluster is not None:
        clusters.check(campaign.studies.values(), cluster)


def read_asked(invocation: CampaignInvocation) -> Campaign:
    """The campaign that ``invocation`` describes, read and checked."""
    from trifecta.design.campaign import parse_campaign
    from trifecta.threats import switches

    switched = switches(invocation.get("threats_on", ()), invocation.get("threats_off", ()), many=True)
    text, file, depth = invocation["text"], invocation["file"], invocation["depth"]
    read = parse_campaign(
        text,
        file,
        depth,
        overrides=invocation["overrides"],
        only=invocation["only"],
        change=switched,
        as_published=invocation.get("as_published", False),
        with_budget=invocation.get("with_budget", False),
    )
    if switched is not None:
        switched.refuse_unused()
    return read


def _carry_out(campaign: Campaign, folder: Path, *, cluster: OnCluster | None, quiet: bool, as_json: bool) -> int:
    if cluster is None:
        enter_lab(campaign.studies.values())

    from trifecta.report import campaign as shown
    from trifecta.workloads.stopping import StopFlag

    with StopFlag() as stop:
        overview = run_in_turn(campaign, folder, stop, quiet=quiet, cluster=cluster)
        if as_json:
            click.echo(json.dumps(shown.as_data(overview, folder), indent=1, default=str))
        else:
            shown.print_overview(overview, folder)
        if stop():
            return INTERRUPTED
    return 0 if overview.lines else 1


def run_in_turn(
    campaign: Campaign,
    folder: Path,
    stop: Callable[[], bool],
    *,
    quiet: bool,
    left: Callable[[Iterable[str]], str] | None = None,
    cluster: OnCluster | None = None,
) -> Overview:
    """Run what is not over of a campaign, write reports and its page, and say what there is; inside the lab, or on a
    cluster.

    ``left`` says after every run what is still to be done, from the names of those that cannot run.
    """
    from trifecta.report import campaign as shown
    from trifecta.report import html
    from trifecta.workloads import campaign as campaigns

    problems: dict[str, str] = {}
    overview: Overview | None = None
    known_runs: dict[str, shown.RunRead] = {}
    over = sum(campaigns.study_state(folder, name) == "over" for name in campaign.studies)  # in an earlier session
    run_one = runner(stop, quiet=quiet, tolerated=campaign.tolerate, cluster=cluster)
    ran = campaigns.run_all(campaign, folder, run_one, stop)
    for number, (name, outcome, problem) in enumerate(ran, 1):
        if problem is not None:
            problems[name] = problem
        else:
            try:
                html.write_report(outcome.run_path)
            except Exception as error:  # a fault in one report must not end the studies that come after it
                problems[f"{name}, its report"] = f"internal error: {type(error).__name__}: {error}"
        known_runs.pop(name, None)
        overview = shown.overview(campaign, folder, problems, known_runs)
        shown.write_page(overview, folder)
        if not quiet:
            text = (
                problem or f"{outcome.trials} trials in {outcome.elapsed_ns / 1e9:.0f} s, {_ending(outcome, campaign)}"
            )
            more = f"; {left(problems)}" if left is not None else ""
            click.echo(f"{name} ({over + number} of {len(campaign.studies)}): {text}{more}", err=True)
    if overview is None:
        overview = shown.overview(campaign, folder, problems)
        shown.write_page(overview, folder)
    return overview


def _ending(outcome: Any, campaign: Campaign) -> str:
    """Why a run ended; its own verdicts have no part in it where they leave out what counts for the campaign."""
    from trifecta.design import phrases

    if outcome.kind == "unmeasurable" and campaign.tolerate:
        return f"trials that fail {phrases.listed(sorted(campaign.tolerate), 'or')} count, but not in its own verdicts"
    return str(outcome.reason)


def experimenter(threat: Threat, stop: Callable[[], bool], *, quiet: bool) -> Callable[[Any, Path, bool], Any]:
    """What runs the experiments of a threat and writes their reports; that its check speaks up is what they are for."""
    run = runner(stop, quiet=quiet, tolerated=frozenset({threat.check} if threat.check else ()))

    def run_one(study: Any, path: Path, resume: bool) -> Any:
        return _reported(run(study, path, resume))

    return run_one


def rounds_runner(stop: Callable[[], bool], *, quiet: bool) -> RunRounds:
    """What runs a study whose blocks are planned in rounds, and writes its report."""

    def run_one(study: Any, path: Path, resume: bool, rounds: Rounds) -> None:
        run = runner(stop, quiet=quiet, planner=rounds.planner, planned=rounds.trials, tolerated=rounds.tolerated)
        _reported(run(study, path, resume))

    return run_one


def _reported(outcome: Any) -> Any:
    from trifecta.report import html

    html.write_report(outcome.run_path)
    return outcome

"""What ``run`` and ``resume`` do with a campaign: its studies in turn, then the table of all of them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trifecta.cli.running import INTERRUPTED, enter_lab

if TYPE_CHECKING:
    from trifecta.design.campaign import Campaign


def begin(asked: dict[str, Any], out: Path | None, **how: bool) -> int:
    """Run a campaign; the exit code.

    ``asked``: its ``text``, ``file``, ``depth``, ``overrides``, ``only``, ``threats_on`` and ``threats_off``.
    """
    from trifecta.workloads import campaign as campaigns

    read = _read(asked)
    folder = out if out is not None else Path("runs") / f"{read.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return _carry_out(read, campaigns.create(folder, read, asked), **how)


def go_on(folder: Path, **how: bool) -> int:
    """Go on with a campaign; the exit code."""
    from trifecta.workloads import campaign as campaigns

    return _carry_out(_read(campaigns.read(folder)), folder.resolve(), **how)


def _read(asked: dict[str, Any]) -> Campaign:
    from trifecta.design.campaign import parse_campaign
    from trifecta.threats import switches

    switched = switches(asked.get("threats_on", ()), asked.get("threats_off", ()), many=True)
    text, file, depth = asked["text"], asked["file"], asked["depth"]
    read = parse_campaign(text, file, depth, overrides=asked["overrides"], only=asked["only"], change=switched)
    if switched is not None:
        switched.refuse_unused()
    return read


def _carry_out(campaign: Campaign, folder: Path, *, quiet: bool, as_json: bool) -> int:
    enter_lab(campaign.studies.values())

    from trifecta.report import campaign as shown
    from trifecta.report import html
    from trifecta.workloads import campaign as campaigns
    from trifecta.workloads.progress import NoProgress
    from trifecta.workloads.runner import run_study
    from trifecta.workloads.stopping import StopFlag

    problems: dict[str, str] = {}
    with StopFlag() as stop:

        def run_one(study: Any, run: Path, resume: bool) -> Any:
            if quiet:
                return run_study(study, run, NoProgress(), stop, resume=resume)
            from trifecta.report.progress import LiveProgress

            with LiveProgress() as progress:
                return run_study(study, run, progress, stop, resume=resume)

        ran = campaigns.run_all(campaign, folder, run_one, stop)
        for number, (name, outcome, problem) in enumerate(ran, 1):
            if problem is not None:
                problems[name] = problem
            else:
                html.write_report(outcome.run_path)
            made = shown.overview(campaign, folder, problems)
            shown.write_page(made, folder)
            if not quiet:
                said = problem or f"{outcome.trials} trials in {outcome.elapsed_ns / 1e9:.0f} s, {outcome.reason}"
                click.echo(f"{name} ({number} of {len(campaign.studies)}): {said}", err=True)
        made = shown.overview(campaign, folder, problems)
        shown.write_page(made, folder)
        if as_json:
            click.echo(json.dumps(shown.as_data(made, folder), indent=1, default=str))
        else:
            shown.print_overview(made, folder)
        if stop():
            return INTERRUPTED
    return 0 if made.lines else 1

"""``trifecta studies``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from trifecta.cli.options import as_json, complete_study

if TYPE_CHECKING:
    from trifecta.design.model import Study
    from trifecta.workloads.preflight import Preflight


@click.command(
    epilog="""\
\b
Examples:
  trifecta studies
  trifecta studies race > my-study.yaml
"""
)
@click.argument("study", required=False, shell_complete=complete_study)
@as_json
def command(study: str | None, as_json: bool) -> None:
    """List the bundled studies. With STUDY (a name or a file), check that study and print its text.

    With STUDY, an estimate goes to standard error: trials, time, octets, what cannot run on this machine, and whether
    the blocks and the budget suffice to decide anything. With STUDY and --json, print the study as resolved: every
    default, cell (combination of factors) and arm (compared level).
    """
    from trifecta import studies
    from trifecta.design.campaign import is_campaign, parse_campaign
    from trifecta.design.phrases import counted

    if study is None:
        listed = [studies.describe(studies.load(name), path) for name, path in studies.bundled().items()]
        if as_json:
            click.echo(json.dumps(listed, indent=2))
            return
        for each in listed:
            click.echo(f"{each['name']}: {each['title']}")
            size = f"{counted(len(each['cells']), 'cell')} x {counted(len(each['arms']), 'arm')}"
            click.echo(f"  {size}, budget {each['budget'] or 'none'}")
            click.echo(f"  trifecta run {each['name']}")
        for name, path in studies.campaigns().items():
            campaign = parse_campaign(studies.read_text(path), str(path), "quick")
            click.echo(f"{name}: {campaign.title}")
            click.echo(f"  a campaign of {len(campaign.studies)} studies: {', '.join(campaign.studies)}")
            click.echo(f"  trifecta run {name} --quick")
        return
    if is_campaign(studies.read_text(studies.find(study))):
        _show_campaign(study, as_json)
        return
    loaded = studies.load(study)
    expected, problem = _expected(loaded)
    if as_json:
        shown = {
            **studies.describe(loaded, studies.find(study)),
            "preflight": expected.as_data(),
            "cannot_run": problem,
        }
        click.echo(json.dumps(shown, indent=2))
        return
    click.echo(studies.read_text(studies.find(study)), nl=False)
    for line in [*expected.lines(), *([f"cannot run here: {problem}"] if problem else [])]:
        click.echo(line, err=True)


def _expected(study: Study) -> tuple[Preflight, str | None]:
    """What the study comes to here, and why it cannot run here at all."""
    from trifecta.design.errors import TrifectaError
    from trifecta.lab.engine import find_engine
    from trifecta.workloads.executors import executor_of
    from trifecta.workloads.preflight import preflight
    from trifecta.workloads.session import Adapters

    try:
        here = executor_of(study).cells(study, find_engine(), Adapters().for_study(study))
    except TrifectaError as error:
        return preflight(study), str(error)
    return preflight(study, here.cells, here.left_out), None


def _show_campaign(name: str, as_json: bool) -> None:
    from trifecta import studies
    from trifecta.design.campaign import parse_campaign

    path = studies.find(name)
    text = studies.read_text(path)
    campaign = parse_campaign(text, str(path), "full")
    if as_json:
        click.echo(json.dumps([studies.describe(study, path) for study in campaign.studies.values()], indent=2))
    else:
        click.echo(text, nl=False)

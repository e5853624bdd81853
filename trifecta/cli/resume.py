"""``trifecta resume``."""

from __future__ import annotations

from pathlib import Path

import click

from trifecta.cli import options


@click.command(
    epilog="""\
\b
Example:
  trifecta resume runs/race-20260101-120000
"""
)
@options.run_directory
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the result.")
@options.as_json
def command(*, run: Path, quiet: bool, as_json: bool) -> int:
    """Go on with RUN after its last finished trial, under the same study, seed and budget.

    No trial is run twice: an unfinished block gets the arms it lacks. RUN can be the folder of a campaign, a
    reproduction or a map too.
    """
    from trifecta.cli import running
    from trifecta.design.study_file import parse_study
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.campaign import is_campaign
    from trifecta.workloads.mapping import is_map
    from trifecta.workloads.reproduction import is_reproduction

    if is_reproduction(run):
        from trifecta.cli import reproduce

        return reproduce.go_on(run, quiet=quiet, as_json=as_json)
    if is_campaign(run):
        from trifecta.cli import campaigns

        return campaigns.go_on(run, quiet=quiet, as_json=as_json)
    if is_map(run):
        from trifecta.cli import map as maps

        return maps.go_on(run, quiet=quiet, as_json=as_json)
    study = parse_study(RunDirectory.open(run).study_text, str(run / "study.yaml"))
    return running.carry_out(study, run, resume=True, quiet=quiet, as_json=as_json)

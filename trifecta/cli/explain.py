"""``trifecta explain``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trifecta.cli.options import as_json, run_directory


@click.command(
    epilog="""\
\b
Examples:
  trifecta explain runs/race --cell path=far,connection=new --arm h3
  trifecta explain runs/race --json
"""
)
@run_directory
@click.option("--cell", metavar="CELL", help="Only this cell: its key, or levels that it alone has (path=far).")
@click.option("--arm", metavar="LEVEL", help="Only verdicts about this arm: h3, or a level of what is compared.")
@as_json
def command(*, run: Path, cell: str | None, arm: str | None, as_json: bool) -> None:
    """Say of each verdict of RUN what differed, what was ruled out, what share each cause has, what would overturn it,
    which threats are on, and what a published procedure would have concluded from the same samples.
    """
    from trifecta.report import explain
    from trifecta.report.explain import resampled
    from trifecta.store import damage

    with damage.named(run):
        found = explain.explain(run, cell, arm)
        cells = [chain.comparison.cell for chain in found.chains]
        concluded = resampled.conclusions(run, cells) if cells else []
    for said in found.about.doubts:
        click.echo(f"trifecta: {run}: {said}", err=True)
    if as_json:
        click.echo(json.dumps(explain.as_data(found, concluded), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        explain.print_chains(found, concluded)

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
  trifecta explain runs/race
  trifecta explain runs/race --cell path=far,connection=new --arm h3 --full
  trifecta explain runs/race --json
"""
)
@run_directory
@click.option("--cell", metavar="CELL", help="Only this cell: its key, or levels that no other cell has (path=far).")
@click.option(
    "--arm", metavar="LEVEL", help="Only verdicts about this arm (one of the compared levels): h3, origin, ..."
)
@click.option("--full", is_flag=True, help="Show all evidence of each verdict, not just one screen.")
@as_json
def command(*, run: Path, cell: str | None, arm: str | None, full: bool, as_json: bool) -> None:
    """Explain the verdicts of RUN on one screen: where the time goes, what is open, which threats are switched on.

    With --full, show for each verdict what differed, what was ruled out, the share of each part of the time, what would
    overturn it, the threats to its validity, and what a published procedure would have concluded from the same samples.
    --json prints all of this.

    Where the time goes does not show what causes a difference: `trifecta why RUN` finds causes by experiment.
    """
    from trifecta.conclude.explain import chain, resampled
    from trifecta.report import explain
    from trifecta.store import damage

    with damage.naming_damaged_file(run):
        explanation = chain.explain(run, cell, arm)
        cells = [one.comparison.cell for one in explanation.chains]
        concluded = resampled.conclusions(run, cells) if cells and (full or as_json) else []
    for doubt in explanation.about.doubts:
        click.echo(f"trifecta: {run}: {doubt}", err=True)
    if as_json:
        click.echo(json.dumps(explain.as_data(explanation, concluded), indent=1, ensure_ascii=False, allow_nan=False))
    elif full:
        explain.print_chains(explanation, concluded)
    else:
        explain.print_brief(explanation)

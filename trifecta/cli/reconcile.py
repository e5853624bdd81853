"""``trifecta reconcile``."""

from __future__ import annotations

from pathlib import Path

import click

from trifecta.cli.options import as_json


@click.command(
    epilog="""\
\b
Examples:
  trifecta reproduce all --quick --out runs/four
  trifecta reconcile runs/four
  trifecta reconcile runs/four --map runs/plane
"""
)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--map",
    "maps",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="Use this folder of 'trifecta map' as evidence too. Repeatable.",
)
@as_json
def command(*, folder: Path, maps: tuple[Path, ...], as_json: bool) -> None:
    """Take pairs of published claims that contradict each other, and report under which conditions each holds.

    FOLDER is a folder written by 'trifecta reproduce'. Writes reconciliation.html there, its figures as SVG, PDF, PNG
    and CSV, and reconciliation.bib for citations.
    """
    from trifecta.conclude.reconcile.read import read
    from trifecta.report import reconcile

    reconciliation = read(folder, maps=maps)
    reconcile.write(reconciliation)
    if as_json:
        click.echo(reconcile.as_json(reconciliation))
    else:
        reconcile.print_reconciled(reconciliation)

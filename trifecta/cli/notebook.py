"""``trifecta notebook``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trifecta.cli.options import as_json, run_directory


@click.command(
    epilog="""\
\b
Examples:
  trifecta notebook runs/race
  trifecta notebook runs/race --jupyter --out race.ipynb
"""
)
@run_directory
@click.option("--jupyter", is_flag=True, help="A notebook of Jupyter (.ipynb) instead of marimo (.py).")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A new file.  [default: notebook.py, or notebook.ipynb, in RUN]",
)
@as_json
def command(run: Path, jupyter: bool, out: Path | None, as_json: bool) -> None:
    """Write a notebook that opens RUN and asks of it: who is faster where and how sure that is, how times are
    distributed, whether the machine was calm and what was left out. It draws the answers.

    It needs the extra `notebook`: pip install 'trifecta[notebook]'. What is in RUN can be read on any machine.
    """
    from trifecta.api import notebooks
    from trifecta.design.errors import UserError
    from trifecta.store import damage

    ending = notebooks.JUPYTER if jupyter else notebooks.MARIMO
    file = out or run / f"notebook{ending}"
    if file.suffix != ending:
        other = "leave --jupyter out" if jupyter else "add --jupyter" if file.suffix == notebooks.JUPYTER else ""
        raise UserError(f"option --out {file}: does not end with {ending}; {other or f'name it FILE{ending}'}")
    with damage.named(run):
        written = notebooks.write(run, file)
    if as_json:
        click.echo(json.dumps({"notebook": str(written)}, indent=1))
    else:
        click.echo(written)
        opener = "jupyter lab" if jupyter else "marimo edit"
        click.echo(f"open it: {opener} {written}", err=True)

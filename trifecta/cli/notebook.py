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
@click.option("--jupyter", is_flag=True, help="Write a Jupyter notebook (.ipynb) in place of a marimo one (.py).")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write, which must not exist.  [default: notebook.py, or notebook.ipynb, in RUN]",
)
@as_json
def command(run: Path, jupyter: bool, out: Path | None, as_json: bool) -> None:
    """Write a notebook that opens RUN and draws the answers to these questions: which protocol is faster where, and how
    certain is that; how are the times distributed; was the machine calm, and what was left out?

    To open it, install the extra `notebook`: pip install 'trifecta[notebook]'. RUN can be read on any machine.
    """
    from trifecta.api import notebooks
    from trifecta.design.errors import UserError
    from trifecta.store import damage

    ending = notebooks.JUPYTER if jupyter else notebooks.MARIMO
    file = out or run / f"notebook{ending}"
    if file.suffix != ending:
        other = "leave --jupyter out" if jupyter else "add --jupyter" if file.suffix == notebooks.JUPYTER else ""
        raise UserError(f"option --out {file}: does not end with {ending}; {other or f'name it FILE{ending}'}")
    with damage.naming_damaged_file(run):
        written = notebooks.write(run, file)
    if as_json:
        click.echo(json.dumps({"notebook": str(written)}, indent=1))
    else:
        click.echo(written)
        opener = "jupyter lab" if jupyter else "marimo edit"
        click.echo(f"open it: {opener} {written}", err=True)

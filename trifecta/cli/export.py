"""``trifecta export``."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from trifecta.cli.options import as_json, run_directory


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The formats that there are."""
    from trifecta.store.exports import EXPORTERS

    return [CompletionItem(name) for name in EXPORTERS if name.startswith(incomplete)]


@click.command(
    epilog="""\
\b
Examples:
  trifecta export runs/race csv
  trifecta export runs/race benchstat --out trials
"""
)
@run_directory
@click.argument("format_name", metavar="FORMAT", shell_complete=_complete)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="A new or empty folder.  [default: RUN-FORMAT]"
)
@as_json
def command(run: Path, format_name: str, out: Path | None, as_json: bool) -> None:
    """Write the tables of RUN in another FORMAT: csv, benchstat, or one that an installed package adds."""
    from trifecta.store import damage, views
    from trifecta.store.exports import export

    whole = run.resolve()
    with damage.named(run), views.connect(run) as connection:
        written = export(format_name, connection, out or whole.with_name(f"{whole.name}-{format_name}"))
    if as_json:
        click.echo(json.dumps([str(path) for path in written], indent=1))
    else:
        click.echo("\n".join(str(path) for path in written))

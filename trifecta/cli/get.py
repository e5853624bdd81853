"""``trifecta get``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trifecta.cli.options import as_json, complete_recipe, split_names

if TYPE_CHECKING:
    from trifecta.implementations.installation import InstallResult

CANNOT = 3


@click.command(
    epilog="""\
\b
Exit code: 0 when all are installed, 2 for an unknown name, 3 when one cannot be installed, 130 interrupted (repeat the
command to continue; the cache never holds half an installation).

\b
The cache is the folder TRIFECTA_CACHE, else XDG_CACHE_HOME/trifecta, else ~/.cache/trifecta.

\b
Examples:
  trifecta get nginx
  trifecta get curl go-client
  trifecta get --all
"""
)
@click.argument("names", metavar="NAME...", nargs=-1, shell_complete=complete_recipe)
@click.option("--all", "everything", is_flag=True, help="Install everything that has a recipe.")
@click.option("--force", is_flag=True, help="Fetch again even if it is in the cache.")
@as_json
def command(*, names: tuple[str, ...], everything: bool, force: bool, as_json: bool) -> int:
    """Install servers and clients into Trifecta's own cache, verified by checksum, without root.

    `trifecta implementations` lists the names.
    """
    from trifecta.implementations import installation
    from trifecta.implementations.registry import RECIPES

    if everything == bool(names):
        raise click.UsageError("name the implementations, or use --all")
    wanted = list(RECIPES) if everything else installation.chosen(split_names(names))
    answers = []
    for name in wanted:
        with _telling(name) as say:
            answer = installation.get(name, say, force=force)
        answers.append(answer)
        if not as_json:
            _show(answer)
    if as_json:
        click.echo(json.dumps([answer.as_dict() for answer in answers], indent=2))
    return CANNOT if any(answer.status == "failed" for answer in answers) else 0


@contextmanager
def _telling(name: str) -> Iterator[Callable[[str], None]]:
    """Steps as lines on standard error; on a terminal the last one turns while it goes on."""
    if not sys.stderr.isatty():
        yield lambda text: click.echo(text, err=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    with console.status(Text(name)) as status:

        def say(text: str) -> None:
            console.print(text, markup=False, soft_wrap=True)
            status.update(Text(text))

        yield say


def _show(answer: InstallResult) -> None:
    from trifecta.implementations.survey import shorten

    version = shorten(answer.version or "")
    if answer.status == "failed":
        reason = " ".join((answer.reason or "failed").split()).removeprefix(f"{answer.name}: ")
        click.echo(f"trifecta: {answer.name}: {reason}", err=True)
    elif answer.status == "found":
        click.echo(f"{answer.name}: {version} is here; it needs no recipe ({answer.origin})")
    elif answer.status == "present":
        click.echo(f"{answer.name}: {version} is in the cache already ({answer.folder})")
    else:
        size, seconds = (answer.size_bytes or 0) / 1e6, answer.seconds or 0.0
        cost = f"{seconds:.1f} s, {size:.1f} MB"
        click.echo(f"{answer.name}: {version} from {answer.origin} ({cost}) in {answer.folder}")

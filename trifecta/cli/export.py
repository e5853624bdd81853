"""``trifecta export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from trifecta.cli.options import as_json, run_directory

if TYPE_CHECKING:
    import duckdb


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The formats that there are."""
    from trifecta.store.exports import EXPORTERS

    return [CompletionItem(name) for name in EXPORTERS if name.startswith(incomplete)]


def _complete_target(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The formats, and the schemes of URLs."""
    from trifecta.store.exports import EXPORTERS, schemes

    names = [*EXPORTERS, *(f"{scheme}://" for scheme in schemes())]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class _Command(click.Command):
    """Its help lists what there is to export to, from the documentation that stands with each."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options, then formats and targets."""
        super().format_options(ctx, formatter)
        from trifecta.store.exports import EXPORTERS, TARGETS

        with formatter.section("Formats, into a folder"):
            formatter.write_dl([(name, one.documentation.title) for name, one in EXPORTERS.items()])
        with formatter.section("Targets, by URL"):
            formatter.write_dl([(f"{target.schemes[0]}://", target.documentation.title) for target in TARGETS.values()])
        for target in TARGETS.values():
            with formatter.section(", ".join(target.schemes)):
                for line in target.documentation["Needs"].strip().split("\n\n"):
                    formatter.write_text(" ".join(line.split()))


@click.command(
    cls=_Command,
    epilog="""\
\b
Examples:
  trifecta export runs/race csv
  trifecta export runs/race benchstat --out trials
  trifecta export runs/race --to jsonl:lines
  trifecta export runs/race --to s3://bucket/measured
""",
)
@run_directory
@click.argument("format_name", metavar="[FORMAT]", required=False, shell_complete=_complete)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="A new or empty folder.  [default: RUN-FORMAT]"
)
@click.option(
    "--to",
    "target",
    metavar="TARGET",
    shell_complete=_complete_target,
    help="FORMAT, FORMAT:FOLDER, or the URL of a target; replaces FORMAT and --out.",
)
@as_json
def command(run: Path, format_name: str | None, out: Path | None, target: str | None, as_json: bool) -> None:
    """Write the tables of RUN in another FORMAT into a folder, or send them to a store.

    Exporting again makes no duplicates. An interrupted export resumes. The run itself is not changed.
    """
    from trifecta.conclude import results
    from trifecta.design.errors import UserError
    from trifecta.store import results_manifest
    from trifecta.store.exports import export, to

    if (target is None) == (format_name is None) or (target is not None and out is not None):
        raise UserError("export: give a FORMAT, with --out if you like, or --to TARGET; not both")
    sentences: list[str] = []

    def settle(connection: duckdb.DuckDBPyConnection) -> None:
        sentences.extend(results.attach(connection, run).said)
        results_manifest.check_derived(run, run)

    if target is not None:
        written = to(target, run, settle)
    else:
        written = [str(path) for path in export(format_name or "", run, out, settle)]
    for one in sentences:
        click.echo(f"trifecta: {run}: {one}", err=True)
    if as_json:
        click.echo(json.dumps(written, indent=1))
    else:
        click.echo("\n".join(written))

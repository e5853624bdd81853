"""``trifecta sql``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trifecta.cli.options import as_json, run_directory


@click.command(
    epilog="""\
\b
Examples:
  trifecta sql runs/race
  trifecta sql runs/race "SELECT arm, count(*) AS trials, median(latency_p50_ns) FROM trials GROUP BY arm"
  trifecta sql runs/race --json "FROM verdicts"
"""
)
@run_directory
@click.argument("query", required=False)
@as_json
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
def command(run: Path, query: str | None, as_json: bool, as_csv: bool) -> None:
    """Query the tables of RUN: trials, samples, checks, verdicts, link, ... QUERY is SQL for DuckDB; '-' reads it from
    standard input. Without QUERY, list the tables and their columns: name, type, meaning.

    A row that is wider than the terminal is printed as a list, one field per line. With --json, a number that JSON
    cannot hold (infinity, not a number) is printed as a string.
    """
    from trifecta.cli import tables
    from trifecta.conclude import results
    from trifecta.store import damage, results_manifest, views

    if as_json and as_csv:
        raise click.UsageError("--json and --csv cannot be combined")
    text = sys.stdin.read() if query == "-" else query or tables.SCHEMA_QUERY
    with damage.naming_damaged_file(run), views.connect(run) as connection:
        attached = results.attach(connection, run)
        results_manifest.check_derived(run, run)
        answer = tables.ask(connection, text)
    for note in attached.said:
        click.echo(f"trifecta: {run}: {note}", err=True)
    if query is None:
        answer = tables.with_meanings(answer)
    if as_json or as_csv:
        click.echo(tables.as_json(answer) if as_json else tables.as_csv(answer), nl=False)
        return
    click.echo((tables.schema_as_text if query is None else tables.as_text)(answer, tables.terminal_width()), nl=False)

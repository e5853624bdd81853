"""``trifecta report``."""

from __future__ import annotations

from pathlib import Path

import click

from trifecta.cli import options


@click.command(
    epilog="""\
\b
Examples:
  trifecta report runs/race-20260101-120000
  trifecta report runs/race-20260101-120000 --json
"""
)
@options.run_directory
@options.as_json
def command(*, run: Path, as_json: bool) -> None:
    """Write the report of RUN, finished or not, to its report.html and show the verdicts."""
    from trifecta.cli import running
    from trifecta.store import digest_prefetch
    from trifecta.store.run import RunDirectory

    digest_prefetch.read(RunDirectory.open(run).path)
    running.show(run, as_json=as_json)

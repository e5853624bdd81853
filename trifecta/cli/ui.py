"""``trifecta ui``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trifecta.cli import options


@click.command(
    epilog="""\
\b
Examples:
  trifecta ui
  trifecta ui runs/race-20260101-120000
  trifecta ui /data/runs --port 8300
  trifecta ui --port 8300 --metrics prometheus.token
"""
)
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"), metavar="[FOLDER]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port.  [default: a free one]")
@click.option(
    "--metrics",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Serve the state of running measurements at /metrics to a Prometheus that sends the token in FILE; a missing "
    "FILE is created.",
)
@options.as_json
def command(*, folder: Path, port: int, metrics: Path | None, as_json: bool) -> None:
    """Show the runs in FOLDER (default: runs) in a browser, on this machine only. Ctrl-C ends the command.

    Prints the address to open. It holds a token that is new at each start; requests without the token get no answer.
    The page lists runs with their answers, follows a live run, stops and resumes it, opens its trials and samples, puts
    two runs side by side, and shows maps, ladders and reproductions. From another machine, use a tunnel:
    `ssh -L PORT:127.0.0.1:PORT HOST`.

    When this command ends, it stops runs that were started from the page, as Ctrl-C would.
    """
    from trifecta.design import extras

    for module in extras.EXTRAS["ui"].modules:
        extras.load(module)
    from trifecta.ui import server

    def opened(address: str) -> None:
        click.echo(json.dumps({"address": address, "folder": str(folder.resolve())}) if as_json else address)

    server.serve(folder, port, opened, lambda line: click.echo(line, err=True), metrics)

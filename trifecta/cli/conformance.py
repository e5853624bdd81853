"""``trifecta conformance``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from trifecta.cli import options

INTERRUPTED = 130


@click.command(
    epilog="""\
\b
Exit code: 0 every transfer that both sides support was complete, 1 one was not, or a named implementation is missing,
2 bad input, 3 not possible on this machine, 130 interrupted.

\b
Examples:
  trifecta conformance
  trifecta conformance --server nginx,caddy --large
  trifecta conformance --client curl --json
  trifecta conformance --server nginx --ip IPv6
"""
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME,...",
    shell_complete=options.complete_server,
    help="Only these servers; 'any': all.  [default: all, unless --client is given]",
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="NAME,...",
    shell_complete=options.complete_client,
    help="Only these clients; 'any': all.  [default: all, unless --server is given]",
)
@click.option("--large", is_flag=True, help="Also download 100 MB.")
@options.folder("Folder for results and evidence, new or empty.  [default: runs/conformance-DATE-TIME]")
@options.ip_version()
@options.as_json
def command(
    *,
    servers: tuple[str, ...],
    clients: tuple[str, ...],
    large: bool,
    out: Path | None,
    ip: str | None,
    as_json: bool,
) -> int:
    """Transfer the same objects with every server and client over every protocol, and compare every octet.

    Objects of 0 B, 1 B, 1 kB and 1 MB are downloaded and posted on a clean path, and 100 kB are downloaded on a lossy
    one. A failed transfer is repeated once under capture; log, configuration, keys, qlog and capture are kept.
    """
    from trifecta.cli.option_parsing import is_ipv6
    from trifecta.workloads.conformance import standalone

    folder = out if out is not None else Path("runs") / f"conformance-{time.strftime('%Y%m%d-%H%M%S')}"
    chosen = standalone.choose(options.split_names(servers), options.split_names(clients))
    standalone.check_folder(folder)

    from trifecta.lab import sandbox

    sandbox.enter()

    from trifecta.report import conformance as report
    from trifecta.workloads.stopping import StopFlag

    def tell(text: str) -> None:
        if not as_json:
            click.echo(text, err=True)

    with StopFlag() as stop:
        outcome = standalone.run(chosen, folder, tell, stop, large=large, ipv6=is_ipv6(ip))
    if as_json:
        import json

        click.echo(json.dumps(outcome.document, indent=1, ensure_ascii=False))
    else:
        from rich.console import Console

        report.print_matrix(Console(highlight=False), outcome.results)
        click.echo(f"Results: {outcome.file}")
    if outcome.interrupted:
        return INTERRUPTED
    return 0 if outcome.passed else 1

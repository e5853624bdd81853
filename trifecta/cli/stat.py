"""``trifecta stat``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from trifecta.cli import option_parsing
from trifecta.cli.options import as_json, split_names


@click.command(
    epilog="""\
\b
Exit code: 0 when a protocol answered, 1 when none did, 3 when the host name does not resolve or this machine
refused a socket.

\b
Examples:
  trifecta stat https://www.example.org/
  trifecta stat https://localhost:8443/index.html --ca lab-ca.pem
  trifecta stat https://www.example.org/api?id=7 --count 10 --json
"""
)
@click.argument("url")
@click.option(
    "--protocol", "protocols", metavar="NAMES", default="h1,h2,h3", show_default=True, help="Protocols to use."
)
@click.option(
    "--count", type=click.IntRange(1, 1000), default=1, show_default=True, help="Requests over each protocol."
)
@click.option("--method", type=click.Choice(["GET", "HEAD"]), default="GET", show_default=True)
@click.option(
    "--ca",
    "authorities",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True),
    help="Trust these certificate authorities (PEM) in place of the system's.",
)
@click.option("--address", metavar="IP", help="Connect to this address; do not look up the name.")
@click.option("--resume", is_flag=True, help="Make one request first, and resume its TLS session.")
@click.option("--tls", "tls_version", type=click.Choice(["1.2", "1.3"]), default="1.3", show_default=True)
@click.option(
    "--timeout",
    metavar="TIME",
    default="10 s",
    show_default=True,
    help="Time limit for connecting, and for the answer.",
)
@as_json
def command(
    *,
    url: str,
    protocols: str,
    count: int,
    method: Literal["GET", "HEAD"],
    authorities: Path | None,
    address: str | None,
    resume: bool,
    tls_version: Literal["1.2", "1.3"],
    timeout: str,
    as_json: bool,
) -> int:
    """Request one URL over HTTP/1.1, HTTP/2 and HTTP/3 and show the phases side by side.

    The requests go to that server over the real network: no lab, no emulated path. The output does not decide which
    protocol is faster; `trifecta race URL` does.
    """
    from rich.console import Console

    from trifecta.design.model import PROTOCOL_NAMES
    from trifecta.design.stat import RequestOptions
    from trifecta.lab.engine import EXIT_CANNOT, find_engine
    from trifecta.report import stat as view
    from trifecta.workloads import stat

    target = stat.read_url(url)
    request_options = RequestOptions(
        method=method,
        tls_version=tls_version,
        timeout_ns=option_parsing.time_ns("--timeout", timeout),
        address=option_parsing.address("--address", address),
        resume=resume,
    )
    chosen = option_parsing.one_of("--protocol", split_names((protocols,)), tuple(PROTOCOL_NAMES))
    engine, trusted = find_engine(), authorities or stat.system_roots()
    waiting = Console(stderr=True)
    with waiting.status("") as status:

        def tell(protocol: str, number: int) -> None:
            status.update(view.waiting(protocol, number, count))

        attempts = stat.ask(engine, target, chosen, request_options, trusted, count=count, tell=tell)
    every = [attempt for protocol_attempts in attempts.values() for attempt in protocol_attempts]
    if as_json:
        click.echo(json.dumps(view.as_data(target, request_options, attempts), indent=2))
    else:
        view.show(Console(highlight=False), target, request_options, attempts)
    if any(attempt.refused_here for attempt in every):
        return EXIT_CANNOT
    return 0 if any(attempt.error is None for attempt in every) else 1

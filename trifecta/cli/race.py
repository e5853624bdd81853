"""``trifecta race``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trifecta.cli import options
from trifecta.cli.run import run_study_of


@click.command(
    epilog="""\
\b
The exit codes are those of `trifecta run`.

\b
Examples:
  trifecta race
  trifecta race --blocks 6 --out runs/first --set path=clean
  trifecta race --compare congestion_control=cubic,bbr --set protocol=h3 --server origin
  trifecta race --host client=here --host server=ssh://b
  trifecta race --cluster local:2
  trifecta race --set connection=new --set paths.rough.loss="5 %" --server caddy
  trifecta race https://www.example.org/
  trifecta race https://localhost:8443/index.html --ca lab-ca.pem --i-own-this --yes
  trifecta race https://www.example.org/ --address IPv4,IPv6 --budget "10 min" --yes
  trifecta race https://www.example.org/ --page --browser chromium,firefox
"""
)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--ca",
    "authorities",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True),
    help="With a URL: trust these certificate authorities (PEM) in place of the system's; browsers trust them besides "
    "their own.",
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="IP,...",
    help="With a URL: measure each of these addresses separately. IPv4 or IPv6: in each block an address of that "
    "family, drawn anew.  [default: up to two addresses of the name; if it has more, its families]",
)
@click.option("--i-own-this", "owned", is_flag=True, help="With a URL: the server is yours; allows more requests.")
@click.option("--page", is_flag=True, help="With a URL: load its page in a browser, with an empty cache each time.")
@click.option(
    "--browser",
    "browsers",
    multiple=True,
    metavar="NAME,...",
    help="With --page: measure each of these browsers separately: chromium, firefox.  [default: chromium]",
)
@options.narrowing
@options.cluster
@options.leaving
@options.running
def command(
    *,
    urls: tuple[str, ...],
    authorities: Path | None,
    addresses: tuple[str, ...],
    owned: bool,
    page: bool,
    browsers: tuple[str, ...],
    **asked: Any,
) -> int:
    """Run the bundled study 'race': HTTP/1.1, HTTP/2 and HTTP/3 over three paths, with new and reused connections,
    against two servers, within 3 minutes. At the end, print the verdicts and the path of the report.

    With one URL or several: compare the protocols of the server at that URL, over the real network, with new and reused
    connections. Nothing is emulated. The server gets at most two requests a second: first a few to see what it speaks,
    then, after your consent, the others. With --page a browser loads the page, with the protocol forced for the page's
    host; the load times are compared, and robots.txt is obeyed.
    """
    from trifecta.cli import far
    from trifecta.design.errors import UserError

    if urls:
        far.refuse_options([name for name in far.NOT_WITH_URLS if asked[name]])
        options_with_urls = {name: value for name, value in asked.items() if name not in far.NOT_WITH_URLS}
        if browsers and not page:
            raise UserError("option --browser: belongs to --page, which is not given; add it, or leave this out")
        return far.race_urls(
            urls,
            authorities=authorities,
            addresses=addresses,
            owned=owned,
            page=page,
            browsers=browsers,
            **options_with_urls,
        )
    alone = (authorities, addresses, owned, page, browsers)
    for option, given in zip(("--ca", "--address", "--i-own-this", "--page", "--browser"), alone, strict=True):
        if given:
            raise UserError(f"option {option}: belongs to a URL, and none is given; add the URL, or leave it out")
    return run_study_of("race", **asked)

"""``trifecta race``."""

from __future__ import annotations

from typing import Any

import click

from trifecta.cli import options
from trifecta.cli.run import run_study_of


@click.command(
    epilog="""\
\b
Exit codes are those of `trifecta run`.

\b
Examples:
  trifecta race
  trifecta race --blocks 6 --out runs/first --set path=clean
  trifecta race --compare congestion_control=cubic,bbr --set protocol=h3 --server origin
  trifecta race --host client=here --host server=ssh://b
  trifecta race --set connection=new --set paths.rough.loss="5 %" --server caddy
"""
)
@options.narrowing
@options.running
def command(**asked: Any) -> int:
    """Run the bundled study 'race': HTTP/1.1, HTTP/2 and HTTP/3 over three paths, with new and reused connections,
    against two servers, within 3 minutes. Ends with the verdicts and the path of the report.
    """
    return run_study_of("race", **asked)

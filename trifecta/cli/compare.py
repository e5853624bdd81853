"""``trifecta compare``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trifecta.cli import options


@click.command(
    epilog="""\
\b
Exit code: 0 the runs agree on all that both decided, 1 they do not, 2 bad input, or no verdicts that can be compared.

\b
Examples:
  trifecta compare runs/monday runs/tuesday
  trifecta compare runs/monday runs/tuesday --cell path=far --metric latency_p95
  trifecta compare runs/monday runs/tuesday --json
"""
)
@click.argument(
    "runs",
    nargs=2,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="RUN RUN",
    shell_complete=options.complete_run,
)
@click.option("--cell", metavar="CELL", help="Only cells with these levels: path=far, or a cell's key.")
@click.option("--metric", metavar="NAME", help="Compare by this metric, as a study names it.  [default: the studies']")
@options.as_json
def command(*, runs: tuple[Path, Path], cell: str | None, metric: str | None, as_json: bool) -> int:
    """Put the verdicts of two runs side by side: which agree, differ, are new or are gone, and by how much.

    For each verdict the ratio of the second run is divided by that of the first. The interval of this quotient allows
    for the variation from session to session. Verdicts are compared only if metric, margin, path and workload are the
    same in both runs. Everything else that differs is listed.
    """
    from trifecta.conclude.two_runs.questions import compare
    from trifecta.design.errors import UserError
    from trifecta.report import two_runs
    from trifecta.store import damage

    with damage.naming_damaged_file(runs[0]), damage.naming_damaged_file(runs[1]):
        compared = compare(*runs, metric=metric, cell=cell)
    if as_json:
        click.echo(json.dumps(two_runs.as_data(compared), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        two_runs.print_compared(compared)
    if not compared.comparable:
        names = ", ".join(dict.fromkeys(each.name for one in compared.questions for each in one.hindrances))
        raise UserError(
            f"{runs[0]} and {runs[1]} ask no question alike (not the same: {names}); run one again as the other was, "
            "or give --metric where that is all"
        )
    return 0 if compared.agree else 1

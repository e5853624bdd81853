"""``trifecta resume``."""

from __future__ import annotations

from pathlib import Path

import click

from trifecta.cli import options
from trifecta.cli.clusters import OnCluster


@click.command(
    epilog="""\
\b
Examples:
  trifecta resume runs/race-20260101-120000
  trifecta resume runs/race-20260101-120000 --blocks 12
  trifecta resume runs/race-20260101-120000 --budget "5 min"
  trifecta resume runs/race-20260101-120000 --cluster head.example.org:6379
  trifecta resume runs/reproduce-20260101-120000 --budget "1 h"
"""
)
@options.run_directory
@click.option(
    "--blocks",
    type=click.IntRange(1),
    help="Run this many more blocks in every open cell, or in all cells if none is open.",
)
@click.option("--budget", metavar="TIME", help="Run this much longer, for example '5 min'.")
@options.cluster
@options.leaving
@options.quiet
@options.as_json
def command(
    *,
    run: Path,
    blocks: int | None,
    budget: str | None,
    cluster: OnCluster | None,
    yes: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Continue RUN after its last finished trial, with the same study, seed and budget.

    No trial runs twice: an unfinished block gets the trials it lacks. --blocks or --budget extends a finished run whose
    verdicts are still open.

    RUN can also be the folder of a campaign, a reproduction, a map, ladders or a search for causes (`trifecta why`).
    Each continues until it is done; only a reproduction can be extended, by --budget, for the claims that are still
    open.

    A resumed gate ends with the exit code and the files of `trifecta gate`. --budget gives it more time. --blocks
    extends it as an ordinary run of its study.
    """
    from trifecta.cli import object_stores
    from trifecta.cli.option_parsing import time_ns
    from trifecta.design.errors import UserError
    from trifecta.store import facts, ladders, why
    from trifecta.store.campaign import is_campaign
    from trifecta.store.reproduction import is_reproduction
    from trifecta.workloads.mapping import is_map

    budget_ns = None if budget is None else time_ns("--budget", budget)
    many = "reproduction" if is_reproduction(run) else "campaign" if is_campaign(run) else ""
    if is_map(run):
        many = "map"
    if ladders.is_ladders(run):
        many = "folder of ladders"
    if why.is_why(run):
        many = "search for causes"
    if (parent := ladders.around(run)) is not None:
        raise UserError(f"{run} is part of a ladder, whose rounds continue together; give {parent}")
    if (parent := why.around(run)) is not None:
        raise UserError(f"{run} is part of a search for causes, whose rounds continue together; give {parent}")
    if many and (blocks is not None or (budget is not None and many != "reproduction")):
        one = next(iter(sorted(parent_kind.parent for parent_kind in run.rglob("run.json"))), None)
        apart = many in ("campaign", "reproduction")  # runs of their own, that can be extended
        remedy = f"give one of its runs, such as {one}" if one and apart else "leave --blocks and --budget out"
        raise UserError(f"{run} is a {many}, which continues to its own end; {remedy}")
    if many not in ("", "campaign", "reproduction", "map") and cluster is not None:
        raise UserError(f"option --cluster: {run} is a {many}, which runs on one machine; leave it out")
    if many or (run / facts.FILE).is_file():
        object_stores.bring(run, quiet=quiet)
    if is_reproduction(run):
        from trifecta.cli import reproduce

        return reproduce.go_on(run, more_ns=budget_ns, cluster=cluster, quiet=quiet, as_json=as_json)
    if ladders.is_ladders(run):
        from trifecta.cli import ladder

        return ladder.go_on(run, quiet=quiet, as_json=as_json)
    if why.is_why(run):
        from trifecta.cli import why as searches

        return searches.go_on(run, quiet=quiet, as_json=as_json)
    if is_campaign(run):
        from trifecta.cli import campaigns

        return campaigns.go_on(run, cluster=cluster, quiet=quiet, as_json=as_json)
    return _go_on(run, blocks, budget_ns, cluster=cluster, yes=yes, quiet=quiet, as_json=as_json)


def _go_on(
    run: Path,
    blocks: int | None,
    budget_ns: int | None,
    *,
    cluster: OnCluster | None,
    yes: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Go on with a folder that is one run: of a study, a map, or a gate; the exit code."""
    from trifecta.cli import running
    from trifecta.design.study_file import parse_study
    from trifecta.store import facts, gates, manifest
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.mapping import is_map

    folder = RunDirectory.open(run)
    # Before the lab is entered, so that what is wrong is said at once.
    manifest.check(folder.path, resuming=True)
    facts.require(folder.path, folder.facts, "study.sha256", "machine", "unsupported")
    if is_map(run):
        from trifecta.cli import map as maps

        return maps.go_on(run, cluster=cluster, quiet=quiet, as_json=as_json)
    if gates.is_gate(folder.facts) and blocks is None:  # else more of the study's verdicts, as the report advises
        from trifecta.cli import gate

        return gate.go_on(folder, budget_ns=budget_ns, cluster=cluster, quiet=quiet, as_json=as_json)
    study = parse_study(folder.study_text, str(run / "study.yaml"))
    return running.carry_out(
        study,
        run,
        resume=True,
        quiet=quiet,
        as_json=as_json,
        blocks=blocks,
        budget_ns=budget_ns,
        yes=yes,
        cluster=cluster,
    )

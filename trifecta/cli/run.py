"""``trifecta run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trifecta.cli import options
from trifecta.cli.clusters import OnCluster
from trifecta.contract.invocation import CampaignInvocation


def run_study_of(
    study: str,
    *,
    overrides: tuple[str, ...],
    blocks: int | None,
    budget: str | None,
    seed: str | None,
    servers: tuple[str, ...],
    clients: tuple[str, ...],
    hosts: tuple[str, ...],
    threats_on: tuple[str, ...],
    threats_off: tuple[str, ...],
    capture: bool,
    out: Path | None,
    quiet: bool,
    as_json: bool,
    compare: str | None = None,
    baseline: str | None = None,
    quick: bool = False,
    only: tuple[str, ...] = (),
    yes: bool = False,
    cluster: OnCluster | None = None,
) -> int:
    """Run a study or a campaign of this name or file as the options of a command line ask."""
    from trifecta import studies
    from trifecta.cli import running
    from trifecta.design.campaign import is_campaign
    from trifecta.design.errors import UserError
    from trifecta.implementations.survey import Finder
    from trifecta.threats import switches

    on, off = options.split_names(threats_on), options.split_names(threats_off)
    changes = options.as_overrides(
        overrides,
        blocks,
        budget,
        seed,
        servers,
        clients=clients,
        hosts=hosts,
        capture=capture,
        compare=compare,
        baseline=baseline,
    )
    path = studies.find(study)
    text = studies.read_text(path)
    if is_campaign(text):
        from trifecta.cli import campaigns

        invocation: CampaignInvocation = {
            "text": text,
            "file": path.name,
            "depth": "quick" if quick else "full",
            "overrides": changes,
            "only": options.split_names(only),
            "threats_on": on,
            "threats_off": off,
        }
        return campaigns.begin(invocation, out, cluster=cluster, quiet=quiet, as_json=as_json)
    if quick or only:
        raise UserError(f"--quick and --only are for campaigns, and {study} is one study; leave them out")
    changes = options.with_seed(changes, text, path.name)
    finder = Finder()
    known = studies.known_servers(), studies.known_clients()
    switched = switches(on, off)
    loaded = studies.load(study, changes, known[0], clients=known[1], found_levels=finder, change=switched)
    folder = out if out is not None else running.default_folder(loaded)
    return running.carry_out(
        loaded,
        folder,
        resume=False,
        quiet=quiet,
        as_json=as_json,
        any_levels=finder.facts(),
        yes=yes,
        cluster=cluster,
    )


@click.command(
    epilog="""\
\b
Exit code: 0 done, 1 too few trials passed the checks for any verdict, or for those still open, 2 bad input,
3 not possible on this machine, 130 interrupted (finished trials are kept; continue with `trifecta resume`).

\b
Examples:
  trifecta run race --set path=clean --blocks 8
  trifecta run my-study.yaml --set response="1 kB,100 kB" --budget "10 min"
  trifecta run race --compare server=origin,caddy --set protocol=h3 --set path=far
  trifecta run my-study.yaml --host client=ssh://a --host server=ssh://me@b:2222
  trifecta run chain --set depth=3 --host client=here --host B=ssh://a --host C=ssh://b
  trifecta run my-study.yaml --cluster head.example.org:6379
  trifecta run chain --set depth=2,4,8 --set hosts=1 --set path=normal
  trifecta run my-study.yaml --without jitter-reordering
  trifecta run bourbon2020 --quick --only distributed_02
"""
)
@click.argument("study", shell_complete=options.complete_study)
@options.narrowing
@click.option(
    "--quick/--full", default=False, help="For a campaign: a quick first look, or everything.  [default: full]"
)
@click.option(
    "--only", multiple=True, metavar="NAME,...", help="For a campaign: only these scenarios, suites or studies."
)
@options.cluster
@options.leaving
@options.running
def command(*, study: str, **asked: Any) -> int:
    """Run STUDY (a study file, or the name of a bundled study) and print its verdicts.

    STUDY can also be a campaign: a file that names several studies, which run one after the other.
    """
    return run_study_of(study, **asked)

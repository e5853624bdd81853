"""``trifecta run``."""

from __future__ import annotations

from pathlib import Path

import click

from trifecta.cli import options


def run_study_of(
    study: str,
    *,
    overrides: tuple[str, ...],
    blocks: int | None,
    budget: str | None,
    seed: str | None,
    servers: tuple[str, ...],
    clients: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a study of this name or file as the options of a command line ask."""
    from trifecta import studies
    from trifecta.cli import running
    from trifecta.implementations.survey import Finder

    changes = options.as_overrides(overrides, blocks, budget, seed, servers, clients=clients)
    finder = Finder()
    loaded = studies.load(study, changes, studies.known_servers(), clients=studies.known_clients(), found=finder)
    folder = out if out is not None else running.default_folder(loaded)
    return running.carry_out(loaded, folder, resume=False, quiet=quiet, as_json=as_json, any_levels=finder.facts())


@click.command(
    epilog="""\
\b
Exit code: 0 done, 1 no trial passed the checks that make it fit for a verdict, 2 bad input, 3 this machine cannot,
130 interrupted (what is finished is kept; `trifecta resume` goes on).

\b
Examples:
  trifecta run race --set path=clean --blocks 3
  trifecta run my-study.yaml --set response="1 kB,100 kB" --budget "10 min"
"""
)
@click.argument("study", shell_complete=options.complete_study)
@options.narrowing
@options.running
def command(
    *,
    study: str,
    overrides: tuple[str, ...],
    blocks: int | None,
    budget: str | None,
    seed: str | None,
    servers: tuple[str, ...],
    clients: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run STUDY, a study file or the name of a bundled study, and say what it decides."""
    return run_study_of(
        study,
        overrides=overrides,
        blocks=blocks,
        budget=budget,
        seed=seed,
        servers=servers,
        clients=clients,
        out=out,
        quiet=quiet,
        as_json=as_json,
    )

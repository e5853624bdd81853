"""``trifecta map``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.cli import options

if TYPE_CHECKING:
    from trifecta.analysis.mapping.result import MapResult
    from trifecta.cli.clusters import OnCluster
    from trifecta.contract.run import RunDocument
    from trifecta.design.mapping import MapPlan
    from trifecta.design.model import Study


@click.command(
    epilog="""\
\b
Axes of the path: rtt, loss, rate, queue (in bdp), duplicate, corrupt. Axes of the workload: response, request,
in_flight, connections, streams, depth, clients, hosts. Append ':log', ':sqrt' or ':linear' to set the scale.

\b
Exit code: 0 done, 1 too few trials passed the checks, 2 bad input (also a point outside the map),
3 not possible on this machine, 130 interrupted (continue with `trifecta resume DIR`).

\b
Examples:
  trifecta map --budget "10 min" --out runs/plane
  trifecta map runs/plane --at rtt=35ms,loss=0.5%
  trifecta map --x rtt=10ms..100ms --y rate=2Mbit/s..50Mbit/s --set paths.access.loss="0.5 %" --resolution 12x12
  trifecta map --compare congestion_control --arms bbr,cubic --set protocol=h3
  trifecta map race --set path=rough --set connection=new --server caddy --x in_flight=1..32 --y loss=0..5%
  trifecta map --budget "1 h" --cluster head.example.org:6379
"""
)
@click.argument("study", metavar="[STUDY|DIR]", default="objects", shell_complete=options.complete_study)
@click.option("--x", default="rtt", show_default="rtt=5ms..200ms", metavar="NAME=FROM..TO", help="The first axis.")
@click.option("--y", default="loss", show_default="loss=0..3%", metavar="NAME=FROM..TO", help="The second axis.")
@click.option("--resolution", default="16x16", show_default=True, help="Points on each axis, 4 to 31.")
@click.option("--arms", metavar="LEVEL,LEVEL", show_default="h3,h2", help="Compare the first level with the second.")
@click.option(
    "--compare", default="protocol", show_default=True, metavar="FACTOR", help="The factor that --arms names levels of."
)
@click.option(
    "--at", "place", metavar="NAME=VALUE,NAME=VALUE", help="In an existing map: show which arm wins at this point."
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a factor or a field of the study, as in `trifecta run`.",
)
@click.option("--server", metavar="NAME", shell_complete=options.complete_server, help="Measure this server.")
@click.option("--blocks", type=click.IntRange(1), help="Run at most this many blocks in total.")
@click.option("--budget", metavar="TIME", help="Time to spend.  [default: 10 min, or none with --blocks]")
@click.option(
    "--seed",
    metavar="N",
    help="Seed of trial order, losses and arrivals; give a run's seed to repeat it.  [default: random, recorded in the "
    "run]",
)
@options.cluster
@options.running
def command(
    *,
    study: str,
    x: str,
    y: str,
    resolution: str,
    arms: str | None,
    compare: str,
    place: str | None,
    overrides: tuple[str, ...],
    server: str | None,
    blocks: int | None,
    budget: str | None,
    seed: str | None,
    cluster: OnCluster | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find which protocol wins where, over round-trip time and loss, or over any two factors of STUDY.

    Measures most where the border between the winners may be. Writes a picture, a page, and numbers. With DIR, the
    folder of a map: --at reads the numbers at one point; without --at, the map's files are rewritten.
    """
    from trifecta import studies
    from trifecta.workloads import mapping

    folder = Path(study)
    if folder.is_dir() or place is not None:
        if not folder.is_dir():
            from trifecta.design.errors import UserError

            raise UserError(f"option --at: needs the folder of a map, which {study!r} is not")
        mapping.plan_in(folder)
        if cluster is not None:
            from trifecta.design.errors import UserError

            sentence = f"option --cluster: {study} is a map already, so nothing is measured"
            raise UserError(
                f"{sentence}; leave it out, or continue with `trifecta resume {study} --cluster {cluster.address}`"
            )
        return _look_up(folder, place, as_json=as_json) if place is not None else _show(folder, as_json=as_json)
    changes = options.as_overrides(overrides, None, None, seed, (server,) if server else ())
    changes = options.with_seed(changes, studies.read_text(studies.find(study)), study)
    if arms is None and compare != "protocol":
        from trifecta.design.errors import UserError

        raise UserError(f"option --compare: add --arms LEVEL,LEVEL to choose two levels of {compare}")
    axis_options = (x, y, resolution, arms or "h3,h2")
    plan, loaded, facts = _read(study, axis_options, changes, blocks, budget, compare=compare)
    from trifecta.cli import running

    where = out or running.default_folder(loaded)
    return _carry_out(plan, loaded, where, facts, resume=False, cluster=cluster, quiet=quiet, as_json=as_json)


def go_on(folder: Path, *, cluster: OnCluster | None, quiet: bool, as_json: bool) -> int:
    """Go on with a map, on a cluster or not, however it began; the exit code."""
    from trifecta.workloads import mapping

    plan, study = mapping.plan_in(folder), mapping.study_in(folder)
    return _carry_out(plan, study, folder, {}, resume=True, cluster=cluster, quiet=quiet, as_json=as_json)


def _read(
    study: str,
    axes: tuple[str, str, str, str],
    changes: list[str],
    blocks: int | None,
    budget: str | None,
    *,
    compare: str,
) -> tuple[MapPlan, Study, RunDocument]:
    from trifecta import studies
    from trifecta.cli.option_parsing import time_ns
    from trifecta.design.mapping import change_to_map, make_plan
    from trifecta.implementations.survey import Finder

    if budget is None and blocks is None:
        budget = "10 min"
    plan = make_plan(*axes, blocks=blocks, budget_ns=time_ns("--budget", budget) if budget else None, compare=compare)
    finder = Finder()
    loaded = studies.load(
        study,
        (),
        studies.known_servers(),
        clients=studies.known_clients(),
        found_levels=finder,
        change=lambda document: change_to_map(document, plan, changes),
    )
    return plan, loaded, finder.facts()


def _carry_out(
    plan: MapPlan,
    study: Study,
    folder: Path,
    facts: RunDocument,
    *,
    resume: bool,
    cluster: OnCluster | None,
    quiet: bool,
    as_json: bool,
) -> int:
    from trifecta.cli import clusters, running

    running.enter([study], cluster)

    from trifecta.workloads import mapping
    from trifecta.workloads.stopping import StopFlag

    with StopFlag() as stop:
        with running.showing_question(quiet=quiet) as progress:
            outcome = mapping.run_map(
                plan, study, folder, progress, stop, resume=resume, facts=facts,
                cluster=clusters.launching(cluster),
            )  # fmt: skip
        from trifecta.report import html

        html.write_report(outcome.run_path)
        shown = _show(outcome.run_path, as_json=as_json)
    return running.exit_code(outcome) or shown


def _show(folder: Path, *, as_json: bool) -> int:
    from trifecta.report.map import page
    from trifecta.store import damage
    from trifecta.workloads import mapping

    with damage.naming_damaged_file(folder):
        result = mapping.result_of(folder)
    with page.naming_of(result):
        return _show_result(result, folder, as_json=as_json)


def _show_result(result: MapResult, folder: Path, *, as_json: bool) -> int:
    from trifecta.design.phrases import counted
    from trifecta.report.map import page, words

    written = page.write(result, folder)
    if as_json:
        click.echo(json.dumps(result.document(), indent=1))
    else:
        click.echo(words.headline(result))
        click.echo(words.noise(result.noise, result.plan.reference))
        if nodes := words.nodes(result):
            click.echo(nodes)
        click.echo(f"{counted(result.blocks, 'block')}. {result.ending[:1].upper()}{result.ending[1:]}.")
        click.echo(f"Page: {written}")
    return 0 if result.surface is not None else 1


def _look_up(folder: Path, place: str, *, as_json: bool) -> int:
    from trifecta.conclude import maps
    from trifecta.design.mapping import parse_place
    from trifecta.report.map import page, words

    result = maps.load(folder)
    answer = result.at(*parse_place("--at", result.plan, place))
    if as_json:
        click.echo(json.dumps(answer.document(), indent=1))
        return 0
    with page.naming_of(result):
        click.echo(words.sentence(answer))
        click.echo(words.evidence(answer))
    return 0

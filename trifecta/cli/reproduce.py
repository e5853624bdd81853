"""``trifecta reproduce``: reads what is asked for; ``reproducing`` carries it out."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from trifecta.cli import object_stores, options
from trifecta.contract.invocation import CampaignInvocation, ReproductionInvocation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trifecta.cli.clusters import OnCluster
    from trifecta.cli.reproducing import Part
    from trifecta.design.campaign import Campaign, Depth

ALL = "all"


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from trifecta import studies

    return [CompletionItem(name) for name in (*studies.published(), ALL) if name.startswith(incomplete)]


@click.command(
    epilog="""\
\b
Exit code: 0 done (whatever was found), 1 no trial passed the checks, 2 bad input, 3 not possible on this machine,
130 interrupted (finished trials are kept; continue with `trifecta resume`, or the same command and --out).
With --compare: 0 they agree on all that both decided, 1 they contradict each other.

\b
Examples:
  trifecta reproduce milicevic2023 --quick
  trifecta reproduce all --quick
  trifecta reproduce all --budget "2 h"
  trifecta reproduce milicevic2023 --as-published --today
  trifecta reproduce bourbon2020 --full --without jitter-reordering
  trifecta resume runs/reproduce-20260101-120000
  trifecta reproduce --compare runs/monday runs/tuesday
"""
)
@click.argument("names", nargs=-1, metavar="STUDY...|all", shell_complete=_complete)
@click.option(
    "--quick/--full",
    default=True,
    help="Quick: minutes on two cores. Full: as large as published, hours.  [default: quick]",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="Use the conditions of the studies: their programs, TLS versions, payloads and procedure, as far as these can "
    "still be had. With --today: run both, and report which claims held then but not now.",
)
@click.option("--today", is_flag=True, help="Use today's programs under clean conditions.  [default]")
@click.option(
    "--budget",
    metavar="TIME",
    help="Spend this much time in total, such as '2 h'. What is left after --quick or --full goes to claims that are "
    "still open.",
)
@click.option("--only", multiple=True, metavar="NAME,...", help="Only these scenarios, suites or runs of the studies.")
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a factor or a field of every run.")
@click.option("--with", "threats_on", multiple=True, metavar="ID,...", help="Switch these threats to validity on.")
@click.option("--without", "threats_off", multiple=True, metavar="ID,...", help="Switch these threats off.")
@click.option("--threats/--no-threats", default=True, help="Also measure the threats to each study.")
@options.cluster
@options.folder("Folder for everything, new or empty.  [default: runs/reproduce-DATE-TIME]")
@click.option(
    "--compare",
    "compared",
    nargs=2,
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR DIR",
    help="Run nothing; report whether two reproductions (folders, or a reproduction.json) agree on claims and threats.",
)
@options.quiet
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    *,
    names: tuple[str, ...],
    quick: bool,
    as_published: bool,
    today: bool,
    budget: str | None,
    only: tuple[str, ...],
    overrides: tuple[str, ...],
    threats_on: tuple[str, ...],
    threats_off: tuple[str, ...],
    threats: bool,
    cluster: OnCluster | None,
    out: Path | None,
    compared: tuple[Path, Path] | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Repeat the experiments of published studies; report which of their figures and claims hold here, and why others
    do not.

    Ratios, rankings and the shapes of curves are compared. Absolute times are not: they depend on the machine.
    """
    from trifecta.cli import reproducing
    from trifecta.cli.option_parsing import time_ns
    from trifecta.design.overrides import refuse_twice
    from trifecta.store import reproduction

    if compared:
        _refuse_others(context)
        return _compare(*compared, as_json=as_json)
    if not names:
        raise click.UsageError("missing argument 'STUDY...|all'", context)
    refuse_twice(overrides, {})
    budget_ns = None if budget is None else time_ns("--budget", budget)
    chosen = _chosen(names)
    parts = _parts_of_studies(chosen, options.split_names(only))
    chosen = list(parts)
    depth: Depth = "quick" if quick else "full"
    only_then = as_published and not today
    invocation: ReproductionInvocation = {
        "studies": chosen,
        "all": ALL in names,
        "depth": depth,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "argv": sys.argv,
        "threats": threats and not only_then,
        "budget_ns": budget_ns,
        "as_published": only_then,
        "elapsed_s": {},
        "campaigns": {
            name: {
                **_file(name),
                "depth": depth,
                "overrides": list(overrides),
                "only": parts[name],
                "threats_on": options.split_names(threats_on),
                "threats_off": options.split_names(threats_off),
                "as_published": only_then,
                "with_budget": budget_ns is not None and not only_then,
            }
            for name in chosen
        },
    }
    under = _as_published(invocation) if as_published and today else None
    read = _read(invocation)  # a fault in any of them is said before anything runs
    read_under = _read(under) if under is not None else {}
    _check(invocation, [*read.values(), *read_under.values()], cluster)
    folder = out if out is not None else Path("runs") / f"reproduce-{time.strftime('%Y%m%d-%H%M%S')}"
    if reproduction.is_reproduction(folder):  # the same command again goes on
        folder, invocation = folder.resolve(), reproduction.require_same(folder, invocation)
        object_stores.bring(folder, quiet=quiet)
    else:
        folder = reproduction.create(folder, invocation)
    part = reproducing.Part(folder, invocation, read, cluster)
    if under is None:
        return reproducing.carry_out(part, _nested(folder, cluster), quiet=quiet, as_json=as_json)
    nested = folder / reproduction.AS_PUBLISHED_FOLDER
    if reproduction.is_reproduction(nested):
        under = reproduction.require_same(nested, under)
    else:
        reproduction.create(nested, under)
    published = reproducing.Part(nested, under, read_under, cluster)
    return reproducing.carry_out(part, published, quiet=quiet, as_json=as_json)


def _check(invocation: ReproductionInvocation, campaigns: Iterable[Campaign], cluster: OnCluster | None) -> None:
    """UserError or CannotError where these cannot be run on a cluster."""
    from trifecta.cli import clusters
    from trifecta.design.errors import UserError

    if cluster is None:
        return
    if invocation["threats"]:
        raise UserError("option --cluster: threats are measured on one machine; add --no-threats")
    clusters.check([study for one in campaigns for study in one.studies.values()], cluster)


def _as_published(invocation: ReproductionInvocation) -> ReproductionInvocation:
    """The same under the studies' conditions: without the threats to today's, and with the time it takes."""
    campaigns: dict[str, CampaignInvocation] = {
        name: {**one, "as_published": True, "with_budget": False} for name, one in invocation["campaigns"].items()
    }
    return {
        **invocation,
        "as_published": True,
        "threats": False,
        "budget_ns": None,
        "elapsed_s": {},
        "campaigns": campaigns,
    }


def _nested(folder: Path, cluster: OnCluster | None) -> Part | None:
    """What was begun as published below a reproduction."""
    from trifecta.cli.reproducing import Part
    from trifecta.store import reproduction

    nested = folder / reproduction.AS_PUBLISHED_FOLDER
    if not reproduction.is_reproduction(nested):
        return None
    invocation = reproduction.read_to_go_on(nested)
    return Part(nested, invocation, _read(invocation), cluster)


def _refuse_others(context: click.Context) -> None:
    """A comparison runs nothing, so what says what to run has no place beside it."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) not in (click.core.ParameterSource.DEFAULT, None)
        if name not in ("compared", "as_json", "quiet") and given and context.params.get(name):
            sentence = "studies" if name == "names" else max(parameter.opts, key=len)
            raise click.UsageError(f"--compare runs nothing; leave {sentence} out", context)


def _compare(first: Path, second: Path, *, as_json: bool) -> int:
    from trifecta.conclude.reproduction.compared import compare
    from trifecta.report.reproduction import compared as shown

    comparison = compare(first, second)
    if as_json:
        click.echo(json.dumps(shown.as_data(comparison), indent=1, ensure_ascii=False))
    else:
        shown.print_comparison(comparison)
    return 0 if comparison.agree else 1


def go_on(
    folder: Path, *, more_ns: int | None = None, cluster: OnCluster | None = None, quiet: bool, as_json: bool
) -> int:
    """Go on with a reproduction, ``more_ns`` longer than it took so far where that is given; the exit code."""
    from trifecta.cli import reproducing
    from trifecta.store import reproduction

    folder = folder.resolve()
    invocation = reproduction.read_to_go_on(folder)
    read = _read(invocation)
    _check(invocation, read.values(), cluster)
    if more_ns is not None:
        invocation["budget_ns"] = round(sum(invocation["elapsed_s"].values()) * 1e9) + more_ns
        reproduction.write(folder, invocation)
    part = reproducing.Part(folder, invocation, read, cluster)
    return reproducing.carry_out(part, _nested(folder, cluster), quiet=quiet, as_json=as_json)


def _chosen(names: Sequence[str]) -> list[str]:
    from trifecta import studies
    from trifecta.design.document import did_you_mean
    from trifecta.design.errors import UserError

    known = list(studies.published())
    for name in names:
        if name != ALL and name not in known:
            raise UserError(f"no published study {name!r}; {did_you_mean(name, [*known, ALL])}")
    return known if ALL in names else list(dict.fromkeys(names))


def _parts_of_studies(names: Sequence[str], only: Sequence[str]) -> dict[str, list[str]]:
    """The parts of each study that are asked for; of several studies those that have any of them."""
    from trifecta.cli.campaigns import read_asked
    from trifecta.design.errors import UserError

    if not only:
        return {name: [] for name in names}
    words_by_name: dict[str, list[str]] = {}
    for word in only:
        refusal: UserError | None = None
        knowing = []
        for name in names:
            try:
                read_asked({**_file(name), "depth": "quick", "overrides": [], "only": [word]})
                knowing.append(name)
            except UserError as error:
                refusal = error
        if not knowing and refusal is not None:
            if len(names) == 1:
                raise refusal
            shown = ", ".join(f"`trifecta studies {name}`" for name in names)
            raise UserError(f"option --only {word}: no study, scenario or suite of these studies; {shown} say which")
        for name in knowing:
            words_by_name.setdefault(name, []).append(word)
    return {name: words_by_name[name] for name in names if name in words_by_name}


def _file(name: str) -> CampaignInvocation:
    from trifecta import studies

    path = studies.campaigns()[name]
    return {"text": studies.read_text(path), "file": path.name}


def _read(invocation: ReproductionInvocation) -> dict[str, Campaign]:
    from trifecta.cli.campaigns import read_asked

    return {name: read_asked(invocation["campaigns"][name]) for name in invocation["studies"]}

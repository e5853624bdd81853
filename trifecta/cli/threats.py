"""``trifecta threats``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.cli import options

if TYPE_CHECKING:
    from trifecta.contract.threats import ThreatDocument
    from trifecta.threats import Threat


class _Threats(click.Group):
    """``measure``, or a threat's name."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of this name, or the one that shows the threat of this name."""
        known = super().get_command(ctx, cmd_name)
        return known if known is not None else _shower(cmd_name)


@click.group(
    cls=_Threats,
    invoke_without_command=True,
    subcommand_metavar="[ID | measure ID...]",
    epilog="""\
\b
Examples:
  trifecta threats
  trifecta threats jitter-reordering
  trifecta threats measure jitter-reordering --quick
  trifecta threats measure all --quick --out threats
  trifecta threats measure cpu-bound --only cpu-client
""",
)
@options.as_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the threats to validity: what can make a conclusion about protocols wrong, and how each is detected and
    switched on and off.

    With ID, show one threat in full. With `measure ID`, run its experiment, which compares the threat off with the
    threat on, and report its effect on this machine.
    """
    if ctx.invoked_subcommand is not None:
        return
    from trifecta.report import threats as shown
    from trifecta.threats import THREATS

    if as_json:
        click.echo(json.dumps([shown.as_data(threat) for threat in THREATS.values()], indent=1))
    else:
        shown.print_list(list(THREATS.values()))


def _shower(name: str) -> click.Command:
    @click.command(name=name, help="Show one threat in full.")
    @options.as_json
    def show(as_json: bool) -> None:
        from trifecta.report import threats as shown
        from trifecta.threats import find

        threat = find(name)
        if as_json:
            click.echo(json.dumps(shown.as_data(threat), indent=1))
        else:
            shown.print_threat(threat)

    return show


@command.command(
    name="measure",
    epilog="""\
\b
Exit code: 0 when every requested experiment ran, 1 when one could not, 2 bad input, 3 not possible on this machine,
130 interrupted (the same command with the same --out continues).
""",
)
@click.argument("threats", nargs=-1, required=True, metavar="ID...|all")
@click.option(
    "--quick/--full",
    default=False,
    help="Quick: most experiments take under a minute. Full: narrow intervals.  [default: full]",
)
@click.option(
    "--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a factor or a field of the experiments."
)
@click.option(
    "--only", metavar="NAME,...", multiple=True, help="Only these experiments of a threat that has several. Repeatable."
)
@options.folder("Folder of the runs; those already in it are continued.  [default: runs/threats-DATE-TIME]")
@options.quiet
@options.as_json
def measure(
    *,
    threats: tuple[str, ...],
    quick: bool,
    overrides: tuple[str, ...],
    only: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Measure how the comparison of protocols changes when a threat is switched on."""
    from trifecta.design.overrides import refuse_twice
    from trifecta.threats import THREATS, find

    refuse_twice(overrides, {})
    named = list(THREATS) if threats == ("all",) else list(dict.fromkeys(threats))
    chosen = _chosen_experiments([find(name) for name in named], options.split_names(only))
    folder = out if out is not None else Path("runs") / f"threats-{time.strftime('%Y%m%d-%H%M%S')}"
    return _measure(chosen, folder.resolve(), quick=quick, overrides=overrides, quiet=quiet, as_json=as_json)


def _chosen_experiments(threats: list[Threat], wanted: list[str]) -> dict[Threat, tuple[str, ...]]:
    """Each threat with the experiments that are not asked for; those of which none is are left out."""
    from trifecta.design.document import did_you_mean
    from trifecta.design.errors import UserError

    known = [name for threat in threats for name in threat.experiments]
    for name in wanted:
        if name not in known:
            raise UserError(f"option --only: no experiment {name!r} of these threats; {did_you_mean(name, known)}")
    if not wanted:
        return dict.fromkeys(threats, ())
    without = {threat: tuple(name for name in threat.experiments if name not in wanted) for threat in threats}
    return {threat: names for threat, names in without.items() if len(names) < len(threat.experiments)}


def _measure(
    chosen: dict[Threat, tuple[str, ...]],
    folder: Path,
    *,
    quick: bool,
    overrides: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    from trifecta.cli.campaigns import experimenter
    from trifecta.cli.running import INTERRUPTED, enter_lab
    from trifecta.workloads.experiments import studies_of

    studies = [
        study
        for threat, without in chosen.items()
        for study in studies_of(threat, quick=quick, overrides=overrides, without=without)
    ]
    if studies:
        enter_lab(studies)

    from trifecta.report import threats as shown
    from trifecta.store import files
    from trifecta.workloads import experiments
    from trifecta.workloads.stopping import StopFlag

    with files.disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    documents: list[ThreatDocument] = []
    with StopFlag() as stop:
        for threat, without in chosen.items():
            if stop():
                break
            documents.append(
                experiments.run_experiment(
                    threat,
                    folder,
                    experimenter(threat, stop, quiet=quiet),
                    quick=quick,
                    overrides=overrides,
                    without=without,
                    stop=stop,
                )
            )
            experiments.write(folder, documents)
        if as_json:
            click.echo(json.dumps(documents, indent=1))
        else:
            shown.print_measured(documents, folder)
        if stop():
            return INTERRUPTED
    wanted = {threat.id for threat in chosen if threat.experiment}
    return 1 if any(one["threat"] in wanted and one["outcome"] == "not measured" for one in documents) else 0

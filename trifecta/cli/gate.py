"""``trifecta gate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.cli import options

if TYPE_CHECKING:
    from trifecta.cli.clusters import OnCluster
    from trifecta.contract.gate import GateDocument
    from trifecta.contract.run import GateRequest, RunDocument
    from trifecta.design.gate import GatePlan
    from trifecta.store.run import RunDirectory

DEFAULT_BUDGET = "3 min"
EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}


@click.command(
    epilog="""\
\b
Exit code: 0 passes (decided: not worse by more than allowed), 1 fails (decided: worse by more than allowed),
4 undecided when the budget is spent, 2 bad input, 3 not possible on this machine, 130 interrupted (continue with
`trifecta resume RUN`, which ends with these exit codes too).

\b
Examples:
  trifecta gate race --baseline origin --candidate caddy --set path=far --set protocol=h3
  trifecta gate race --baseline tcp_nodelay=on --candidate tcp_nodelay=off --set server=origin --set protocol=h2
  trifecta gate race --baseline nginx@./build-a --candidate new=nginx@./build-b --set path=far --set protocol=h3
  trifecta gate my-study.yaml --baseline congestion_control=cubic --candidate congestion_control=bbr \\
    --fail-on slower:3% --fail-on more-cpu:10% --summary gate.md --junit gate.xml --references .trifecta
  trifecta gate race --baseline caddy@2.10.0 --candidate caddy@2.11.1 --cluster head.example.org:6379
"""
)
@click.argument("study", shell_complete=options.complete_study)
@click.option(
    "--baseline",
    required=True,
    metavar="REF",
    shell_complete=options.complete_compared,
    help="The known good level: FACTOR=LEVEL, or a server: its name, nginx@./build, caddy@2.10.0, NAME=./server.yaml, "
    "'cmd:./my-server --port {port} --cert {cert} --key {key}'.",
)
@click.option(
    "--candidate",
    required=True,
    metavar="REF",
    shell_complete=options.complete_compared,
    help="The level of the same factor to judge. Give the baseline again to test whether this machine can decide.",
)
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="WHAT:LIMIT",
    help="Fail if this holds in any cell: slower:3%, more-bytes:2%, more-cpu:10%, or a metric, as in latency_p95:5%. "
    "Repeatable.  [default: slower:3%]",
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    shell_complete=options.complete_override,
    help="Change a factor or a field of the study, as in `trifecta run`. Repeatable.",
)
@click.option("--budget", metavar="TIME", help=f"Time budget, for example '10 min'.  [default: {DEFAULT_BUDGET}]")
@click.option(
    "--seed",
    metavar="N",
    help="Seed of trial order and losses; give a gate's seed to repeat it.  [default: random, recorded]",
)
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write Markdown for a pull request.",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write JUnit XML.")
@click.option(
    "--references",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the last good result in this folder, and warn if a candidate is worse than it.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="If the gate passes, make it the last good result in --references, even against a warning.",
)
@options.cluster
@options.running
def command(
    *,
    study: str,
    baseline: str,
    candidate: str,
    fail_on: tuple[str, ...],
    overrides: tuple[str, ...],
    budget: str | None,
    seed: str | None,
    summary: Path | None,
    junit: Path | None,
    references: Path | None,
    accept: bool,
    cluster: OnCluster | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Decide, for CI, whether a candidate is worse than a baseline in any cell of STUDY.

    Both run side by side in one session, in blocks, until the question is decided or the budget is spent. A cell is one
    combination of the factors that are not compared, such as one path with new connections.
    """
    from trifecta import studies
    from trifecta.cli.option_parsing import own_refs
    from trifecta.cli.running import default_folder
    from trifecta.design.campaign import is_campaign
    from trifecta.design.errors import UserError
    from trifecta.design.gate import GatePlan, read_conditions, read_refs
    from trifecta.design.overrides import name_of
    from trifecta.implementations.survey import Finder

    if accept and references is None:
        raise UserError("option --accept: there is no last good state without --references FOLDER; add it")
    _refuse_references(cluster, references)
    refs = own_refs(read_refs(baseline, candidate))
    refs.refuse_twice(overrides)
    path = studies.find(study)
    text = studies.read_text(path)
    if is_campaign(text):
        raise UserError(f"{study} is a campaign, and a gate is of one study; give one of its studies")
    if budget is None and not any(name_of(change.partition("=")[0].strip()) == ("budget",) for change in overrides):
        budget = DEFAULT_BUDGET
    changes = options.with_seed(options.as_overrides(overrides, None, budget, seed, ()), text, path.name)
    finder = Finder()
    known = studies.known_servers(), studies.known_clients()
    loaded = studies.load(study, changes, known[0], clients=known[1], found_levels=finder, change=refs.change)
    if not loaded.gives_verdicts:
        raise UserError(f"{study}: capture: captured trials decide nothing; leave it out")
    gate = GatePlan(loaded, read_conditions(fail_on, loaded))
    request: GateRequest = {
        "fail_on": [*fail_on],
        "summary": _in_full(summary),
        "junit": _in_full(junit),
        "references": _in_full(references),
        "accept": accept,
    }
    outputs = GateOutputs(summary, junit, LastGood.of(gate, references, accept=accept), as_json=as_json)
    facts: RunDocument = {**finder.facts(), "gate": request}
    return _carry_out(gate, out or default_folder(loaded), facts, outputs, quiet=quiet, cluster=cluster)


def go_on(run: RunDirectory, *, budget_ns: int | None, cluster: OnCluster | None, quiet: bool, as_json: bool) -> int:
    """Go on with the gate of a run, and write the files that it was asked for; the exit code."""
    from trifecta.design.gate import GatePlan, read_conditions
    from trifecta.design.study_file import parse_study
    from trifecta.store import gates

    request = gates.gate_request(run.path, run.facts)
    study = parse_study(run.study_text, str(run.path / "study.yaml"))
    gate = GatePlan(study, read_conditions(request["fail_on"], study))
    summary, junit, references = (
        None if name is None else Path(name) for name in (request["summary"], request["junit"], request["references"])
    )
    _refuse_references(cluster, references)
    outputs = GateOutputs(summary, junit, LastGood.of(gate, references, accept=request["accept"]), as_json=as_json)
    return _carry_out(gate, run.path, {}, outputs, quiet=quiet, cluster=cluster, resume=True, budget_ns=budget_ns)


def _refuse_references(cluster: OnCluster | None, references: Path | None) -> None:
    from trifecta.design.errors import UserError

    if cluster is not None and references is not None:
        raise UserError("option --references: a last good state belongs to one machine, but the nodes of a cluster "
                        "come and go; leave out --references or --cluster")  # fmt: skip


def _in_full(path: Path | None) -> str | None:
    """Who goes on with it may be elsewhere."""
    return None if path is None else str(path.absolute())


@dataclass(frozen=True)
class LastGood:
    """Where the last good state is kept, which it was, and whether this gate takes its place whatever it says."""

    path: Path
    before: GateDocument | None
    accept: bool

    @classmethod
    def of(cls, gate: GatePlan, references: Path | None, *, accept: bool) -> LastGood | None:
        """That of a gate, read before anything is measured; UserError for one that is damaged."""
        from trifecta.observers.machine import static_facts
        from trifecta.store import gates

        if references is None:
            return None
        study = gate.study
        path = gates.reference_file(references, study.name, study.compare, gate.asked_sha256, static_facts())
        return cls(path, gates.read(path), accept)


@dataclass(frozen=True)
class GateOutputs:
    """How a gate is told: files to write, the last good state, and what is printed."""

    summary: Path | None
    junit: Path | None
    last: LastGood | None
    as_json: bool


def _carry_out(
    gate: GatePlan,
    folder: Path,
    facts: RunDocument,
    outputs: GateOutputs,
    *,
    quiet: bool,
    cluster: OnCluster | None,
    resume: bool = False,
    budget_ns: int | None = None,
) -> int:
    """Measure a gate inside the lab or on a cluster, or go on with it, and tell of it; the exit code."""
    from trifecta.cli import clusters, running

    running.enter([gate.study], cluster)

    from trifecta.conclude import gate as concluded
    from trifecta.workloads import gate as gates
    from trifecta.workloads.stopping import StopFlag

    with StopFlag() as stop:
        with running.showing_question(quiet=quiet) as progress:
            done = gates.run_gate(
                gate, folder, progress, stop, facts, resume=resume, budget_ns=budget_ns,
                cluster=clusters.launching(cluster),
            )  # fmt: skip
        gate = done.gate
        document = concluded.document(
            gate, done.rows, done.cells, done.facts, run=done.run, interrupted=done.interrupted
        )
        _write_outputs(gate, document, outputs)
    return running.INTERRUPTED if done.interrupted else EXIT_CODES[document["state"]]


def _write_outputs(gate: GatePlan, document: GateDocument, outputs: GateOutputs) -> None:
    from trifecta.conclude import last_good
    from trifecta.contract import codec
    from trifecta.report import gate as view
    from trifecta.store import gates

    last, replaces = outputs.last, False
    if last is not None:
        others, file = gates.count_others(last.path), str(last.path)
        document, replaces = last_good.compare_to_last_good(
            gate, document, last.before, file=file, others=others, accept=last.accept
        )
    view.write(document, summary=outputs.summary, xml=outputs.junit)
    if last is not None and replaces:
        gates.keep(last.path, document)
    if outputs.as_json:
        click.echo(codec.encode_pretty(document))
    else:
        view.show(document)

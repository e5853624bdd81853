"""``trifecta doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.cli.options import as_json

if TYPE_CHECKING:
    from trifecta.lab.doctor import Finding


@click.command(
    epilog="""\
\b
Exit code: 0 when a study can run here, or on every host or node checked; 1 when something it needs is missing.

\b
Examples:
  trifecta doctor
  trifecta doctor --json
  trifecta doctor --host ssh://a --host ssh://me@b:2222
  trifecta doctor --cluster head.example.org:6379
"""
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="PLACE",
    help="Check only this host, by SSH: ssh://USER@HOST:PORT. The engine is copied there and stays. Repeatable.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Check only the nodes of this Ray cluster (HOST:PORT of its head, auto or local:N): run `trifecta doctor` on "
    "each and start a program of the engine. Lists what is missing, and counts the rest.",
)
@as_json
def command(hosts: tuple[str, ...], cluster: str | None, as_json: bool) -> int:
    """Check what this machine (or hosts by SSH, or a cluster's nodes) can do, what is missing, and how to fix it."""
    if cluster is not None:
        from trifecta.design.errors import UserError

        if hosts:
            raise UserError("option --cluster: it asks nodes, and --host hosts by SSH; use one at a time")
        return _of_nodes(cluster, as_json)
    if hosts:
        return _of_hosts(hosts, as_json)
    from trifecta.implementations.survey import as_findings, survey
    from trifecta.lab import doctor

    findings = doctor.examine(Path.cwd())
    if sys.platform == "linux":  # elsewhere no program could be asked
        findings += as_findings(survey())
    able = doctor.able(findings)
    if as_json:
        document = {"able": able, "findings": doctor.as_dicts(findings), "code": _code()}
        click.echo(json.dumps(document, indent=2))
        return 0 if able else 1
    _show(findings)
    click.echo("A study can run here." if able else "No study can run here: install what is missing.")
    return 0 if able else 1


def _of_hosts(hosts: Sequence[str], as_json: bool) -> int:
    from trifecta.design.errors import UserError
    from trifecta.design.machine import parse_machine
    from trifecta.design.quantity import QuantityError
    from trifecta.lab import doctor
    from trifecta.lab.ssh.doctor import examine

    machines = []
    for text in hosts:
        try:
            machine = parse_machine(text)
        except QuantityError as error:
            raise UserError(f"option --host: {error}") from None
        if machine.is_here:
            raise UserError("option --host here: `trifecta doctor` alone is about this machine; leave it out")
        machines.append(machine)
    findings_by_host = {machine.at: examine(machine) for machine in machines}
    able = {at: doctor.able(findings) for at, findings in findings_by_host.items()}
    if as_json:
        _show_json("hosts", findings_by_host)
    else:
        for at, findings in findings_by_host.items():
            click.echo(f"{at}:")
            _show(findings)
            click.echo(f"A program of a study can run on {at}." if able[at] else f"Nothing can run on {at}.")
    return 0 if all(able.values()) else 1


def _code() -> dict[str, str]:
    """Digests of this package and of its engine, empty where it is not there: nodes are compared by them."""
    from trifecta.design.errors import CannotError
    from trifecta.lab.engine import find_engine
    from trifecta.workloads import code

    try:
        return code.digests(find_engine())
    except CannotError:
        return {}


def _of_nodes(address: str, as_json: bool) -> int:
    import tempfile

    from trifecta.lab import doctor, nodes_doctor
    from trifecta.lab.engine import find_engine
    from trifecta.lab.ray_launcher import RayLauncher, reach
    from trifecta.workloads import code

    reach(address)
    own = code.digests(find_engine())  # without an engine here there is nothing to compare nodes with
    launcher = RayLauncher(address)
    try:
        with tempfile.TemporaryDirectory(prefix="trifecta-doctor-") as folder:
            by_node = nodes_doctor.examine(launcher, Path(folder) / "log", own)
    finally:
        launcher.close()
    able = {node: doctor.able(findings) for node, findings in by_node.items()}
    if as_json:
        _show_json("nodes", by_node)
        return 0 if all(able.values()) else 1
    for node, findings in by_node.items():
        word = "can run blocks" if able[node] else "cannot run blocks"
        fine = sum(finding.status == "ok" for finding in findings)
        absent = sum(finding.status == "missing" and not finding.required for finding in findings)
        more = f", {absent} that it can do without are absent (--json names them)" if absent else ""
        click.echo(f"{node} {word}: {fine} of {len(findings)} things are in order{more}.")
        needed = [finding for finding in findings if finding.status == "warn" or finding.required]
        _show([finding for finding in needed if finding.status != "ok" or finding is findings[-1]])
    many = sum(able.values())
    click.echo(f"{many} of {len(able)} nodes can run blocks." if many else "No node can run blocks.")
    return 0 if all(able.values()) else 1


def _show_json(kind: str, by_place: Mapping[str, Sequence[Finding]]) -> None:
    from trifecta.lab import doctor

    document = {
        at: {"able": doctor.able(findings), "findings": doctor.as_dicts(findings)} for at, findings in by_place.items()
    }
    click.echo(json.dumps({kind: document}, indent=2))


def _show(findings: Sequence[Finding]) -> None:
    """A line each, and what mends it."""
    from trifecta.cli.tables import hanging, terminal_width

    columns = terminal_width()
    width = max(len(finding.name) for finding in findings)
    colours = {"ok": "green", "warn": "yellow", "missing": "red"}
    for finding in findings:
        optional = finding.status == "missing" and not finding.required
        colour = "yellow" if optional else colours[finding.status]
        mark = click.style(f"{'absent' if optional else finding.status:7}", fg=colour)
        for line in hanging([f"{mark}  {finding.name:{width}}"], finding.evidence, columns):
            click.echo(line)
        if finding.remedy:
            click.echo(f"{'':9}{'':{width}}  -> {finding.remedy}")

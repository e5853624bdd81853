"""``trifecta doctor``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trifecta.cli.options import as_json


@click.command(
    epilog="""\
\b
Exit code: 0 when a study can run here, 1 when something it needs is missing.

\b
Examples:
  trifecta doctor
  trifecta doctor --json
"""
)
@as_json
def command(as_json: bool) -> int:
    """Check what this machine can do, what is missing, and the command that fixes each."""
    from trifecta.cli.tables import hanging, terminal_width
    from trifecta.implementations.survey import as_findings, survey
    from trifecta.lab import doctor

    findings = [*doctor.examine(Path.cwd()), *as_findings(survey())]
    able = doctor.able(findings)
    if as_json:
        click.echo(json.dumps({"able": able, "findings": doctor.as_dicts(findings)}, indent=2))
        return 0 if able else 1
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
    click.echo("A study can run here." if able else "No study can run here: install what is missing.")
    return 0 if able else 1

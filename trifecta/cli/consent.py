"""Consent: what a study sends to servers elsewhere is said before it is sent, and agreed to."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trifecta.design.model import Study


def refuse_in_silence(*, yes: bool, what: str) -> None:
    """UserError where nobody can be asked, and nobody said yes."""
    from trifecta.design.errors import UserError

    if not yes and not sys.stdin.isatty():
        why = f"requests to {what} leave this machine, and there is no terminal to ask at"
        raise UserError(f"{why}; add --yes to allow them")


def refuse(studies: Iterable[Study]) -> None:
    """UserError for a study of a server elsewhere, in a command that measures in a lab and asks nobody."""
    from trifecta.design.errors import UserError

    for study in studies:
        if study.workload.outside:
            what = f"study {study.name!r} asks a server elsewhere, and this command measures in a lab"
            raise UserError(f"{what}; give it to `trifecta run` by itself")


def ask(study: Study, *, yes: bool, quiet: bool, answer_bytes: int | None = None, requests: int | None = None) -> None:
    """Say what is coming and have the user agree; UserError where he does not, or cannot be asked.

    ``answer_bytes`` and ``requests`` are of one answer, or of one visit of a page, where one was seen.
    """
    from trifecta.design.errors import UserError
    from trifecta.report.far.words import coming_line, too_few_line, vantage_line
    from trifecta.workloads.far.traffic_estimate import traffic_estimate

    expected = traffic_estimate(study, answer_bytes, requests)
    hosts = ", ".join(expected.hosts)
    refuse_in_silence(yes=yes, what=hosts)
    many = expected.fewest_requests, expected.most_requests
    takes = expected.most_bytes, expected.time_ns, expected.manners
    lines = [coming_line(expected.hosts, many, *takes, at_once=study.workload.visiting)]
    lines += vantage_line(expected.vantages)
    lines += too_few_line(expected.blocks, expected.needed)
    if not quiet or not yes:
        click.echo("\n".join(lines), err=True)
    if not yes and not click.confirm("Go on?", err=True):
        raise UserError(f"nothing is measured: requests to {hosts} were not agreed to")

"""`trifecta race URL`: look, say what is coming, ask, and measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trifecta.cli.first_looks import LookFindings, first_looks

if TYPE_CHECKING:
    from trifecta.contract.values import JsonObject
    from trifecta.workloads.far.choose import LookRequest

NOT_WITH_URLS = ("servers", "clients", "hosts", "threats_on", "threats_off", "capture", "cluster")
"""Options of studies whose server is ours: in a lab, or on a host of the user's."""


def race_urls(
    urls: Sequence[str],
    *,
    authorities: Path | None,
    addresses: tuple[str, ...],
    owned: bool,
    yes: bool,
    overrides: tuple[str, ...],
    blocks: int | None,
    budget: str | None,
    seed: str | None,
    compare: str | None,
    baseline: str | None,
    page: bool,
    browsers: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare the protocols of servers elsewhere over the path as it is; the exit code of ``trifecta run``."""
    from trifecta.cli import consent, far_page, options, running
    from trifecta.design import far
    from trifecta.design.emit import to_yaml
    from trifecta.design.errors import UserError
    from trifecta.design.quantity import QuantityError
    from trifecta.design.study_file import parse_study
    from trifecta.workloads.far.choose import LookRequest
    from trifecta.workloads.stat import read_url, system_roots

    consent.refuse_in_silence(yes=yes, what=", ".join(urls))
    try:
        targets = tuple(read_url(far.parse_url(_with_scheme(url))) for url in urls)
        levels = tuple(far.parse_address(one) for one in options.split_names(addresses))
    except QuantityError as error:
        raise UserError(f"race: {error}") from None
    if len(set(targets)) < len(targets):
        raise UserError("race: one URL is given twice; give each once")
    wanted = LookRequest(targets, authorities or system_roots(), levels, authorities is not None, owned)
    changes = options.as_overrides(overrides, blocks, budget, seed, (), compare=compare, baseline=baseline)
    names = far_page.browsers_of(options.split_names(browsers))
    every = far_page.before(wanted, names) if page else _before(wanted)
    parsed = parse_study(to_yaml(every), "race", changes)  # what is wrong with options is said before a look
    # A run that waits less for a connection need not be preceded by a look that waits longer.
    limit_ns = min(wanted.connect_timeout_ns, parsed.workload.connect_timeout_ns)
    wanted = replace(wanted, connect_timeout_ns=limit_ns)
    findings = far_page.look_at_pages(wanted, names, quiet=quiet) if page else _look(wanted, quiet=quiet)
    for line in [] if quiet else findings.lines:
        click.echo(line, err=True)
    text = to_yaml(findings.document)
    study = parse_study(text, "race", options.with_seed(changes, text, "race"))
    folder = out if out is not None else running.default_folder(study)
    consent.ask(study, yes=yes, quiet=quiet, answer_bytes=findings.octets, requests=findings.requests)
    return running.carry_out(study, folder, resume=False, quiet=quiet, as_json=as_json, may_leave=True)


def _with_scheme(url: str) -> str:
    """A URL with its scheme; UserError for what is rather the name of a study, or its file."""
    from trifecta.design.errors import UserError

    if "://" in url:
        return url
    is_file = len(url) < 200 and Path(url).exists()  # a longer name no file system has, and asking for it fails
    if is_file or not {".", ":"} & {*url.partition("/")[0]}:
        raise UserError(f"race: {url!r} is no URL; give https://HOST/PATH, or run a study by `trifecta run {url}`")
    return f"https://{url}"


def refuse_options(given: Sequence[str]) -> None:
    """UserError for an option, of those in ``NOT_WITH_URLS``, that was given all the same."""
    from trifecta.design.errors import UserError

    named = {"threats_on": "with", "threats_off": "without", "servers": "server", "clients": "client", "hosts": "host"}
    for name in given:
        option = f"--{named.get(name, name)}"
        raise UserError(f"option {option}: belongs to servers of a study, and a URL has its own; leave it out")


def _before(wanted: LookRequest) -> JsonObject:
    """The study as it would be if everything were answered."""
    from trifecta.design.model import PROTOCOLS
    from trifecta.workloads.far.choose import Choice, document, levels_of

    return document(wanted, Choice(PROTOCOLS, levels_of(wanted), 0, ()))


def _look(wanted: LookRequest, *, quiet: bool) -> LookFindings:
    """One look at each address, and what it lets compare."""
    from trifecta.report.far.words import place_lines
    from trifecta.workloads.far import choose

    with first_looks(wanted.workload.manners.pace_per_s, quiet=quiet) as look:
        observations = choose.look(look.engine, wanted, look.stop, look.folder, look.tell)
    choice = choose.choose(wanted, observations)
    lines = [line for place in observations for line in place_lines(place)]
    lines += [f"Left out: {line}" for line in choice.left_out]
    return LookFindings(lines, choose.document(wanted, choice), choice.answer_bytes, 1)

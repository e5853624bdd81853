"""Which cells of a study of servers elsewhere can be measured from here, as far as that is known before asking them."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trifecta.contract.run import LeftOut
from trifecta.design import extras, plan
from trifecta.design.errors import CannotError, UserError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.design.manners import MOST_AUTHORITIES
from trifecta.design.model import Cell, FarBaseWorkload, Study
from trifecta.design.stat import Target
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.browsers import authorities as stores
from trifecta.implementations.server import Unsupported
from trifecta.workloads.stat import read_url, system_roots
from trifecta.workloads.supported import (
    Refusal,
    Supported,
    SupportedPrograms,
    found_here,
    known_here,
    refused_clients,
    supported,
)
from trifecta.workloads.visits.supported import refusal

_UNPROTECTED = "chromium"
"""It has no sandbox of its own where root runs it."""
_WHY_UNPROTECTED = (
    f"{_UNPROTECTED} has no sandbox of its own where root runs it, and the page is of others; run as another user, "
    "or claim the page as yours (--i-own-this)"
)


def far_supported(study: Study) -> Supported:
    """All cells: who does not answer is found by looking. UserError for a URL or file that cannot be used at all.

    CannotError where vantage points are asked for, and what speaks SSH is not installed.
    """
    _refuse(study)
    return supported(study, SupportedPrograms({}, {}, []), (), "; ".join)


def far_pages_supported(study: Study, browsers: Mapping[str, BrowserAdapter]) -> Supported:
    """Those whose browsers are here. UserError as `far_supported`; CannotError when there is no cell left."""
    _refuse(study)
    for workload in workloads(study):
        refuse_literal(read_url(workload.url))
    if given := given_authorities(study):
        refuse_many(given)
    left_out: list[LeftOut] = []
    programs = found_here(CLIENT_FACTOR, known_here(CLIENT_FACTOR, study.factors[CLIENT_FACTOR], browsers), left_out)
    questions = (refused_clients({name: browsers[name] for name in programs}, refusal), unprotected)
    return supported(
        study,
        SupportedPrograms({}, programs, left_out),
        questions,
        lambda why: f"no browser can visit from here: {'; '.join(why)}",
    )


def refuse_literal(target: Target) -> None:
    """UserError for a URL of an address: what a browser asks for goes where its name is pointed to."""
    try:
        ipaddress.ip_address(target.host)
    except ValueError:
        return
    what = "a page is visited by its host's name; give that, and the address by --address"
    raise UserError(f"URL {target.url!r}: {what}")


def refuse_many(file: Path) -> None:
    """UserError for a file of more authorities than a browser is given."""
    number = len(stores.split(file.read_text(encoding="ascii", errors="replace")))
    if number > MOST_AUTHORITIES:
        what = f"{file} has {number} certificates, and a browser is given {MOST_AUTHORITIES} at most"
        raise UserError(f"workload.ca: {what}; give those that signed for this server (--ca FILE)")


def unprotected(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells of pages of others in a browser that has no sandbox of its own, since root runs it."""
    if os.geteuid() != 0 or all(workload.owned for workload in workloads(study)):
        return
    mine = [cell for cell in cells if any(one.client == _UNPROTECTED for one in plan.treatments_of(study, cell))]
    if mine:
        yield Refusal(mine, CLIENT_FACTOR, _UNPROTECTED, _WHY_UNPROTECTED)


def _refuse(study: Study) -> None:
    if study.capture:
        what = "capture: no wire between here and a server elsewhere is ours, so no packets can be kept"
        raise UserError(f"{what}; leave --capture out, or capture with tcpdump beside the run")
    if study.compare == "vantage":
        what = "compare: paths from two places differ by far more than protocols do, so places are not arms of a block"
        raise UserError(f"{what}; compare something else, each level of 'vantage' has verdicts of its own")
    for workload in workloads(study):
        read_url(workload.url)
    authorities(study)
    if any(workload.distant for workload in workloads(study)):
        extras.load("asyncssh")


def workloads(study: Study) -> list[FarBaseWorkload]:
    """The workload of every treatment."""
    return [plan.workload_of(FarBaseWorkload, study, one) for one in plan.treatments(study)]


def targets(study: Study) -> dict[str, Target]:
    """The URLs of a study, taken apart."""
    return {workload.url: read_url(workload.url) for workload in workloads(study)}


def given_authorities(study: Study) -> Path | None:
    """The file of certificate authorities that a study names; UserError where it cannot be read."""
    named = next((workload.ca for workload in workloads(study)), None)
    if named is None:
        return None
    path = Path(named)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise UserError(f"workload.ca: {named} cannot be read; give a file of certificates in PEM (--ca FILE)")
    return path


def authorities(study: Study) -> Path:
    """The certificate authorities to trust, of the study or of the system; UserError where they cannot be read."""
    return given_authorities(study) or system_roots()


def refuse_browsers(names: Sequence[str], browsers: Mapping[str, BrowserAdapter], *, owned: bool) -> None:
    """Before anything is looked at: UserError for a name that no browser has, CannotError for one that cannot visit."""
    for name, adapter in known_here(CLIENT_FACTOR, names, browsers).items():
        try:
            adapter.find()
        except Unsupported as error:
            raise CannotError(str(error)) from None
        if name == _UNPROTECTED and os.geteuid() == 0 and not owned:
            raise CannotError(_WHY_UNPROTECTED)

"""From a page elsewhere to the configuration of a browser's driver: hosts and where they are, pauses, who asks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trifecta import __version__
from trifecta.contract.browser import BrowserConfig, RemotePageConfig
from trifecta.contract.common import Protocol
from trifecta.design.errors import CannotError
from trifecta.design.far import family_of
from trifecta.design.stat import Target
from trifecta.design.workloads.far_page import FarPageWorkload
from trifecta.lab.engine import EngineProgram
from trifecta.lab.place import DrivingPlace
from trifecta.workloads.far import names
from trifecta.workloads.visits.configs import VIEWPORT, Drafts, total_timeout_ns

AGENT = f"trifecta/{__version__} (measures this page; leaves off at 429 and 503)"
"""What follows the browser's own user agent."""
_HTTPS_PORT = 443


@dataclass(frozen=True)
class VisitOptions:
    """A visit, or several: of what, where, over what, by whom trusted, how far apart."""

    trial: str
    target: Target
    protocol: str
    addresses: Mapping[str, str]
    """Of every host that is to exist for the browser, the one of the URL among them."""
    authorities: Path | None
    gap_ns: int
    seed: int = 1


def page_config(options: VisitOptions, workload: FarPageWorkload, drafts: Drafts, work_dir: Path) -> BrowserConfig:
    """What the driver of a browser is asked to do."""
    own = options.target.host
    turns = workload.turns("browser")
    return BrowserConfig(
        trial=options.trial,
        protocol=cast(Protocol, options.protocol),
        kind="page",
        url=plain_url(options.target),
        hosts=(own, *(host for host in options.addresses if host != own)),
        third_parties=tuple(host for host in options.addresses if host != own),
        addresses=dict(options.addresses),
        port=options.target.port,
        ca_file=None if options.authorities is None else str(options.authorities.resolve()),
        visits=workload.visits,
        warmup_visits=workload.warmup_visits,
        seed=options.seed,
        visit_timeout_ns=workload.visit_timeout_ns,
        total_timeout_ns=total_timeout_ns(workload) + turns * options.gap_ns,
        settle_ns=workload.settle_ns,
        filmstrip=workload.films,
        viewport=VIEWPORT,
        elsewhere=RemotePageConfig(least_gap_ns=options.gap_ns, agent=AGENT),
        work_dir=str(work_dir),
        samples_file=str(drafts.samples),
        visits_file=str(drafts.visits),
        fetches_file=str(drafts.fetches),
        frames_dir=None if drafts.frames is None else str(drafts.frames),
        har_dir=str(drafts.har),
    )


def plain_url(target: Target) -> str:
    """The URL as a browser has it: the host in the form that names have in DNS."""
    port = "" if target.port == _HTTPS_PORT else f":{target.port}"
    return f"https://{target.host}{port}{target.path}"


def addresses_of(target: Target, address: str, others: Sequence[str]) -> dict[str, str]:
    """Where every host of a page is: its own at ``address``, others where their names lead, of that family if they can.

    One whose name leads nowhere is left out: for the browser it does not exist.
    """
    addresses = {target.host: address}
    for host in others:
        if host == target.host:
            continue
        try:
            there = names.resolve(host, _HTTPS_PORT)
        except CannotError:
            continue
        alike = there.of(family_of(address))
        addresses[host] = (alike or list(there.addresses))[0]
    return addresses


def spawn(here: DrivingPlace, browser: str, log: Path, cpus: frozenset[int] | None) -> EngineProgram:
    """Start the driver of a browser in this machine's own network; it waits for its configuration."""
    driver = (sys.executable, "-P", "-m", "trifecta.implementations.browsers.driver", browser)
    return here.drive(driver, "load", log, cpus=cpus, name=f"client {browser}")

"""How the workloads of each family are run: which cells can be, what stays up, and who runs a trial."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from trifecta.contract.machine import NetworkFacts
from trifecta.contract.probe import MeasureSummary
from trifecta.design.model import Cell, Levelled, Study, Trial
from trifecta.design.workloads.requests import Family
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.registry import BROWSERS, CLIENTS, SERVERS
from trifecta.implementations.server import ServerAdapter
from trifecta.lab.host import browser_pin_table, pin_table
from trifecta.store.run import RunDirectory
from trifecta.workloads.faults import NO_FAULTS, Faults
from trifecta.workloads.services.session import ServicesSession
from trifecta.workloads.services.supported import services_supported
from trifecta.workloads.services.trial import ServicesTrialRunner
from trifecta.workloads.session import Session
from trifecta.workloads.supported import Supported, supported
from trifecta.workloads.trial import Outcome, TrialRunner
from trifecta.workloads.visits.session import BrowserSession
from trifecta.workloads.visits.supported import browsers_supported
from trifecta.workloads.visits.trial import BrowserTrialRunner


class AnySession(Protocol):
    """What stays up over the trials of a run; raised by ``with``."""

    def __enter__(self) -> Self:
        """Raise what needs no cells."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take everything down."""

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise what the cells need; what does not come up is given up."""

    def has_failed(self, cell: Cell) -> str | None:
        """Why a cell is given up; None when it is not."""

    def failures(self) -> list[tuple[str, str, str]]:
        """What is given up: factor, level, reason."""

    def down(self, cell: Cell) -> str | None:
        """How what a cell needs ended, in words; None while it runs."""

    def stand_up(self, cell: Cell) -> bool:
        """Start that again; False when it does not come up, and is given up."""

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Start anew, before a block of a cell, what that costs little beside ``block_ns``; False as `stand_up`."""

    @property
    def network(self) -> NetworkFacts:
        """Settings of the lab's kernel, for ``run.json``."""

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same way: one probe is enough for all of them."""

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the path of a treatment was not probed for so long."""

    def probe(self, at: Levelled, seed: int) -> MeasureSummary:
        """Measure what the path of a treatment does to packets."""

    def probe_of(self, at: Levelled) -> MeasureSummary | None:
        """What the last probe of a treatment's path found."""


class AnyTrialRunner(Protocol):
    """Runs the trials of a session, one at a time."""

    def run(self, trial: Trial) -> Outcome:
        """Run a trial. What goes wrong in it is in its row; CannotError when no trial could be run at all."""

    def start_ahead(self, trial: Trial) -> None:
        """Start what the next trial likely needs, while the one that ended is judged."""

    def close(self) -> None:
        """End what was started ahead."""


@dataclass(frozen=True)
class Adapters:
    """What a run may use, by name."""

    servers: Mapping[str, ServerAdapter] = field(default_factory=lambda: SERVERS)
    clients: Mapping[str, ClientAdapter] = field(default_factory=lambda: CLIENTS)
    browsers: Mapping[str, BrowserAdapter] = field(default_factory=lambda: BROWSERS)


@dataclass(frozen=True)
class Common:
    """What every session is made of."""

    engine: Path
    run: RunDirectory
    study: Study
    stop: Callable[[], bool]
    adapters: Adapters
    faults: Faults = NO_FAULTS


@dataclass(frozen=True)
class Executor:
    """How a workload is run."""

    cells: Callable[[Study, Path, Adapters], Supported]
    """Those that can run here; CannotError when there is none."""
    session: Callable[[Common], AnySession]
    runner: Callable[[Any, Faults], AnyTrialRunner]
    pins: Callable[[], Mapping[str, frozenset[int] | None]] = pin_table
    """Which program has which cores to itself."""
    phase: str = "servers"
    """What ``begin`` raises."""
    conformance: bool = False
    """Whether servers and clients are probed before the trials."""


def _requests(common: Common) -> Session:
    return Session(
        common.engine,
        common.run,
        common.study,
        common.adapters.servers,
        common.stop,
        link_changes=common.faults.link,
    )


def _services(common: Common) -> ServicesSession:
    return ServicesSession(common.engine, common.run, common.study, common.stop, link_changes=common.faults.link)


def _browsers(common: Common) -> BrowserSession:
    return BrowserSession(
        common.engine,
        common.run,
        common.study,
        common.adapters.servers,
        common.stop,
        link_changes=common.faults.link,
    )


EXECUTORS: dict[Family, Executor] = {
    "requests": Executor(
        lambda study, _, adapters: supported(study, adapters.servers, adapters.clients),
        _requests,
        TrialRunner,
        conformance=True,
    ),
    "services": Executor(
        lambda study, engine, _: services_supported(study, engine), _services, ServicesTrialRunner, phase="services"
    ),
    "visits": Executor(
        lambda study, _, adapters: browsers_supported(study, adapters.servers, adapters.browsers),
        _browsers,
        BrowserTrialRunner,
        pins=browser_pin_table,
    ),
}
"""By the family of the study's workload."""

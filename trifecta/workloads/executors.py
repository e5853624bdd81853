"""How the workloads of each family are run: which cells can be, what stays up, and who runs a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trifecta.analysis.planner import AnyPlanner
from trifecta.analysis.polite_planner import PolitePlanner
from trifecta.design.model import Cell, Study
from trifecta.design.workloads.requests import Family
from trifecta.lab.host import browser_pin_table, pin_table
from trifecta.workloads.far.page_session import FarPageSession, page_pins
from trifecta.workloads.far.page_trial import FarPageTrialRunner
from trifecta.workloads.far.session import FarSession
from trifecta.workloads.far.supported import far_pages_supported, far_supported
from trifecta.workloads.far.trial import FarTrialRunner
from trifecta.workloads.hosts.services_session import PlacedSession
from trifecta.workloads.hosts.services_supported import placed_services_supported
from trifecta.workloads.hosts.services_trial import PlacedTrialRunner
from trifecta.workloads.hosts.session import HostsSession
from trifecta.workloads.hosts.supported import hosts_supported
from trifecta.workloads.hosts.trial import HostsTrialRunner
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.requests.supported import requests_supported
from trifecta.workloads.requests.trial import RequestsTrialRunner
from trifecta.workloads.services.session import ServicesSession
from trifecta.workloads.services.supported import services_supported
from trifecta.workloads.services.trial import ServicesTrialRunner
from trifecta.workloads.session import Adapters, Session, SessionContext
from trifecta.workloads.supported import Supported
from trifecta.workloads.trial import TrialRunner
from trifecta.workloads.visits.session import BrowserSession
from trifecta.workloads.visits.supported import browsers_supported
from trifecta.workloads.visits.trial import BrowserTrialRunner

AnySession = Session[Any, Any]
AnyTrialRunner = TrialRunner[Any, Any]
Raised = tuple[AnySession, Callable[[], AnyTrialRunner]]
"""A session that is up, and what makes the runner of its trials, once its cells have begun."""
Own = TypeVar("Own", bound=AnySession)


def _without_limit(planner: AnyPlanner, _study: Study, _cells: Sequence[Cell]) -> AnyPlanner:
    return planner


@dataclass(frozen=True)
class Executor:
    """How a workload is run."""

    cells: Callable[[Study, Path, Adapters], Supported]
    """Those that can run here; CannotError when there is none."""
    session: Callable[[SessionContext], AbstractContextManager[Raised]]
    pins: Callable[[], Mapping[str, frozenset[int] | None]] = pin_table
    """Which program has which cores to itself."""
    phase: str = "servers"
    """What ``begin`` raises."""
    conformance: bool = False
    """Whether servers and clients are probed before the trials."""
    lab: bool = True
    """Whether it runs inside the sandbox, from which nothing leaves this machine."""
    within: Callable[[AnyPlanner, Study, Sequence[Cell]], AnyPlanner] = _without_limit
    """The planner of a run, within what this workload may do at all."""


def _raised(
    session: Callable[[SessionContext], Own], runner: Callable[[Own], AnyTrialRunner]
) -> Callable[[SessionContext], AbstractContextManager[Raised]]:
    @contextmanager
    def raised(common: SessionContext) -> Iterator[Raised]:
        with session(common) as own:
            yield own, lambda: runner(own)

    return raised


EXECUTORS: dict[Family, Executor] = {
    "requests": Executor(
        lambda study, _, adapters: requests_supported(study, adapters.servers, adapters.clients),
        _raised(RequestsSession, RequestsTrialRunner),
        conformance=True,
    ),
    "services": Executor(
        lambda study, engine, adapters: services_supported(study, engine, adapters.services),
        _raised(ServicesSession, ServicesTrialRunner),
        phase="services",
    ),
    "visits": Executor(
        lambda study, _, adapters: browsers_supported(study, adapters.servers, adapters.browsers),
        _raised(BrowserSession, BrowserTrialRunner),
        pins=browser_pin_table,
    ),
    "far": Executor(
        lambda study, _, __: far_supported(study),
        _raised(FarSession, FarTrialRunner),
        phase="elsewhere",
        lab=False,
        within=PolitePlanner,
    ),
    "far-visits": Executor(
        lambda study, _, adapters: far_pages_supported(study, adapters.browsers),
        _raised(FarPageSession, FarPageTrialRunner),
        pins=page_pins,
        phase="elsewhere",
        lab=False,
        within=PolitePlanner,
    ),
}
"""By the family of the study's workload."""

HOSTS: dict[Family, Executor] = {
    "requests": Executor(
        lambda study, _, adapters: hosts_supported(study, adapters.servers),
        _raised(HostsSession, HostsTrialRunner),
        pins=lambda: {"client": None, "server": None},
        lab=False,
    ),
    "services": Executor(
        lambda study, engine, adapters: placed_services_supported(study, engine, adapters.services),
        _raised(PlacedSession, PlacedTrialRunner),
        pins=lambda: {"client": None, "server": None},
        phase="services",
        lab=False,
    ),
}
"""Between machines of a study's own, by the family of its workload."""


def executor_of(study: Study) -> Executor:
    """How a study is run: in a lab, by its workload, or between its hosts."""
    return (HOSTS if study.hosts else EXECUTORS)[study.workload.family]

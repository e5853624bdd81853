"""Services on machines of a study's own."""

from __future__ import annotations

from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.hosts.services_session import PlacedSession
from trifecta.workloads.hosts.services_supported import placed_services_supported
from trifecta.workloads.hosts.services_trial import PlacedTrialRunner

EXECUTOR = Executor(
    lambda study, engine, adapters: placed_services_supported(study, engine, adapters.services),
    raised(PlacedSession, PlacedTrialRunner),
    pins=lambda: {"client": None, "server": None},
    phase="services",
    lab=False,
)

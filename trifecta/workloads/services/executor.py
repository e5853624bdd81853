"""Services that call each other, in a lab."""

from __future__ import annotations

from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.services.session import ServicesSession
from trifecta.workloads.services.supported import services_supported
from trifecta.workloads.services.trial import ServicesTrialRunner

EXECUTOR = Executor(
    lambda study, engine, adapters: services_supported(study, engine, adapters.services),
    raised(ServicesSession, ServicesTrialRunner),
    phase="services",
)

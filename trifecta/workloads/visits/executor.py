"""Visits of browsers in a lab."""

from __future__ import annotations

from trifecta.lab.host import browser_pin_table
from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.visits.session import BrowserSession
from trifecta.workloads.visits.supported import browsers_supported
from trifecta.workloads.visits.trial import BrowserTrialRunner

EXECUTOR = Executor(
    lambda study, _, adapters: browsers_supported(study, adapters.servers, adapters.browsers),
    raised(BrowserSession, BrowserTrialRunner),
    pins=browser_pin_table,
)

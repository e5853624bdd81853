"""Visits of browsers to a server elsewhere."""

from __future__ import annotations

from trifecta.analysis.polite_planner import PolitePlanner
from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.far.page_session import FarPageSession, page_pins
from trifecta.workloads.far.page_trial import FarPageTrialRunner
from trifecta.workloads.far.supported import far_pages_supported

EXECUTOR = Executor(
    lambda study, _, adapters: far_pages_supported(study, adapters.browsers),
    raised(FarPageSession, FarPageTrialRunner),
    pins=page_pins,
    phase="elsewhere",
    lab=False,
    within=PolitePlanner,
)

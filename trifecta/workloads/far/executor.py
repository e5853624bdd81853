"""Requests to a server elsewhere."""

from __future__ import annotations

from trifecta.analysis.polite_planner import PolitePlanner
from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.far.session import FarSession
from trifecta.workloads.far.supported import far_supported
from trifecta.workloads.far.trial import FarTrialRunner

EXECUTOR = Executor(
    lambda study, _, __: far_supported(study),
    raised(FarSession, FarTrialRunner),
    phase="elsewhere",
    lab=False,
    within=PolitePlanner,
)

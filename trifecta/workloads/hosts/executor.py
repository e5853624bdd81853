"""Requests between two machines of a study's own."""

from __future__ import annotations

from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.hosts.session import HostsSession
from trifecta.workloads.hosts.supported import hosts_supported
from trifecta.workloads.hosts.trial import HostsTrialRunner

EXECUTOR = Executor(
    lambda study, _, adapters: hosts_supported(study, adapters.servers),
    raised(HostsSession, HostsTrialRunner),
    pins=lambda: {"client": None, "server": None},
    lab=False,
)

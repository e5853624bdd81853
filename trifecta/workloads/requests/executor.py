"""Requests in a lab of two hosts."""

from __future__ import annotations

from trifecta.workloads.executor import Executor, raised
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.requests.supported import requests_supported
from trifecta.workloads.requests.trial import RequestsTrialRunner

EXECUTOR = Executor(
    lambda study, _, adapters: requests_supported(study, adapters.servers, adapters.clients),
    raised(RequestsSession, RequestsTrialRunner),
    conformance=True,
)

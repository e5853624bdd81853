"""Which module runs a study, by the family of its workload: a new family is one line here."""

from __future__ import annotations

from importlib import import_module

from trifecta.design.model import Study
from trifecta.design.workloads.requests import Family
from trifecta.workloads.executor import Executor

# Only the one that is needed is imported: a race in the lab starts without SSH, name servers and browsers.
EXECUTORS: dict[Family, str] = {
    "requests": "requests.executor",
    "services": "services.executor",
    "visits": "visits.executor",
    "far": "far.executor",
    "far-visits": "far.page_executor",
}
"""The module below this package whose ``EXECUTOR`` it is."""

HOSTS: dict[Family, str] = {
    "requests": "hosts.executor",
    "services": "hosts.services_executor",
}
"""The same between machines of a study's own."""


def executor_of(study: Study) -> Executor:
    """How a study is run: in a lab, by its workload, or between its hosts."""
    module = (HOSTS if study.hosts else EXECUTORS)[study.workload.family]
    executor: Executor = import_module(f"{__package__}.{module}").EXECUTOR
    return executor

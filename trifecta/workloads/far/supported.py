"""Which cells of a study of servers elsewhere can be measured from here, as far as that is known before asking them."""

from __future__ import annotations

import os
from pathlib import Path

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.stat import Target
from trifecta.design.workloads.far import FarWorkload
from trifecta.workloads.stat import read_url, system_roots
from trifecta.workloads.supported import Found, Supported, supported


def far_supported(study: Study) -> Supported:
    """All cells: who does not answer is found by looking. UserError for a URL or file that cannot be used at all."""
    if study.capture:
        what = "capture: no wire between here and a server elsewhere is ours, so no packets can be kept"
        raise UserError(f"{what}; leave --capture out, or capture with tcpdump beside the run")
    for workload in workloads(study):
        read_url(workload.url)
    authorities(study)
    return supported(study, Found({}, {}, []), (), "; ".join)


def workloads(study: Study) -> list[FarWorkload]:
    """The workload of every treatment."""
    return [plan.workload_of(FarWorkload, study, one) for one in plan.treatments(study)]


def targets(study: Study) -> dict[str, Target]:
    """The URLs of a study, taken apart."""
    return {workload.url: read_url(workload.url) for workload in workloads(study)}


def authorities(study: Study) -> Path:
    """The certificate authorities to trust, of the study or of the system; UserError where they cannot be read."""
    named = next((workload.ca for workload in workloads(study)), None)
    if named is None:
        return system_roots()
    path = Path(named)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise UserError(f"workload.ca: {named} cannot be read; give a file of certificates in PEM (--ca FILE)")
    return path

"""Which cells of a study of services can run here: all that are native, and in containers where there is Docker."""

from __future__ import annotations

from pathlib import Path

from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.model import Cell, ServicesWorkload, Study
from trifecta.design.services import SERVER_LEVEL
from trifecta.lab.engine import engine_versions
from trifecta.workloads.supported import Supported

NATIVE = "native"


def services_supported(study: Study, engine: Path) -> Supported:
    """The cells that can run here. CannotError when there is none."""
    left_out: list[dict[str, str]] = []
    cells: list[Cell] = []
    reasons: dict[str, str | None] = {}
    for cell in plan.cells(study):
        workload = plan.workload_for(study, cell)
        assert isinstance(workload, ServicesWorkload)
        if workload.place not in reasons:
            reasons[workload.place] = why_not(workload.place)
            reason = reasons[workload.place]
            if reason is not None:
                left_out.append({"factor": "place", "level": workload.place, "reason": reason})
        if reasons[workload.place] is None:
            cells.append(cell)
    if not cells:
        raise CannotError(f"no place of the study can be used here: {'; '.join(item['reason'] for item in left_out)}")
    source = "part of Trifecta (engine/crates/origin); built by `make setup`"
    versions = {"version": str(engine_versions(engine)["engine"]), "source": source}
    return Supported(cells, {SERVER_LEVEL: versions}, {}, left_out)


def why_not(place: str) -> str | None:
    """Why services cannot run in a place here; None when they can."""
    if place == NATIVE:
        return None
    from trifecta.lab.containers import docker_state

    state = docker_state("host" if place == "docker-host" else "bridge")
    return None if state.usable else f"{state.reason}; {state.remedy}"

"""Which cells of a study of services can run here: all that are native, and in containers where there is Docker."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract.run import LeftOut, ProgramFound
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.model import Cell, Study
from trifecta.design.services import SERVER_LEVEL
from trifecta.lab.conntrack import find_nft
from trifecta.lab.engine import engine_versions
from trifecta.workloads.supported import Supported

NATIVE = "native"


def services_supported(study: Study, engine: Path) -> Supported:
    """The cells that can run here. CannotError when there is none."""
    left_out: list[LeftOut] = []
    cells: list[Cell] = []
    reasons: dict[tuple[str, str], str | None] = {}
    for cell in plan.cells(study):
        possible = True
        for one in plan.treatments_of(study, cell):
            needed = plan.workload_for(study, one).needs
            for factor, level in needed:
                if (factor, level) not in reasons:
                    reason = why_not(level) if factor == "place" else why_not_tracked(level)
                    reasons[factor, level] = reason
                    if reason is not None:
                        left_out.append({"factor": factor, "level": level, "reason": reason})
            possible = possible and all(reasons[factor_and_level] is None for factor_and_level in needed)
        if possible:
            cells.append(cell)
    if not cells:
        why = "; ".join(dict.fromkeys(item["reason"] for item in left_out))
        raise CannotError(f"no place of the study can be used here: {why}")
    source = "part of Trifecta (engine/crates/origin)"
    versions: ProgramFound = {"version": engine_versions(engine).engine, "source": source}
    return Supported(cells, {SERVER_LEVEL: versions}, {}, left_out)


def why_not_tracked(conntrack: str) -> str | None:
    """Why connections cannot be tracked here as asked; None when they can."""
    try:
        if conntrack != "off":
            find_nft()
    except CannotError as error:
        return str(error)
    return None


def why_not(place: str) -> str | None:
    """Why services cannot run in a place here; None when they can."""
    if place == NATIVE:
        return None
    from trifecta.lab.containers import docker_state

    state = docker_state("host" if place == "docker-host" else "bridge")
    return None if state.usable else f"{state.reason}; {state.remedy}"

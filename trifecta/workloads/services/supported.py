"""Which cells of a study of services can run here: all that are native, and in containers where there is Docker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from trifecta.contract.run import ProgramFound
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.model import Cell, Study
from trifecta.design.services import SERVER_LEVEL
from trifecta.lab.conntrack import find_nft
from trifecta.lab.engine import engine_versions
from trifecta.workloads.supported import Found, Refusal, Supported, supported

NATIVE = "native"


def services_supported(study: Study, engine: Path) -> Supported:
    """The cells that can run here. CannotError when there is none."""
    source = "part of Trifecta (engine/crates/origin)"
    versions: ProgramFound = {"version": engine_versions(engine).engine, "source": source}
    return supported(
        study,
        Found({SERVER_LEVEL: versions}, {}, []),
        [_without_needs],
        lambda why: f"no place of the study can be used here: {'; '.join(dict.fromkeys(why))}",
    )


def _without_needs(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells that need what is not here: containers, or a table of connections."""
    reasons: dict[tuple[str, str], str | None] = {}
    for cell in cells:
        for one in plan.treatments_of(study, cell):
            for factor, level in plan.workload_for(study, one).needs:
                if (factor, level) not in reasons:
                    reasons[factor, level] = why_not(level) if factor == "place" else why_not_tracked(level)
                if (reason := reasons[factor, level]) is not None:
                    yield Refusal([cell], factor, level, reason)


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

"""Which cells of a study of services can run on hosts: of the engine's own services, and what can be set there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trifecta.contract.run import InstalledProgram
from trifecta.design import extras, plan
from trifecta.design.model import Cell, Study
from trifecta.design.services import SERVER_LEVEL
from trifecta.implementations.services.program import ServicesProgram
from trifecta.lab.engine import engine_versions
from trifecta.workloads.hosts.supported import ONLY, unset
from trifecta.workloads.supported import Refusal, Supported, SupportedPrograms, known_here, supported


def placed_services_supported(study: Study, engine: Path, programs: Mapping[str, ServicesProgram]) -> Supported:
    """The cells that can run on the study's hosts. UserError for a program that is not known.

    CannotError when there is no cell left, or what speaks SSH is not installed: before a run's folder is made.
    """
    extras.load("asyncssh")
    known_here("server", study.factors["server"], programs, SERVER_LEVEL)
    source = "part of Trifecta (engine/crates/origin)"
    versions: InstalledProgram = {"version": engine_versions(engine).engine, "source": source}
    return supported(
        study,
        SupportedPrograms({SERVER_LEVEL: versions}, {}, []),
        (_foreign, unset),
        lambda why: f"no cell of the study runs on its hosts: {'; '.join(why)}",
    )


def _foreign(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells whose services are another program."""
    for cell in cells:
        for one in plan.treatments_of(study, cell):
            if one.server != SERVER_LEVEL:
                yield Refusal([cell], "server", one.server, f"{ONLY}; use server: {SERVER_LEVEL}")

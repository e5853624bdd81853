"""Which cells of a study of services can run here: of programs that are found, native or where there is Docker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trifecta.contract.run import InstalledProgram, LeftOut
from trifecta.design import plan
from trifecta.design.model import Cell, Study
from trifecta.design.services import SERVER_LEVEL
from trifecta.implementations.registry import SERVICES
from trifecta.implementations.services.program import ServicesProgram
from trifecta.lab.engine import engine_versions
from trifecta.workloads.supported import (
    Question,
    Refusal,
    Supported,
    SupportedPrograms,
    found_here,
    known_here,
    supported,
    without_needs,
)


def services_supported(study: Study, engine: Path, programs: Mapping[str, ServicesProgram] = SERVICES) -> Supported:
    """The cells that can run here. UserError for a program that is not known, CannotError when there is no cell."""
    source = "part of Trifecta (engine/crates/origin)"
    versions: InstalledProgram = {"version": engine_versions(engine).engine, "source": source}
    left_out: list[LeftOut] = []
    others = known_here("server", study.factors["server"], programs, SERVER_LEVEL)
    servers_here = found_here("server", others, left_out)
    return supported(
        study,
        SupportedPrograms({SERVER_LEVEL: versions, **servers_here}, {}, left_out),
        [_without_programs([SERVER_LEVEL, *servers_here]), without_needs],
        lambda why: (
            f"no {'place' if servers_here or not others else 'program or place'} of the study can be used here: "
            + "; ".join(dict.fromkeys(why))
        ),
    )


def _without_programs(available: Sequence[str]) -> Question:
    """Cells whose services are a program that is not here, which was said when it was looked for."""

    def question(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
        missing = [
            cell for cell in cells if any(one.server not in available for one in plan.treatments_of(study, cell))
        ]
        yield Refusal(missing)

    return question

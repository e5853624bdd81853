"""Which cells of a study of browsers can run here: browsers and servers that are found, pages that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trifecta.contract.run import LeftOut
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.design.model import BrowserWorkload, Cell, Study, Treatment
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.workloads.supported import (
    Question,
    Refusal,
    Supported,
    SupportedPrograms,
    found_here,
    known_here,
    refused_clients,
    refused_servers,
    supported,
    without_needs,
)
from trifecta.workloads.visits.material import material_of


def browsers_supported(
    study: Study, servers: Mapping[str, ServerAdapter], browsers: Mapping[str, BrowserAdapter]
) -> Supported:
    """The cells that can run here. UserError for an unknown name, CannotError when there is no cell left."""
    left_out: list[LeftOut] = []
    known = known_here(CLIENT_FACTOR, study.factors[CLIENT_FACTOR], browsers)
    found_browsers = found_here(CLIENT_FACTOR, known, left_out)
    found_servers = found_here("server", known_here("server", study.factors["server"], servers), left_out)
    questions = (
        refused_servers({name: servers[name] for name in found_servers}),
        refused_clients({name: browsers[name] for name in found_browsers}, refusal),
        _without_material,
        without_needs,
        _beside_third_parties({name: servers[name] for name in found_servers}),
    )
    programs = SupportedPrograms(found_servers, found_browsers, left_out)
    return supported(study, programs, questions, lambda why: f"no cell of the study can run here: {'; '.join(why)}")


def refusal(study: Study, treatment: Treatment, adapter: BrowserAdapter) -> str | None:
    """Why a browser cannot do the work of an arm; None where it can."""
    if treatment.protocol not in adapter.protocols:
        return f"{adapter.name} does not speak {treatment.protocol}"
    try:
        adapter.check_workload(plan.workload_of(BrowserWorkload, study, treatment), treatment.protocol)
    except Unsupported as error:
        return str(error)
    return None


def _without_material(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells whose pages or clips are not there, and cannot be made here."""
    reasons: dict[tuple[object, ...], str | None] = {}
    for cell in cells:
        for one in plan.treatments_of(study, cell):
            workload = plan.workload_of(BrowserWorkload, study, one)
            key = workload.material
            if key not in reasons:
                reasons[key] = _no_material(workload)
            if (reason := reasons[key]) is not None:
                yield Refusal([cell], *workload.shown, reason)


def _beside_third_parties(adapters: Mapping[str, ServerAdapter]) -> Question:
    """Cells in which HTTP/1.1 is the server's to choose (`configs.options_for`) and it cannot."""

    def question(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
        pages: dict[tuple[object, ...], bool] = {}
        for cell in cells:
            for one in plan.treatments_of(study, cell):
                if one.protocol != "h1" or adapters[one.server].chooses_protocols:
                    continue
                workload = plan.workload_of(BrowserWorkload, study, one)
                if workload.material not in pages:
                    pages[workload.material] = bool(material_of(workload).page.third_parties)
                if pages[workload.material]:
                    reason = f"{one.server} cannot offer HTTP/1.1 alone, which a page with third parties needs; "
                    yield Refusal([cell], "server", one.server, f"{reason}use server: origin, nginx or caddy")
                    break

    return question


def _no_material(workload: BrowserWorkload) -> str | None:
    try:
        material_of(workload)
    except (CannotError, Unsupported) as error:
        return str(error)
    return None

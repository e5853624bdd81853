"""Which cells of a study of browsers can run here: browsers and servers that are found, pages that are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from trifecta.contract.run import LeftOut
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.design.model import PROTOCOL_FACTOR, BrowserWorkload, Cell, Study, Treatment
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.workloads.supported import Supported, found_here, known_here, possible_servers
from trifecta.workloads.visits.material import material_of


def browsers_supported(
    study: Study, servers: Mapping[str, ServerAdapter], browsers: Mapping[str, BrowserAdapter]
) -> Supported:
    """The cells that can run here. UserError for an unknown name, CannotError when there is no cell left."""
    left_out: list[LeftOut] = []
    levels = [str(level) for level in study.factors[CLIENT_FACTOR]]
    found_browsers = found_here(CLIENT_FACTOR, known_here(CLIENT_FACTOR, levels, browsers, list(browsers)), left_out)
    levels = [str(level) for level in study.factors["server"]]
    found_servers = found_here("server", known_here("server", levels, servers, list(servers)), left_out)
    cells = possible_servers(study, {name: servers[name] for name in found_servers}, left_out)
    cells = _with_browser(study, cells, {name: browsers[name] for name in found_browsers}, left_out)
    cells = _with_material(study, cells, left_out)
    if not cells:
        raise CannotError(f"no cell of the study can run here: {'; '.join(item['reason'] for item in left_out)}")
    used = {one.server for one in plan.treatments(study, cells)}, {one.client for one in plan.treatments(study, cells)}
    return Supported(
        cells,
        {name: facts for name, facts in found_servers.items() if name in used[0]},
        {name: facts for name, facts in found_browsers.items() if name in used[1]},
        left_out,
    )


def _with_browser(
    study: Study, cells: list[Cell], adapters: Mapping[str, BrowserAdapter], left_out: list[LeftOut]
) -> list[Cell]:
    """The cells whose browsers speak their protocols and can do their work, with every arm."""
    possible = []
    for cell in cells:
        mine = plan.treatments_of(study, cell)
        if any(one.client not in adapters for one in mine):
            continue
        known = [(one.client, reason) for one in mine if (reason := _refusal(study, one, adapters[one.client]))]
        for name, reason in known[:1] if study.compare == PROTOCOL_FACTOR else known:
            _leave_out(left_out, CLIENT_FACTOR, name, reason)
        if not known:
            possible.append(cell)
    return possible


def _refusal(study: Study, one: Treatment, adapter: BrowserAdapter) -> str | None:
    workload = cast(BrowserWorkload, plan.workload_for(study, one))
    if one.protocol not in adapter.protocols:
        return f"{adapter.name} does not speak {one.protocol}"
    try:
        adapter.check_workload(workload, one.protocol)
    except Unsupported as error:
        return str(error)
    return None


def _with_material(study: Study, cells: list[Cell], left_out: list[LeftOut]) -> list[Cell]:
    """The cells whose pages or clips are there, or can be made here."""
    reasons: dict[tuple[object, ...], str | None] = {}
    possible = []
    for cell in cells:
        missing = False
        for one in plan.treatments_of(study, cell):
            workload = cast(BrowserWorkload, plan.workload_for(study, one))
            key = workload.material
            if key not in reasons:
                try:
                    material_of(workload)
                    reasons[key] = None
                except (CannotError, Unsupported) as error:
                    reasons[key] = str(error)
            reason = reasons[key]
            if reason is not None:
                missing = True
                _leave_out(left_out, *workload.shown, reason)
        if not missing:
            possible.append(cell)
    return possible


def _leave_out(left_out: list[LeftOut], factor: str, level: str, reason: str) -> None:
    item: LeftOut = {"factor": factor, "level": level, "reason": reason}
    if item not in left_out:
        left_out.append(item)

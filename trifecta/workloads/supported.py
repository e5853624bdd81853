"""Which cells of a study can run here: with the servers and clients that are found, and the work that each can do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from trifecta.contract.run import LeftOut, ProgramFound
from trifecta.design import plan, quinn
from trifecta.design.errors import CannotError, UserError
from trifecta.design.factors import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.model import PROTOCOL_FACTOR, Cell, Study, Treatment
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.clients import jobs
from trifecta.implementations.isolated import call_apart
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.implementations.survey import FIND_TIMEOUT_S
from trifecta.lab import cpu_share

Adapter = TypeVar("Adapter", ServerAdapter, ClientAdapter, BrowserAdapter)


@dataclass(frozen=True)
class Supported:
    """What of a study can run here, and what cannot, with the reason for each."""

    cells: list[Cell]
    servers: dict[str, ProgramFound]
    clients: dict[str, ProgramFound]
    """Other clients than the engine's own: ``version``, ``source``, and what is ``declared``."""
    left_out: list[LeftOut] = field(default_factory=list)
    """``factor``, ``level`` (with the cells meant, where not all of it are left out), ``reason``."""


def supported(study: Study, servers: Mapping[str, ServerAdapter], clients: Mapping[str, ClientAdapter]) -> Supported:
    """The cells that can run here. UserError for an unknown name, CannotError when there is no cell left."""
    left_out: list[LeftOut] = []
    named = [str(level) for level in study.factors.get(CLIENT_FACTOR, (DEFAULT_CLIENT,))]
    foreign = known_here(
        "client", [name for name in named if name != DEFAULT_CLIENT], clients, [DEFAULT_CLIENT, *clients]
    )
    known = known_here("server", [str(level) for level in study.factors["server"]], servers, list(servers))
    found_servers = found_here("server", known, left_out)
    found_clients = found_here("client", foreign, left_out)
    cells = possible_servers(study, {name: servers[name] for name in found_servers}, left_out)
    cells = _possible_clients(study, cells, {name: clients[name] for name in found_clients}, left_out)
    cells = _possible_quinn(study, cells, left_out)
    cells = _possible_shares(study, cells, left_out)
    if not cells:
        reasons = "; ".join(item["reason"] for item in left_out)
        who = "server or client" if found_servers and foreign else "server"
        raise CannotError(f"no {who} of the study can be used here: {reasons}")
    used = {one.server for one in plan.treatments(study, cells)}, {one.client for one in plan.treatments(study, cells)}
    return Supported(
        cells,
        {name: facts for name, facts in found_servers.items() if name in used[0]},
        {name: facts for name, facts in found_clients.items() if name in used[1]},
        left_out,
    )


def known_here(
    factor: str, names: Sequence[str], adapters: Mapping[str, Adapter], all_names: Sequence[str]
) -> dict[str, Adapter]:
    """The adapters of these names; UserError for a name that has none."""
    for name in names:
        if name not in adapters:
            raise UserError(f"unknown {factor} {name!r}; known: {', '.join(sorted(all_names))}")
    return {name: adapters[name] for name in names}


def found_here(factor: str, adapters: Mapping[str, Adapter], left_out: list[LeftOut]) -> dict[str, ProgramFound]:
    """Those that are found, each asked in a process of its own: one that hangs or crashes is as good as missing."""
    found: dict[str, ProgramFound] = {}
    calls = {name: partial(_ask, adapter) for name, adapter in adapters.items()}
    for name, answer in call_apart(calls, timeout_s=FIND_TIMEOUT_S).items():
        if answer.problem is not None:
            left_out.append(
                {"factor": factor, "level": name, "reason": f"{name} cannot be looked for: {answer.problem}"}
            )
        elif "reason" in answer.value:
            left_out.append({"factor": factor, "level": name, "reason": answer.value["reason"]})
        else:
            found[name] = answer.value
    return found


def _ask(adapter: ServerAdapter | ClientAdapter | BrowserAdapter) -> dict[str, Any]:
    """Runs apart: all of it is the adapter's."""
    try:
        facts = {"version": adapter.find(), "source": adapter.source}
    except Unsupported as error:
        return {"reason": str(error)}
    return facts | ({} if isinstance(adapter, ServerAdapter) else {"declared": dict(adapter.declared())})


def possible_servers(study: Study, adapters: Mapping[str, ServerAdapter], left_out: list[LeftOut]) -> list[Cell]:
    """The cells whose servers are found, speak the protocols of the cell and can answer the work of all their cells.

    A cell needs all its arms: where servers are compared, one that is missing leaves nothing to compare it with.
    """
    every = plan.cells(study)
    impossible = {cell.key for cell in every for one in plan.treatments_of(study, cell) if one.server not in adapters}
    for name, adapter in adapters.items():
        own = [cell for cell in every if any(one.server == name for one in plan.treatments_of(study, cell))]
        refused: dict[str, list[Cell]] = {}
        for cell in own:
            mine = [one for one in plan.treatments_of(study, cell) if one.server == name]
            missing = [one.protocol for one in mine if one.protocol not in adapter.protocols]
            if missing:
                reason = f"{name} does not speak {', '.join(dict.fromkeys(missing))}"
                refused.setdefault(reason, []).append(cell)
        spoken = [cell for cell in own if not any(cell in without for without in refused.values())]
        unable = _unanswerable(study, adapter, [one for one in plan.treatments(study, spoken) if one.server == name])
        if unable is not None:
            refused[unable] = spoken
        for why, without in refused.items():
            where = "" if why == unable else _where(without, own)
            left_out.append({"factor": "server", "level": f"{name}{where}", "reason": why})
            impossible.update(cell.key for cell in without)
    return [cell for cell in every if cell.key not in impossible]


def _unanswerable(study: Study, adapter: ServerAdapter, own: Sequence[Treatment]) -> str | None:
    """Why a server cannot answer the work of its treatments; None when it can."""
    try:
        for one in own:
            workload = plan.workload_for(study, one)
            if not adapter.has_timeouts and (workload.read_timeout_ns or workload.write_timeout_ns):
                text = f"{adapter.name} cannot be given a read or write timeout; use server: caddy, nginx or haproxy"
                raise Unsupported(text)
            adapter.check_workload(workload)
    except Unsupported as error:
        return str(error)
    return None


def _possible_clients(
    study: Study, cells: Sequence[Cell], adapters: Mapping[str, ClientAdapter], left_out: list[LeftOut]
) -> list[Cell]:
    """The cells whose clients can do their work with every arm.

    A client may be able to do some cells and not others (reused connections but not new ones): those it can do stay.
    """
    refused: dict[tuple[str, str], list[Cell]] = {}
    possible = []
    for cell in cells:
        others = [one for one in plan.treatments_of(study, cell) if one.client != DEFAULT_CLIENT]
        missing = any(one.client not in adapters for one in others)
        reasons = [(one.client, _refusal(study, one, adapters[one.client])) for one in others if not missing]
        known = [(name, reason) for name, reason in reasons if reason is not None]
        for name, reason in dict.fromkeys(known[:1] if study.compare == PROTOCOL_FACTOR else known):
            refused.setdefault((name, reason), []).append(cell)
        if not missing and not known:
            possible.append(cell)
    for (name, reason), without in refused.items():
        own = [cell for cell in cells if any(one.client == name for one in plan.treatments_of(study, cell))]
        left_out.append({"factor": CLIENT_FACTOR, "level": f"{name}{_where(without, own)}", "reason": reason})
    return possible


def _possible_shares(study: Study, cells: Sequence[Cell], left_out: list[LeftOut]) -> list[Cell]:
    """The cells without those that give a program a share of a core, where this machine cannot limit CPU time."""
    shares: dict[str, list[tuple[float | None, float | None]]] = {}
    for cell in cells:
        workloads = [plan.workload_for(study, one) for one in plan.treatments_of(study, cell)]
        shares[cell.key] = [(workload.client_cpu, workload.server_cpu) for workload in workloads]
    every = [pair for pairs in shares.values() for pair in pairs]
    if all(pair == (None, None) for pair in every):
        return list(cells)
    reason = cpu_share.problem()
    if reason is None:
        return list(cells)
    for factor, place in (("client_cpu", 0), ("server_cpu", 1)):
        levels = dict.fromkeys(pair[place] for pair in every if pair[place] is not None)
        left_out += [{"factor": factor, "level": f"{level:.0%}", "reason": reason} for level in levels]
    return [cell for cell in cells if set(shares[cell.key]) == {(None, None)}]


def _possible_quinn(study: Study, cells: Sequence[Cell], left_out: list[LeftOut]) -> list[Cell]:
    """The cells without those that would change the engine's QUIC library where neither program is the engine's."""
    possible = []
    for cell in cells:
        reasons = dict.fromkeys(filter(None, (_no_quinn(study, one) for one in plan.treatments_of(study, cell))))
        left_out += [
            {"factor": "quinn", "level": f"{level} in {cell.key}", "reason": reason} for level, reason in reasons
        ]
        if not reasons:
            possible.append(cell)
    return possible


def _no_quinn(study: Study, one: Treatment) -> tuple[str, str] | None:
    """What is asked of the engine's QUIC library that a treatment does not use, and why it cannot be."""
    level = plan.workload_for(study, one).quinn
    if level == quinn.ADAPTED or one.server == "origin" or one.client == DEFAULT_CLIENT:
        return None
    return level, f"neither {one.server} nor {one.client} uses {quinn.LIBRARY}; use server: origin or client: load"


def _refusal(study: Study, one: Treatment, adapter: ClientAdapter) -> str | None:
    workload = plan.workload_for(study, one)
    try:
        jobs.refuse(adapter, workload.for_protocol(one.protocol), one.protocol, one.connection)
    except Unsupported as error:
        return str(error)
    return None


def _where(without: Collection[Cell], own: Collection[Cell]) -> str:
    """Which of its own cells are meant, in words: nothing when it is all, a level when it is all of that level."""
    if len(without) == len(own):
        return ""
    keys = {cell.key for cell in without}
    for factor in next(iter(own)).levels:
        levels = {cell.levels[factor] for cell in without}
        if {cell.key for cell in own if cell.levels[factor] in levels} == keys:
            return f" with {factor} {', '.join(plan.level_text(level) for level in levels)}"
    return f" in {', '.join(sorted(keys))}"

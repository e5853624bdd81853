"""Which cells of a study can run here: with the servers and clients that are found, and the work that each can do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from trifecta.design import plan, quinn
from trifecta.design.errors import CannotError, UserError
from trifecta.design.factors import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.model import Cell, Study
from trifecta.design.transports import for_protocol
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.clients import errands
from trifecta.implementations.isolated import call_apart
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.implementations.survey import FIND_TIMEOUT_S
from trifecta.lab import cpu_share

Adapter = TypeVar("Adapter", ServerAdapter, ClientAdapter, BrowserAdapter)


@dataclass(frozen=True)
class Supported:
    """What of a study can run here, and what cannot, with the reason for each."""

    cells: list[Cell]
    servers: dict[str, dict[str, Any]]
    clients: dict[str, dict[str, Any]]
    """Other clients than the engine's own: ``version``, ``source``, and what is ``declared``."""
    left_out: list[dict[str, str]] = field(default_factory=list)
    """``factor``, ``level`` (with the cells meant, where not all of it are left out), ``reason``."""


def supported(study: Study, servers: Mapping[str, ServerAdapter], clients: Mapping[str, ClientAdapter]) -> Supported:
    """The cells that can run here. UserError for an unknown name, CannotError when there is no cell left."""
    left_out: list[dict[str, str]] = []
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
    used = {str(cell.levels["server"]) for cell in cells}, {plan.client_of(cell) for cell in cells}
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


def found_here(
    factor: str, adapters: Mapping[str, Adapter], left_out: list[dict[str, str]]
) -> dict[str, dict[str, Any]]:
    """Those that are found, each asked in a process of its own: one that hangs or crashes is as good as missing."""
    found: dict[str, dict[str, Any]] = {}
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


def possible_servers(study: Study, adapters: Mapping[str, ServerAdapter], left_out: list[dict[str, str]]) -> list[Cell]:
    """The cells of the servers that speak all protocols of the study and can answer the work of all their cells."""
    possible = []
    for name, adapter in adapters.items():
        own = [cell for cell in plan.cells(study) if str(cell.levels["server"]) == name]
        try:
            missing = [p for p in study.factors[plan.PROTOCOL_FACTOR] if p not in adapter.protocols]
            if missing:
                raise Unsupported(f"{name} does not speak {', '.join(missing)}")
            for cell in own:
                workload = plan.workload_for(study, cell)
                if not adapter.has_timeouts and (workload.read_timeout_ns or workload.write_timeout_ns):
                    raise Unsupported(
                        f"{name} cannot be given a read or write timeout; use server: caddy, nginx or haproxy"
                    )
                adapter.check_workload(workload)
            possible += own
        except Unsupported as error:
            left_out.append({"factor": "server", "level": name, "reason": str(error)})
    chosen = {cell.key for cell in possible}
    return [cell for cell in plan.cells(study) if cell.key in chosen]


def _possible_clients(
    study: Study, cells: Sequence[Cell], adapters: Mapping[str, ClientAdapter], left_out: list[dict[str, str]]
) -> list[Cell]:
    """The cells whose client can do their work over all protocols of the study.

    A client may be able to do some cells and not others (reused connections but not new ones): those it can do stay.
    """
    refused: dict[tuple[str, str], list[Cell]] = {}
    possible = []
    for cell in cells:
        name = plan.client_of(cell)
        if name == DEFAULT_CLIENT:
            possible.append(cell)
        elif name in adapters:
            reason = _refusal(study, cell, adapters[name])
            if reason is None:
                possible.append(cell)
            else:
                refused.setdefault((name, reason), []).append(cell)
    for (name, reason), without in refused.items():
        own = [cell for cell in cells if plan.client_of(cell) == name]
        left_out.append({"factor": CLIENT_FACTOR, "level": f"{name}{_where(without, own)}", "reason": reason})
    return possible


def _possible_shares(study: Study, cells: Sequence[Cell], left_out: list[dict[str, str]]) -> list[Cell]:
    """The cells without those that give a program a share of a core, where this machine cannot limit CPU time."""
    shares: dict[str, tuple[float | None, float | None]] = {}
    for cell in cells:
        workload = plan.workload_for(study, cell)
        shares[cell.key] = workload.client_cpu, workload.server_cpu
    if all(pair == (None, None) for pair in shares.values()):
        return list(cells)
    reason = cpu_share.problem()
    if reason is None:
        return list(cells)
    for factor, place in (("client_cpu", 0), ("server_cpu", 1)):
        levels = dict.fromkeys(pair[place] for pair in shares.values() if pair[place] is not None)
        left_out += [{"factor": factor, "level": f"{level:.0%}", "reason": reason} for level in levels]
    return [cell for cell in cells if shares[cell.key] == (None, None)]


def _possible_quinn(study: Study, cells: Sequence[Cell], left_out: list[dict[str, str]]) -> list[Cell]:
    """The cells without those that would change the engine's QUIC library where neither program is the engine's."""
    possible = []
    for cell in cells:
        level = plan.workload_for(study, cell).quinn
        programs = str(cell.levels["server"]), plan.client_of(cell)
        if level == quinn.ADAPTED or programs[0] == "origin" or programs[1] == DEFAULT_CLIENT:
            possible.append(cell)
            continue
        reason = f"neither {programs[0]} nor {programs[1]} uses {quinn.LIBRARY}; use server: origin or client: load"
        item = {"factor": "quinn", "level": f"{level} in {cell.key}", "reason": reason}
        left_out.append(item)
    return possible


def _refusal(study: Study, cell: Cell, adapter: ClientAdapter) -> str | None:
    workload = plan.workload_for(study, cell)
    connection = str(cell.levels.get("connection", "reused"))
    for protocol in study.factors[plan.PROTOCOL_FACTOR]:
        try:
            errands.refuse(adapter, for_protocol(workload, protocol), protocol, connection)
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

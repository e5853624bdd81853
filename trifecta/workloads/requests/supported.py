"""Which cells of a study of requests can run here: with the servers and clients that are found, and their work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trifecta.contract.run import LeftOut
from trifecta.design import plan, quantity, quinn, tuning
from trifecta.design.builds import adapter_of
from trifecta.design.factors import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.model import PROTOCOL_NAMES, Cell, Study, Treatment
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.clients import jobs
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.lab import cpu_share
from trifecta.workloads.supported import (
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


def requests_supported(
    study: Study, servers: Mapping[str, ServerAdapter], clients: Mapping[str, ClientAdapter]
) -> Supported:
    """The cells that can run here. UserError for an unknown name, CannotError when there is no cell left."""
    left_out: list[LeftOut] = []
    foreign = known_here("client", study.factors.get(CLIENT_FACTOR, ()), clients, DEFAULT_CLIENT)
    known = known_here("server", study.factors["server"], servers)
    programs = SupportedPrograms(
        found_here("server", known, left_out), found_here("client", foreign, left_out), left_out
    )
    who = "server or client" if programs.servers and foreign else "server"
    questions = (
        refused_servers({name: servers[name] for name in programs.servers}),
        refused_clients({name: clients[name] for name in programs.clients}, _refusal),
        _without_quinn,
        _untold,
        _without_shares,
        without_needs,
    )
    return supported(
        study, programs, questions, lambda why: f"no {who} of the study can be used here: {'; '.join(why)}"
    )


def _refusal(study: Study, treatment: Treatment, adapter: ClientAdapter) -> str | None:
    workload = plan.workload_for(study, treatment)
    try:
        jobs.refuse(adapter, workload.for_protocol(treatment.protocol), treatment.protocol, treatment.connection)
    except Unsupported as error:
        return str(error)
    return None


def _without_quinn(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells that would change the engine's QUIC library where neither program is the engine's."""
    for cell in cells:
        reasons = dict.fromkeys(filter(None, (_no_quinn(study, one) for one in plan.treatments_of(study, cell))))
        for level, reason in reasons:
            yield Refusal([cell], "quinn", f"{level} in {cell.key}", reason)


def _no_quinn(study: Study, treatment: Treatment) -> tuple[str, str] | None:
    """What is asked of the engine's QUIC library that a treatment does not use, and why it cannot be."""
    level = plan.workload_for(study, treatment).quinn
    own = adapter_of(treatment.server, study.servers) == "origin" or treatment.client == DEFAULT_CLIENT
    if level == quinn.ADAPTED or own:
        return None
    return (
        level,
        f"neither {treatment.server} nor {treatment.client} uses {quinn.LIBRARY}; use server: origin or client: load",
    )


def _untold(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells that exchange something of the transport of a program that cannot be told."""
    for cell in cells:
        reasons = [reason for one in plan.treatments_of(study, cell) for reason in _unsettable(study, one)]
        for factor, level, reason in dict.fromkeys(reasons):
            yield Refusal([cell], factor, f"{level} in {cell.key}", reason)


def _unsettable(study: Study, treatment: Treatment) -> Iterator[tuple[str, str, str]]:
    """The switches that a program of a treatment would have to be told and cannot: name, level, and why."""
    workload = plan.workload_for(study, treatment)
    servers = [(treatment.server, "server: origin")] if adapter_of(treatment.server, study.servers) != "origin" else []
    clients = [(treatment.client, f"client: {DEFAULT_CLIENT}")] if treatment.client != DEFAULT_CLIENT else []
    for switch in tuning.of_programs(workload.for_protocol(treatment.protocol), treatment.protocol):
        level = switch.format(getattr(workload, switch.name))
        for program, remedy in clients if switch.of_client else servers + clients:
            over = PROTOCOL_NAMES[treatment.protocol]
            yield switch.name, level, f"{program} does not support '{switch.name}' over {over}; use {remedy}"


def _without_shares(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells that give a program a share of a core, where this machine cannot limit CPU time."""
    shares: dict[str, list[tuple[float | None, float | None]]] = {}
    for cell in cells:
        workloads = [plan.workload_for(study, one) for one in plan.treatments_of(study, cell)]
        shares[cell.key] = [(workload.client_cpu, workload.server_cpu) for workload in workloads]
    every = [pair for pairs in shares.values() for pair in pairs]
    reason = None if all(pair == (None, None) for pair in every) else cpu_share.problem()
    if reason is None:
        return
    for factor, place in (("client_cpu", 0), ("server_cpu", 1)):
        for level in dict.fromkeys(asked for pair in every if (asked := pair[place]) is not None):
            without = [cell for cell in cells if any(pair[place] == level for pair in shares[cell.key])]
            yield Refusal(without, factor, quantity.format_ratio(level), reason)

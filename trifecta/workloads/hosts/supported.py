"""Which cells of a study can run between hosts: with the engine's own client and server, and what can be set there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trifecta.contract.run import LeftOut
from trifecta.design import extras, plan, quantity, tuning
from trifecta.design.factors import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.model import Cell, Levelled, Study
from trifecta.design.tuning import TcpSettings
from trifecta.implementations.server import ServerAdapter
from trifecta.workloads.supported import (
    Refusal,
    Supported,
    SupportedPrograms,
    found_here,
    known_here,
    refused_servers,
    supported,
)

SERVER = "origin"
ONLY = "only the engine's own programs are brought to a host"
_NOTHING = (("place", "native"), ("conntrack", "off"))  # what services need where they ask for nothing
_LAB = "is made by a lab on one machine, and hosts are as they are"


def hosts_supported(study: Study, servers: Mapping[str, ServerAdapter]) -> Supported:
    """The cells that can run between hosts. UserError for an unknown name.

    CannotError when there is no cell left, or what speaks SSH is not installed: before a run's folder is made.
    """
    extras.load("asyncssh")
    left_out: list[LeftOut] = []
    known = known_here("server", study.factors["server"], servers)
    own = {name: adapter for name, adapter in known.items() if name == SERVER}
    programs = SupportedPrograms(found_here("server", own, left_out), {}, left_out)
    questions = (
        _foreign,
        refused_servers({name: servers[name] for name in programs.servers}),
        unset,
    )
    return supported(
        study, programs, questions, lambda why: f"no cell of the study runs between hosts: {'; '.join(why)}"
    )


def _foreign(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells with programs that are not the engine's."""
    for cell in cells:
        for one in plan.treatments_of(study, cell):
            if one.server != SERVER:
                yield Refusal([cell], "server", one.server, f"{ONLY}; use server: {SERVER}")
            if one.client != DEFAULT_CLIENT:
                yield Refusal([cell], CLIENT_FACTOR, one.client, f"{ONLY}; use client: {DEFAULT_CLIENT}")


def unset(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells that ask for what only the network or the kernel of a lab can be given."""
    for cell in cells:
        for one in plan.treatments_of(study, cell):
            for factor, level in dict.fromkeys(_of_a_lab(study, one)):
                yield Refusal([cell], factor, f"{level} in {cell.key}", f"'{factor}' {_LAB}; leave it out")


def _of_a_lab(study: Study, levels: Levelled) -> Iterator[tuple[str, str]]:
    workload = plan.workload_for(study, levels)
    yield from (need for need in workload.needs if need not in _NOTHING)
    if workload.ip is not None:
        yield "ip", workload.ip
    yield from ((name, "true") for name in ("keylog", "qlog") if getattr(workload, name))
    for share in ("client_cpu", "server_cpu"):
        if (value := getattr(workload, share)) is not None:
            yield share, quantity.format_ratio(value)
    met = workload.for_protocol(levels.protocol)
    if levels.protocol != "h3" and tuning.kernel(met) != TcpSettings():
        for name in ("initial_window", "packet_threshold", "idle_window", "mtu"):
            if (value := getattr(met, name)) is not None:
                yield name, str(value)

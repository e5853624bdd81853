"""The probe before a study's trials, in the lab that is up already: ``conformance: quick`` or ``full``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from trifecta.contract.run import InstalledProgram
from trifecta.design import plan
from trifecta.design.conformance import QUICK, ConformanceCase, ConformanceResult, cases, own_cases
from trifecta.design.factors import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.model import PROTOCOLS, Cell
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.lab.network import server_address
from trifecta.workloads.conformance.bench import LOAD, Bench, Target
from trifecta.workloads.conformance.clients import ClientProbe, speaks
from trifecta.workloads.conformance.judging import Finding, result_of
from trifecta.workloads.conformance.probe import Probe, Subjects
from trifecta.workloads.requests.session import RequestsSession

QUICK_SIZES = frozenset(case.octets for case in QUICK)


@dataclass(frozen=True)
class Answering:
    """A server that is up, and what the study asks it over."""

    adapter: ServerAdapter
    target: Target
    protocols: frozenset[str]


def full(
    session: RequestsSession, clients: Mapping[str, ClientAdapter], cells: Sequence[Cell]
) -> list[ConformanceResult]:
    """Every object of every server and client that the study names; before the study's own servers are started."""
    named = list(map(str, session.study.factors["server"]))
    others = [str(name) for name in session.study.factors.get(CLIENT_FACTOR, ()) if name != DEFAULT_CLIENT]
    subjects = Subjects(
        {name: session.adapters.servers[name] for name in named},
        {name: clients[name] for name in others},
        (*cases("full"), *own(session, cells)),
    )
    with _bench(session) as bench:
        return Probe(bench, subjects, lambda *_: None).run()


def quick(
    session: RequestsSession,
    clients: Mapping[str, ClientAdapter],
    client_facts: Mapping[str, InstalledProgram],
    cells: Sequence[Cell],
) -> list[ConformanceResult]:
    """One object and the study's own requests over each of its protocols, of the servers as they run for it.

    Its foreign clients ask for the same, each time of the first server that answers such requests.
    """
    results: list[ConformanceResult] = []
    cases = (*QUICK, *own(session, cells))
    with _bench(session) as bench:
        up: list[Answering] = []
        for key, server in session.servers.items():
            about: dict[str, Any] = {
                "depth": "quick", "role": "server", "name": server.adapter.name, "version": server.version,
                "peer": LOAD, "proxy": server.adapter.is_proxy,
            }  # fmt: skip
            if key in session.failed:
                log = str(server.log.relative_to(session.run.path))
                failure = Finding("fail", "not_ready", session.failed[key])
                results.append(result_of(failure, None, None, **about, evidence=log))
                continue
            target = Target(server.adapter.name, server.site, server.log, tls_version=server.options.tls_version)
            up.append(Answering(server.adapter, target, frozenset(map(str, session.protocols[key]))))
            for protocol in session.protocols[key]:
                for case in cases:
                    finding, folder = bench.observed(LOAD, target, case, str(protocol), "server")
                    result = result_of(finding, case, str(protocol), **about)
                    if folder is not None:
                        alive = server.running()
                        why_not = "" if alive else "the server is no longer running"
                        result = bench.keep_failure(
                            result, folder, target, case=case, reproducible=alive, why_not=why_not
                        )
                    results.append(result)
        answering: dict[tuple[str, str], Target] = {}
        if up:
            answering = {(one, case.name): answers(case, one, up) for one in PROTOCOLS for case in cases}
        for name, facts in client_facts.items() if up else ():
            version = str(facts["version"])
            probe = ClientProbe(bench, clients[name], version, cases, up[0].target, depth="quick", others=answering)
            results += probe.run()
    return results


def answers(case: ConformanceCase, protocol: str, up: Sequence[Answering]) -> Target:
    """The first of these servers that answers such a request, so that no client is blamed for a file server.

    Of those that the study asks over the protocol, if there are any: over another, their TLS may be too old for it.
    """
    fit = [one for one in up if speaks(one.target, protocol)] or up
    first = sorted(fit, key=lambda one: protocol not in one.protocols)
    for one in first:
        with suppress(Unsupported):
            one.adapter.check_workload(case.workload())
            return one.target
    return first[0].target


def own(session: RequestsSession, cells: Sequence[Cell]) -> tuple[ConformanceCase, ...]:
    """The requests that the study makes in its cells, each once: method, size of the answer, size of what is sent."""
    treatments = plan.treatments(session.study, cells)
    return own_cases(plan.workload_for(session.study, one).for_protocol(one.protocol) for one in treatments)


@contextmanager
def _bench(session: RequestsSession) -> Iterator[Bench]:
    bench = Bench(
        session.engine,
        session.lab,
        session.pins,
        session.certificates,
        session.run.path,
        session.stop,
        places=session.places,
        address=server_address(plan.over_ipv6_alone(session.study)),
    )
    try:
        yield bench
    finally:
        bench.close()

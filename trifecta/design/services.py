"""Services that call each other: which there are, what each does for a request, where it runs, what its calls speak."""

from __future__ import annotations

import itertools
from typing import cast

from trifecta.design.graph import Answer, Call, Graph, Route
from trifecta.design.model import Protocol, ServicesWorkload
from trifecta.design.sba import registration

CHAIN_PATH = "/chain"
SERVER_LEVEL = "services"  # the level of the factor ``server``: the services are the engine's own
LETTERS = "ABCDEFGHIJ"
DEPTHS = (2, len(LETTERS))
SAME = "same"


def graph_of(workload: ServicesWorkload) -> Graph:
    """The graph that a workload asks for."""
    if workload.kind == "sba-registration":
        return registration()
    return chain(2 if workload.kind == "fan-in" else workload.depth, workload)


def chain(depth: int, workload: ServicesWorkload) -> Graph:
    """A -> B -> ... and back: every service hands the message on, the last one drops its body."""
    names = tuple(LETTERS[:depth])
    answer: Answer = workload.response_bytes or "meta"
    routes = [
        Route(name, CHAIN_PATH, (Call(after, SAME, CHAIN_PATH, "forward"),), answer)
        for name, after in itertools.pairwise(names[1:])
    ]
    routes.append(Route(names[-1], CHAIN_PATH, (), answer))
    carries = workload.method in ("POST", "PUT", "PATCH")
    return Graph(names, Call(names[1], workload.method, CHAIN_PATH, "forward" if carries else "none"), tuple(routes))


def host_of(graph: Graph, hosts: int) -> dict[str, str]:
    """Service -> host: one host a service as long as there are hosts, the last host takes the rest."""
    return {name: f"host{min(place + 1, hosts)}" for place, name in enumerate(graph.services)}


def wires_of(graph: Graph, hosts: int) -> dict[tuple[str, str], tuple[str, str]]:
    """Pairs of hosts (the caller's first) whose services call each other, with the first pair of services of each."""
    at = host_of(graph, hosts)
    wires: dict[tuple[str, str], tuple[str, str]] = {}
    for caller, callee in graph.pairs:
        pair = (at[caller], at[callee])
        if pair[0] != pair[1] and pair not in wires and pair[::-1] not in wires:
            wires[pair] = (caller, callee)
    return wires


def impaired_wires(graph: Graph, workload: ServicesWorkload) -> set[tuple[str, str]]:
    """The wires that the path lies on."""
    wires = wires_of(graph, workload.hosts)
    if workload.impaired == "all":
        return set(wires)
    caller, callee = split_pair(workload.impaired)
    at = host_of(graph, workload.hosts)
    pair = (at.get(caller, ""), at.get(callee, ""))
    return {wire for wire in wires if wire in (pair, pair[::-1])}


def split_pair(text: str) -> tuple[str, str]:
    """``A-B`` as two names of services."""
    first, _, second = text.partition("-")
    return first, second


def protocols_of(graph: Graph, arm: Protocol, inside: str) -> dict[tuple[str, str], Protocol]:
    """What each pair of services speaks: the client's call the arm's protocol, the others what ``inside`` says.

    In a list of ``inside`` each protocol is for the calls between one pair, in the order of the first call.
    """
    pairs = graph.pairs
    if inside == SAME:
        return dict.fromkeys(pairs, arm)
    inner = cast(list[Protocol], inside.split("+"))
    if len(inner) == 1:
        inner *= len(pairs) - 1
    return {pairs[0]: arm, **dict(zip(pairs[1:], inner, strict=True))}


def problem(workload: ServicesWorkload, impaired_path: bool) -> tuple[str, str] | None:
    """The field at fault, what is wrong with it and the remedy; None when the services can do what is asked."""
    graph = graph_of(workload)
    return _inside_problem(workload, graph) or _place_problem(workload, graph, impaired_path)


def _inside_problem(workload: ServicesWorkload, graph: Graph) -> tuple[str, str] | None:
    inner = workload.inside.split("+")
    pairs = len(graph.pairs) - 1
    if len(inner) > 1 and len(inner) != pairs:
        return "inside", f"names {len(inner)} protocols for {pairs} pairs of services; name one, or {pairs}"
    if workload.inside != SAME and not pairs:
        return "inside", "there is no call behind the client's; remove it"
    if workload.zero_rtt:
        return "zero_rtt", "services take no early data; remove it"
    return None


def _place_problem(workload: ServicesWorkload, graph: Graph, impaired_path: bool) -> tuple[str, str] | None:
    services = len(graph.services)
    if workload.hosts > services:
        return "hosts", f"{workload.hosts} hosts for {services} services; give at most {services}"
    if impaired_path and workload.hosts == 1:
        return "hosts", "one host has no wire for the path to lie on; give 2 or more, or the path 'clean'"
    if workload.impaired != "all" and not impaired_wires(graph, workload):
        wires = [f"{caller}-{callee}" for caller, callee in wires_of(graph, workload.hosts).values()]
        return "impaired", f"no wire {workload.impaired!r}; choose from all{''.join(', ' + wire for wire in wires)}"
    if workload.conntrack != "off" and workload.hosts == 1:
        return "conntrack", "connections within one host are not tracked; give 2 hosts or more"
    if workload.conntrack == "bypass" and workload.place == "docker-bridge":
        return "conntrack", "Docker's bridge reaches containers by connection tracking; give place: docker-host"
    return None

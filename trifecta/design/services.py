"""Services that call each other: which there are, what each does for a request, where it runs, what its calls speak."""

from __future__ import annotations

import itertools
from typing import cast

from trifecta.design.graph import Answer, Call, Graph, Route
from trifecta.design.protocols import CONTENT_METHODS, Protocol

CHAIN_PATH = "/chain"
SERVER_LEVEL = "services"  # the level of the factor ``server``: the services are the engine's own
LETTERS = "ABCDEFGHIJ"
SAME = "same"


def chain(depth: int, method: str, response_bytes: int) -> Graph:
    """A -> B -> ... and back: every service hands the message on, the last one drops its body."""
    names = tuple(LETTERS[:depth])
    answer: Answer = response_bytes or "meta"
    routes = [
        Route(name, CHAIN_PATH, (Call(after, SAME, CHAIN_PATH, "forward"),), answer)
        for name, after in itertools.pairwise(names[1:])
    ]
    routes.append(Route(names[-1], CHAIN_PATH, (), answer))
    carries = method in CONTENT_METHODS
    return Graph(names, Call(names[1], method, CHAIN_PATH, "forward" if carries else "none"), tuple(routes))


def host_of(graph: Graph, hosts: int) -> dict[str, str]:
    """Service -> host: one host a service as long as there are hosts, the last host takes the rest."""
    return {name: f"host{min(place + 1, hosts)}" for place, name in enumerate(graph.services)}


def wires_of(graph: Graph, hosts: int, *, names: bool = False) -> dict[tuple[str, str], tuple[str, str]]:
    """Pairs of hosts (the caller's first) whose services call each other, with the first pair of services of each.

    ``names``: with wires from the host of the name server to those that ask it.
    """
    at = host_of(graph, hosts)
    wires: dict[tuple[str, str], tuple[str, str]] = {}
    asking = [(graph.client, caller) for caller in askers(graph, hosts)] if names else []
    for first, second in (*graph.pairs, *asking):
        pair = (at[first], at[second])
        if pair[0] != pair[1] and pair not in wires and pair[::-1] not in wires:
            wires[pair] = (first, second)
    return wires


def askers(graph: Graph, hosts: int) -> list[str]:
    """The services that call others and are not on the host of the name server, which is the client's."""
    at = host_of(graph, hosts)
    callers = dict.fromkeys(caller for caller, _ in graph.pairs)
    return [caller for caller in callers if at[caller] != at[graph.client]]


def impaired_wires(graph: Graph, hosts: int, impaired: str, *, names: bool = False) -> set[tuple[str, str]]:
    """The wires that the path lies on: all, or the one that ``impaired`` names by its services."""
    wires = wires_of(graph, hosts, names=names)
    if impaired == "all":
        return set(wires)
    caller, callee = split_pair(impaired)
    at = host_of(graph, hosts)
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

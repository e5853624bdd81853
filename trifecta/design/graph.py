"""The graph of calls that a cycle makes: who calls whom, over what path, and what each answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Body = Literal["forward", "none"] | int
Answer = Literal["meta"] | int


@dataclass(frozen=True)
class Call:
    """One call of a route: ``method`` and ``body`` may repeat what came in (``same``, ``forward``)."""

    to: str
    method: str
    path: str
    body: Body


@dataclass(frozen=True)
class Route:
    """What a service does for a path: its calls, one after the other, then its answer (octets besides the meta)."""

    service: str
    path: str
    calls: tuple[Call, ...] = ()
    answer: Answer = "meta"


@dataclass(frozen=True)
class Graph:
    """The services of a cycle, the client first, and what each does; ``entry`` is the client's own call."""

    services: tuple[str, ...]
    entry: Call
    routes: tuple[Route, ...]

    @property
    def client(self) -> str:
        """Who begins a cycle."""
        return self.services[0]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Who calls whom, each pair once, in the order of the first call."""
        return list(dict.fromkeys((caller, call.to) for caller, call, _ in self.walk()))

    def routes_of(self, service: str) -> list[Route]:
        """What a service does."""
        return [route for route in self.routes if route.service == service]

    def walk(self) -> list[tuple[str, Call, int]]:
        """Every call of one cycle in the order in which they begin: caller, call, depth."""
        calls: list[tuple[str, Call, int]] = []
        table = {(route.service, route.path): route for route in self.routes}

        def follow(caller: str, call: Call, depth: int) -> None:
            calls.append((caller, call, depth))
            for inner in table[call.to, call.path].calls:
                follow(call.to, inner, depth + 1)

        follow(self.client, self.entry, 0)
        return calls

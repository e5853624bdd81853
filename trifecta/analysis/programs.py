"""Which programs a trial is about: its server and its client."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from trifecta.analysis.estimate import Row
from trifecta.design.model import Study

OWN_CLIENT = "load"


@dataclass(frozen=True, order=True)
class Program:
    """A server and the client that asks it."""

    server: str
    client: str = OWN_CLIENT

    def words(self, clients: bool = True) -> str:
        """``caddy with curl``; our own client goes without saying."""
        return f"{self.server} with {self.client}" if clients and self.client != OWN_CLIENT else self.server


PROGRAMS = ("server", "client")  # factors


def programs_are_arms(study: Study) -> bool:
    """Whether programs are the arms: then no share of a difference is the program's beside what is compared."""
    return study.compare in PROGRAMS


def program_of(row: Row) -> Program:
    """The programs of a trial; runs from before there was a choice of clients used our own."""
    return Program(str(row.get("server") or ""), str(row.get("client") or OWN_CLIENT))


def place_of(cell: str) -> str:
    """A cell without its programs: ``path=far,connection=new,server=caddy`` is in ``path=far,connection=new``."""
    parts: list[str] = []
    dropping = False
    for part in cell.split(","):
        name, equals, _ = part.partition("=")
        if equals:
            dropping = name in PROGRAMS
        if not dropping:
            parts.append(part)
    return ",".join(parts)


def proxies(rows: Iterable[Row]) -> frozenset[str]:
    """Servers that pass requests on to another one, by what was recorded of them in the trials."""
    servers = set()
    for row in rows:
        server = str(row.get("server") or "")
        if server in servers:
            continue
        server_facts = json.loads(row.get("server_json") or "{}") or {}
        if isinstance(server_facts, dict) and server_facts.get("proxy") is True:
            servers.add(server)
    return frozenset(servers)

"""Where browsers and their servers run: a network with its names, and the servers in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from trifecta.design.model import Protocol
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import ServerOptions
from trifecta.lab.access import AccessNetwork, server_address
from trifecta.lab.certificates import Certificates
from trifecta.lab.engine import EngineProcess
from trifecta.lab.names import Names
from trifecta.workloads.asking import ask
from trifecta.workloads.session import bring_up
from trifecta.workloads.visits.configs import PORT
from trifecta.workloads.visits.material import Material


@dataclass(frozen=True)
class ServerKey:
    """What tells the servers of a place apart."""

    server: str
    options: ServerOptions
    material: tuple[object, ...]


@dataclass(frozen=True)
class Serving:
    """A server of a place and what it serves."""

    running: RunningServer
    material: Material


class Place:
    """Raised by ``with``: the network with some of its wires impaired, and names that point to one server at a time."""

    def __init__(self, impaired: Collection[str], servers: Iterable[tuple[ServerKey, str]]) -> None:
        """``servers``: the key of each and the host it runs on, ``web`` or ``video``."""
        self.address: dict[ServerKey, str] = {}
        counts: dict[str, int] = {}
        for key, host in servers:
            self.address[key] = server_address(host, counts.get(host, 0))
            counts[host] = counts.get(host, 0) + 1
        self.network = AccessNetwork(impaired, counts)
        self.servers: dict[ServerKey, Serving] = {}

    def __enter__(self) -> Self:
        """Raise hosts, wires and names; CannotError when the kernel refuses."""
        with ExitStack() as undo:
            undo.enter_context(self.network)
            self.names = undo.enter_context(Names(self.network.hosts.values(), {}))
            self._stack = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the servers and take everything down."""
        for serving in self.servers.values():
            serving.running.close()
        self._stack.close()

    def point_to(self, key: ServerKey) -> None:
        """Have the names of a page stand for the server of that key, and forget stray questions so far."""
        self.names.point(dict.fromkeys(self.servers[key].material.page.hosts, (self.address[key],)))
        self.names.take_strays()

    def start(self, key: ServerKey) -> None:
        """Start a server, or start it again; ServerFailed for whatever its adapter or program does wrong."""
        server = self.servers[key].running
        # Before it starts: the connections that a proxy opens now to the server behind it stay open over the trials.
        self.network.use_congestion_control(server.options.congestion_control)
        bring_up(server)

    def wait_ready(
        self,
        key: ServerKey,
        protocols: Iterable[Protocol],
        certificates: Certificates,
        *,
        ways: tuple[Path, Path, Path],
        stop: Callable[[], bool],
        more_s: float,
    ) -> None:
        """Wait until a server answers the page's first request over each protocol; ServerFailed when it does not.

        It is asked from its own host. ``ways``: the engine, its log, and where samples may be drafted. ``more_s``: the
        longest that each further protocol is waited for.
        """
        server, material = self.servers[key].running, self.servers[key].material
        engine, log, draft = ways
        first, host = material.first, self.network.host(material.host)
        where = (self.address[key], PORT, str(urlsplit(first.url).hostname))
        wanted = {"path": first.target, "expect_status": first.status, "expect_body_bytes": first.bytes}
        limit: float | None = None
        for protocol in protocols:

            def once(protocol: str = protocol) -> str | None:
                name = f"load ({server.adapter.name} over {protocol})"
                load = EngineProcess(engine, "load", host, log, name=name)
                return ask(load, where, protocol, certificates, draft=draft, stop=stop, changes=wanted)

            server.wait_ready(once, stop, limit)
            limit = more_s

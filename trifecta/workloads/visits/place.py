"""Where browsers and their servers run: a network with its names, and the servers in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from trifecta.design.errors import CannotError
from trifecta.design.model import Protocol
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerOptions
from trifecta.lab.access import access_links, ipv6_address_of, server_address
from trifecta.lab.certificates import Certificates
from trifecta.lab.names import Names
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.place import LocalPlace, OpenPlace
from trifecta.video.live import LiveSource
from trifecta.workloads.health_check import ask
from trifecta.workloads.session import READY_MORE_S, bring_up
from trifecta.workloads.visits.configs import PORT
from trifecta.workloads.visits.material import Key, Material

if TYPE_CHECKING:
    from trifecta.lab.containers import DockerEngine


@dataclass(frozen=True)
class NetworkKey:
    """What distinguishes networks: treatments that agree in it share one, and its servers."""

    impaired: tuple[str, ...] = ()
    """The wires with the path on them."""
    ipv6: bool = False
    """Whether servers have addresses of IPv6, and names those alone."""


@dataclass(frozen=True)
class ServerKey:
    """What distinguishes the servers of a place."""

    server: str
    options: ServerOptions
    material: Key
    host: str
    """``web``, ``video`` or ``thirdparty``."""
    place: str = "native"
    """``docker-host``: a container on the host's network."""


@dataclass(frozen=True)
class Serving:
    """A server of a place and what it serves."""

    running: RunningServer
    material: Material
    host: str
    live: LiveSource | None = None
    """What fills its folder ``live``."""

    def problem(self) -> str | None:
        """How it ended, in words; None while all of it runs."""
        if not self.running.running():
            return self.running.describe_end()
        return None if self.live is None or self.live.running() else "the live video ended"


class Place:
    """Raised by ``with``: the network with some of its wires impaired, and names that point to one server at a time."""

    def __init__(self, key: NetworkKey, servers: Iterable[ServerKey], engine: Path, log: Path) -> None:
        """``servers``: those that it will have; ``engine``: its program; ``log``: of Docker, where one needs it."""
        self._engine = engine
        self._log = log
        self._docker: dict[str, DockerEngine] = {}
        self.address: dict[ServerKey, str] = {}
        counts: dict[str, int] = {}
        for one in servers:
            address = server_address(one.host, counts.get(one.host, 0))
            self.address[one] = ipv6_address_of(address) if key.ipv6 else address
            counts[one.host] = counts.get(one.host, 0) + 1
        self.network = access_links(key.impaired, counts, ipv6=key.ipv6)
        self.servers: dict[ServerKey, Serving] = {}

    def __enter__(self) -> Self:
        """Raise hosts, wires and names; CannotError when the kernel refuses."""
        with ExitStack() as undo:
            undo.enter_context(self.network)
            self.names = undo.enter_context(Names(self.network.hosts.values(), {}))
            for host in dict.fromkeys(key.host for key in self.address if key.place != "native"):
                from trifecta.lab.containers import DockerEngine

                docker = DockerEngine(self.network, host, "host", self._engine, self._log)
                self._docker[host] = undo.enter_context(docker)
            self._stack = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the servers and take everything down."""
        for serving in self.servers.values():
            serving.running.close()
            if serving.live is not None:
                serving.live.close()
        self._stack.close()

    def at(self, key: ServerKey) -> OpenPlace:
        """Where the program of a server is started."""
        if key.place == "native":
            return Namespaces(self.network, self._engine).place(key.host)
        from trifecta.lab.containers import ContainerPlace

        return ContainerPlace(self._docker[key.host])

    def point_to(self, keys: Iterable[ServerKey]) -> None:
        """Have the names of a page stand for the servers of these keys, and forget stray questions so far."""
        names: dict[str, tuple[str]] = {}
        for key in keys:
            places = self.servers[key].material.places
            names |= {name: (self.address[key],) for name, host in places.items() if host == key.host}
        self.names.point(names)
        self.names.take_strays()

    def start_server(
        self,
        key: ServerKey,
        protocols: Iterable[Protocol],
        certificates: Certificates,
        *,
        probing: tuple[LocalPlace, Path, Path],
        stop: Callable[[], bool],
    ) -> None:
        """Start a server, or start it again, and wait until it answers over each protocol; ServerFailed if it does not.

        It is asked from its own host. ``probing``: where the engine runs there, its log, and where to draft samples.
        """
        serving = self.servers[key]
        server = serving.running
        if serving.live is not None and not serving.live.running():
            try:
                serving.live.start()
                serving.live.wait_ready(stop)
            except CannotError as error:
                raise ServerFailed(str(error)) from error
        # Before it starts: the connections that a proxy opens now to the server behind it stay open over the trials.
        self.network.use_congestion_control(server.options.congestion_control)
        bring_up(server)
        here, log, draft = probing
        question = serving.material.question(key.host)
        where = (self.address[key], PORT, question.name)
        limit: float | None = None
        for protocol in protocols:

            def once(protocol: str = protocol) -> str | None:
                name = f"load ({server.adapter.name} over {protocol})"
                load = here.start("load", log, name=name)
                return ask(
                    load,
                    where,
                    protocol,
                    certificates,
                    draft=draft,
                    stop=stop,
                    path=question.target,
                    body_bytes=question.bytes,
                    status=question.status,
                )

            server.wait_ready(once, stop, limit)
            limit = READY_MORE_S

"""Where the services of a cell run: hosts and wires, names, and the programs themselves, native or in containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from trifecta.design import ip, services
from trifecta.design.graph import Graph
from trifecta.design.model import ServicesWorkload
from trifecta.lab.conntrack import bypass, track
from trifecta.lab.engine import EngineProgram, Role
from trifecta.lab.host_graph import host_graph
from trifecta.lab.names import PORT as NAME_SERVER_PORT
from trifecta.lab.names import Names
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.place import DrivingPlace, LocalPlace
from trifecta.lab.topology import Wire

if TYPE_CHECKING:
    from trifecta.lab.containers import DockerEngine, Network
from trifecta.workloads.services.configs import dns_name, port_of

NATIVE = "native"
ANY_ADDRESS, ANY_ADDRESS_6 = "0.0.0.0", "::"  # noqa: S104 - inside a container of the lab
# Folders of the run that programs write into.
WRITTEN = {"load": ("samples", "spans", "captures", "qlog"), "origin": ("captures",)}
SMALLEST_TABLE = 1  # that a bypass makes irrelevant
AT_ONCE = 12  # containers that are started side by side


@dataclass(frozen=True)
class PlaceKey:
    """What distinguishes two places; cells that agree in it share one."""

    services: tuple[str, ...]
    hosts: int
    place: str
    impaired: frozenset[tuple[str, str]]
    conntrack: str
    names: bool
    """Whether the host of the client has a name server for all."""
    client_hosts: tuple[str, ...]
    """Those of clients, the client's own first."""
    ipv6: bool = False
    """Whether its services talk over IPv6. Hosts have both; a bridge has it only where it is needed."""


def key_of(graph: Graph, workload: ServicesWorkload, *, linked: bool) -> PlaceKey:
    """The place that a cell needs; ``linked``: with a link on the wires that the path lies on."""
    impaired = workload.impaired_pairs if linked else frozenset()
    names = workload.names is not None
    client_hosts = tuple(dict.fromkeys(workload.client_hosts))
    return PlaceKey(
        graph.services,
        workload.hosts,
        workload.place,
        impaired,
        workload.conntrack,
        names,
        client_hosts,
        ipv6=workload.ip is not None,
    )


@dataclass(frozen=True)
class Start:
    """A program that is to be started: of which service, on which host."""

    service: str
    host: str
    client: int | None = None
    """Its number among clients that are programs of their own."""

    @property
    def name(self) -> str:
        """As messages and logs have it."""
        return self.service if self.client is None else f"{self.service}-{self.client}"


@dataclass(frozen=True)
class PlacesContext:
    """What every place of a run has in common: the engine, who runs on which CPU, and the run's folder."""

    engine: Path
    pins: Mapping[str, frozenset[int] | None]
    folder: Path


class Place:
    """Raised by ``with``: the lab's hosts with their names. Programs are started in it by role."""

    def __init__(self, key: PlaceKey, graph: Graph, workload: ServicesWorkload, ground: PlacesContext) -> None:
        """Prepare; nothing is made before ``__enter__``."""
        self.key = key
        self.graph = graph
        self._ground = ground
        self._messages = workload.messages
        self._docker: dict[str, DockerEngine] = {}
        self.host_of = services.host_of(graph, workload.hosts)
        hosts = list(dict.fromkeys([*self.host_of.values(), *key.client_hosts]))
        pairs = workload.host_pairs
        self.topology = host_graph(hosts, [Wire(*pair, impaired=pair in key.impaired) for pair in pairs])
        self.links = [wire for wire in self.topology.wires if wire.impaired]

    def __enter__(self) -> Self:
        """Raise hosts, wires and names."""
        with ExitStack() as undo:
            undo.enter_context(self.topology)
            self.track_connections(self.key.conntrack)  # what this kernel refuses is found here, not in a trial
            undo.enter_context(Names(self.topology.hosts.values(), self.names(), also_at=self._asked_from_outside()))
            self._raise_docker(undo)
            self._stack = undo.pop_all()
        return self

    def _asked_from_outside(self) -> dict[str, str]:
        """Hosts whose name server others ask, and where: containers behind a bridge, over IPv4, and other hosts."""
        if self.key.place == "docker-bridge":
            return {host: self.topology.address(host) for host in self.topology.names}
        client = self.graph.client
        return {self.host_of[client]: self.address(client)} if self.key.names else {}

    def name_server(self) -> str | None:
        """Where services are to ask before every connection; None where the study does not have them ask."""
        return ip.endpoint(self.address(self.graph.client), NAME_SERVER_PORT) if self.key.names else None

    def _raise_docker(self, undo: ExitStack) -> None:
        """A Docker Engine in each host, started side by side, when the services are to run in containers."""
        if self.key.place == NATIVE:
            return
        from trifecta.lab.containers import DockerEngine

        network: Network = "host" if self.key.place == "docker-host" else "bridge"
        for host in self.topology.names:
            log = self._log(f"docker-{network}-{host}")
            engine = DockerEngine(self.topology, host, network, self._ground.engine, log, ipv6=self.key.ipv6)
            undo.push(engine.__exit__)
            self._docker[host] = engine
        for engine in self._docker.values():
            engine.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take everything down."""
        self._stack.close()

    def address(self, service: str) -> str:
        """The address of the host that a service runs on, at which it is called."""
        return self.address_of(self.host_of[service])

    def address_of(self, host: str) -> str:
        """The address of a host, of the version of IP that is spoken here."""
        return self.topology.address_6(host) if self.key.ipv6 else self.topology.address(host)

    def hosts_of(self, service: str) -> Sequence[str]:
        """The host of a service, or those of the clients."""
        return self.key.client_hosts if service == self.graph.client else [self.host_of[service]]

    def listen_address(self, service: str) -> str:
        """The address that a service listens on: its host's; behind a bridge whichever its container has."""
        if self.key.place == "docker-bridge":
            return ANY_ADDRESS_6 if self.key.ipv6 else ANY_ADDRESS
        return self.address(service)

    def names(self) -> dict[str, tuple[str, str]]:
        """Every service's name in the lab's zone, with the addresses of its host."""
        return {
            dns_name(service): (self.topology.address(host), self.topology.address_6(host))
            for service, host in self.host_of.items()
        }

    def track_connections(self, table: str) -> None:
        """Begin anew with the table of connections that the study asks for, on every host but those of clients."""
        if table == "off":
            return
        for name, host in self.topology.hosts.items():
            if name in self.key.client_hosts:
                continue
            if table == "bypass":
                track(host, SMALLEST_TABLE)
                bypass(host)
            else:
                track(host, int(table))

    def starts(self, workload: ServicesWorkload) -> list[Start]:
        """The programs of a trial: the client, or every client of its own, then the services, the last first."""
        client, clients = self.graph.client, workload.client_hosts
        apart = workload.client_processes is not None
        own = [Start(client, host, number if apart else None) for number, host in enumerate(clients)]
        return own + [Start(name, self.host_of[name]) for name in reversed(self.graph.services[1:])]

    def start_services(
        self, stack: ExitStack, starts: Sequence[Start], program: Path | None = None
    ) -> list[EngineProgram]:
        """Start programs of services, which ``stack`` ends; they wait for their configurations.

        Containers are started side by side.
        """
        if self.key.place == NATIVE:
            return [stack.enter_context(self.start_service(one, program)) for one in starts]
        with ThreadPoolExecutor(min(len(starts), AT_ONCE)) as pool:
            started = [pool.submit(self.start_service, one, program) for one in starts]
        for future in started:
            if future.exception() is None:
                stack.enter_context(future.result())
        return [future.result() for future in started]

    def start_service(self, start: Start, program: Path | None = None) -> EngineProgram:
        """Start the program of a service, the engine's unless another is given; it waits for its configuration."""
        role: Role = "load" if start.service == self.graph.client else "origin"
        pin = self._ground.pins["client" if role == "load" else "server"]
        place, folder = self._of_service(start, role), self._ground.folder
        place.put(folder / "pki")
        if self._messages is not None:
            place.put(Path(self._messages))
        for name in WRITTEN[role]:
            if (folder / name).is_dir():
                place.put(folder / name, writable=True)
        log, name = self._log(f"service-{start.name}"), f"service {start.name}"
        if program is None:
            return place.start(role, log, cpus=pin, name=name)
        place.put(program)
        return place.drive((program, role, "-"), role, log, cpus=pin, name=name)

    def _of_service(self, start: Start, role: Role) -> DrivingPlace:
        """Where the program of a service is started."""
        if self.key.place == NATIVE:
            return self.at(start.host)
        from trifecta.lab.containers import ContainerPlace

        ports = [port_of(self.graph, start.service)] if role == "origin" else []
        return ContainerPlace(self._docker[start.host], aliases=[dns_name(start.service)], ports=ports)

    def at(self, host: str) -> LocalPlace:
        """Where programs of a host are started, outside of containers."""
        return Namespaces(self.topology, self._ground.engine).place(host)

    def _log(self, name: str) -> Path:
        return self._ground.folder / "logs" / f"{name}.log"

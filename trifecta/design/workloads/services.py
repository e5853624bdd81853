"""The workloads of services that call each other: a chain, a fan-in, a registration in a 5G core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from trifecta.design import sba, services
from trifecta.design.by_protocol import Octets, largest
from trifecta.design.graph import Graph
from trifecta.design.machine import CLIENT
from trifecta.design.path_spec import PathSpec
from trifecta.design.protocols import CONTENT_METHODS
from trifecta.design.workloads import estimates
from trifecta.design.workloads.requests import Family, Problem, RequestsWorkload

MOST_PROGRAMS = 200  # that are a client each: some 15 MB of memory and half a dozen threads for every one


@dataclass(frozen=True)
class ServicesWorkload(RequestsWorkload):
    """What the workloads of services share: what one request of a client makes them do.

    A *cycle* is one request of the client with every call that it causes (``trifecta.design.services`` has the graph).
    ``depth`` counts the services of a chain, the client included. ``inside`` says what the calls among the services
    speak: ``same`` as the client, or a protocol for each call behind the first, joined by ``+`` (one stands for all).
    ``hosts`` is the number of hosts the services are spread over, ``place`` how they run there. The path lies on every
    wire between hosts, or only on the one that ``impaired`` names by its services. ``clients`` of a fan-in each have
    a connection of their own and make ``requests`` each; with ``client_processes`` each is a program of its own, on the
    client's host (``each``), or only so many of them are there, and the others on a host for them alone. ``messages``
    is a folder of JSON files to send, else a message has ``request_bytes`` of filler. ``conntrack`` is the size of the
    table of connections on every host that serves: 0 for none, -1 where the table is there but the services bypass it.
    The last seven, and the timeouts of a server, which hold over TCP only, are of programs other than the engine's own,
    and off where they are None:
    ``alpn_mismatch``: HTTP/1.1 is spoken where HTTP/2 was meant; ``connection_leak``: connections over TCP are not
    closed; ``unverified``: certificates are not verified; ``retries``: what fails is tried again within the time that
    is taken; ``think_time_ns`` passes between two requests of a client, one for all protocols or one for each;
    ``names`` is ``path`` where a name server on the client's host is asked before every connection.
    """

    method: str = "POST"
    response_bytes: Octets = 0
    request_bytes: Octets = 128
    in_flight: int = 1
    depth: int = 4
    inside: str = "same"
    hosts: int = 1
    place: Literal["native", "docker-host", "docker-bridge"] = "native"
    impaired: str = "all"
    clients: int = 1
    messages: str | None = None
    conntrack: str = "off"
    alpn_mismatch: bool | None = None
    connection_leak: bool | None = None
    unverified: bool | None = None
    retries: bool | None = None
    think_time_ns: tuple[int, ...] | None = None
    names: Literal["path"] | None = None
    client_processes: str | None = None

    @property
    def graph(self) -> Graph:
        """Which services there are, and who calls whom."""
        raise NotImplementedError

    # What its samples are.

    @property
    def first_method(self) -> str:
        """The client's call begins a cycle."""
        return self.graph.entry.method

    family: ClassVar[Family] = "services"
    """Services call each other."""
    direct: ClassVar[bool] = False
    """A service may call others before it answers."""

    # Where it runs.

    @property
    def wires(self) -> tuple[str, ...]:
        """The wires between its hosts; none where all services share one."""
        return tuple(f"{a}-{b}" for a, b in self.host_pairs)

    @property
    def client_hosts(self) -> tuple[str, ...]:
        """The host of each program that is a client, or is all of them."""
        return (services.host_of(self.graph, self.hosts)[self.graph.client],)

    @property
    def host_pairs(self) -> tuple[tuple[str, str], ...]:
        """The hosts at both ends of each wire."""
        return tuple(services.wires_of(self.graph, self.hosts, names=self.names is not None))

    @property
    def impaired_pairs(self) -> frozenset[tuple[str, str]]:
        """The hosts at both ends of each wire that the path lies on."""
        names = self.names is not None
        return frozenset(services.impaired_wires(self.graph, self.hosts, self.impaired, names=names))

    @property
    def impaired_wires(self) -> tuple[str, ...]:
        """The wires that the path lies on."""
        impaired = {f"{a}-{b}" for a, b in self.impaired_pairs}
        return tuple(wire for wire in self.wires if wire in impaired)

    @property
    def calls(self) -> int:
        """Those of a cycle, which are made one after the other."""
        return len(self.graph.walk())

    @property
    def crossing(self) -> int:
        """The calls of a cycle between hosts whose wire has the path on it."""
        at, impaired = services.host_of(self.graph, self.hosts), self.impaired_pairs
        pairs = [(at[caller], at[call.to]) for caller, call, _ in self.graph.walk()]
        return sum(pair in impaired or pair[::-1] in impaired for pair in pairs)

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """Docker, or the kernel's tracking of connections."""
        return (("place", self.place), ("conntrack", self.conntrack))

    # On hosts of a study's own.

    @property
    def placeable(self) -> tuple[str, ...]:
        """Nobody between them: there is more than one way."""
        return self.placed

    @property
    def placed(self) -> tuple[str, ...]:
        """The client, and every service behind it by its name."""
        return (CLIENT, *self.graph.services[1:])

    def hosts_problem(self) -> Problem | None:
        """A number of hosts, an impaired wire and a table of connections are a lab's."""
        if self.hosts != 1:
            return "hosts", "is a number of hosts in a lab, and this study names its hosts; leave the number out"
        options = {"impaired": self.impaired != "all", "conntrack": self.conntrack != "off"}
        field = next((name for name, asks in options.items() if asks), None)
        if field is None:
            return None
        return field, "is made by a lab on one machine, and hosts are as they are; leave it out"

    # As a trial meets it.

    def completed(self) -> Self:
        """How many connections its client has, the protocol says."""
        return self

    # How long it takes.

    def around_ns(self, client: str) -> int:
        """With the start of its containers."""
        return (0 if self.place == "native" else estimates.CONTAINER_NS) + super().around_ns(client)

    def work_ns(self, path: PathSpec, connection: str, client: str) -> float:
        """With what its clients think."""
        in_turn, abreast = self._paced()
        asking = self.calls * estimates.trip_ns(path) if self.names and connection == "new" else 0
        return super().work_ns(path, connection, client) + in_turn / abreast * (
            max(self.think_time_ns or (0,)) + asking
        )

    # What no program can carry out.

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """What its services cannot do comes first."""
        own = self._inside_problem() or self._place_problem(path.impaired) or self._names_problem()
        return own or super().problem(protocols, path)

    def _apart_problem(self) -> Problem | None:
        """Whether a service can distinguish TCP from QUIC depends on its program."""
        return None

    def program_problem(self, server: str, connection: str) -> Problem | None:
        """The engine's services have no switches; other programs do not follow all that the engine does."""
        if server == services.SERVER_LEVEL:
            return self._engine_problem()
        engine = f"or use server: {services.SERVER_LEVEL}"
        together = any(name != "tls_version" for name in self.apart)
        leaking_kept = bool(self.connection_leak) and connection != "new"
        refused = (
            (together, "congestion_control", f"one value for TCP and QUIC together with server: {server}"),
            (self.loop != "closed", "loop", f"{server} keeps no open loop's schedule; use loop: closed, {engine}"),
            (bool(self.duration_ns), "duration", f"{server} counts requests, not time; give 'requests', {engine}"),
            (bool(self.warmup_ns), "warmup", f"{server} has a warm-up in requests only, for example '20 requests'"),
            (self.resumption, "resumption", f"{server} resumes no sessions; leave it out, {engine}"),
            (self.quinn != "adapted", "quinn", f"{server} has another QUIC library; leave it out, {engine}"),
            (leaking_kept, "connection_leak", "a connection that is used again does not leak; give connection: new"),
        )
        return next(((field, text) for impossible, field, text in refused if impossible), None)

    def _engine_problem(self) -> Problem | None:
        remedy = "use server: go-services"
        if self.apart:
            text = f"one value for TCP and QUIC together: services of the engine speak both; {remedy}"
            return self.apart[0], text
        switches = {
            "alpn_mismatch": self.alpn_mismatch,
            "connection_leak": self.connection_leak,
            "unverified": self.unverified,
            "retries": self.retries,
            "think_time": self.think_time_ns,
            "names": self.names,
            "client_processes": self.client_processes,
            "read_timeout": self.read_timeout_ns,
            "write_timeout": self.write_timeout_ns,
        }
        on = next((name for name, value in switches.items() if value), None)
        return None if on is None else (on, f"the engine's own services do not do that; {remedy}, or leave it out")

    def _inside_problem(self) -> Problem | None:
        inner = self.inside.split("+")
        pairs = len(self.graph.pairs) - 1
        if len(inner) > 1 and len(inner) != pairs:
            return "inside", f"names {len(inner)} protocols for {pairs} pairs of services; name one, or {pairs}"
        if self.inside != services.SAME and not pairs:
            return "inside", "there is no call behind the client's; remove it"
        if self.zero_rtt:
            return "zero_rtt", "services take no early data; remove it"
        return None

    def _place_problem(self, impaired_path: bool) -> Problem | None:
        number = len(self.graph.services)
        if self.hosts > number:
            return "hosts", f"{self.hosts} hosts for {number} services; give at most {number}"
        if impaired_path and self.hosts == 1:
            return "hosts", "one host has no wire for the path to lie on; give 2 or more, or the path 'clean'"
        if self.impaired != "all" and not self.impaired_pairs:
            ends = services.wires_of(self.graph, self.hosts).values()
            wires = [f"{caller}-{callee}" for caller, callee in ends]
            return "impaired", f"no wire {self.impaired!r}; choose from all{''.join(', ' + wire for wire in wires)}"
        if self.conntrack != "off" and self.hosts == 1:
            return "conntrack", "connections within one host are not tracked; give 2 hosts or more"
        if self.conntrack == "bypass" and self.place == "docker-bridge":
            return "conntrack", "Docker's bridge reaches containers by connection tracking; give place: docker-host"
        return None

    def _names_problem(self) -> Problem | None:
        if self.names and not services.askers(self.graph, self.hosts):
            text = "the name server is on the client's host, and no service on another one calls any"
            return "names", f"{text}; leave it out, or give a chain of 3 and 2 hosts or more"
        if self.names and self.place == "docker-bridge":
            return "names", "containers behind Docker's bridge ask Docker's own name server; give place: docker-host"
        return None

    def _answer_problem(self) -> Problem | None:
        if self.messages is not None and self.method not in CONTENT_METHODS:
            return "messages", f"a {self.method} carries no message; use POST, PUT or PATCH"
        return None


@dataclass(frozen=True)
class ChainWorkload(ServicesWorkload):
    """The workload ``chain``: ``depth`` services, the client included, each of which calls the next."""

    kind: str = "chain"

    @property
    def graph(self) -> Graph:
        """Which services there are, and who calls whom."""
        return services.chain(self.depth, self.method, largest(self.response_bytes))

    @property
    def placeable(self) -> tuple[str, ...]:
        """Its depth may be a factor."""
        return (CLIENT, *services.LETTERS[1:])


@dataclass(frozen=True)
class FanInWorkload(ServicesWorkload):
    """The workload ``fan-in``: ``clients`` of one service, each with a connection of its own."""

    kind: str = "fan-in"

    concurrency_field: ClassVar[str] = "clients"
    """Each has one request in flight."""

    @property
    def graph(self) -> Graph:
        """A client, for all of them, and the service."""
        return services.chain(2, self.method, largest(self.response_bytes))

    crowd: ClassVar[bool] = True
    """That is what it is."""

    @property
    def samples(self) -> int:
        """Every client has as many as are asked for."""
        return self.requests * self.clients

    @property
    def warmup_samples(self) -> int:
        """The same of those that come before."""
        return self.warmup_requests * self.clients

    # Where its clients run.

    @property
    def client_hosts(self) -> tuple[str, ...]:
        """One program for all clients, or one for each; those that the client's host has no place for share another."""
        first = super().client_hosts
        if self.client_processes is None:
            return first
        here = self.clients if self.client_processes == "each" else min(self.clients, int(self.client_processes))
        return (*first * here, *(f"host{self.hosts + 1}",) * (self.clients - here))

    @property
    def host_pairs(self) -> tuple[tuple[str, str], ...]:
        """With the wire of those clients."""
        return (*super().host_pairs, *self._pairs_beside)

    @property
    def impaired_pairs(self) -> frozenset[tuple[str, str]]:
        """All clients have the same path."""
        impaired = super().impaired_pairs
        return impaired | frozenset(self._pairs_beside) if impaired else impaired

    @property
    def _pairs_beside(self) -> tuple[tuple[str, str], ...]:
        own, called = (services.host_of(self.graph, self.hosts)[name] for name in self.graph.services)
        return tuple((host, called) for host in dict.fromkeys(self.client_hosts) if host != own)

    # As a trial meets it.

    def completed(self) -> Self:
        """The clients have a connection each, on every protocol."""
        return replace(self, in_flight=self.clients, connections=self.clients, streams=1)

    # How long it takes.

    def around_ns(self, client: str) -> int:
        """With the start of every client but the first."""
        each_ns = estimates.PROCESS_NS if self.place == "native" else estimates.CONTAINER_BESIDE_NS
        return super().around_ns(client) + (len(self.client_hosts) - 1) * each_ns

    def _paced(self) -> tuple[int, int]:
        """Each client its own, one at a time; many clients wait for each other."""
        return (self.requests + self.warmup_requests) * (2 if self.clients > 10 else 1), 1

    # What no program can carry out.

    def _place_problem(self, impaired_path: bool) -> Problem | None:
        """Clients that are programs need memory, and those on two hosts a third for the service."""
        if len(self.client_hosts) > MOST_PROGRAMS:
            text = f"{self.clients} clients are too many programs; give at most {MOST_PROGRAMS} clients, or 'one'"
            return "client_processes", text
        if self.client_processes not in (None, "each") and self.hosts == 1:
            text = f"{self.client_processes} on the client's host and the rest on another need one for the service"
            return "client_processes", f"{text}; give hosts: 2, or 'each'"
        return super()._place_problem(impaired_path)


@dataclass(frozen=True)
class RegistrationWorkload(ServicesWorkload):
    """The workload ``sba-registration``: a user equipment registers in a 5G core."""

    kind: str = "sba-registration"

    @property
    def graph(self) -> Graph:
        """The functions of the core, and the calls of a registration."""
        return sba.registration()

"""The session of services on hosts: machines with the network between them as it is, each once, whatever runs on it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from trifecta.contract.machine import HostFacts
from trifecta.contract.probe import MeasureSummary
from trifecta.contract.run import RunDocument
from trifecta.design import plan, services
from trifecta.design.errors import CannotError
from trifecta.design.graph import Graph
from trifecta.design.hosts import role_of
from trifecta.design.machine import CLIENT
from trifecta.design.model import Cell, Levelled, ServicesWorkload
from trifecta.implementations.running import ServerFailed
from trifecta.implementations.server import ServerOptions, Site
from trifecta.lab.engine import EngineProgram, Role, Stopped
from trifecta.lab.machines import ConnectedMachine, Machines
from trifecta.workloads.health_check import ask
from trifecta.workloads.hosts.clocks import Clocks, across_clocks
from trifecta.workloads.hosts.server import RemoteOrigin
from trifecta.workloads.hosts.session import lost_words, probe_config, while_all_stand
from trifecta.workloads.probing import measure_path
from trifecta.workloads.services.configs import dns_name, port_of
from trifecta.workloads.session import Session, SessionContext

WRITTEN = ("samples", "spans")  # folders of the run that a client writes into
_LOOPBACK = "127.0.0.1"  # where a service on this machine is called from this machine alone
_TRIED_BYTES = 100  # of the answer to the request that tells whether packets pass


class PlacedSession(Session[ServicesWorkload, str]):
    """The machines stand over the run, and services are new for every trial. A key is a machine, as the study has it.

    A machine that is lost costs the trial under way, and is connected to again.
    """

    def __init__(self, common: SessionContext) -> None:
        """Prepare; nothing is connected to before ``__enter__``."""
        super().__init__(common, ServicesWorkload, {"client": None, "server": None})
        self.machines = Machines(self.engine)
        self._clocks = Clocks(self.machines)
        self.names: dict[str, str] = {}
        """What a machine is called in a trial: ``client``, else by its services."""
        self.addresses: dict[str, str] = {}
        """Where each service is called."""
        self.found: dict[tuple[str, str], MeasureSummary] = {}
        """What the last probe found from one machine to another."""

    def _raise(self) -> None:
        """The machines, the certificates, and what programs there read and write."""
        roles: dict[str, list[str]] = {}
        for role, machine in self.study.hosts.items():
            roles.setdefault(machine.at, []).append(role)
        self._stack.callback(self.machines.close)
        for at, own in roles.items():
            self.names[at] = CLIENT if CLIENT in own else "+".join(own)
            self.machines.connect(at, self.study.hosts[own[0]], self.names[at])
        treatments = plan.treatments(self.study)
        self._find_addresses([self.graph(at) for at in treatments])
        names = [dns_name(service) for service in self.addresses]
        self.certify(names, list(dict.fromkeys(self.addresses.values())))
        for at, own in roles.items():
            place = self.machines.place(at)
            place.put(self.certificates.authority)
            if own != [CLIENT]:
                place.put(self.certificates.chain)
                place.put(self.certificates.key)
            for folder in WRITTEN:
                place.put(self.run.path / folder, writable=True)
        for messages in {workload.messages for workload in map(self.workload, treatments)} - {None}:
            self.machines.place(self.study.hosts[CLIENT].at).put(Path(str(messages)))

    def _find_addresses(self, graphs: Sequence[Graph]) -> None:
        """Where each service is called; CannotError where nobody knows."""
        callers: dict[str, list[ConnectedMachine]] = {}
        for graph in graphs:
            for caller, callee in graph.pairs:
                callers.setdefault(callee, []).append(self.machines[self.at(graph, caller)])
        for service, calling in callers.items():
            machine = self.study.hosts[service]
            decision = machine.address or self.machines[machine.at].address
            if machine.is_here and not machine.address:
                decision = next((one.peer for one in calling if not one.machine.is_here), _LOOPBACK)
            if not decision:
                text = f"hosts.{service}: its IP address is not known; give it, as {{at: ..., address: 192.0.2.1}}"
                raise CannotError(text)
            self.addresses[service] = decision

    def facts(self) -> RunDocument:
        """What the machines say of themselves, by what runs on them."""
        machine_facts = {at: machine.facts() for at, machine in self.machines.items()}
        hosts: dict[str, HostFacts] = {}
        for role, machine in self.study.hosts.items():
            own = machine_facts[machine.at]
            hosts[role] = {**own, "address": self.addresses.get(role, own["address"])}
        self._clocks.tell_before(hosts, self._machine_of)
        return {**super().facts(), "hosts": hosts}

    def last_look(self) -> None:
        """What chronyd says of the clocks when the last block is over; where a host is lost nothing is written."""
        self._clocks.tell_after(self.run, self._machine_of)

    @property
    def _machine_of(self) -> dict[str, str]:
        return {role: machine.at for role, machine in self.study.hosts.items()}

    # Who is where.

    def graph(self, at: Levelled) -> Graph:
        """Who calls whom, with what its protocol has answered."""
        return self.workload(at).for_protocol(at.protocol).graph

    def at(self, graph: Graph, service: str) -> str:
        """The machine of a service."""
        return self.study.hosts[role_of(graph, service)].at

    def call_paths(self, at: Levelled) -> dict[tuple[str, str], tuple[str, str]]:
        """The paths between machines that the calls of a treatment take, with the first call on each."""
        graph = self.graph(at)
        paths: dict[tuple[str, str], tuple[str, str]] = {}
        for caller, callee in graph.pairs:
            ends = self.at(graph, caller), self.at(graph, callee)
            if ends[0] != ends[1]:
                paths.setdefault(ends, (caller, callee))
        return paths

    # What is lost, and stands again.

    def lost(self, ats: Iterable[str]) -> str | None:
        """Which of these machines cannot be used any more, and why; None while all stand."""
        return lost_words(self.machines[at] for at in ats)

    def keys(self, at: Levelled) -> tuple[str, ...]:
        """The machines of a treatment."""
        graph = self.graph(at)
        return tuple(dict.fromkeys(self.at(graph, service) for service in graph.services))

    def level(self, key: str) -> tuple[str, str]:
        """The machine."""
        return "hosts", key

    def problem(self, key: str) -> str | None:
        """Why a machine is lost; None while it stands."""
        return self.lost([key])

    def _restart(self, key: str) -> None:
        """Connect again, once; ServerFailed when that is refused."""
        try:
            self.machines[key].reopen()
        except CannotError as error:
            raise ServerFailed(str(error)) from error

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """See that packets pass where cells have calls from one machine to another; those where not are in ``failed``.

        Each callee is asked over each protocol that it is called over.
        """
        protocols_of_calls: dict[tuple[str, str], dict[str, None]] = {}
        ports: dict[str, int] = {}
        for one in plan.treatments(self.study, cells):
            graph = self.graph(one)
            spoken = services.protocols_of(graph, one.protocol, self.workload(one).inside)
            for (caller, callee), protocol in spoken.items():
                ends = self.at(graph, caller), self.at(graph, callee)
                if ends[0] != ends[1]:
                    protocols_of_calls.setdefault((ends[0], callee), {})[protocol] = None
                    ports[callee] = port_of(graph, callee)
        for (near, callee), protocols in protocols_of_calls.items():
            try:
                self._try(near, callee, ports[callee], list(protocols), str(next(iter(versions.values()), "")))
            except ServerFailed as error:
                self.fail(self.study.hosts[callee].at, f"service {callee}: {error}")

    def _try(self, near: str, callee: str, port: int, protocols: Sequence[str], version: str) -> None:
        """Have a service asked from another machine; ServerFailed where no answer comes there."""
        site = Site(
            folder=self.run.path / "site",
            certificates=self.certificates,
            address=self.addresses[callee],
            port=port,
            state=self.run.path / "logs" / f"service-{callee}",
        )
        far = self.machines[self.study.hosts[callee].at]
        server = RemoteOrigin(version, site, ServerOptions(), far, self.log(f"service-{callee}"))

        def stopped() -> None:
            if self.stop():
                raise Stopped

        try:
            server.start(self.stop)
            server.wait_answers([partial(self._ask, near, callee, port, one) for one in protocols], stopped, near)
        finally:
            server.end()

    def _ask(self, near: str, callee: str, port: int, protocol: str) -> str | None:
        """One real request over a protocol; None when it was answered rightly, else what went wrong."""
        name = f"load ({callee} over {protocol})"
        return ask(
            self.machines.place(near).start("load", self.log("load"), name=name),
            (self.addresses[callee], port, dns_name(callee)),
            protocol,
            self.certificates,
            draft=self.run.path / "samples" / ".tmp-ready.parquet",
            stop=self.stop,
            path=f"/bytes/{_TRIED_BYTES}",
            body_bytes=_TRIED_BYTES,
        )

    def spawn(self, graph: Graph, service: str) -> EngineProgram:
        """Start the program of a service; it waits for its configuration. CannotError when its host is lost."""
        role: Role = "load" if service == graph.client else "origin"
        place = self.machines.place(self.at(graph, service))
        return place.start(role, self.log(f"service-{service}"), name=f"service {service}")

    # What the network does.

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose calls take the same paths."""
        return tuple(self.call_paths(at).items())

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the paths of a treatment were not probed for so long; services of one machine have none."""
        return bool(self.call_paths(at)) and super().probe_due(at, every_s)

    def longest_rtt_ns(self, at: Levelled) -> int:
        """The longest of the median round trips on the paths of a treatment, as they were probed last."""
        measurements = (self.found.get(ends) for ends in self.call_paths(at))
        return max((one.rtt_ns.p50 or 0 for one in measurements if one is not None), default=0)

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        """What the network does now on each path; the summary is that of the first.

        Where a machine is lost meanwhile, anew after it was connected to again.
        """
        return while_all_stand(
            lambda: self._reconnect(at),
            lambda: self._measured(at, first=first),
            lambda: self.lost(self.keys(at)) is not None,
        )

    def _reconnect(self, at: Levelled) -> None:
        for key in self.keys(at):
            if self.machines[key].lost is not None:
                self.machines[key].reopen()

    def _measured(self, at: Levelled, *, first: bool) -> MeasureSummary:
        file = self.run.path / "samples" / ".tmp-probe.parquet"
        summaries, clocks = [], self._clocks.ask()
        for (near, far), (caller, callee) in self.call_paths(at).items():
            config = probe_config(self.path(at), self.addresses[callee], file, first=first)
            between = self.machines.place(near), self.machines.place(far)
            measured = measure_path(between, self.log("probe"), config, self.stop)
            summary = across_clocks(measured, file, clocks[near], clocks[far])
            summary.wire = f"{caller}-{callee}"
            self.found[near, far] = summary
            summaries.append(summary)
        return summaries[0]

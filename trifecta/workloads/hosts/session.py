"""The session between hosts: two machines, the engine's origin on one, and between them the network as it is.

Or what the emulator on a third makes of it (`trifecta.workloads.hosts.emulator_host`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkConfig
from trifecta.contract.probe import MeasureConfig, MeasureSummary
from trifecta.contract.run import RunDocument
from trifecta.design import plan
from trifecta.design.by_protocol import octets_over
from trifecta.design.errors import CannotError
from trifecta.design.machine import MIDDLE, ROLES
from trifecta.design.model import Cell, Levelled, PathSpec, RequestsWorkload
from trifecta.implementations.running import ServerFailed
from trifecta.implementations.server import ServerOptions, Site, host_name
from trifecta.lab.engine import EngineProgram, Stopped
from trifecta.lab.machines import ConnectedMachine, Machines
from trifecta.workloads.health_check import ask
from trifecta.workloads.hosts.clocks import Clocks, across_clocks
from trifecta.workloads.hosts.emulator_host import SETUP, EmulatorHost
from trifecta.workloads.hosts.server import RemoteOrigin
from trifecta.workloads.hosts.supported import SERVER
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.requests.session import CHEAP_START, FIRST_PORT, ServerKey, options_for
from trifecta.workloads.session import Session, SessionContext

PROBE_PORT = FIRST_PORT - 1  # the port of discard, which the lab's probe has, is for root alone
_REPLY_TIMEOUT_NS = 2_000_000_000  # a round trip that nobody asked for
_TRIED_PACKETS, _TRIED_NS = 20, 500_000_000  # to see by which device of the middle host they come


class HostsSession(Session[RequestsWorkload, ServerKey]):
    """Machines that stand over the run. One that is lost costs the trial under way, and is connected to again."""

    def __init__(self, common: SessionContext) -> None:
        """Prepare; nothing is connected to before ``__enter__``."""
        super().__init__(common, RequestsWorkload, {"client": None, "server": None})
        self.machines = Machines(self.engine)
        self._clocks = Clocks(self.machines)
        self.middle: EmulatorHost | None = None
        """Where the emulator is; None where the network is as it is."""
        self.servers: dict[ServerKey, RemoteOrigin] = {}
        self.protocols: dict[ServerKey, list[str]] = {}
        self.start_ns: dict[ServerKey, int] = {}
        """What a start of a server for a block costs: the quickest until now."""

    def _raise(self) -> None:
        """All machines, the certificates, and what programs there read and write."""
        self._stack.callback(self.machines.close)
        for role, machine in self.study.hosts.items():
            self.machines.connect(role, machine)
        self._stack.callback(self._end_all)
        self.address = self._address()
        self.certify([host_name(SERVER)], [self.address])
        self.drafts = self.run.path / "samples"
        client, server = self.machines.place("client"), self.machines.place("server")
        for path in (self.certificates.chain, self.certificates.key):
            server.put(path)
        client.put(self.certificates.authority)
        client.put(self.drafts, writable=True)
        if MIDDLE in self.machines:
            self.middle = EmulatorHost(self.machines[MIDDLE], self.log("link"), self.stop, self._lying)
            self.middle.refuse_bridged()
            self.middle.refuse_detours(self.address, self._tried)

    def _lying(self, config: LinkConfig) -> LinkConfig:
        return changed(config, self.faults.link)

    def _end_all(self) -> None:
        for server in self.servers.values():
            server.end()

    @property
    def ends(self) -> dict[str, ConnectedMachine]:
        """Where client and server run."""
        return {role: self.machines[role] for role in ROLES}

    @property
    def client(self) -> ConnectedMachine:
        """Where clients run."""
        return self.machines["client"]

    @property
    def server(self) -> ConnectedMachine:
        """Where servers run."""
        return self.machines["server"]

    def _address(self) -> str:
        """Where the client finds the server; CannotError where nobody knows."""
        named = self.study.hosts["server"].address
        address = named or (self.client.peer if self.server.machine.is_here else self.server.address)
        if not address:
            raise CannotError("hosts.server: its IP address is not known; give it, as {at: ..., address: 192.0.2.1}")
        return address

    def facts(self) -> RunDocument:
        """What the machines say of themselves."""
        hosts = {role: machine.facts() for role, machine in self.machines.items()}
        hosts["server"]["address"] = self.address
        self._clocks.tell_before(hosts, {role: role for role in hosts})
        return {**super().facts(), "hosts": hosts}

    def last_look(self) -> None:
        """What chronyd says of the clocks when the last block is over; where a host is lost nothing is written."""
        self._clocks.tell_after(self.run, {role: role for role in self.machines})

    @property
    def lost(self) -> str | None:
        """Which machine cannot be used any more, and why; None while both stand."""
        return lost_words(self.machines.values())

    def keys(self, at: Levelled) -> tuple[ServerKey, ...]:
        """The server that answers a treatment."""
        return (self._key(at),)

    def level(self, key: ServerKey) -> tuple[str, str]:
        """The server, by name."""
        return "server", key[0]

    def problem(self, key: ServerKey) -> str | None:
        """Which machine is lost, or how the server ended; None while all of it stands."""
        server = self.servers[key]
        return self.lost or (None if server.running() else server.describe_end())

    def _restart(self, key: ServerKey) -> None:
        """Connect again to what is lost, and have the server answer; ServerFailed when either fails."""
        try:
            self._reconnect()
            if not self.servers[key].running():
                self.restart(key)
        except CannotError as error:
            raise ServerFailed(str(error)) from error

    def _reconnect(self) -> None:
        """What a connection left there is removed, what was put there is put again; CannotError when it is refused."""
        for machine in self.machines.values():
            if machine.lost is not None:
                machine.reopen()

    def _end(self, key: ServerKey) -> None:
        self.servers[key].end()

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Start every server that the cells need and wait until each answers the client over every protocol.

        Those that do not come up are in ``failed``. It serves any size, so ``more_sizes`` too.
        """
        for one in plan.treatments(self.study, cells):
            self._prepare(one, versions)
        for key in self.servers:
            began = time.monotonic_ns()
            try:
                self.servers[key].start(self.stop)
                self.start_ns[key] = time.monotonic_ns() - began
                self._wait_answers(key)
            except ServerFailed as error:
                self.fail(key, str(error))

    def _key(self, at: Levelled) -> ServerKey:
        return at.server, options_for(self.workload(at).for_protocol(at.protocol))

    def _prepare(self, at: Levelled, versions: Mapping[str, str]) -> None:
        """Make a server ready to be started, once."""
        key = self._key(at)
        protocols = self.protocols.setdefault(key, [])
        if at.protocol not in protocols:
            protocols.append(at.protocol)
        if key not in self.servers:
            number = len(self.servers)
            self.servers[key] = self._server(key[1], versions[key[0]], number)

    def _server(self, options: ServerOptions, version: str, number: int) -> RemoteOrigin:
        name = f"{SERVER}-{number}"
        site = Site(
            folder=self.run.path / "site",
            certificates=self.certificates,
            address=self.address,
            port=FIRST_PORT + number,
            state=self.run.path / "logs" / name,
        )
        return RemoteOrigin(version, site, options, self.server, self.log(name))

    def server_for(self, at: Levelled) -> RemoteOrigin:
        """The server of a treatment."""
        return self.servers[self._key(at)]

    def restart(self, key: ServerKey) -> None:
        """Start a server again, and wait until it answers; ServerFailed when it does not."""
        self.servers[key].start(self.stop)
        self._wait_answers(key)

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Start servers of a cell anew where that is cheap beside a block; False when one does not come up."""
        for key in self.keys_of(cell):
            if self.start_ns.get(key, 0) > CHEAP_START * block_ns or self.problem(key) is not None:
                continue
            began = time.monotonic_ns()
            try:
                self.servers[key].start(self.stop, renewed=True)
            except ServerFailed as error:
                if self.lost is None:
                    self.fail(key, str(error))
                    return False
                continue  # who asks for its trial finds the host lost, and has all of it stand again
            took = time.monotonic_ns() - began
            self.start_ns[key] = min(took, self.start_ns.get(key, took))
        return True

    def spawn_client(self) -> EngineProgram:
        """Start a client; it waits for its configuration. CannotError when its host is lost."""
        return self.client.place.start("load", self.log("load"))

    def probe_key(self, at: Levelled) -> Hashable:
        """There is one way."""
        return at.path

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        """What the network does now; where a machine is lost meanwhile, anew after it was connected to again."""
        return while_all_stand(
            self._reconnect, lambda: self._measured(at, seed, first=first), lambda: self.lost is not None
        )

    def _measured(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        path, file = self.path(at), self.drafts / ".tmp-probe.parquet"
        clocks = self._clocks.ask()
        with self.link(path, seed):
            measured = self._probed(probe_config(path, self.address, file, first=first))
        return across_clocks(measured, file, clocks["client"], clocks["server"])

    def _tried(self) -> MeasureSummary:
        """What comes back of a few packets."""
        return self._probed(
            MeasureConfig(address=self.address, port=PROBE_PORT, packets=_TRIED_PACKETS, timeout_ns=_TRIED_NS)
        )

    def _probed(self, config: MeasureConfig) -> MeasureSummary:
        return measure_path((self.client.place, self.server.place), self.log("probe"), config, self.stop)

    @contextmanager
    def link(self, path: PathSpec, seed: int) -> Iterator[None]:
        """The link on the host in the middle, and nothing where there is none; CannotError when it cannot work."""
        if self.middle is None:
            yield
            return
        with self.middle.carrying(path, seed):
            yield

    def _wait_answers(self, key: ServerKey) -> None:
        def stopped() -> None:
            if self.stop():
                raise Stopped

        with self.link(SETUP, 0):
            self.servers[key].wait_answers([partial(self._ask, key, one) for one in self.protocols[key]], stopped)

    def _ask(self, key: ServerKey, protocol: str) -> str | None:
        """One real request over a protocol; None when it was answered rightly, else what went wrong."""
        server = self.servers[key]
        one = next(one for one in plan.treatments(self.study) if self._key(one) == key and one.protocol == protocol)
        size = octets_over(self.workload(one).response_bytes, protocol)
        return ask(
            self.client.place.start("load", self.log("load"), name=f"load ({server.name} over {protocol})"),
            (self.address, server.site.port, host_name(SERVER)),
            protocol,
            self.certificates,
            draft=self.drafts / ".tmp-ready.parquet",
            stop=self.stop,
            tls_version=server.options.tls_version,
            path=f"/bytes/{size}",
            body_bytes=size,
        )


def lost_words(machines: Iterable[ConnectedMachine]) -> str | None:
    """Which of these machines cannot be used any more, and why; None while all stand."""
    losses = {machine.machine.at: machine.lost for machine in machines}
    return "; ".join(f"host {at} is lost ({why})" for at, why in losses.items() if why) or None


def while_all_stand(
    connect: Callable[[], None], measure: Callable[[], MeasureSummary], is_lost: Callable[[], bool]
) -> MeasureSummary:
    """What is measured once all machines stand; where one is lost meanwhile, anew after it was connected to again."""
    try:
        connect()
        return measure()
    except CannotError:
        if not is_lost():
            raise
    connect()
    return measure()


def probe_config(path: PathSpec, address: str, file: Path, *, first: bool) -> MeasureConfig:
    """What the probe is asked, whose packets go to ``file``. Of a network as it is nobody knows how far it is."""
    config = measure_config(path, address, first=first)
    timeout_ns = _REPLY_TIMEOUT_NS if path.as_is else config.timeout_ns
    return replace(config, port=PROBE_PORT, timeout_ns=timeout_ns, samples_file=str(file))

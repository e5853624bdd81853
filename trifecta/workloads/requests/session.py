"""The session of requests: two hosts, a load balancer where one is asked for, the servers, the probe's far end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from trifecta.contract.probe import MeasureSummary
from trifecta.design import plan, tuning
from trifecta.design.by_protocol import octets_over
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.model import Cell, Levelled, PathSpec, RequestsWorkload
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerOptions, Site, host_name, label
from trifecta.lab.balancer import Balancer
from trifecta.lab.cpu_share import CpuShare
from trifecta.lab.engine import EngineProgram
from trifecta.lab.host import pin_table
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.network import BALANCER, SERVER_ADDRESS, SERVER_ADDRESS_6, WIRE, two_hosts
from trifecta.lab.place import OpenPlace
from trifecta.lab.topology import Topology, Wire
from trifecta.workloads.capturing import LONGEST_LINGER_NS
from trifecta.workloads.health_check import ask
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.qlogs import ServerLogs
from trifecta.workloads.requests.places import ServerPlaces
from trifecta.workloads.requests.routes import RequestRoute, route_of
from trifecta.workloads.requests.site import write_site
from trifecta.workloads.session import READY_MORE_S, Session, SessionContext, bring_up, set_to_work

FIRST_PORT = 8443
CHEAP_START = 0.05  # of a block's time: so much may a start of its server take, for the block to get one of its own
LINGER_S = LONGEST_LINGER_NS / 1e9 + 2.0
ServerKey = tuple[str, ServerOptions]


def options_for(workload: RequestsWorkload) -> ServerOptions:
    """What a cell's workload, as one protocol meets it, asks of its server."""
    return ServerOptions(
        congestion_control=workload.congestion_control,
        tcp_nodelay=workload.tcp_nodelay,
        tls_version=workload.tls_version,
        zero_rtt=workload.zero_rtt,
        quinn=workload.quinn,
        tuning=tuning.engine(workload),
        tcp=tuning.kernel(workload),
        read_timeout_ns=workload.read_timeout_ns,
        write_timeout_ns=workload.write_timeout_ns,
        max_streams=max(250, workload.streams or workload.in_flight),
        ipv6=workload.ip is not None,
        cpu_share=workload.server_cpu,
    )


def start_client(client: str, place: OpenPlace, log: Path, cpus: frozenset[int] | None = None) -> EngineProgram:
    """Start a client at a place: the engine's load, or the driver that runs another program instead of it."""
    if client == DEFAULT_CLIENT:
        return place.start("load", log, cpus=cpus)
    driver = (sys.executable, "-P", "-m", "trifecta.implementations.clients.driver", client)
    return place.drive(driver, "load", log, cpus=cpus, name=f"client {client}")


class RequestsSession(Session[RequestsWorkload, ServerKey]):
    """Two hosts, and servers that stay over the run, or are renewed for every block."""

    def __init__(self, common: SessionContext) -> None:
        """Prepare; nothing is raised before ``__enter__``."""
        super().__init__(common, RequestsWorkload, pin_table())
        self.servers: dict[ServerKey, RunningServer] = {}
        self.protocols: dict[ServerKey, list[str]] = {}
        """What each is asked over: not all of them where a study has other settings over TCP than over QUIC."""
        self.client_shares: dict[float, CpuShare] = {}
        """The control groups of clients that have a share of a core only, by share."""
        self.start_ns: dict[ServerKey, int] = {}
        """What a start for a block costs: the quickest until now, for one that another program held up says little.

        Not known of a server that says when it is ready until it was renewed once: its first start is asked over every
        protocol, a renewal is not.
        """
        self.balancers: dict[RequestRoute, Balancer] = {}
        """What passes flows on in the trials that ask for a load balancer."""
        self.lingering: EngineProgram | None = None
        """The link of the last trial, which carries the end of its connections while the trial is judged and kept."""

    def _raise(self) -> None:
        """The lab and its certificates."""
        # What was served is made anew from the sizes in the study; large files need not lie in every run.
        self._stack.callback(shutil.rmtree, self.run.path / "site", ignore_errors=True)
        balanced = {route for route in map(self.route, plan.treatments(self.study)) if route.balanced}
        over_6 = any(route.ipv6 for route in balanced)
        self.lab = self._stack.enter_context(two_hosts(balanced=bool(balanced), balanced_6=over_6))
        # Where captured trials count, HTTP/3 alone would pay for it.
        self.qlogs = ServerLogs(self.run, wanted=self.study.capture and not self.study.gives_verdicts)
        self._stack.callback(self.qlogs.close)
        self.places = self._stack.enter_context(ServerPlaces(self.lab, self.engine, self.log("docker")))
        self._stack.callback(self._end_all)
        launcher = Namespaces(self.lab, self.engine)
        self.client, self.server = launcher.place("client"), launcher.place("server")
        self.certify([host_name(name) for name in self.adapters.servers], [SERVER_ADDRESS, SERVER_ADDRESS_6])

    def _end_all(self) -> None:
        for server in self.servers.values():
            server.close()
        for share in self.client_shares.values():
            share.close()

    @property
    def topologies(self) -> Sequence[Topology]:
        """The lab."""
        return (self.lab,)

    def keys(self, at: Levelled) -> tuple[ServerKey, ...]:
        """The server that answers a treatment."""
        return (self._key(at),)

    def level(self, key: ServerKey) -> tuple[str, str]:
        """The server, by name."""
        return "server", key[0]

    def problem(self, key: ServerKey) -> str | None:
        """How the server ended; None while it runs."""
        server = self.servers[key]
        return None if server.running() else server.describe_end()

    def _restart(self, key: ServerKey) -> None:
        self.restart(self.servers[key])

    def _end(self, key: ServerKey) -> None:
        self.servers[key].close()

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Start every server that the cells need (again) and wait until each answers over every protocol.

        Those that do not come up are in ``failed``. ``more_sizes`` are served besides those of the study.
        """
        treatments = plan.treatments(self.study, cells)
        for route in map(self.route, treatments):
            if route.balanced and route not in self.balancers:
                self.balancers[route] = Balancer(self.lab.host(BALANCER), route.balancer, route.server)
        folder = self.run.path / "site"
        sizes = {octets_over(self.workload(one).response_bytes, one.protocol) for one in treatments}
        write_site(folder, {*sizes, 1, *more_sizes})
        for one in treatments:
            self._prepare(self._key(one), one.protocol, folder, versions)
        with self.link(PathSpec("setup"), 0):
            for key, server in self.servers.items():
                try:
                    self.places.prepare(server.adapter)
                    began = time.monotonic_ns()
                    self._start(server)  # one after the other: who cannot have a port is distinguished from who has it
                    self._wait_ready(server)
                    if server.adapter.says_ready is None:
                        self.start_ns[key] = time.monotonic_ns() - began
                except ServerFailed as error:
                    self.fail(key, str(error))

    def _key(self, at: Levelled) -> ServerKey:
        """Which server answers a treatment."""
        return at.server, options_for(self.workload(at).for_protocol(at.protocol))

    def _prepare(self, key: ServerKey, protocol: str, folder: Path, versions: Mapping[str, str]) -> None:
        """Make a server ready to be started, once."""
        protocols = self.protocols.setdefault(key, [])
        if protocol not in protocols:
            protocols.append(protocol)
        if key in self.servers:
            return
        name, options = key
        number = len(self.servers)
        log = f"{label(name)}-{number}"
        site = Site(
            folder=folder,
            certificates=self.certificates,
            address=RequestRoute(ipv6=options.ipv6).server,
            port=FIRST_PORT + number,
            state=self.run.path / "logs" / log,
            qlog=self.qlogs.folder(log, label(name)),
        )
        self.servers[key] = RunningServer(
            self.adapters.servers[name],
            versions[name],
            site,
            options,
            self.places.of(self.adapters.servers[name]),
            log=self.log(log),
            cpus=self.pins["server"],
        )

    def _start(self, server: RunningServer, *, renewed: bool = False) -> None:
        """Start a server; ServerFailed for whatever its adapter or program does wrong."""
        # Before it starts: the connections that a proxy opens now to the server behind it stay open over the trials.
        self.lab.use_tcp(server.options.congestion_control, server.options.tcp)
        bring_up(server, renewed=renewed)

    def server_for(self, at: Levelled) -> RunningServer:
        """The server of a treatment."""
        return self.servers[self._key(at)]

    def restart(self, server: RunningServer, *, renewed: bool = False) -> None:
        """Start a server again, and wait until it answers; ServerFailed when it does not.

        ``renewed``: it answered over every protocol before, so one that says when it is ready is taken at its word.
        """
        self._start(server, renewed=renewed)
        word = server.adapter.says_ready
        if renewed and word is not None:
            server.wait_word(word, self.stop)
            return
        with self.link(PathSpec("setup"), 0):
            self._wait_ready(server)

    def free_wire(self) -> None:
        """Wait until the link that lingers is done: two links would carry every packet twice."""
        if self.lingering is not None:
            self.lingering.wait_silent(LINGER_S)
            self.lingering = None

    def route(self, at: Levelled) -> RequestRoute:
        """The route that the packets of a treatment take."""
        return route_of(self.workload(at))

    def link(self, path: PathSpec, seed: int, wire: Wire = WIRE) -> EngineProgram:
        """Start the link for a path and wait until it carries packets."""
        self.free_wire()
        config = self.link_config(path, seed)
        return set_to_work(self.spawn_link(self.lab, wire, f"link {path.name}"), config, self.stop)

    def client_share(self, share: float | None) -> CpuShare | None:
        """The control group for a client that has this share of a core; None where it is not limited."""
        if share is None:
            return None
        if share not in self.client_shares:
            self.client_shares[share] = CpuShare(f"client-{len(self.client_shares)}", share)
        return self.client_shares[share]

    def spawn_client(self, client: str) -> EngineProgram:
        """Start a client where clients run; it waits for its configuration."""
        log = self.log("load" if client == DEFAULT_CLIENT else f"client-{client}")
        return start_client(client, self.client, log, self.pins["client"])

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Start those servers of a cell anew for which that is cheap beside a block; False when one does not come up.

        What a start draws by chance is then drawn for every block, and is in the interval (Kalibera & Jones 2013).
        """
        for key in self.keys_of(cell):
            if self.start_ns.get(key, 0) > CHEAP_START * block_ns or not self.servers[key].running():
                continue
            began = time.monotonic_ns()
            try:
                self.restart(self.servers[key], renewed=True)
            except ServerFailed as error:
                self.fail(key, str(error))
                return False
            took = time.monotonic_ns() - began
            self.start_ns[key] = min(took, self.start_ns.get(key, took))
        return True

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same route."""
        return self.route(at).on(at.path)

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        """Delays, loss, rate, and at first size."""
        path, route = self.path(at), self.route(at)
        config = measure_config(path, route.towards, first=first)
        with self.link(path, seed, route.wire):
            ends = (self.client, self.server)
            return measure_path(ends, self.log("probe"), config, self.stop, at=route.server)

    def _wait_ready(self, server: RunningServer) -> float:
        waited = 0.0
        for protocol in self.protocols[server.adapter.name, server.options]:
            limit = READY_MORE_S if waited else None
            waited += server.wait_ready(partial(self._ask, server, protocol), self.stop, limit)
        return waited

    def _ask(self, server: RunningServer, protocol: str) -> str | None:
        """One real request over a protocol; None when it was answered rightly, else what went wrong."""
        size = min(int(path.name) for path in (server.site.folder / "bytes").iterdir())
        name = f"load ({server.adapter.name} over {protocol})"
        return ask(
            self.client.start("load", self.log("load"), cpus=self.pins["client"], name=name),
            (server.site.address, server.site.port, host_name(server.adapter.name)),
            protocol,
            self.certificates,
            draft=self.run.path / ".tmp-ready.parquet",
            stop=self.stop,
            tls_version=server.options.tls_version,
            path=f"/bytes/{size}",
            body_bytes=size,
        )

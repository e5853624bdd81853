"""What stays up over the trials of a run: the lab, the servers, the probe's far end; and how a path is probed."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkConfig, LinkReady
from trifecta.contract.probe import MeasureSummary
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.model import Cell, Levelled, PathSpec, RequestsWorkload, Study
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerAdapter, ServerOptions, Site
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.cpu_share import CpuShare
from trifecta.lab.engine import EngineError, EngineProgram, Stopped, as_user_error
from trifecta.lab.host import pin_table
from trifecta.lab.hosts import NetworkFacts
from trifecta.lab.network import SERVER_ADDRESS, SERVER_ADDRESS_6, WIRE, two_hosts
from trifecta.lab.paths import link_config
from trifecta.lab.place import LocalPlace, OpenPlace
from trifecta.store.files import full
from trifecta.store.run import RunDirectory
from trifecta.workloads.asking import ask
from trifecta.workloads.capturing import LONGEST_LINGER_NS
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.qlogs import ServerLogs

FIRST_PORT = 8443
LINK_READY_S = 10.0
CHEAP_START = 0.05  # of a block's time: so much may a start of its server take, for the block to get one of its own
LINGER_S = LONGEST_LINGER_NS / 1e9 + 2.0
READY_MORE_S = 10.0  # for each further protocol of a server that answers over one: the program is there
ServerKey = tuple[str, ServerOptions]
Program = TypeVar("Program", bound=EngineProgram)
_PATTERN = bytes(0x61 + i % 26 for i in range(26))


def options_for(workload: RequestsWorkload) -> ServerOptions:
    """What a cell's workload, as one protocol meets it, asks of its server."""
    return ServerOptions(
        congestion_control=workload.congestion_control,
        tcp_nodelay=workload.tcp_nodelay,
        tls_version=workload.tls_version,
        zero_rtt=workload.zero_rtt,
        quinn=workload.quinn,
        read_timeout_ns=workload.read_timeout_ns,
        write_timeout_ns=workload.write_timeout_ns,
        max_streams=max(250, workload.streams or workload.in_flight),
        cpu_share=workload.server_cpu,
    )


def write_site(folder: Path, sizes: set[int]) -> None:
    """Write ``bytes/N`` for every size: N octets, octet i is 0x61 + i % 26."""
    (folder / "bytes").mkdir(parents=True, exist_ok=True)
    for size in sizes:
        whole = _PATTERN * 4096
        with (folder / "bytes" / str(size)).open("wb") as file:
            left = size
            while left > 0:
                left -= file.write(whole[: min(left, len(whole))])


def set_to_work(link: Program, config: LinkConfig, stop: Callable[[], bool]) -> Program:
    """Give a link its configuration and wait until it carries packets; one that cannot is ended.

    CannotError then: every trial would meet the same.
    """
    try:
        link.configure(config)
        link.wait_ready(LinkReady, LINK_READY_S, stop)
    except EngineError as error:
        link.close()
        raise as_user_error(error) from error
    except BaseException:
        link.close()
        raise
    return link


def bring_up(server: RunningServer, *, renewed: bool = False) -> None:
    """Start a server; ServerFailed for whatever its adapter or program does wrong."""
    try:
        server.start(renewed=renewed)
    except (Stopped, EngineError):
        raise
    except CannotError as error:
        raise ServerFailed(str(error)) from error
    except Exception as error:
        if isinstance(error, OSError) and (no_room := full(error, server.site.state)) is not None:
            raise no_room from error  # no fault of the adapter's, and every other server would meet it
        words = " ".join(str(error).split())
        raise ServerFailed(f"the adapter of {server.adapter.name} fails: {type(error).__name__}: {words}") from error


def start_client(client: str, place: OpenPlace, log: Path, cpus: frozenset[int] | None = None) -> EngineProgram:
    """Start a client at a place: the engine's load, or the driver that runs another program instead of it."""
    if client == DEFAULT_CLIENT:
        return place.start("load", log, cpus=cpus)
    driver = (sys.executable, "-P", "-m", "trifecta.implementations.clients.driver", client)
    return place.drive(driver, "load", log, cpus=cpus, name=f"client {client}")


@dataclass
class Session:
    """Raised by ``with``, taken down at its end. Everything it starts runs in the lab's namespaces."""

    engine: Path
    run: RunDirectory
    study: Study
    adapters: Mapping[str, ServerAdapter]
    stop: Callable[[], bool]
    link_changes: Mapping[str, Any] = field(default_factory=dict)
    probes: dict[str, MeasureSummary] = field(default_factory=dict)
    probed_at: dict[str, float] = field(default_factory=dict)
    servers: dict[ServerKey, RunningServer] = field(default_factory=dict)
    protocols: dict[ServerKey, list[str]] = field(default_factory=dict)
    """What each server is asked over: not all of them where a study has other settings over TCP than over QUIC."""
    client_shares: dict[float, CpuShare] = field(default_factory=dict)
    """The control groups of clients that have a share of a core only, by share."""
    start_ns: dict[ServerKey, int] = field(default_factory=dict)
    """What a start for a block costs: the quickest until now, for one that another program held up says little.

    Not known of a server that says when it is ready until it was renewed once: its first start is asked over every
    protocol, a renewal is not.
    """
    lingering: EngineProgram | None = None
    """The link of the last trial, which carries the end of its connections while the trial is judged and kept."""
    failed: dict[ServerKey, str] = field(default_factory=dict)
    """Servers that did not come up, with the reason: their cells cannot be measured, those of the others can."""

    def __enter__(self) -> Session:
        """Raise the lab and its certificates."""
        self.pins = pin_table()
        self._stack = ExitStack()
        # Where captured trials count, HTTP/3 alone would pay for it.
        self.qlogs = ServerLogs(self.run, wanted=self.study.capture and not self.study.gives_verdicts)
        try:
            self.lab = self._stack.enter_context(two_hosts())
            self.client, self.middle, self.server = (
                LocalPlace(host, self.engine)
                for host in (self.lab.host("client"), self.lab.middle(WIRE), self.lab.host("server"))
            )
            names = [f"{name}.lab" for name in self.adapters]
            self.certificates: Certificates = make_certificates(
                self.run.path / "pki", names, [SERVER_ADDRESS, SERVER_ADDRESS_6]
            )
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End servers and take the lab down."""
        for server in self.servers.values():
            server.close()
        for share in self.client_shares.values():
            share.close()
        try:
            self.qlogs.close()
        finally:
            self._stack.close()
            # What was served is made anew from the sizes in the study; large files need not lie in every run.
            shutil.rmtree(self.run.path / "site", ignore_errors=True)

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.run.path / "logs" / f"{name}.log"

    def start_servers(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Start every server that the cells need (again) and wait until each answers over every protocol.

        Those that do not come up are in ``failed``. ``more_sizes`` are served besides those of the study.
        """
        treatments = plan.treatments(self.study, cells)
        workloads = [plan.workload_for(self.study, one) for one in treatments]
        folder = self.run.path / "site"
        write_site(folder, {workload.response_bytes for workload in workloads} | {1, *more_sizes})
        for one in treatments:
            self._prepare(self._key(one), one.protocol, folder, versions)
        with self.link(PathSpec("setup"), 0):
            for key, server in self.servers.items():
                began = time.monotonic_ns()
                try:
                    self._start(server)  # one after the other: who cannot have a port is told apart from who has it
                    self._wait_ready(server)
                    if server.adapter.says_ready is None:
                        self.start_ns[key] = time.monotonic_ns() - began
                except ServerFailed as error:
                    self.fail(key, str(error))

    def _key(self, at: Levelled) -> ServerKey:
        """Which server answers a treatment."""
        workload = plan.workload_for(self.study, at).for_protocol(at.protocol)
        return at.server, options_for(workload)

    def _keys(self, cell: Cell) -> list[ServerKey]:
        """The servers of a cell: one, or more where arms differ in what they ask of it."""
        return list(dict.fromkeys(self._key(one) for one in plan.treatments_of(self.study, cell)))

    def _prepare(self, key: ServerKey, protocol: str, folder: Path, versions: Mapping[str, str]) -> None:
        """Make a server ready to be started, once."""
        asked = self.protocols.setdefault(key, [])
        if protocol not in asked:
            asked.append(protocol)
        if key in self.servers:
            return
        name, options = key
        number = len(self.servers)
        label = f"{name}-{number}"
        site = Site(
            folder=folder,
            certificates=self.certificates,
            address=SERVER_ADDRESS,
            port=FIRST_PORT + number,
            state=self.run.path / "logs" / label,
            qlog=self.qlogs.folder(label, name),
        )
        self.servers[key] = RunningServer(
            self.adapters[name],
            versions[name],
            site,
            options,
            self.server,
            log=self.log(label),
            cpus=self.pins["server"],
        )

    def fail(self, key: ServerKey, reason: str) -> None:
        """Give a server up: it is ended, so that it takes nothing from the others."""
        self.failed[key] = reason
        self.servers[key].close()

    def has_failed(self, cell: Cell) -> str | None:
        """Why the server of a cell is given up; None when it is not."""
        return next((self.failed[key] for key in self._keys(cell) if key in self.failed), None)

    def _start(self, server: RunningServer, *, renewed: bool = False) -> None:
        """Start a server; ServerFailed for whatever its adapter or program does wrong."""
        # Before it starts: the connections that a proxy opens now to the server behind it stay open over the trials.
        self.lab.use_congestion_control(server.options.congestion_control)
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

    def link(self, path: PathSpec, seed: int) -> EngineProgram:
        """Start the link for a path and wait until it carries packets."""
        self.free_wire()
        config = changed(link_config(path, seed), self.link_changes)
        return set_to_work(self.spawn_link(f"link {path.name}"), config, self.stop)

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

    def spawn_link(self, name: str = "") -> EngineProgram:
        """Start a link where links run; it waits for its configuration."""
        return self.middle.start("link", self.log("link"), cpus=self.pins["link"], name=name)

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise what stays up over the trials of these cells."""
        self.start_servers(cells, versions, more_sizes)

    @property
    def network(self) -> NetworkFacts:
        """Settings of the lab's kernel, for ``run.json``."""
        return self.lab.kernel.facts()

    def failures(self) -> list[tuple[str, str, str]]:
        """What is given up: factor, level, reason."""
        return [("server", name, reason) for (name, _), reason in self.failed.items()]

    def down(self, cell: Cell) -> str | None:
        """How the server of a cell ended, in words; None while it runs."""
        servers = (self.servers[key] for key in self._keys(cell))
        return next((server.describe_end() for server in servers if not server.running()), None)

    def stand_up(self, cell: Cell) -> bool:
        """Start the server of a cell again; False when it does not come up, and is given up."""
        for key in self._keys(cell):
            server = self.servers[key]
            if server.running():
                continue
            try:
                self.restart(server)
            except ServerFailed as error:
                self.fail(key, str(error))
                return False
        return True

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Start those servers of a cell anew for which that is cheap beside a block; False when one does not come up.

        What a start draws by chance is then drawn for every block, and is in the interval (Kalibera & Jones 2013).
        """
        for key in self._keys(cell):
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
        """The same for treatments whose packets take the same way."""
        return at.path

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the path of a treatment was not probed for so long."""
        last = self.probed_at.get(at.path)
        return last is None or time.monotonic() - last >= every_s

    def probe(self, at: Levelled, seed: int) -> MeasureSummary:
        """Measure what the path of a treatment does to packets."""
        return self.probe_path(self.study.paths[at.path], seed)

    def probe_of(self, at: Levelled) -> MeasureSummary | None:
        """What the last probe of a treatment's path found."""
        return self.probes.get(at.path)

    def probe_path(self, path: PathSpec, seed: int) -> MeasureSummary:
        """Measure what the path does to packets, from outside the link: delays, loss, rate, and at first size."""
        first = path.name not in self.probes
        config = measure_config(path, SERVER_ADDRESS, first=first)
        with self.link(path, seed):
            summary = measure_path((self.client, self.server), self.log("probe"), config, self.stop)
        if not first:
            summary.largest_payload_bytes = self.probes[path.name].largest_payload_bytes
        self.probes[path.name] = summary
        self.probed_at[path.name] = time.monotonic()
        return summary

    def _wait_ready(self, server: RunningServer) -> float:
        waited = 0.0
        for protocol in self.protocols[server.adapter.name, server.options]:
            limit = READY_MORE_S if waited else None
            waited += server.wait_ready(lambda protocol=protocol: self._ask(server, protocol), self.stop, limit)  # type: ignore[misc]
        return waited

    def _ask(self, server: RunningServer, protocol: str) -> str | None:
        """One real request over a protocol; None when it was answered rightly, else what went wrong."""
        size = min(int(path.name) for path in (server.site.folder / "bytes").iterdir())
        name = f"load ({server.adapter.name} over {protocol})"
        return ask(
            self.client.start("load", self.log("load"), cpus=self.pins["client"], name=name),
            (server.site.address, server.site.port, f"{server.adapter.name}.lab"),
            protocol,
            self.certificates,
            draft=self.run.path / ".tmp-ready.parquet",
            stop=self.stop,
            tls_version=server.options.tls_version,
            path=f"/bytes/{size}",
            body_bytes=size,
        )

"""One trial of requests: link and load, which are started ahead of it, and a server that stays."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkSummary
from trifecta.contract.load import ClientReady, LoadConfig, LoadSummary
from trifecta.design import tuning
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.model import RequestsWorkload, Trial
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import host_name
from trifecta.lab.balancer import Balancer
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram
from trifecta.lab.place import Program
from trifecta.lab.topology import Wire
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import ONLY, TrialCapture
from trifecta.workloads.load_configs import load_config
from trifecta.workloads.requests.limits import Limits
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.requests.start_cost import StartCosts
from trifecta.workloads.session import set_to_work
from trifecta.workloads.trial import (
    Details,
    Observed,
    StagedTrial,
    TrialRunner,
    beside_client,
    finish_link,
    last_words_ns,
    let_pass,
    read_samples,
    server_used,
)

# Round trips until nothing more is sent: QUIC's CONNECTION_CLOSE goes one way (RFC 9000, 10.2); TCP's FIN, the FIN of
# the other side and its acknowledgement (RFC 9293, 3.6) would be sent again into the next trial, while its link starts.
LAST_WORDS = {"h1": 1.5, "h2": 1.5, "h3": 0.5}
_LOAD_GRACE_S = 5.0  # beyond its own total timeout the load is taken for hung
_END_S = 2.0  # a program that said its last word and still runs is ended
_DRIVER_READY_S = 30.0  # Python and Arrow are loaded from a cold disk


@dataclass
class Programs:
    """The link and the load of a trial, started ahead of it: both wait for their configuration."""

    link: EngineProgram
    load: EngineProgram
    """The engine's load, or the driver of another client."""
    client: str
    wire: Wire
    """Where the link is."""

    @property
    def own(self) -> bool:
        """Whether the client is the engine's load."""
        return self.client == DEFAULT_CLIENT

    @property
    def role(self) -> str:
        """Under which name the load's resources are recorded."""
        return "client" if self.own else "driver"

    def wait_end(self, timeout_s: float) -> None:
        """Wait until both have ended by themselves."""
        self.load.wait_end(timeout_s)
        self.link.wait_end(timeout_s)

    def close(self) -> None:
        """End both."""
        self.load.close()
        self.link.close()


@dataclass(kw_only=True)
class _Requests(StagedTrial):
    """A trial of requests under way."""

    workload: RequestsWorkload
    server: RunningServer
    config: LoadConfig
    start_cpu_ns: int | None
    """CPU time of a start of the client without a request."""
    wire: Wire
    balancer: Balancer | None
    flows_before: dict[str, int]
    """What the load balancer had passed on before the trial."""
    programs: Programs = field(init=False)
    limits: Limits = field(init=False)
    lingers: bool = False
    """Whether the link has its say before the last packets have passed."""
    said: LinkSummary | None = None


class RequestsTrialRunner(TrialRunner[RequestsSession, _Requests]):
    """The programs of a trial end while it is judged, and those of the next wait already."""

    def __init__(self, session: RequestsSession) -> None:
        """Nothing is started yet."""
        super().__init__(session)
        self._ahead: Programs | None = None
        self._ending: list[Programs] = []
        self._start_costs = StartCosts(session)

    def start_ahead(self, trial: Trial) -> None:
        """Start the programs of the next trial, which likely has client and wire of this one; waiting costs no CPU."""
        self._start_ahead(trial.client, self._session.route(trial).wire)

    def _start_ahead(self, client: str, wire: Wire) -> None:
        if self._ahead is not None and (self._ahead.client, self._ahead.wire) != (client, wire):
            self._ahead.close()
            self._ahead = None
        if self._ahead is None:
            session = self._session
            link = session.spawn_link(session.lab, wire, "")
            self._ahead = Programs(link, session.spawn_client(client), client, wire)

    def _take(self, client: str, wire: Wire) -> Programs:
        """The programs started ahead, or new ones when they were not, or for another client or wire."""
        self._start_ahead(client, wire)
        programs, self._ahead = self._ahead, None
        assert programs is not None
        return programs

    def close(self) -> None:
        """End what was started ahead."""
        for programs in (*self._ending, *([self._ahead] if self._ahead else [])):
            programs.close()
        self._ahead = None
        self._ending = []

    def _prepare(self, trial: Trial) -> _Requests:
        session = self._session
        workload = session.workload(trial).for_protocol(trial.protocol)
        server = session.server_for(trial)
        session.lab.use_tcp(workload.congestion_control, tuning.kernel(workload))
        samples = session.run.draft("samples", trial.trial, ".parquet")
        capture = TrialCapture(session.run, session.study, trial, workload)
        config = self._load_config(trial, workload, server, samples=samples, capture=capture)
        start_cpu_ns = self._start_costs.cpu_ns(trial.client, config)
        route = session.route(trial)
        balancer = session.balancers[route] if route.balanced else None
        return _Requests(
            trial=trial,
            path=session.path(trial),
            samples=samples,
            capture=capture,
            details=Details(probe=session.probe_of(trial)),
            workload=workload,
            server=server,
            config=config,
            start_cpu_ns=start_cpu_ns,
            wire=route.wire,
            balancer=balancer,
            flows_before={} if balancer is None else balancer.flows(),
        )

    def _start(self, staged: _Requests, stack: ExitStack) -> None:
        session, trial = self._session, staged.trial
        staged.programs = programs = self._take(trial.client, staged.wire)
        stack.callback(self._end, programs)
        for _ in range(self._faults.client_competitors):
            stack.callback(self._compete().close)
        config = session.link_config(staged.path, trial.seed, capture=staged.capture)
        config = staged.capture.lingering(config, last_words_ns(staged.path, LAST_WORDS[trial.protocol]))
        staged.lingers = bool(config.linger_ns)
        session.free_wire()
        set_to_work(programs.link, config, session.stop)
        self._wait_loaded(programs)
        self._see_off_ending()

    def _observed(self, staged: _Requests) -> Observed:
        # The process of another client is there only later; what drives it is not what is measured.
        processes = {
            "server": staged.server.pid,
            staged.programs.role: staged.programs.load.pid,
            "link": staged.programs.link.pid,
        }
        lab = self._session.lab
        counted = [lab.host("client"), lab.middle(staged.wire), lab.host("server")]
        counted += [staged.balancer.host] if staged.balancer is not None else []
        return Observed(processes | staged.server.backend_pids, counted)

    def _about_to_work(self, staged: _Requests) -> None:
        staged.limits = Limits(self._session.client_share(staged.workload.client_cpu), staged.server.cpu_share)

    def _work(self, staged: _Requests, resources: ResourceObserver) -> LoadSummary:
        load, own, config = staged.programs.load, staged.programs.own, staged.config
        if own:
            staged.limits.add_client(load.pid)
        load.configure(config)
        if not own:
            pid = load.wait_ready(ClientReady, _DRIVER_READY_S, self._session.stop).pid
            staged.limits.add_client(pid)
            resources.follow("client", pid)
        timeout_s = config.total_timeout_ns / 1e9 + _LOAD_GRACE_S
        summary = load.wait_summary(LoadSummary, timeout_s, self._session.stop, resources.sample)
        load.get(staged.samples)
        return summary

    def _codes_for_all(self, staged: _Requests) -> Collection[int]:
        return (EXIT_CANNOT, EXIT_BAD_INPUT, EXIT_UNSUPPORTED) if staged.programs.own else (EXIT_CANNOT,)

    def _blame(self, staged: _Requests, error: EngineError) -> str:
        return f"client {error.message}" if staged.programs.own else error.message.removeprefix("error: ")

    def _after_client(self, staged: _Requests) -> None:
        if staged.lingers:
            self._finish_link(staged)

    def _own_cpu_ns(self, staged: _Requests, resources: ResourceObserver) -> int:
        """A client that was driven is gone by now; its last reading lacks its end, its summary has the whole."""
        latest, load = resources.latest_cpu_ns(), staged.details.load
        if load is not None and load.client is not None:
            latest["client"] = load.cpu_ns
        return time.process_time_ns() + sum(latest.values())

    def _condense(self, staged: _Requests) -> Aggregate | None:
        if not staged.server.running():
            staged.errors.append(staged.server.describe_end())
        return read_samples(staged.samples, staged.details.load, staged.errors, staged.workload.duration_ns)

    def _end_links(self, staged: _Requests) -> None:
        if not staged.lingers:
            let_pass(staged.path, since_ns=staged.ended_ns, round_trips=LAST_WORDS[staged.trial.protocol])
            self._finish_link(staged)
        staged.capture.finish({ONLY: staged.said}, staged.errors)
        self._let_end(staged)

    def _finish_link(self, staged: _Requests) -> None:
        staged.details.link = staged.said = finish_link(staged.programs.link, staged.errors)

    def _describe(
        self, staged: _Requests, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        details = staged.details
        details.server = server_used(staged.server, self._session.lab.host("server"), resources)
        staged.limits.record(details.load, details.server)
        if staged.balancer is not None:
            flows = staged.balancer.flows()
            details.server["load_balancer"] = {name: flows[name] - staged.flows_before[name] for name in flows}
        if details.load is not None:
            details.load.start_cpu_ns = staged.start_cpu_ns
            beside_client(details.load, resources.run_delay_ns("client"), wall_ns)
        if staged.said is not None:
            staged.said.run_delay_ns = resources.run_delay_ns("link")
        if resources.run_delay_ns("server") is not None:
            details.server.setdefault("run_delay_ns", resources.run_delay_ns("server"))
            details.server.setdefault("wall_ns", wall_ns)

    def _files(self, staged: _Requests, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        return TrialFiles(
            samples=staged.samples if aggregate is not None else None,
            link_summary=staged.details.link,
            link_logs=staged.capture.logs,
            captures=staged.capture.captures,
            resources=resources.rows,
        )

    def _see_off_ending(self) -> None:
        """Let the programs of the trial before be gone before a packet is sent.

        The link's memory and sockets are given back on the core that the next link has. A kernel that is built without
        preemption lets nobody in meanwhile, whatever its priority: packets left up to 3 ms late.
        """
        for programs in self._ending:
            programs.wait_end(_END_S)
            programs.close()
        self._ending = []

    def _let_end(self, staged: _Requests) -> None:
        """Let programs that have said their last word end by themselves, while the trial is judged and kept.

        The kernel takes 12 ms to close the link's sockets: nobody has to wait for that but the next load.
        """
        if staged.said is not None and staged.details.load is not None:
            self._ending.append(staged.programs)
            self._session.lingering = staged.programs.link if staged.lingers else None

    def _end(self, programs: Programs) -> None:
        """End the programs of a trial, unless they are ending by themselves."""
        if programs not in self._ending:
            programs.close()

    def _load_config(
        self, trial: Trial, workload: RequestsWorkload, server: RunningServer, *, samples: Path, capture: TrialCapture
    ) -> LoadConfig:
        session = self._session
        session.qlogs.begin(trial.trial, time.time_ns())  # what servers write from now on is of this trial
        config = load_config(
            trial,
            workload,
            session.path(trial),
            address=session.route(trial).towards,
            port=server.site.port,
            server_name=host_name(server.adapter.name),
            certificates=session.certificates,
            samples_file=samples,
            keylog_file=capture.keylog(),
            qlog_dir=capture.qlog_dir,
        )
        return changed(config, self._faults.load_changes(trial.arm))

    def _wait_loaded(self, programs: Programs) -> None:
        """What drives another client is loaded before the trial is measured; the engine's load is so at once."""
        if not programs.own:
            with suppress(EngineError):  # it says so again when it is asked to work
                programs.load.wait_loaded(_DRIVER_READY_S, self._session.stop)

    def _compete(self) -> Program:
        """A program on the client's CPU that only counts."""
        session = self._session
        spin = ["sh", "-c", "while :; do :; done"]
        return session.client.run(spin, session.log("competitor"), cpus=session.pins["client"])

"""One trial of requests between hosts: the load is started ahead of it on one, the origin stays on the other.

So is a link on the host in the middle, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkSummary
from trifecta.contract.load import LoadConfig, LoadSummary
from trifecta.contract.stored import Server
from trifecta.design.errors import CannotError
from trifecta.design.model import PathSpec, RequestsWorkload, Trial
from trifecta.implementations.server import host_name
from trifecta.lab.engine import EngineError, EngineProgram
from trifecta.lab.ssh.connection import HostLost
from trifecta.observers.machines import MachinesObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.hosts.counters import (
    LOAD_GRACE_S,
    NOTHING,
    CountedTrialRunner,
    HostsTrial,
    growth,
    program_usage,
)
from trifecta.workloads.hosts.emulator_host import EmulatorHost
from trifecta.workloads.hosts.server import ProcessUsage, RemoteOrigin
from trifecta.workloads.hosts.session import HostsSession
from trifecta.workloads.hosts.supported import SERVER
from trifecta.workloads.load_configs import load_config
from trifecta.workloads.requests.trial import LAST_WORDS
from trifecta.workloads.trial import Details, finish_link, let_pass, read_samples

_SLOWEST_BITS_PER_S = 1_000_000  # of networks as they are: how long a trial may take is reckoned with it, nothing else


@dataclass(kw_only=True)
class _Between(HostsTrial):
    """A trial between hosts under way."""

    workload: RequestsWorkload
    server: RemoteOrigin
    config: LoadConfig
    load: EngineProgram = field(init=False)
    link: EngineProgram | None = None
    """On the host in the middle, once it carries packets."""
    said: LinkSummary | None = None
    before: ProcessUsage = NOTHING
    after: ProcessUsage = NOTHING
    link_before: ProcessUsage = NOTHING
    link_after: ProcessUsage = NOTHING


class HostsTrialRunner(CountedTrialRunner[HostsSession, _Between]):
    """A load and a link are started ahead of the trial that needs them."""

    def __init__(self, session: HostsSession) -> None:
        """Nothing is started yet."""
        super().__init__(session)
        self._ahead: EngineProgram | None = None
        self._link_ahead: EngineProgram | None = None

    def start_ahead(self, trial: Trial) -> None:
        """Start client and link of the next trial, unless their host is lost; waiting costs no CPU."""
        session = self._session
        with suppress(HostLost):  # it was lost just now: the trial that needs it says so
            if self._ahead is None and session.client.lost is None:
                self._ahead = session.spawn_client()
            if self._link_ahead is None and session.middle is not None and session.middle.machine.lost is None:
                self._link_ahead = session.middle.spawn()

    def _take(self) -> EngineProgram:
        """The client that was started ahead, or a new one."""
        ahead, self._ahead = self._ahead, None
        return _living(ahead, self._session.spawn_client)

    def _take_link(self, middle: EmulatorHost) -> EngineProgram:
        """The link that was started ahead, or a new one."""
        ahead, self._link_ahead = self._link_ahead, None
        return _living(ahead, middle.spawn)

    def close(self) -> None:
        """End what was started ahead."""
        for program in (self._ahead, self._link_ahead):
            if program is not None:
                program.close()
        self._ahead = self._link_ahead = None

    def _prepare(self, trial: Trial) -> _Between:
        session = self._session
        workload = session.workload(trial).for_protocol(trial.protocol)
        server = session.server_for(trial)
        details = Details(probe=session.probe_of(trial))
        path = self._as_probed(session.path(trial), details)
        samples = session.run.draft("samples", trial.trial, ".parquet")
        config = load_config(
            trial,
            workload,
            replace(path, rate_bits_per_s=min(path.rate_bits_per_s or _SLOWEST_BITS_PER_S, _SLOWEST_BITS_PER_S)),
            address=session.address,
            port=server.site.port,
            server_name=host_name(SERVER),
            certificates=session.certificates,
            samples_file=samples,
        )
        return _Between(
            trial=trial,
            path=path,
            samples=samples,
            capture=TrialCapture(session.run, session.study, trial, workload),
            details=details,
            workload=workload,
            server=server,
            config=changed(config, self._faults.load_changes(trial.arm)),
        )

    def _as_probed(self, path: PathSpec, details: Details) -> PathSpec:
        """The path with the round trip that the probe found, for how long to wait; nothing is asked of it."""
        rtt_ns = None if details.probe is None else details.probe.rtt_ns.p50
        return path if rtt_ns is None else replace(path, rtt_ns=rtt_ns)

    def _start(self, staged: _Between, stack: ExitStack) -> None:
        try:
            staged.load = self._take()
            stack.callback(staged.load.close)
            self._start_link(staged, stack)
        except CannotError as error:  # since it was looked at
            if self._session.lost is None and not isinstance(error, HostLost):
                raise
            staged.errors.append(self._session.lost or str(error))

    def _start_link(self, staged: _Between, stack: ExitStack) -> None:
        middle = self._session.middle
        if middle is None:
            return
        link = self._take_link(middle)
        stack.callback(link.close)
        middle.set_to_work(link, staged.path, staged.trial.seed)
        staged.link = link

    def _about_to_work(self, staged: _Between) -> None:
        staged.counters = MachinesObserver(self._session.ends)
        self._read(staged, staged.counters.begin)
        staged.link_before = self._used_by_link(staged)
        staged.before = staged.server.used()

    def _work(self, staged: _Between, resources: ResourceObserver) -> LoadSummary:
        if staged.errors:
            raise EngineError("client", None, "was not started")
        staged.load.configure(staged.config)
        timeout_s = staged.config.total_timeout_ns / 1e9 + LOAD_GRACE_S
        summary = staged.load.wait_summary(LoadSummary, timeout_s, self._session.stop, lambda: self._look(staged))
        staged.after = staged.server.used()
        staged.link_after = self._used_by_link(staged)
        staged.load.get(staged.samples)
        return summary

    def _used_by_link(self, staged: _Between) -> ProcessUsage:
        """What the link has used so far."""
        middle = self._session.middle
        return NOTHING if middle is None or staged.link is None else program_usage(middle.machine, staged.link)

    def _look(self, staged: _Between) -> None:
        """Ten times a second: a trial that lost a host, or its link, need not wait for all of its timeouts."""
        if (lost := self._session.lost) is not None:
            raise EngineError("client", None, f"had no more to do: {lost}")
        if staged.link is not None and not staged.link.running():
            raise EngineError("client", None, "had no more to do: the link has ended")

    def _condense(self, staged: _Between) -> Aggregate | None:
        if not staged.server.running():
            staged.errors.append(staged.server.describe_end())
        return read_samples(staged.samples, staged.details.load, staged.errors, staged.workload.duration_ns)

    def _end_links(self, staged: _Between) -> None:
        if staged.details.load is not None:
            let_pass(staged.path, since_ns=staged.ended_ns, round_trips=LAST_WORDS[staged.trial.protocol])
        if staged.link is not None:
            staged.details.link = staged.said = finish_link(staged.link, staged.errors)

    def _describe(
        self, staged: _Between, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        server: Server = {**staged.server.facts(), "cpu_ns": growth(staged.before.cpu_ns, staged.after.cpu_ns)}
        waited = growth(staged.before.run_delay_ns, staged.after.run_delay_ns)
        if waited is not None:
            server |= {"run_delay_ns": waited, "wall_ns": wall_ns}
        staged.details.server = server
        if staged.said is not None:
            staged.said.run_delay_ns = growth(staged.link_before.run_delay_ns, staged.link_after.run_delay_ns)

    def _files(self, staged: _Between, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        return TrialFiles(samples=staged.samples if aggregate is not None else None)


def _living(ahead: EngineProgram | None, spawn: Callable[[], EngineProgram]) -> EngineProgram:
    """A program that was started ahead; a new one where there is none, or its connection has ended since."""
    if ahead is not None and ahead.running():
        return ahead
    if ahead is not None:
        ahead.close()
    return spawn()

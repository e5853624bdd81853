"""One trial of services on hosts: all are started where they belong, cycles run, and each host is asked after."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from trifecta.contract.codec import changed
from trifecta.contract.load import LoadConfig, LoadSummary
from trifecta.contract.origin import OriginReady, OriginSummary
from trifecta.contract.stored import Server, Service, ServiceSummary
from trifecta.design import services
from trifecta.design.graph import Graph
from trifecta.design.model import ServicesWorkload, Trial
from trifecta.lab.engine import EngineError, EngineProgram, as_user_error
from trifecta.lab.ssh.connection import HostLost
from trifecta.observers.machines import MachinesObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.hosts.counters import (
    FOR_ALL,
    LOAD_GRACE_S,
    NOTHING,
    CountedTrialRunner,
    HostsTrial,
    growth,
    program_usage,
)
from trifecta.workloads.hosts.server import ProcessUsage
from trifecta.workloads.hosts.services_configs import name_hosts, placed_client, placed_origin
from trifecta.workloads.hosts.services_session import PlacedSession
from trifecta.workloads.requests.trial import LAST_WORDS
from trifecta.workloads.services.configs import client_config, origin_config
from trifecta.workloads.services.evidence import cycles
from trifecta.workloads.trial import Details, let_pass, read_samples

_READY_S = 15.0
_FINISH_S = 5.0


@dataclass(kw_only=True)
class _Placed(HostsTrial):
    """A trial of services on hosts under way."""

    workload: ServicesWorkload
    graph: Graph
    machines: tuple[str, ...]
    spans: Path
    client: EngineProgram | None = None
    services: dict[str, EngineProgram] = field(default_factory=dict)
    """Without the client."""
    ready: bool = False
    """Whether all of them came up."""
    before: dict[str, ProcessUsage] = field(default_factory=dict)
    after: dict[str, ProcessUsage] = field(default_factory=dict)
    summaries: dict[str, OriginSummary] = field(default_factory=dict)
    """The last words of each service that had some."""
    ends: dict[str, str] = field(default_factory=dict)
    """How services died."""


class PlacedTrialRunner(CountedTrialRunner[PlacedSession, _Placed]):
    """Every trial has new services."""

    def _prepare(self, trial: Trial) -> _Placed:
        session = self._session
        workload = session.workload(trial)
        return _Placed(
            trial=trial,
            path=replace(session.path(trial), rtt_ns=session.longest_rtt_ns(trial)),  # for how long to wait, no more
            samples=session.run.draft("samples", trial.trial, ".parquet"),
            capture=TrialCapture(session.run, session.study, trial, workload),
            details=Details(probe=session.probe_of(trial)),
            workload=workload,
            graph=session.graph(trial),
            machines=session.keys(trial),
            spans=session.run.draft("spans", trial.trial, ".parquet"),
        )

    def _start(self, staged: _Placed, stack: ExitStack) -> None:
        """What does not come up because its host is lost, or because it was killed, costs this trial alone."""
        try:
            self._start_all(staged, stack)
            staged.ready = True
        except HostLost as error:  # since it was looked at
            staged.errors.append(self._session.lost(staged.machines) or str(error))
        except EngineError as error:
            if error.code in FOR_ALL:
                raise as_user_error(error) from error
            staged.errors.append(f"{error.role} did not come up: {error.message}")

    def _start_all(self, staged: _Placed, stack: ExitStack) -> None:
        """Services are told what to do the last first."""
        session, trial, graph = self._session, staged.trial, staged.graph
        protocols = services.protocols_of(graph, trial.protocol, staged.workload.inside)
        staged.client = stack.enter_context(session.spawn(graph, graph.client))
        behind = list(reversed(graph.services[1:]))
        for name in behind:
            staged.services[name] = stack.enter_context(session.spawn(graph, name))
        for name in behind:
            config = origin_config(
                graph,
                name,
                staged.workload,
                protocols,
                connection=trial.connection,
                address=session.addresses[name],
                certificates=session.certificates,
            )
            config = changed(placed_origin(config, session.addresses), self._faults.service_changes(name))
            staged.services[name].configure(config)
        for program in staged.services.values():
            program.wait_ready(OriginReady, _READY_S, session.stop)

    def _about_to_work(self, staged: _Placed) -> None:
        if not staged.ready:
            return
        session = self._session
        staged.counters = MachinesObserver({session.names[at]: session.machines[at] for at in staged.machines})
        self._read(staged, staged.counters.begin)
        staged.before = self._used(staged)

    def _used(self, staged: _Placed) -> dict[str, ProcessUsage]:
        """What each service has used so far."""
        machines, at = self._session.machines, self._session.at
        return {
            name: program_usage(machines[at(staged.graph, name)], program) for name, program in staged.services.items()
        }

    def _work(self, staged: _Placed, resources: ResourceObserver) -> LoadSummary:
        if staged.errors or staged.client is None:
            raise EngineError("client", None, "was not started")
        config = self._client_config(staged)

        def look() -> None:
            """Ten times a second: a trial with a host that is lost need not wait for all of its timeouts."""
            if (lost := self._session.lost(staged.machines)) is not None:
                raise EngineError("client", None, f"had no more to do: {lost}")

        staged.client.configure(config)
        timeout_s = config.total_timeout_ns / 1e9 + LOAD_GRACE_S
        summary = staged.client.wait_summary(LoadSummary, timeout_s, self._session.stop, look)
        staged.after = self._used(staged)
        for file in (staged.samples, staged.spans):
            staged.client.get(file)
        return summary

    def _client_config(self, staged: _Placed) -> LoadConfig:
        session, messages = self._session, staged.workload.messages
        config = client_config(
            staged.trial,
            staged.graph,
            staged.workload,
            staged.path,
            certificates=session.certificates,
            samples_file=staged.samples,
            spans_file=staged.spans,
            messages=None if messages is None else Path(messages),
        )
        config = placed_client(config, staged.graph, staged.workload, session.addresses[staged.graph.entry.to])
        return changed(config, self._faults.load_changes(staged.trial.arm))

    def _condense(self, staged: _Placed) -> Aggregate | None:
        """The services end before the samples are read: what became of each is part of the trial."""
        if staged.details.load is not None:
            let_pass(staged.path, since_ns=staged.ended_ns, round_trips=LAST_WORDS[staged.trial.protocol])
        if staged.ready:
            for name, program in staged.services.items():
                self._finish(staged, name, program)
        aggregate = read_samples(staged.samples, staged.details.load, staged.errors, staged.workload.duration_ns)
        if aggregate is None or not staged.spans.exists():
            staged.spans.unlink(missing_ok=True)  # of a client that died they are not whole
        else:
            name_hosts(staged.spans, {name: self._session.at(staged.graph, name) for name in staged.graph.services})
        return aggregate

    def _finish(self, staged: _Placed, name: str, program: EngineProgram) -> None:
        """Have a service end; one that died is an error of the trial."""
        try:
            if program.running():
                staged.summaries[name] = program.finish(OriginSummary, _FINISH_S)
            else:
                staged.summaries[name] = program.wait_summary(OriginSummary, _FINISH_S)
        except EngineError as error:
            staged.ends[name] = error.message
            staged.errors.append(f"service {name} died: {error.message}")

    def _describe(
        self, staged: _Placed, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        server = self._server(staged, wall_ns)
        if aggregate is not None and staged.spans.exists():
            server["cycles"] = cycles(staged.spans, staged.graph)
        staged.details.server = server

    def _server(self, staged: _Placed, wall_ns: int) -> Server:
        """``server_json``: every service by name, and the sums that a server of another workload has."""
        workload, graph = staged.workload, staged.graph
        by_name = {name: self._service(staged, name, wall_ns) for name in graph.services}
        every = [by_name[name]["cpu_ns"] for name in graph.services[1:]]
        known = [cpu for cpu in every if cpu is not None]
        first = staged.summaries.get(graph.entry.to)
        control = given = workload.congestion_control
        nodelay = workload.tcp_nodelay
        if first is not None:  # as its kernel tells it, where there was TCP
            given = first.tcp_congestion_control or control
            nodelay = nodelay if first.tcp_nodelay is None else first.tcp_nodelay
        return {
            "server": staged.trial.server,
            "proxy": False,
            "cpu_ns": sum(known) if len(known) == len(every) else None,
            "congestion_control": {"tcp": given, "quic": control},
            "tcp_nodelay": nodelay,
            "services": by_name,
        }

    def _service(self, staged: _Placed, name: str, wall_ns: int) -> Service:
        session, graph, load = self._session, staged.graph, staged.details.load
        protocols = services.protocols_of(graph, staged.trial.protocol, staged.workload.inside)
        facts: Service = {
            "host": session.at(graph, name),
            "place": staged.workload.place,
            "client": name == graph.client,
            "cpu_ns": None,
            "peak_rss_bytes": None,
            "asked": {callee: protocol for (caller, callee), protocol in protocols.items() if caller == name},
        }
        if name == graph.client:
            if load is not None:  # by its own word: nobody watched it
                facts["cpu_ns"], facts["peak_rss_bytes"] = load.cpu_ns, load.max_rss_bytes
            return facts
        summary, ended = staged.summaries.get(name), staged.ends.get(name)
        if not staged.ready:
            ended = "it was ended, since not all services came up"
        before, after = staged.before.get(name, NOTHING), staged.after.get(name, NOTHING)
        facts["cpu_ns"] = growth(before.cpu_ns, after.cpu_ns)
        waited = growth(before.run_delay_ns, after.run_delay_ns)
        if waited is not None:
            facts["run_delay_ns"], facts["wall_ns"] = waited, wall_ns
        facts["peak_rss_bytes"] = None if summary is None else summary.max_rss_bytes
        facts["protocols_spoken"] = {} if summary is None else summary.spoken()
        facts["summary"] = cast(ServiceSummary | None, summary)  # becomes its document when the trial is kept
        facts["running"], facts["ended"] = ended is None, ended
        self._add_probe(facts, graph, name)
        return facts

    def _add_probe(self, facts: Service, graph: Graph, name: str) -> None:
        """What the probe found between the host of a service and that of its first caller, where they are two."""
        callers = (self._session.at(graph, caller) for caller, callee in graph.pairs if callee == name)
        probe = self._session.found.get((next(callers), facts["host"]))
        if probe is not None:
            facts["probed_rtt_ns"] = probe.rtt_ns.p50
            facts["clock_offset_ns"], facts["clock_bound_ns"] = probe.clock_offset_ns, probe.clock_bound_ns

    def _files(self, staged: _Placed, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        is_complete = aggregate is not None
        return TrialFiles(
            samples=staged.samples if is_complete else None,
            spans=staged.spans if is_complete and staged.spans.exists() else None,
        )

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
    used,
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

    def _start(self, one: _Placed, stack: ExitStack) -> None:
        """What does not come up because its host is lost, or because it was killed, costs this trial alone."""
        try:
            self._start_all(one, stack)
            one.ready = True
        except HostLost as error:  # since it was looked at
            one.errors.append(self._session.lost(one.machines) or str(error))
        except EngineError as error:
            if error.code in FOR_ALL:
                raise as_user_error(error) from error
            one.errors.append(f"{error.role} did not come up: {error.message}")

    def _start_all(self, one: _Placed, stack: ExitStack) -> None:
        """Services are told what to do the last first."""
        session, trial, graph = self._session, one.trial, one.graph
        protocols = services.protocols_of(graph, trial.protocol, one.workload.inside)
        one.client = stack.enter_context(session.spawn(graph, graph.client))
        behind = list(reversed(graph.services[1:]))
        for name in behind:
            one.services[name] = stack.enter_context(session.spawn(graph, name))
        for name in behind:
            config = origin_config(
                graph,
                name,
                one.workload,
                protocols,
                connection=trial.connection,
                address=session.addresses[name],
                certificates=session.certificates,
            )
            config = changed(placed_origin(config, session.addresses), self._faults.service_changes(name))
            one.services[name].configure(config)
        for program in one.services.values():
            program.wait_ready(OriginReady, _READY_S, session.stop)

    def _about_to_work(self, one: _Placed) -> None:
        if not one.ready:
            return
        session = self._session
        one.counters = MachinesObserver({session.names[at]: session.machines[at] for at in one.machines})
        self._read(one, one.counters.begin)
        one.before = self._used(one)

    def _used(self, one: _Placed) -> dict[str, ProcessUsage]:
        """What each service has used so far."""
        machines, at = self._session.machines, self._session.at
        return {name: used(machines[at(one.graph, name)], program) for name, program in one.services.items()}

    def _work(self, one: _Placed, resources: ResourceObserver) -> LoadSummary:
        if one.errors or one.client is None:
            raise EngineError("client", None, "was not started")
        config = self._client_config(one)

        def look() -> None:
            """Ten times a second: a trial with a host that is lost need not wait for all of its timeouts."""
            if (lost := self._session.lost(one.machines)) is not None:
                raise EngineError("client", None, f"had no more to do: {lost}")

        one.client.configure(config)
        timeout_s = config.total_timeout_ns / 1e9 + LOAD_GRACE_S
        summary = one.client.wait_summary(LoadSummary, timeout_s, self._session.stop, look)
        one.after = self._used(one)
        for file in (one.samples, one.spans):
            one.client.get(file)
        return summary

    def _client_config(self, one: _Placed) -> LoadConfig:
        session, messages = self._session, one.workload.messages
        config = client_config(
            one.trial,
            one.graph,
            one.workload,
            one.path,
            certificates=session.certificates,
            samples_file=one.samples,
            spans_file=one.spans,
            messages=None if messages is None else Path(messages),
        )
        config = placed_client(config, one.graph, one.workload, session.addresses[one.graph.entry.to])
        return changed(config, self._faults.load_changes(one.trial.arm))

    def _condense(self, one: _Placed) -> Aggregate | None:
        """The services end before the samples are read: what became of each is part of the trial."""
        if one.details.load is not None:
            let_pass(one.path, since_ns=one.ended_ns, round_trips=LAST_WORDS[one.trial.protocol])
        if one.ready:
            for name, program in one.services.items():
                self._finish(one, name, program)
        found = read_samples(one.samples, one.details.load, one.errors, one.workload.duration_ns)
        if found is None or not one.spans.exists():
            one.spans.unlink(missing_ok=True)  # of a client that died they are not whole
        else:
            name_hosts(one.spans, {name: self._session.at(one.graph, name) for name in one.graph.services})
        return found

    def _finish(self, one: _Placed, name: str, program: EngineProgram) -> None:
        """Have a service end; one that died is an error of the trial."""
        try:
            if program.running():
                one.summaries[name] = program.finish(OriginSummary, _FINISH_S)
            else:
                one.summaries[name] = program.wait_summary(OriginSummary, _FINISH_S)
        except EngineError as error:
            one.ends[name] = error.message
            one.errors.append(f"service {name} died: {error.message}")

    def _describe(self, one: _Placed, found: Aggregate | None, resources: ResourceObserver, *, wall_ns: int) -> None:
        server = self._server(one, wall_ns)
        if found is not None and one.spans.exists():
            server["cycles"] = cycles(one.spans, one.graph)
        one.details.server = server

    def _server(self, one: _Placed, wall_ns: int) -> Server:
        """``server_json``: every service by name, and the sums that a server of another workload has."""
        workload, graph = one.workload, one.graph
        by_name = {name: self._service(one, name, wall_ns) for name in graph.services}
        every = [by_name[name]["cpu_ns"] for name in graph.services[1:]]
        known = [cpu for cpu in every if cpu is not None]
        first = one.summaries.get(graph.entry.to)
        control = given = workload.congestion_control
        nodelay = workload.tcp_nodelay
        if first is not None:  # as its kernel tells it, where there was TCP
            given = first.tcp_congestion_control or control
            nodelay = nodelay if first.tcp_nodelay is None else first.tcp_nodelay
        return {
            "server": one.trial.server,
            "proxy": False,
            "cpu_ns": sum(known) if len(known) == len(every) else None,
            "congestion_control": {"tcp": given, "quic": control},
            "tcp_nodelay": nodelay,
            "services": by_name,
        }

    def _service(self, one: _Placed, name: str, wall_ns: int) -> Service:
        session, graph, load = self._session, one.graph, one.details.load
        protocols = services.protocols_of(graph, one.trial.protocol, one.workload.inside)
        facts: Service = {
            "host": session.at(graph, name),
            "place": one.workload.place,
            "client": name == graph.client,
            "cpu_ns": None,
            "peak_rss_bytes": None,
            "asked": {callee: protocol for (caller, callee), protocol in protocols.items() if caller == name},
        }
        if name == graph.client:
            if load is not None:  # by its own word: nobody watched it
                facts["cpu_ns"], facts["peak_rss_bytes"] = load.cpu_ns, load.max_rss_bytes
            return facts
        summary, ended = one.summaries.get(name), one.ends.get(name)
        if not one.ready:
            ended = "it was ended, since not all services came up"
        before, after = one.before.get(name, NOTHING), one.after.get(name, NOTHING)
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

    def _files(self, one: _Placed, found: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        whole = found is not None
        return TrialFiles(
            samples=one.samples if whole else None,
            spans=one.spans if whole and one.spans.exists() else None,
        )

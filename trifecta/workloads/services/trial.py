"""One trial of services: all of them are started, cycles run through them, everything that was seen is gathered."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from trifecta.contract.codec import changed
from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.load import LoadConfig, LoadSummary
from trifecta.contract.origin import OriginReady, OriginSummary
from trifecta.contract.services import ProgramConfig, ServicesLoadConfig, ServicesSummary
from trifecta.contract.stored import Server, Service, ServiceSummary
from trifecta.design import services
from trifecta.design.graph import Graph
from trifecta.design.model import ServicesWorkload, Trial
from trifecta.implementations.services import rows
from trifecta.implementations.services.program import ServicesProgram
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram, as_user_error
from trifecta.lab.topology import Wire
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.services.clients import joined, work_together
from trifecta.workloads.services.configs import client_config, for_client, for_service, origin_config, program_config
from trifecta.workloads.services.evidence import cycles
from trifecta.workloads.services.places import Place
from trifecta.workloads.services.session import ServicesSession
from trifecta.workloads.session import set_to_work
from trifecta.workloads.trial import (
    Details,
    Observed,
    StagedTrial,
    TrialRunner,
    beside_client,
    beside_link,
    finish_link,
    let_pass,
    read_samples,
)

_READY_S = 15.0
_LOAD_GRACE_S = 5.0
_FINISH_S = 5.0


@dataclass(kw_only=True)
class _StagedServicesTrial(StagedTrial):
    """A trial of services under way."""

    workload: ServicesWorkload
    graph: Graph
    place: Place
    spans: Path
    program: ServicesProgram | None
    """That is not the engine's."""
    clients: list[EngineProgram] = field(default_factory=list)
    """One for all clients, or one for each."""
    services: dict[str, EngineProgram] = field(default_factory=dict)
    """Without the client."""
    links: dict[Wire, EngineProgram] = field(default_factory=dict)
    summaries: dict[str, OriginSummary | ServicesSummary | None] = field(default_factory=dict)
    """The last words of each service."""
    ends: dict[str, str | None] = field(default_factory=dict)
    """How each service died; None for one that did not."""
    said: dict[str, LinkSummary | None] = field(default_factory=dict)
    """The last words of the link of each wire."""

    @property
    def programs_by_name(self) -> dict[str, list[EngineProgram]]:
        """The clients and the services by name."""
        return {self.graph.client: self.clients, **{name: [program] for name, program in self.services.items()}}

    def run_delay_ns(self, name: str, resources: ResourceObserver) -> int | None:
        """How long a service waited for a core; of several clients each, on average."""
        delay_ns = resources.run_delay_ns(name)
        return delay_ns if delay_ns is None else delay_ns // len(self.programs_by_name[name])


class ServicesTrialRunner(TrialRunner[ServicesSession, _StagedServicesTrial]):
    """Every trial has new services, so that none sees another's past.

    Nothing is started ahead: an idle service would hold memory that is not its own trial's.
    """

    def _prepare(self, trial: Trial) -> _StagedServicesTrial:
        session = self._session
        workload, place = session.workload(trial), session.place(trial)
        place.topology.use_congestion_control(workload.congestion_control)
        return _StagedServicesTrial(
            trial=trial,
            path=session.path(trial),
            samples=session.run.draft("samples", trial.trial, ".parquet"),
            capture=TrialCapture(session.run, session.study, trial, workload),
            details=Details(probe=session.probe_of(trial)),
            workload=workload,
            graph=session.graph(trial),
            place=place,
            spans=session.run.draft("spans", trial.trial, ".parquet"),
            program=session.program(trial),
        )

    def _start(self, staged: _StagedServicesTrial, stack: ExitStack) -> None:
        """Services are told what to do the last first."""
        session, trial, graph, place = self._session, staged.trial, staged.graph, staged.place
        place.track_connections(staged.workload.conntrack)
        protocols = services.protocols_of(graph, trial.protocol, staged.workload.inside)
        command = None if staged.program is None else staged.program.program()
        starts = place.starts(staged.workload)
        for start, program in zip(starts, place.start_services(stack, starts, command), strict=True):
            if start.service == graph.client:
                staged.clients.append(program)
            else:
                staged.services[start.service] = program
        for wire in place.links:
            link = staged.links[wire] = stack.enter_context(session.spawn_wire(place, wire))
            link_config = session.link_config(staged.path, trial.seed, wire.name, staged.capture)
            set_to_work(link, link_config, session.stop)
        for name in reversed(graph.services[1:]):
            config = origin_config(
                graph,
                name,
                staged.workload,
                protocols,
                connection=trial.connection,
                address=place.listen_address(name),
                certificates=session.certificates,
                keylog_file=staged.capture.keylog(name),
            )
            config = changed(config, self._faults.service_changes(name))
            if staged.program is not None:
                config = for_service(config, _program_config(staged))
            staged.services[name].configure(config)
        for process in staged.services.values():
            try:
                process.wait_ready(OriginReady, _READY_S, session.stop)
            except EngineError as error:
                raise as_user_error(error) from error

    def _observed(self, staged: _StagedServicesTrial) -> Observed:
        everyone, hosts = staged.programs_by_name, staged.place.topology.hosts
        processes = {name: [program.pid for program in programs] for name, programs in everyone.items()}
        processes |= {process.name: [process.pid] for process in staged.links.values()}
        cgroups = {name: [program.cgroup_paths for program in programs] for name, programs in everyone.items()}
        return Observed(processes, tuple(hosts.values()), hosts, cgroups)

    def _work(self, staged: _StagedServicesTrial, resources: ResourceObserver) -> LoadSummary:
        config, stop = self._client_config(staged), self._session.stop
        timeout_s = config.total_timeout_ns / 1e9 + _LOAD_GRACE_S
        if isinstance(config, ServicesLoadConfig) and staged.workload.client_processes is not None:
            summaries = work_together(staged.clients, config, timeout_s, stop, resources.sample)
            _gather(staged, len(summaries))
            return joined(summaries, staged.samples)
        (client,) = staged.clients
        client.configure(config)
        summary = client.wait_summary(LoadSummary, timeout_s, stop, resources.sample)
        files = (staged.samples, staged.spans)
        for file in files if staged.program is None else map(rows.lines_of, files):
            client.get(file)
        if staged.program is not None:
            _gather(staged)
        return summary

    def _codes_for_all(self, staged: _StagedServicesTrial) -> Collection[int]:
        return (EXIT_CANNOT, EXIT_BAD_INPUT, EXIT_UNSUPPORTED)

    def _blame(self, staged: _StagedServicesTrial, error: EngineError) -> str:
        return f"{'client' if len(staged.clients) == 1 else error.role}: {error.message.removeprefix('error: ')}"

    def _condense(self, staged: _StagedServicesTrial) -> Aggregate | None:
        """The services are new for the next trial: they end, and the links, before the samples are read."""
        let_pass(staged.path, since_ns=staged.ended_ns)
        for name, process in staged.services.items():
            staged.summaries[name] = _finish(name, process, staged)
        staged.said = {wire.name: finish_link(process, staged.errors) for wire, process in staged.links.items()}
        staged.capture.finish(staged.said, staged.errors)
        aggregate = read_samples(staged.samples, staged.details.load, staged.errors, staged.workload.duration_ns)
        if aggregate is None:
            rows.discard(staged.samples, staged.spans)  # of a client that died they are not whole
        return aggregate

    def _describe(
        self, staged: _StagedServicesTrial, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        details = staged.details
        details.link = _links(staged.links, staged.said, resources, wall_ns) if staged.links else None
        details.server = _server(staged, resources, wall_ns)
        if aggregate is not None and staged.spans.exists():
            details.server["cycles"] = cycles(staged.spans, staged.graph)
        if details.load is not None:
            beside_client(details.load, staged.run_delay_ns(staged.graph.client, resources), wall_ns)

    def _files(
        self, staged: _StagedServicesTrial, aggregate: Aggregate | None, resources: ResourceObserver
    ) -> TrialFiles:
        return TrialFiles(
            samples=staged.samples if aggregate is not None else None,
            spans=staged.spans if aggregate is not None and staged.spans.exists() else None,
            link_summary=staged.details.link,
            link_logs=staged.capture.logs,
            captures=staged.capture.captures,
            resources=resources.rows,
        )

    def _client_config(self, staged: _StagedServicesTrial) -> LoadConfig:
        messages = staged.workload.messages
        config = client_config(
            staged.trial,
            staged.graph,
            staged.workload,
            staged.path,
            certificates=self._session.certificates,
            samples_file=staged.samples,
            spans_file=staged.spans,
            messages=None if messages is None else Path(messages),
            keylog_file=staged.capture.keylog(),
            qlog_dir=staged.capture.qlog_dir,
        )
        config = changed(config, self._faults.load_changes(staged.trial.arm))
        return config if staged.program is None else for_client(config, _program_config(staged))


def _program_config(staged: _StagedServicesTrial) -> ProgramConfig:
    return program_config(staged.workload, staged.trial.protocol, staged.place.name_server())


def _gather(staged: _StagedServicesTrial, clients: int | None = None) -> None:
    """Make the files of a trial of what another program, or so many ``clients``, wrote; EngineError: not whole."""
    try:
        rows.gather(staged.trial.trial, staged.samples, staged.spans, clients)
    except (ValueError, KeyError, FileNotFoundError) as error:
        raise EngineError(f"service {staged.graph.client}", None, f"left an unreadable result: {error}") from error


def _finish(name: str, process: EngineProgram, staged: _StagedServicesTrial) -> OriginSummary | ServicesSummary | None:
    """The summary of a service; None, an error of the trial and how it ended, for one that died."""
    staged.ends[name] = None
    kind: type[OriginSummary | ServicesSummary] = OriginSummary if staged.program is None else ServicesSummary
    try:
        if not process.running():
            return process.wait_summary(kind, _FINISH_S)
        return process.finish(kind, _FINISH_S)
    except EngineError as error:
        staged.ends[name] = error.message
        staged.errors.append(f"service {name} died: {error.message}")
        return None


def _links(
    links: dict[Wire, EngineProgram],
    summaries: dict[str, LinkSummary | None],
    resources: ResourceObserver,
    wall_ns: int,
) -> Links:
    """``link_json``: what each link says, and how long it waited for a core."""
    by_wire: dict[str, LinkSummary] = {}
    for wire, process in links.items():
        summary = summaries[wire.name]
        if summary is not None:
            beside_link(summary, resources.run_delay_ns(process.name), wall_ns)
            by_wire[wire.name] = summary
    return Links(links=by_wire)


def _server(staged: _StagedServicesTrial, resources: ResourceObserver, wall_ns: int) -> Server:
    """``server_json``: every service by name, and the sums that a server of another workload has."""
    workload, graph = staged.workload, staged.graph
    protocols = services.protocols_of(graph, staged.trial.protocol, workload.inside)
    by_name: dict[str, Service] = {}
    for name in graph.services:
        summary = staged.summaries.get(name)
        by_name[name] = {
            "host": " and ".join(staged.place.hosts_of(name)),
            "place": workload.place,
            "client": name == graph.client,
            "cpu_ns": resources.cpu_used_ns(name),
            "peak_rss_bytes": resources.peak_rss_bytes(name),
            "run_delay_ns": staged.run_delay_ns(name, resources),
            "wall_ns": wall_ns,
            "asked": {callee: protocol for (caller, callee), protocol in protocols.items() if caller == name},
        }
        if name != graph.client:
            spoken = {} if summary is None else summary.spoken()
            ended = staged.ends[name]
            service_summary = cast(ServiceSummary | None, summary)  # becomes its document when the trial is kept
            by_name[name] |= {
                "protocols_spoken": spoken,
                "summary": service_summary,
                "running": ended is None,
                "ended": ended,
            }
    others = [facts["cpu_ns"] for name, facts in by_name.items() if name != graph.client]
    used = [cpu for cpu in others if cpu is not None]
    control = workload.congestion_control
    return {
        "server": staged.trial.server,
        "proxy": False,
        "cpu_ns": sum(used) if len(used) == len(others) else None,
        "congestion_control": {
            "tcp": control,
            "quic": control if staged.program is None else staged.program.quic_congestion_control,
        },
        "tcp_nodelay": workload.tcp_nodelay,
        "services": by_name,
    }

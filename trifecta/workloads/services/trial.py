"""One trial of services: all of them are started, cycles run through them, everything that was seen is gathered."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trifecta.contract.codec import changed
from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.load import LoadConfig, LoadSummary
from trifecta.contract.origin import OriginReady, OriginSummary
from trifecta.design import services
from trifecta.design.graph import Graph
from trifecta.design.model import ServicesWorkload, Trial
from trifecta.design.services import SERVER_LEVEL
from trifecta.implementations.running import ServerFacts
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram, as_user_error
from trifecta.lab.host import keeping_off
from trifecta.lab.topology import Wire
from trifecta.observers.machine import MachineObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.observers.transport import TransportObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.faults import NO_FAULTS, Faults
from trifecta.workloads.services.configs import client_config, origin_config
from trifecta.workloads.services.evidence import cycles
from trifecta.workloads.services.places import Place
from trifecta.workloads.services.session import ServicesSession
from trifecta.workloads.session import set_to_work
from trifecta.workloads.trial import (
    Details,
    Outcome,
    beside_link,
    finish_link,
    let_pass,
    phases,
    read_samples,
    row_of,
    watched,
)

_READY_S = 15.0
_LOAD_GRACE_S = 5.0
_FINISH_S = 5.0


@dataclass
class _Cast:
    """The programs of one trial by service, and the links by wire."""

    name: str
    client: EngineProgram
    services: dict[str, EngineProgram]
    links: dict[Wire, EngineProgram]

    @property
    def everyone(self) -> dict[str, EngineProgram]:
        """The client and the services by name."""
        return {self.name: self.client, **self.services}


class ServicesTrialRunner:
    """Runs the trials of a session, one at a time. Every trial has new services, so that none sees another's past."""

    def __init__(self, session: ServicesSession, faults: Faults = NO_FAULTS) -> None:
        """``faults`` are only for showing that checks fail."""
        self._session = session
        self._faults = faults
        self._machine = MachineObserver()

    def start_ahead(self, trial: Trial) -> None:
        """Nothing is started ahead: an idle service would hold memory that is not its own trial's."""

    def close(self) -> None:
        """Nothing outlives a trial."""

    def run(self, trial: Trial) -> Outcome:
        """Run a trial. What goes wrong in it is in its row; CannotError when no trial could be run at all."""
        session = self._session
        workload, path, graph = session.workload(trial), session.path(trial), session.graph(trial)
        place = session.place(trial)
        place.topology.use_congestion_control(workload.congestion_control)
        samples = session.run.draft("samples", trial.trial, ".parquet")
        spans = session.run.draft("spans", trial.trial, ".parquet")
        details = Details(probe=session.probe_of(trial))
        errors: list[str] = []
        transport = TransportObserver(tuple(place.topology.hosts.values()))
        marks = [time.monotonic_ns()]
        with ExitStack() as stack:
            place.track_connections(workload.conntrack)
            capture = TrialCapture(session.run, session.study, trial, workload)
            cast = self._start(stack, trial, workload, (graph, place), capture)
            marks.append(time.monotonic_ns())
            processes = {name: process.pid for name, process in cast.everyone.items()}
            processes |= {process.name: process.pid for process in cast.links.values()}
            groups, hosts = place.cgroups(cast.everyone), place.topology.hosts
            resources = stack.enter_context(
                closing(ResourceObserver(trial.trial, processes, cgroups=groups, hosts=hosts))
            )
            wall = datetime.now(UTC)
            transport.begin()
            resources.sample()
            self._machine.begin(time.monotonic_ns(), self._own_cpu_ns(resources))
            marks.append(time.monotonic_ns())
            config = self._client_config(trial, workload, graph, (samples, spans), capture)
            with keeping_off(place.client_cpus):
                details.load = self._await_client(cast.client, config, resources, errors)
            marks.append(time.monotonic_ns())
            resources.sample()
            shares = self._machine.end(time.monotonic_ns(), self._own_cpu_ns(resources))
            details.machine = {**shares, "transport": transport.end(), "sampler": resources.cost()}
            let_pass(path, since_ns=marks[3])
            ends: dict[str, str | None] = {}
            told = {name: _finish(name, process, errors, ends) for name, process in cast.services.items()}
            links = {wire.name: finish_link(process, errors) for wire, process in cast.links.items()}
            capture.finish(links, errors)
            found = read_samples(samples, details.load, errors)
            if found is None:
                spans.unlink(missing_ok=True)  # as the samples: of a client that died they are not whole
            marks.append(time.monotonic_ns())
        marks.append(time.monotonic_ns())
        details.link = _links(cast.links, links, resources, marks[3] - marks[2]) if links else None
        details.server = _server(session, trial, (told, ends), resources, marks[3] - marks[2])
        if found is not None and spans.exists():
            details.server["cycles"] = cycles(spans, graph)
        if details.load is not None:
            watched(details.load, resources.run_delay_ns(graph.client), marks[3] - marks[2])
        outcome = Outcome(
            trial=trial,
            row=row_of(trial, found, details, errors, measured=(marks[2], marks[3]), wall=wall),
            files=TrialFiles(
                samples=samples if found is not None else None,
                spans=spans if found is not None and spans.exists() else None,
                link_summary=details.link,
                link_logs=capture.logs,
                captures=capture.captures,
                resources=resources.rows,
            ),
            aggregate=found,
            details=details,
        )
        outcome.phase_ns = phases(marks)
        return outcome

    def _start(
        self,
        stack: ExitStack,
        trial: Trial,
        workload: ServicesWorkload,
        where: tuple[Graph, Place],
        capture: TrialCapture,
    ) -> _Cast:
        """Start services and links, and wait until each can be used; services are told what to do the last first."""
        graph, place = where
        session = self._session
        path = session.path(trial)
        connection = trial.connection
        protocols = services.protocols_of(graph, trial.protocol, workload.inside)
        programs = place.start_services(stack, [graph.client, *reversed(graph.services[1:])])
        client = programs.pop(graph.client)
        links: dict[Wire, EngineProgram] = {}
        for wire in place.links:
            links[wire] = stack.enter_context(place.start_link(wire))
            asked = capture.on_link(session.link_config(place, wire, path, trial.seed), wire.name)
            set_to_work(links[wire], asked, session.stop)
        for name in reversed(graph.services[1:]):
            config = origin_config(
                graph,
                name,
                workload,
                protocols,
                connection=connection,
                address=place.listen_address(name),
                certificates=session.certificates,
                keylog_file=capture.keylog(name),
            )
            programs[name].configure(changed(config, self._faults.service_changes(name)))
        for process in programs.values():
            try:
                process.wait_ready(OriginReady, _READY_S, session.stop)
            except EngineError as error:
                raise as_user_error(error) from error
        return _Cast(graph.client, client, programs, links)

    def _client_config(
        self,
        trial: Trial,
        workload: ServicesWorkload,
        graph: Graph,
        files: tuple[Path, Path],
        capture: TrialCapture,
    ) -> LoadConfig:
        session = self._session
        config = client_config(
            trial,
            graph,
            workload,
            session.path(trial),
            certificates=session.certificates,
            samples_file=files[0],
            spans_file=files[1],
            messages=session.messages,
            keylog_file=capture.keylog(),
            qlog_dir=capture.qlog_dir,
        )
        return changed(config, self._faults.load_changes(trial.arm))

    def _await_client(
        self, client: EngineProgram, config: LoadConfig, resources: ResourceObserver, errors: list[str]
    ) -> LoadSummary | None:
        try:
            client.configure(config)
            timeout_s = config.total_timeout_ns / 1e9 + _LOAD_GRACE_S
            summary = client.wait_summary(LoadSummary, timeout_s, self._session.stop, resources.sample)
            for file in filter(None, (config.samples_file, config.spans_file)):
                client.get(Path(file))
            return summary
        except EngineError as error:
            if error.code in (EXIT_CANNOT, EXIT_BAD_INPUT, EXIT_UNSUPPORTED):
                raise as_user_error(error) from error  # every other trial would meet the same
            errors.append(f"client: {error.message.removeprefix('error: ')}")
            return None

    def _own_cpu_ns(self, resources: ResourceObserver) -> int:
        return time.process_time_ns() + sum(resources.latest_cpu_ns().values())


def _finish(name: str, process: EngineProgram, errors: list[str], ends: dict[str, str | None]) -> OriginSummary | None:
    """The summary of a service; None, an error of the trial and how it ended, for one that died."""
    ends[name] = None
    try:
        if not process.running():
            return process.wait_summary(OriginSummary, _FINISH_S)
        return process.finish(OriginSummary, _FINISH_S)
    except EngineError as error:
        ends[name] = error.message
        errors.append(f"service {name} died: {error.message}")
        return None


def _links(
    links: dict[Wire, EngineProgram], told: dict[str, LinkSummary | None], resources: ResourceObserver, wall_ns: int
) -> Links:
    """``link_json``: what each link says, and how long it waited for a core."""
    said: dict[str, LinkSummary] = {}
    for wire, process in links.items():
        summary = told[wire.name]
        if summary is not None:
            beside_link(summary, resources.run_delay_ns(process.name), wall_ns)
            said[wire.name] = summary
    return Links(links=said)


def _server(
    session: ServicesSession,
    trial: Trial,
    last_words: tuple[dict[str, OriginSummary | None], dict[str, str | None]],
    resources: ResourceObserver,
    wall_ns: int,
) -> ServerFacts:
    """``server_json``: every service by name, and the sums that a server of another workload has."""
    told, ends = last_words
    workload, graph, place = session.workload(trial), session.graph(trial), session.place(trial)
    protocols = services.protocols_of(graph, trial.protocol, workload.inside)
    by_name: dict[str, Any] = {}
    for name in graph.services:
        summary = told.get(name)
        by_name[name] = {
            "host": place.host_of[name],
            "place": workload.place,
            "client": name == graph.client,
            "cpu_ns": resources.cpu_used_ns(name),
            "peak_rss_bytes": resources.peak_rss_bytes(name),
            "run_delay_ns": resources.run_delay_ns(name),
            "wall_ns": wall_ns,
            "asked": {callee: protocol for (caller, callee), protocol in protocols.items() if caller == name},
        }
        if name != graph.client:
            spoken = {} if summary is None else summary.spoken()
            ended = ends[name]
            by_name[name] |= {"protocols_spoken": spoken, "summary": summary, "running": ended is None, "ended": ended}
    others = [facts["cpu_ns"] for name, facts in by_name.items() if name != graph.client]
    return {
        "server": SERVER_LEVEL,
        "proxy": False,
        "cpu_ns": sum(others) if all(cpu is not None for cpu in others) else None,
        "congestion_control": {"tcp": workload.congestion_control, "quic": workload.congestion_control},
        "tcp_nodelay": workload.tcp_nodelay,
        "services": by_name,
    }

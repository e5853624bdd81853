"""One trial: programs are started, the load does its work, everything that was seen is gathered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trifecta.analysis.checks.visits import Visits
from trifecta.contract.codec import changed, plain
from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.load import ClientReady, LoadConfig, LoadSummary
from trifecta.contract.probe import MeasureSummary
from trifecta.contract.trial import TrialRow
from trifecta.design import plan
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.model import AA_SUFFIX, PathSpec, RequestsWorkload, Trial
from trifecta.implementations.running import RunningServer, ServerFacts
from trifecta.implementations.servers.origin import BACKEND_ADDRESS
from trifecta.lab.engine import (
    EXIT_BAD_INPUT,
    EXIT_CANNOT,
    EXIT_UNSUPPORTED,
    EngineError,
    EngineProgram,
    as_user_error,
)
from trifecta.lab.host import keeping_off
from trifecta.lab.network import WIRE
from trifecta.lab.paths import link_config
from trifecta.lab.place import Program
from trifecta.observers.machine import MachineFacts, MachineObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.observers.transport import TransportObserver
from trifecta.store.files import to_json
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate, aggregate, cpu_per_request
from trifecta.workloads.capturing import ONLY, TrialCapture
from trifecta.workloads.faults import NO_FAULTS, Faults
from trifecta.workloads.limits import Limits
from trifecta.workloads.requests import load_config
from trifecta.workloads.session import Session, set_to_work
from trifecta.workloads.start_cost import StartCosts

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

    @property
    def role(self) -> str:
        """Under which name the load's resources are recorded."""
        return "client" if self.client == DEFAULT_CLIENT else "driver"

    def wait_end(self, timeout_s: float) -> None:
        """Wait until both have ended by themselves."""
        self.load.wait_end(timeout_s)
        self.link.wait_end(timeout_s)

    def close(self) -> None:
        """End both."""
        self.load.close()
        self.link.close()


@dataclass
class Details:
    """What was said and seen around a trial: the JSON columns of its row."""

    probe: MeasureSummary | None
    load: LoadSummary | None = None
    link: LinkSummary | Links | None = None
    server: ServerFacts = field(default_factory=dict)
    machine: MachineFacts | None = None


@dataclass
class Outcome:
    """What a trial left behind, before it is judged."""

    trial: Trial
    row: TrialRow
    files: TrialFiles
    aggregate: Aggregate | None
    details: Details
    phase_ns: dict[str, int] = field(default_factory=dict)
    """How long each part of it took."""
    visits: Visits | None = None
    """What a browser did; None in other workloads."""


class TrialRunner:
    """Runs the trials of a session, one at a time."""

    def __init__(self, session: Session, faults: Faults = NO_FAULTS) -> None:
        """``faults`` are only for showing that checks fail."""
        self._session = session
        self._faults = faults
        self._machine = MachineObserver()
        lab = session.lab
        self._transport = TransportObserver((lab.host("client"), lab.middle(WIRE), lab.host("server")))
        self._ahead: Programs | None = None
        self._ending: list[Programs] = []
        self._start_costs = StartCosts(session)

    def start_ahead(self, trial: Trial) -> None:
        """Start the programs of the next trial, which likely has the client of this one; waiting costs no CPU."""
        self._start_ahead(trial.client)

    def _start_ahead(self, client: str) -> None:
        if self._ahead is not None and self._ahead.client != client:
            self._ahead.close()
            self._ahead = None
        if self._ahead is None:
            self._ahead = Programs(self._session.spawn_link(), self._session.spawn_client(client), client)

    def _take(self, client: str) -> Programs:
        """The programs started ahead, or new ones when they were not, or for another client."""
        self._start_ahead(client)
        programs, self._ahead = self._ahead, None
        assert programs is not None
        return programs

    def close(self) -> None:
        """End what was started ahead."""
        for programs in (*self._ending, *([self._ahead] if self._ahead else [])):
            programs.close()
        self._ahead = None
        self._ending = []

    def run(self, trial: Trial) -> Outcome:
        """Run a trial. What goes wrong in it is in its row; CannotError when no trial could be run at all.

        Stopped when the user asks for it: then nothing is kept.
        """
        session = self._session
        workload = plan.workload_for(session.study, trial).for_protocol(trial.protocol)
        path = session.study.paths[trial.path]
        server = session.server_for(trial)
        session.lab.use_congestion_control(workload.congestion_control)
        samples = session.run.draft("samples", trial.trial, ".parquet")
        capture = TrialCapture(session.run, session.study, trial, workload)
        config = self._load_config(trial, workload, path, server, samples=samples, capture=capture)
        start_cpu_ns = self._start_costs.cpu_ns(trial.client, config)
        marks = [time.monotonic_ns()]
        programs = self._take(trial.client)
        details = Details(probe=session.probe_of(trial))
        errors: list[str] = []
        with ExitStack() as stack:
            stack.callback(self._end, programs)
            for _ in range(self._faults.client_competitors):
                stack.callback(self._compete().close)
            asked = changed(capture.on_link(link_config(path, trial.seed)), session.link_changes)
            asked = capture.lingering(asked, last_words_ns(path, LAST_WORDS[trial.protocol]))
            session.free_wire()
            set_to_work(programs.link, asked, session.stop)
            self._wait_loaded(programs)
            self._see_off_ending()
            marks.append(time.monotonic_ns())
            # The process of another client is there only later; what drives it is not what is measured.
            processes = {"server": server.pid, programs.role: programs.load.pid, "link": programs.link.pid}
            resources = stack.enter_context(closing(ResourceObserver(trial.trial, processes | server.backend_pids)))
            wall = datetime.now(UTC)
            self._begin_observing(resources)
            limits = Limits(session.client_share(workload.client_cpu), server.cpu_share)
            marks.append(time.monotonic_ns())
            with keeping_off(session.pins["client"]):
                details.load = self._await_load(programs, config, resources, errors, limits)
            marks.append(time.monotonic_ns())
            resources.sample()
            details.link = said = finish_link(programs.link, errors) if asked.linger_ns else None
            details.machine = self._end_observing(resources, details.load)
            if not server.running():
                errors.append(server.describe_end())
            found = read_samples(samples, details.load, errors)
            marks.append(time.monotonic_ns())
            if not asked.linger_ns:
                let_pass(path, since_ns=marks[3], round_trips=LAST_WORDS[trial.protocol])
                details.link = said = finish_link(programs.link, errors)
            capture.finish({ONLY: said}, errors)
            self._let_end(programs, details, lingers=asked.linger_ns > 0)
        marks.append(time.monotonic_ns())
        details.server = self._server_details(server, resources)
        limits.record(details.load, details.server)
        self._add_costs(details, said, resources, start_cpu_ns, wall_ns=marks[3] - marks[2])
        outcome = Outcome(
            trial=trial,
            row=row_of(trial, found, details, errors, measured=(marks[2], marks[3]), wall=wall),
            files=TrialFiles(
                samples=samples if found is not None else None,
                link_summary=details.link,
                link_logs=capture.logs,
                captures=capture.captures,
                resources=resources.rows,
            ),
            aggregate=found,
            details=details,
            phase_ns=phases(marks),
        )
        return outcome

    def _begin_observing(self, resources: ResourceObserver) -> None:
        self._transport.begin()
        resources.sample()
        self._machine.begin(time.monotonic_ns(), self._own_cpu_ns(resources))

    def _end_observing(self, resources: ResourceObserver, load: LoadSummary | None) -> MachineFacts:
        shares = self._machine.end(time.monotonic_ns(), self._own_cpu_ns(resources, load))
        return {**shares, "transport": self._transport.end(), "sampler": resources.cost()}

    def _add_costs(
        self,
        details: Details,
        link: LinkSummary | None,
        resources: ResourceObserver,
        start_cpu_ns: int | None,
        *,
        wall_ns: int,
    ) -> None:
        """Add what is known from outside of the programs to what they said."""
        if details.load is not None:
            details.load.start_cpu_ns = start_cpu_ns
            watched(details.load, resources.run_delay_ns("client"), wall_ns)
        if link is not None:
            link.run_delay_ns = resources.run_delay_ns("link")
        if resources.run_delay_ns("server") is not None:
            details.server.setdefault("run_delay_ns", resources.run_delay_ns("server"))
            details.server.setdefault("wall_ns", wall_ns)

    def _server_details(self, server: RunningServer, resources: ResourceObserver) -> ServerFacts:
        """What is known of the server, what it used, and of what is behind it."""
        details = server.facts() | {
            "cpu_ns": resources.cpu_used_ns("server"),
            "peak_rss_bytes": resources.peak_rss_bytes("server"),
            **{f"{role}_cpu_ns": resources.cpu_used_ns(role) for role in server.backend_pids},
        }
        if server.backend_pids:
            given = self._session.lab.host("server").congestion_control(BACKEND_ADDRESS)
            details["backend_congestion_control"] = given
        return details

    def _see_off_ending(self) -> None:
        """Let the programs of the trial before be gone before a packet is sent.

        The link's memory and sockets are given back on the core that the next link has. A kernel that is built without
        preemption lets nobody in meanwhile, whatever its priority: packets left up to 3 ms late.
        """
        for programs in self._ending:
            programs.wait_end(_END_S)
            programs.close()
        self._ending = []

    def _let_end(self, programs: Programs, details: Details, *, lingers: bool) -> None:
        """Let programs that have said their last word end by themselves, while the trial is judged and kept.

        The kernel takes 12 ms to close the link's sockets: nobody has to wait for that but the next load.
        """
        if details.link is not None and details.load is not None:
            self._ending.append(programs)
            self._session.lingering = programs.link if lingers else None

    def _end(self, programs: Programs) -> None:
        """End the programs of a trial, unless they are ending by themselves."""
        if programs not in self._ending:
            programs.close()

    def _load_config(
        self,
        trial: Trial,
        workload: RequestsWorkload,
        path: PathSpec,
        server: RunningServer,
        *,
        samples: Path,
        capture: TrialCapture,
    ) -> LoadConfig:
        self._session.qlogs.begin(trial.trial, time.time_ns())  # what servers write from now on is of this trial
        config = load_config(
            trial,
            workload,
            path,
            address=server.site.address,
            port=server.site.port,
            server_name=f"{server.adapter.name}.lab",
            certificates=self._session.certificates,
            samples_file=samples,
            keylog_file=capture.keylog(),
            qlog_dir=capture.qlog_dir,
        )
        return changed(config, self._faults.load_changes(trial.arm))

    def _wait_loaded(self, programs: Programs) -> None:
        """What drives another client is loaded before the trial is measured; the engine's load is so at once."""
        if programs.client != DEFAULT_CLIENT:
            with suppress(EngineError):  # it says so again when it is asked to work
                programs.load.wait_loaded(_DRIVER_READY_S, self._session.stop)

    def _await_load(
        self,
        programs: Programs,
        config: LoadConfig,
        resources: ResourceObserver,
        errors: list[str],
        limits: Limits,
    ) -> LoadSummary | None:
        load, own = programs.load, programs.client == DEFAULT_CLIENT
        try:
            if own:
                limits.add_client(load.pid)
            load.configure(config)
            if not own:
                pid = load.wait_ready(ClientReady, _DRIVER_READY_S, self._session.stop).pid
                limits.add_client(pid)
                resources.follow("client", pid)
            timeout_s = config.total_timeout_ns / 1e9 + _LOAD_GRACE_S
            summary = load.wait_summary(LoadSummary, timeout_s, self._session.stop, resources.sample)
            if config.samples_file is not None:
                load.get(Path(config.samples_file))
            return summary
        except EngineError as error:
            if error.code == EXIT_CANNOT or (own and error.code in (EXIT_BAD_INPUT, EXIT_UNSUPPORTED)):
                # Every other trial would meet the same; what the disk or the machine refuses is not a result.
                raise as_user_error(error) from error
            errors.append(error.message.removeprefix("error: ") if not own else f"client {error.message}")
            return None

    def _own_cpu_ns(self, resources: ResourceObserver, load: LoadSummary | None = None) -> int:
        """CPU time of this process and of everything it runs for the trial, as of the last reading.

        A client that was driven is gone by now; its last reading lacks its end, its summary has the whole.
        """
        latest = resources.latest_cpu_ns()
        if load is not None and load.client is not None:
            latest["client"] = load.cpu_ns
        return time.process_time_ns() + sum(latest.values())

    def _compete(self) -> Program:
        """A program on the client's CPU that only counts."""
        session = self._session
        spin = ["sh", "-c", "while :; do :; done"]
        return session.client.run(spin, session.log("competitor"), cpus=session.pins["client"])


def phases(marks: Sequence[int]) -> dict[str, int]:
    """How long each part of a trial took, from the times between them."""
    names = ("link_start", "observe", "load", "condense", "link_end")
    return {name: marks[i + 1] - marks[i] for i, name in enumerate(names)}


def read_samples(samples: Path, summary: LoadSummary | None, errors: list[str]) -> Aggregate | None:
    """What the client's samples say; None, and an error of the trial, when they are not whole."""
    if summary is None:
        samples.unlink(missing_ok=True)  # the client died: whatever it wrote is not whole
        return None
    if not samples.exists():
        errors.append("the client wrote no samples")
        return None
    if summary.ended in ("signal", "stdin"):
        errors.append("the client was asked to end early")
    return aggregate(samples)


def watched(load: LoadSummary, run_delay_ns: int | None, wall_ns: int) -> None:
    """Add how long a client waited for a core, and for how long it was watched, to what it said itself."""
    if run_delay_ns is not None:
        load.run_delay_ns = run_delay_ns if load.run_delay_ns is None else load.run_delay_ns
        load.wall_ns = wall_ns if load.wall_ns is None else load.wall_ns


def beside_link(link: LinkSummary, run_delay_ns: int | None, wall_ns: int) -> None:
    """Add how long a link among others waited for a core, over the time that was measured."""
    if run_delay_ns is not None:
        link.run_delay_ns, link.wall_ns = run_delay_ns, wall_ns


def let_pass(path: PathSpec, since_ns: int, round_trips: float = 0.5) -> None:
    """Leave the link up until the end of the client's connections has reached the server, or they are closed.

    Otherwise the server would hold connections to nobody, and send again into the trials that follow.
    """
    time.sleep(max(0, since_ns + last_words_ns(path, round_trips) - time.monotonic_ns()) / 1e9)


def last_words_ns(path: PathSpec, round_trips: float) -> int:
    """How long after the end of a load its connections may still say something."""
    return int(path.rtt_ns * round_trips) + 1_000_000


def finish_link(link: EngineProgram, errors: list[str]) -> LinkSummary | None:
    """End a link; its summary, or None and an error of the trial."""
    try:
        return link.finish(LinkSummary)
    except EngineError as error:
        errors.append(f"link {error.message}")
        return None


def row_of(
    trial: Trial,
    found: Aggregate | None,
    details: Details,
    errors: list[str],
    *,
    measured: tuple[int, int],
    wall: datetime,
) -> TrialRow:
    """The row of the trial; ``valid`` and ``checks_json`` are added by the judge."""
    load = details.load
    client_cpu = None if load is None else load.cpu_ns - (load.start_cpu_ns or 0)
    requests = found.samples + found.warmup_samples if found else 0
    started, ended = measured
    row: TrialRow = {
        "trial": trial.trial,
        "block": trial.block,
        "cell": trial.cell.key,
        "treatment": f"{trial.compare}={trial.arm.removesuffix(AA_SUFFIX)},{trial.cell.key}",
        "arm": trial.arm,
        "is_aa": trial.is_aa,
        "position": trial.position,
        "seed": trial.seed,
        "protocol": trial.protocol,
        "path": trial.path,
        "connection": trial.connection,
        "server": trial.server,
        "client": trial.client,
        "factors_json": to_json(dict(trial.levels)),
        "started_ns": started,
        "ended_ns": ended,
        "wall_started_utc": wall.isoformat(timespec="milliseconds"),
        "samples": 0,
        "errors": 0,
        "error_classes_json": "{}",
        **(found.columns if found else {}),
        "client_cpu_ns_per_request": cpu_per_request(None if client_cpu is None else max(0, client_cpu), requests),
        "server_cpu_ns_per_request": cpu_per_request(details.server["cpu_ns"], requests),
        "valid": not errors,
        "error": "; ".join(errors) or None,
    }
    return {
        **row,
        "load_json": _json(details.load),
        "link_json": _json(details.link),
        "server_json": _json(details.server),
        "probe_json": _json(details.probe),
        "machine_json": _json(details.machine),
    }


def _json(document: object) -> str | None:
    return None if document is None else to_json(plain(document))

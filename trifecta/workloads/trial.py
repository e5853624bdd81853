"""One trial, whatever its workload: programs are started, the client works, everything that was seen is gathered."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from trifecta.analysis.checks.visits import Visits
from trifecta.contract.codec import plain
from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.load import LoadSummary
from trifecta.contract.machine import MachineFacts
from trifecta.contract.probe import MeasureSummary
from trifecta.contract.stored import Server
from trifecta.contract.trial import TrialRow
from trifecta.design.model import AA_SUFFIX, PathSpec, Trial
from trifecta.implementations.running import RunningServer
from trifecta.implementations.servers.origin_backend import backend_address
from trifecta.lab.engine import EngineError, EngineProgram, as_user_error
from trifecta.lab.host import Host, keeping_off
from trifecta.observers.machine import MachineObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.observers.transport import TransportObserver
from trifecta.store.files import to_json
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate, aggregate, cpu_per_request
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.session import Session


@dataclass
class Details:
    """What was said and seen around a trial: the JSON columns of its row."""

    probe: MeasureSummary | None
    load: LoadSummary | None = None
    link: LinkSummary | Links | None = None
    server: Server = field(default_factory=Server)
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


@dataclass(kw_only=True)
class StagedTrial:
    """A trial under way: what was prepared for it, and what was said and seen until now."""

    trial: Trial
    path: PathSpec
    samples: Path
    capture: TrialCapture
    details: Details
    errors: list[str] = field(default_factory=list)
    ended_ns: int = 0
    """When the client was done."""


@dataclass(frozen=True)
class Observed:
    """Whose resources and counters are read in a trial."""

    processes: Mapping[str, int | Sequence[int]]
    """Process ids by role; several are read as one."""
    counted: Sequence[Host]
    """Hosts whose kernel counters are read before and after."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Hosts that are read as often as the programs."""
    cgroups: Mapping[str, Sequence[Mapping[str, Path]]] = field(default_factory=dict)


Own = TypeVar("Own", bound=Session[Any, Any])
One = TypeVar("One", bound=StagedTrial)


class TrialRunner(ABC, Generic[Own, One]):
    """Runs the trials of a session, one at a time. What its workload does, a subclass says, step by step."""

    def __init__(self, session: Own) -> None:
        """Nothing is started yet."""
        self._session = session
        self._faults = session.faults
        self._machine = MachineObserver()

    def start_ahead(self, trial: Trial) -> None:
        """Start what the next trial likely needs, while the one that ended is judged."""

    def close(self) -> None:
        """End what was started ahead."""

    def run(self, trial: Trial) -> Outcome:
        """Run a trial. What goes wrong in it is in its row; CannotError when no trial could be run at all.

        Stopped when the user asks for it: then nothing is kept.
        """
        one = self._prepare(trial)
        details = one.details
        marks = [time.monotonic_ns()]
        with ExitStack() as stack:
            self._start(one, stack)
            marks.append(time.monotonic_ns())
            observed = self._observed(one)
            transport = TransportObserver(observed.counted)
            resources = stack.enter_context(
                closing(
                    ResourceObserver(trial.trial, observed.processes, cgroups=observed.cgroups, hosts=observed.hosts)
                )
            )
            wall = datetime.now(UTC)
            transport.begin()
            resources.sample()
            self._about_to_work(one)
            self._machine.begin(time.monotonic_ns(), self._own_cpu_ns(one, resources))
            marks.append(time.monotonic_ns())
            with keeping_off(self._session.pins["client"]):
                details.load = self._await_client(one, resources)
            one.ended_ns = time.monotonic_ns()
            marks.append(one.ended_ns)
            resources.sample()
            self._after_client(one)
            shares = self._machine.end(time.monotonic_ns(), self._own_cpu_ns(one, resources))
            details.machine = self._around(one, {**shares, "transport": transport.end(), "sampler": resources.cost()})
            aggregate = self._condense(one)
            marks.append(time.monotonic_ns())
            self._end_links(one)
        marks.append(time.monotonic_ns())
        self._describe(one, aggregate, resources, wall_ns=marks[3] - marks[2])
        return Outcome(
            trial=trial,
            row=self._row(one, row_of(trial, aggregate, details, one.errors, measured=(marks[2], marks[3]), wall=wall)),
            files=self._files(one, aggregate, resources),
            aggregate=aggregate,
            details=details,
            phase_ns=phases(marks),
            visits=self._visits(one),
        )

    def _await_client(self, staged: One, resources: ResourceObserver) -> LoadSummary | None:
        """Have the client do its work; its summary, or None and an error of the trial."""
        try:
            return self._work(staged, resources)
        except EngineError as error:
            if error.code in self._codes_for_all(staged):
                # Every other trial would meet the same; what the disk or the machine refuses is not a result.
                raise as_user_error(error) from error
            staged.errors.append(self._blame(staged, error))
            return None

    @abstractmethod
    def _prepare(self, trial: Trial) -> One:
        """Configurations and drafts, before anything is started."""

    @abstractmethod
    def _start(self, staged: One, stack: ExitStack) -> None:
        """Start programs and links, which ``stack`` ends, and wait until they can be used."""

    @abstractmethod
    def _observed(self, staged: One) -> Observed:
        """Whose resources and counters are read."""

    def _about_to_work(self, staged: One) -> None:
        """What is to be done last, before the client works."""

    @abstractmethod
    def _work(self, staged: One, resources: ResourceObserver) -> LoadSummary:
        """Set the client to work and wait for its summary; EngineError when there is none."""

    @abstractmethod
    def _codes_for_all(self, staged: One) -> Collection[int]:
        """Exit codes of the client that every other trial would meet too."""

    @abstractmethod
    def _blame(self, staged: One, error: EngineError) -> str:
        """The error of a trial whose client did not do its work."""

    def _after_client(self, staged: One) -> None:
        """What is to be done first, when the client has worked."""

    def _around(self, staged: One, machine: MachineFacts) -> MachineFacts:
        """What was seen around the trial: of this machine, where its programs ran on it."""
        return machine

    def _own_cpu_ns(self, staged: One, resources: ResourceObserver) -> int:
        """CPU time of this process and of everything it runs for the trial, as of the last reading."""
        return time.process_time_ns() + sum(resources.latest_cpu_ns().values())

    @abstractmethod
    def _condense(self, staged: One) -> Aggregate | None:
        """What the samples say; None when they are not whole."""

    def _end_links(self, staged: One) -> None:
        """Let the last packets pass and end the links, where there are some that have not ended."""

    @abstractmethod
    def _describe(self, staged: One, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int) -> None:
        """Add to the details what is known of links and servers, and of all programs from outside."""

    @abstractmethod
    def _files(self, staged: One, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        """The files that the trial leaves."""

    def _row(self, staged: One, row: TrialRow) -> TrialRow:
        """The row of the trial, with the columns that only this workload has."""
        return row

    def _visits(self, staged: One) -> Visits | None:
        """What a browser did; None in other workloads."""
        return None


def phases(marks: Sequence[int]) -> dict[str, int]:
    """How long each part of a trial took, from the times between them."""
    names = ("link_start", "observe", "load", "condense", "link_end")
    return {name: marks[i + 1] - marks[i] for i, name in enumerate(names)}


def read_samples(
    samples: Path, summary: LoadSummary | None, errors: list[str], duration_ns: int | None = None
) -> Aggregate | None:
    """What the client's samples say; None, and an error of the trial, when they are not whole.

    ``duration_ns``: for how long requests were asked for; 0 where they were counted, None where no rate is of interest.
    """
    if summary is None:
        samples.unlink(missing_ok=True)  # the client died: whatever it wrote is not whole
        return None
    if not samples.exists():
        errors.append("the client wrote no samples")
        return None
    if summary.ended in ("signal", "stdin"):
        errors.append("the client was asked to end early")
    if duration_ns is None:
        return aggregate(samples)
    return aggregate(samples, duration_ns if summary.ended == "duration" else summary.measured_ns or 0)


def server_used(server: RunningServer, host: Host, resources: ResourceObserver) -> Server:
    """What is known of the measured server in ``host``, what it used, and of what is behind it."""
    used = {
        "cpu_ns": resources.cpu_used_ns("server"),
        "peak_rss_bytes": resources.peak_rss_bytes("server"),
        **{f"{role}_cpu_ns": resources.cpu_used_ns(role) for role in server.backend_pids},
    }
    details = cast(Server, {**server.facts(), **used})
    if server.backend_pids:
        details["backend_congestion_control"] = host.congestion_control(backend_address(server.site))
    return details


def beside_client(load: LoadSummary, run_delay_ns: int | None, wall_ns: int) -> None:
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
    aggregate: Aggregate | None,
    details: Details,
    errors: list[str],
    *,
    measured: tuple[int, int],
    wall: datetime,
) -> TrialRow:
    """The row of the trial; ``valid`` and ``checks_json`` are added by the judge."""
    load = details.load
    client_cpu = None if load is None else load.cpu_ns - (load.start_cpu_ns or 0)
    requests = aggregate.samples + aggregate.warmup_samples if aggregate else 0
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
        **(aggregate.columns if aggregate else {}),
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

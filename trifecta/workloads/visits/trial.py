"""One trial of a browser: links and driver are started, visits are made, everything that was seen is gathered."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trifecta.contract.browser import BrowserConfig
from trifecta.contract.codec import changed
from trifecta.contract.link import Links
from trifecta.contract.load import ClientReady, LoadSummary
from trifecta.design.model import BrowserWorkload, Trial
from trifecta.lab import linux
from trifecta.lab.engine import EXIT_CANNOT, EngineError, EngineProgram, as_user_error
from trifecta.lab.host import keeping_off
from trifecta.lab.topology import Wire
from trifecta.observers.machine import MachineObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.observers.transport import TransportObserver
from trifecta.store.files import disk_errors
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.faults import NO_FAULTS, Faults
from trifecta.workloads.trial import Details, Outcome, finish_link, let_pass, phases, read_samples, row_of
from trifecta.workloads.visits.aggregate import VisitAggregate, aggregate_visits
from trifecta.workloads.visits.configs import START_NS, Drafts, browser_config
from trifecta.workloads.visits.floors import Floors
from trifecta.workloads.visits.place import Place
from trifecta.workloads.visits.programs import (
    add_driver_cpu,
    ended_cpu_ns,
    links_said,
    own_cpu_ns,
    server_details,
    server_pids,
)
from trifecta.workloads.visits.session import BrowserSession

_GRACE_S = 15.0  # beyond its own total timeout a driver is taken for hung
_MOST_STRAY_NAMES = 10
_LOADED_S = 60.0  # Python, Arrow and what drives the browser are loaded from a cold disk


@dataclass
class _Driver:
    """A driver that waits for its configuration, and where and for what it was started."""

    process: EngineProgram
    browser: str
    place: Place


class BrowserTrialRunner:
    """Runs the trials of a session, one at a time. Every trial has a browser of its own."""

    def __init__(self, session: BrowserSession, faults: Faults = NO_FAULTS) -> None:
        """``faults`` are only for showing that checks fail."""
        self._session = session
        self._faults = faults
        self._machine = MachineObserver()
        self._ahead: _Driver | None = None
        self._floors = Floors(session, faults)

    def start_ahead(self, trial: Trial) -> None:
        """Start the driver of the next trial, which likely has the browser and the place of this one.

        It loads what it needs while this trial is judged and written, and waits.
        """
        browser, place = trial.client, self._session.place(trial)
        ahead = self._ahead
        if ahead is not None and (ahead.browser != browser or ahead.place is not place):
            ahead.process.close()
            self._ahead = ahead = None
        if ahead is None:
            process = self._session.spawn_browser(place, browser, self._faults.browser_driver)
            self._ahead = _Driver(process, browser, place)

    def _take(self, trial: Trial) -> EngineProgram:
        """The driver that was started ahead, or a new one when it is for another browser or place."""
        self.start_ahead(trial)
        driver, self._ahead = self._ahead, None
        assert driver is not None
        return driver.process

    def close(self) -> None:
        """End what was started ahead."""
        if self._ahead is not None:
            self._ahead.process.close()
        self._ahead = None

    def run(self, trial: Trial) -> Outcome:
        """Run a trial. What goes wrong in it is in its row; CannotError when no trial could be run at all.

        Stopped when the user asks for it: then nothing is kept.
        """
        session = self._session
        workload, path, place = session.workload(trial), session.path(trial), session.place(trial)
        servers = session.servers(trial)
        place.network.use_congestion_control(workload.congestion_control)
        floor, floor_error = self._floors.shares(trial, place)
        drafts = self._drafts(trial, workload)
        capture = TrialCapture(session.run, session.study, trial, workload)
        details = Details(probe=session.probe_of(trial))
        errors: list[str] = []
        transport = TransportObserver(tuple(place.network.hosts.values()))
        marks = [time.monotonic_ns()]
        with ExitStack() as stack:
            driver = stack.enter_context(self._take(trial))
            place.point_to(session.keys(trial))
            links = self._start_links(stack, trial, place, capture)
            with suppress(EngineError):  # it says so again when it is asked to work
                driver.wait_loaded(_LOADED_S, session.stop)
            marks.append(time.monotonic_ns())
            processes = {"driver": driver.pid, **server_pids(servers), **{one.name: one.pid for one in links.values()}}
            resources = ResourceObserver(trial.trial, processes, hosts=place.network.hosts)
            stack.enter_context(closing(resources))
            wall = datetime.now(UTC)
            transport.begin()
            resources.sample()
            loaded_cpu_ns = linux.tree_cpu_ns(driver.pid)
            self._machine.begin(time.monotonic_ns(), own_cpu_ns(resources))
            marks.append(time.monotonic_ns())
            with keeping_off(session.pins["client"]):
                details.load = self._await(driver, self._config(trial, drafts, floor, capture), resources, errors)
            marks.append(time.monotonic_ns())
            resources.sample()
            add_driver_cpu(details.load, driven_cpu_ns := ended_cpu_ns(driver) - loaded_cpu_ns)
            machine = self._machine.end(time.monotonic_ns(), own_cpu_ns(resources) + driven_cpu_ns)
            details.machine = {**machine, "transport": transport.end(), "sampler": resources.cost()}
            self.start_ahead(trial)  # nothing is measured any more: it loads while this trial is read
            self._tell(place, details.load, floor_error)
            errors += filter(None, (serving.problem() for serving in servers))
            for written in (*drafts.files, *drafts.folders):
                driver.get(written)
            found = read_samples(drafts.samples, details.load, errors)
            visits = _read_visits(drafts, found, errors)
            marks.append(time.monotonic_ns())
            let_pass(path, since_ns=marks[3])
            said = {wire: finish_link(process, errors) for wire, process in links.items()}
            capture.finish({wire.name: summary for wire, summary in said.items()}, errors)
        marks.append(time.monotonic_ns())
        wall_ns = marks[3] - marks[2]
        details.link = link_said = links_said(links, said, resources, wall_ns) if links else None
        details.server = server_details(place, servers, resources, wall_ns)
        row = row_of(trial, found, details, errors, measured=(marks[2], marks[3]), wall=wall)
        return Outcome(
            trial=trial,
            row=row if visits is None else {**row, **visits.columns},
            files=_files(drafts, found, link_said, resources, capture),
            aggregate=found,
            details=details,
            visits=visits.visits if visits is not None else None,
            phase_ns=phases(marks),
        )

    def _start_links(
        self, stack: ExitStack, trial: Trial, place: Place, capture: TrialCapture
    ) -> dict[Wire, EngineProgram]:
        """Start the links of all impaired wires; the stack ends them."""
        session, path = self._session, self._session.path(trial)
        links: dict[Wire, EngineProgram] = {}
        for wire in place.network.links:
            link = session.link(place, wire, path, trial.seed, capture)
            links[wire] = stack.enter_context(link)
        return links

    def _tell(self, place: Place, load: LoadSummary | None, floor_error: str | None) -> None:
        """Add what the lab knows to what the driver said: cores, names that were asked for and are not there, and why
        nobody knows what the machine drops of a video.

        A browser's own rules keep most such questions off DNS; it counts those itself.
        """
        strays = place.names.take_strays()
        if load is not None:
            load.cpus = len(self._session.pins["client"] or os.sched_getaffinity(0))
            load.stray_lookups = (load.stray_lookups or 0) + sum(strays.values())
            load.floor_error = floor_error
            load.stray_names = dict(sorted(strays.items(), key=lambda item: -item[1])[:_MOST_STRAY_NAMES])

    def _drafts(self, trial: Trial, workload: BrowserWorkload) -> Drafts:
        """Where the driver writes; its folders are made."""
        run, name = self._session.run, trial.trial
        drafts = Drafts(
            samples=run.draft("samples", name, ".parquet"),
            visits=run.draft("visits", name, ".parquet"),
            fetches=run.draft("fetches", name, ".parquet"),
            playback=run.draft("playback", name, ".parquet") if workload.plays else None,
            har=run.draft("har", name, ""),
            frames=run.draft("frames", name, "") if workload.films else None,
        )
        with disk_errors(run.path):
            for folder in (*drafts.folders, self._session.state):
                folder.mkdir(exist_ok=True)
        return drafts

    def _config(
        self, trial: Trial, drafts: Drafts, floor: Sequence[float] | None, capture: TrialCapture
    ) -> BrowserConfig:
        session = self._session
        workload = session.workload(trial)
        config = browser_config(
            trial,
            workload,
            session.material(trial).places,
            session.url(trial),
            drafts,
            certificates=session.certificates,
            work_dir=session.state,
            floor=floor,
            keylog_file=capture.keylog(),
            qlog_dir=capture.qlog_dir,
        )
        return changed(config, self._faults.load_changes(trial.arm))

    def _await(
        self, driver: EngineProgram, config: BrowserConfig, resources: ResourceObserver, errors: list[str]
    ) -> LoadSummary | None:
        """Have the driver make the visits; its summary, or None and an error of the trial."""
        try:
            driver.configure(config)
            ready = driver.wait_ready(ClientReady, START_NS / 1e9, self._session.stop)
            resources.follow("client", ready.pid)
            timeout_s = config.total_timeout_ns / 1e9 + _GRACE_S
            return driver.wait_summary(LoadSummary, timeout_s, self._session.stop, resources.sample)
        except EngineError as error:
            if error.code == EXIT_CANNOT:
                # Every other trial would meet the same; what the disk or the machine refuses is not a result.
                raise as_user_error(error) from error
            errors.append(f"{error.role}: {error.message.removeprefix('error: ')}")
            return None


def _read_visits(drafts: Drafts, found: Aggregate | None, errors: list[str]) -> VisitAggregate | None:
    """What the visits say; None when they are not whole. Of a driver that died, everything it wrote goes."""
    if found is None:
        for path in drafts.files:
            path.unlink(missing_ok=True)
        for folder in drafts.folders:
            shutil.rmtree(folder, ignore_errors=True)
        return None
    missing = [path for path in drafts.files if not path.exists()]
    if missing:
        errors.append("the client wrote no " + ", ".join(path.parent.name for path in missing))
        return None
    return aggregate_visits(drafts.visits, drafts.fetches, drafts.playback)


def _files(
    drafts: Drafts,
    found: Aggregate | None,
    link: Links | None,
    resources: ResourceObserver,
    capture: TrialCapture,
) -> TrialFiles:
    def there(path: Path | None) -> Path | None:
        return path if found is not None and path is not None and path.exists() else None

    for folder in drafts.folders:
        with suppress(OSError):
            folder.rmdir()  # of those that nothing was written to
    return TrialFiles(
        samples=there(drafts.samples),
        visits=there(drafts.visits),
        fetches=there(drafts.fetches),
        playback=there(drafts.playback),
        har=there(drafts.har),
        frames=there(drafts.frames),
        link_summary=link,
        link_logs=capture.logs,
        captures=capture.captures,
        resources=resources.rows,
    )

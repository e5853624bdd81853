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
from typing import Any

from trifecta.design import plan
from trifecta.design.model import BrowserWorkload, PageWorkload, Trial, VideoWorkload
from trifecta.implementations.servers.origin import BACKEND_ADDRESS
from trifecta.lab.engine import EXIT_CANNOT, EngineError, EngineProcess, as_user_error
from trifecta.lab.host import keeping_off
from trifecta.lab.topology import Wire
from trifecta.observers.machine import MachineObserver
from trifecta.observers.resources import ResourceObserver
from trifecta.observers.transport import TransportObserver
from trifecta.store.files import disk_errors
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.faults import NO_FAULTS, Faults
from trifecta.workloads.trial import Outcome, finish_link, key_and_event_logs, let_pass, read_samples, row_of
from trifecta.workloads.visits.aggregate import VisitAggregate, aggregate_visits
from trifecta.workloads.visits.configs import START_NS, Drafts, browser_config
from trifecta.workloads.visits.floors import Floors
from trifecta.workloads.visits.place import Place, Serving
from trifecta.workloads.visits.session import BrowserSession

_GRACE_S = 15.0  # beyond its own total timeout a driver is taken for hung
_MOST_STRAY_NAMES = 10
_LOADED_S = 60.0  # Python, Arrow and what drives the browser are loaded from a cold disk


@dataclass
class _Driver:
    """A driver that waits for its configuration, and where and for what it was started."""

    process: EngineProcess
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
        browser, place = plan.client_of(trial.cell), self._session.place(trial.cell)
        ahead = self._ahead
        if ahead is not None and (ahead.browser != browser or ahead.place is not place):
            ahead.process.close()
            self._ahead = ahead = None
        if ahead is None:
            process = self._session.spawn_browser(place, browser, self._faults.browser_driver)
            self._ahead = _Driver(process, browser, place)

    def _take(self, trial: Trial) -> EngineProcess:
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
        workload, path, place = session.workload(trial.cell), session.path(trial.cell), session.place(trial.cell)
        servers = session.servers(trial.cell)
        place.network.use_congestion_control(workload.congestion_control)
        floor = self._floors.shares(trial, place)
        drafts = self._drafts(trial, workload)
        details: dict[str, Any] = {"load": None, "link": None, "probe": session.probe_of(trial.cell)}
        errors: list[str] = []
        transport = TransportObserver(tuple(place.network.hosts.values()))
        marks = [time.monotonic_ns()]
        with ExitStack() as stack:
            driver = stack.enter_context(self._take(trial))
            place.point_to(session.keys(trial.cell))
            links: dict[Wire, EngineProcess] = {}
            for wire in place.network.links:
                links[wire] = stack.enter_context(session.link(place, wire, path, trial.seed))
            with suppress(EngineError):  # it says so again when it is asked to work
                driver.wait_loaded(_LOADED_S, session.stop)
            marks.append(time.monotonic_ns())
            processes = {"driver": driver.pid} | _server_pids(servers)
            processes |= {process.name: process.pid for process in links.values()}
            hosts = place.network.hosts
            resources = stack.enter_context(closing(ResourceObserver(trial.trial, processes, hosts=hosts)))
            wall = datetime.now(UTC)
            transport.begin()
            resources.sample()
            self._machine.begin(time.monotonic_ns(), _own_cpu_ns(resources))
            marks.append(time.monotonic_ns())
            with keeping_off(session.pins["client"]):
                details["load"] = self._await(driver, self._config(trial, drafts, floor), resources, errors)
            marks.append(time.monotonic_ns())
            resources.sample()
            details["machine"] = self._machine.end(time.monotonic_ns(), _own_cpu_ns(resources, details["load"]))
            details["machine"] |= {"transport": transport.end(), "sampler": resources.cost()}
            _note_strays(place, details["load"])
            if details["load"] is not None:
                details["load"]["cpus"] = len(session.pins["client"] or os.sched_getaffinity(0))
            errors += filter(None, (serving.problem() for serving in servers))
            found = read_samples(drafts.samples, details["load"], errors)
            visits = _read_visits(drafts, found, errors)
            marks.append(time.monotonic_ns())
            let_pass(path, since_ns=marks[3])
            said = {wire: finish_link(process, errors) for wire, process in links.items()}
        marks.append(time.monotonic_ns())
        wall_ns = marks[3] - marks[2]
        details["link"] = _links(links, said, resources, wall_ns) if links else None
        details["server"] = _server_details(place, servers, resources, wall_ns)
        outcome = Outcome(
            trial=trial,
            row=row_of(trial, found, details, errors, measured=(marks[2], marks[3]), wall=wall)
            | (visits.columns if visits is not None else {}),
            files=_files(drafts, found, details["link"], resources),
            aggregate=found,
            details=details,
            visits=visits.visits if visits is not None else None,
        )
        names = ("link_start", "observe", "load", "condense", "link_end")
        outcome.phase_ns = {name: marks[i + 1] - marks[i] for i, name in enumerate(names)}
        return outcome

    def _drafts(self, trial: Trial, workload: BrowserWorkload) -> Drafts:
        """Where the driver writes; its folders are made."""
        run, name = self._session.run, trial.trial
        drafts = Drafts(
            samples=run.draft("samples", name, ".parquet"),
            visits=run.draft("visits", name, ".parquet"),
            fetches=run.draft("fetches", name, ".parquet"),
            playback=run.draft("playback", name, ".parquet") if isinstance(workload, VideoWorkload) else None,
            har=run.draft("har", name, ""),
            frames=run.draft("frames", name, "") if isinstance(workload, PageWorkload) and workload.filmstrip else None,
        )
        with disk_errors(run.path):
            for folder in (*drafts.folders, self._session.state):
                folder.mkdir(exist_ok=True)
        return drafts

    def _config(self, trial: Trial, drafts: Drafts, floor: Sequence[float] | None) -> dict[str, Any]:
        session = self._session
        workload = session.workload(trial.cell)
        keylog, _ = key_and_event_logs(session.run.path, trial, workload)
        config = browser_config(
            trial,
            workload,
            session.material(trial.cell).places,
            session.url(trial.cell),
            drafts,
            certificates=session.certificates,
            work_dir=session.state,
            floor=floor,
            keylog_file=keylog,
        )
        return config | self._faults.load_changes(trial.arm)

    def _await(
        self, driver: EngineProcess, config: dict[str, Any], resources: ResourceObserver, errors: list[str]
    ) -> dict[str, Any] | None:
        """Have the driver make the visits; its summary, or None and an error of the trial."""
        try:
            driver.configure(config)
            ready = driver.wait_ready(START_NS / 1e9, self._session.stop)
            resources.follow("client", int(ready["pid"]))
            timeout_s = config["total_timeout_ns"] / 1e9 + _GRACE_S
            return driver.wait_summary(timeout_s, self._session.stop, resources.sample)
        except EngineError as error:
            if error.code == EXIT_CANNOT:
                # Every other trial would meet the same; what the disk or the machine refuses is not a result.
                raise as_user_error(error) from error
            errors.append(f"{error.role}: {error.message.removeprefix('error: ')}")
            return None


def _server_pids(servers: Sequence[Serving]) -> dict[str, int]:
    """The processes of servers by the role under which their resources are recorded; the measured one is ``server``."""
    main, *others = servers
    pids = {"server": main.running.pid, **main.running.backend_pids}
    return pids | {f"server {serving.host}": serving.running.pid for serving in others}


def _server_details(
    place: Place, servers: Sequence[Serving], resources: ResourceObserver, wall_ns: int
) -> dict[str, Any]:
    """What is known of the measured server, what it used, what is behind it and beside it."""
    main, *others = servers
    server = main.running
    details = server.facts() | {
        "host": main.host,
        "address": server.site.address,
        "page": main.material.page.name,
        "cpu_ns": resources.cpu_used_ns("server"),
        "peak_rss_bytes": resources.peak_rss_bytes("server"),
        "run_delay_ns": resources.run_delay_ns("server"),
        "wall_ns": wall_ns,
        **{f"{role}_cpu_ns": resources.cpu_used_ns(role) for role in server.backend_pids},
    }
    if server.backend_pids:
        details["backend_congestion_control"] = place.network.host(main.host).congestion_control(BACKEND_ADDRESS)
    if others:
        details["beside"] = {
            each.host: {"address": each.running.site.address, "cpu_ns": resources.cpu_used_ns(f"server {each.host}")}
            for each in others
        }
    return details


def _note_strays(place: Place, load: dict[str, Any] | None) -> None:
    """Add the names that were asked for and are not there; a browser's own rules keep most questions off DNS."""
    strays = place.names.take_strays()
    if load is not None:
        load["stray_lookups"] = (load.get("stray_lookups") or 0) + sum(strays.values())
        load["stray_names"] = dict(sorted(strays.items(), key=lambda item: -item[1])[:_MOST_STRAY_NAMES])


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
    drafts: Drafts, found: Aggregate | None, link: dict[str, Any] | None, resources: ResourceObserver
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
        resources=resources.rows,
    )


def _links(
    links: dict[Wire, EngineProcess],
    said: dict[Wire, dict[str, Any] | None],
    resources: ResourceObserver,
    wall_ns: int,
) -> dict[str, Any]:
    """``link_json``: what the link of each wire says, and how long it waited for a core."""
    told: dict[str, dict[str, Any]] = {}
    for wire, process in links.items():
        summary = said[wire]
        if summary is not None:
            delay = resources.run_delay_ns(process.name)
            told[wire.name] = summary | ({} if delay is None else {"run_delay_ns": delay, "wall_ns": wall_ns})
    return {"links": told}


def _own_cpu_ns(resources: ResourceObserver, load: dict[str, Any] | None = None) -> int:
    """CPU time of this process and of everything it runs for the trial, as of the last reading.

    Of a browser that is gone by now, and of what drove it, the summary has the whole.
    """
    latest = resources.latest_cpu_ns()
    if load is not None:
        latest["client"] = load["cpu_user_ns"] + load["cpu_system_ns"]
        latest["driver"] = load.get("driver_cpu_ns") or latest.get("driver", 0)
    return time.process_time_ns() + sum(latest.values())

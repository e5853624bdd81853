"""One trial of a browser: links and driver are started, visits are made, everything that was seen is gathered."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

from trifecta.analysis.checks.visits import Visits
from trifecta.contract.browser import BrowserConfig
from trifecta.contract.codec import changed
from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.load import ClientReady, LoadSummary
from trifecta.contract.trial import TrialRow
from trifecta.design.model import Trial
from trifecta.lab import linux
from trifecta.lab.engine import EXIT_CANNOT, EngineError, EngineProgram
from trifecta.lab.topology import Wire
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.trial import Details, Observed, StagedTrial, TrialRunner, finish_link, let_pass, read_samples
from trifecta.workloads.visits.aggregate import VisitAggregate, read_visits
from trifecta.workloads.visits.configs import START_NS, Drafts, browser_config, drafts_of
from trifecta.workloads.visits.floors import Floors
from trifecta.workloads.visits.place import Place, Serving
from trifecta.workloads.visits.programs import (
    add_driver_cpu,
    ended_cpu_ns,
    link_summaries,
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


@dataclass(kw_only=True)
class _Visits(StagedTrial):
    """A trial of a browser under way."""

    place: Place
    servers: tuple[Serving, ...]
    drafts: Drafts
    floor: Sequence[float] | None
    floor_error: str | None
    driver: EngineProgram = field(init=False)
    loaded_cpu_ns: int = 0
    """CPU time of the driver before it was asked to work."""
    driven_cpu_ns: int = 0
    """That of the driver and the browser since."""
    links: dict[Wire, EngineProgram] = field(default_factory=dict)
    said: dict[Wire, LinkSummary | None] = field(default_factory=dict)
    link_said: Links | None = None
    visits: VisitAggregate | None = None


class BrowserTrialRunner(TrialRunner[BrowserSession, _Visits]):
    """Every trial has a browser of its own."""

    def __init__(self, session: BrowserSession) -> None:
        """Nothing is started yet."""
        super().__init__(session)
        self._ahead: _Driver | None = None
        self._floors = Floors(session)

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

    def _prepare(self, trial: Trial) -> _Visits:
        session = self._session
        workload, place = session.workload(trial), session.place(trial)
        place.network.use_congestion_control(workload.congestion_control)
        floor, floor_error = self._floors.shares(trial, place)
        drafts = drafts_of(session.run, trial.trial, workload, session.state)
        return _Visits(
            trial=trial,
            path=session.path(trial),
            samples=drafts.samples,
            capture=TrialCapture(session.run, session.study, trial, workload),
            details=Details(probe=session.probe_of(trial)),
            place=place,
            servers=session.servers(trial),
            drafts=drafts,
            floor=floor,
            floor_error=floor_error,
        )

    def _start(self, staged: _Visits, stack: ExitStack) -> None:
        session, place = self._session, staged.place
        staged.driver = stack.enter_context(self._take(staged.trial))
        place.point_to(session.server_keys(staged.trial))
        for wire in place.network.links:
            link = session.link(place, wire, staged.path, staged.trial.seed, staged.capture)
            staged.links[wire] = stack.enter_context(link)
        with suppress(EngineError):  # it says so again when it is asked to work
            staged.driver.wait_loaded(_LOADED_S, session.stop)

    def _observed(self, staged: _Visits) -> Observed:
        links = {link.name: link.pid for link in staged.links.values()}
        hosts = staged.place.network.hosts
        return Observed(
            {"driver": staged.driver.pid, **server_pids(staged.servers), **links}, tuple(hosts.values()), hosts
        )

    def _about_to_work(self, staged: _Visits) -> None:
        staged.loaded_cpu_ns = linux.tree_cpu_ns(staged.driver.pid)

    def _work(self, staged: _Visits, resources: ResourceObserver) -> LoadSummary:
        driver, stop = staged.driver, self._session.stop
        config = self._config(staged)
        driver.configure(config)
        ready = driver.wait_ready(ClientReady, START_NS / 1e9, stop)
        resources.follow("client", ready.pid)
        summary = driver.wait_summary(LoadSummary, config.total_timeout_ns / 1e9 + _GRACE_S, stop, resources.sample)
        for path in (*staged.drafts.files, *staged.drafts.folders):
            driver.get(path)
        return summary

    def _codes_for_all(self, staged: _Visits) -> Collection[int]:
        return (EXIT_CANNOT,)

    def _blame(self, staged: _Visits, error: EngineError) -> str:
        return f"{error.role}: {error.message.removeprefix('error: ')}"

    def _after_client(self, staged: _Visits) -> None:
        staged.driven_cpu_ns = ended_cpu_ns(staged.driver) - staged.loaded_cpu_ns
        add_driver_cpu(staged.details.load, staged.driven_cpu_ns)

    def _own_cpu_ns(self, staged: _Visits, resources: ResourceObserver) -> int:
        return own_cpu_ns(resources) + staged.driven_cpu_ns

    def _condense(self, staged: _Visits) -> Aggregate | None:
        self.start_ahead(staged.trial)  # nothing is measured any more: it loads while this trial is read
        self._tell(staged)
        staged.errors += filter(None, (serving.problem() for serving in staged.servers))
        aggregate = read_samples(staged.samples, staged.details.load, staged.errors)
        third_parties = self._session.material(staged.trial).page.third_parties
        staged.visits = read_visits(staged.drafts, aggregate, staged.errors, third_parties)
        return aggregate

    def _end_links(self, staged: _Visits) -> None:
        let_pass(staged.path, since_ns=staged.ended_ns)
        staged.said = {wire: finish_link(process, staged.errors) for wire, process in staged.links.items()}
        staged.capture.finish({wire.name: summary for wire, summary in staged.said.items()}, staged.errors)

    def _describe(
        self, staged: _Visits, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        staged.link_said = link_summaries(staged.links, staged.said, resources, wall_ns) if staged.links else None
        staged.details.link = staged.link_said
        staged.details.server = server_details(staged.place, staged.servers, resources, wall_ns)

    def _row(self, staged: _Visits, row: TrialRow) -> TrialRow:
        return row if staged.visits is None else {**row, **staged.visits.columns}

    def _visits(self, staged: _Visits) -> Visits | None:
        return None if staged.visits is None else staged.visits.visits

    def _files(self, staged: _Visits, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        return replace(
            staged.drafts.left(read=aggregate is not None),
            link_summary=staged.link_said,
            link_logs=staged.capture.logs,
            captures=staged.capture.captures,
            resources=resources.rows,
        )

    def _tell(self, staged: _Visits) -> None:
        """Add what the lab knows to what the driver said: cores, names that were asked for and are not there, and why
        nobody knows what the machine drops of a video.

        A browser's own rules keep most such questions off DNS; it counts those itself.
        """
        load, strays = staged.details.load, staged.place.names.take_strays()
        if load is not None:
            load.cpus = len(self._session.pins["client"] or os.sched_getaffinity(0))
            load.stray_lookups = (load.stray_lookups or 0) + sum(strays.values())
            load.floor_error = staged.floor_error
            load.stray_names = dict(sorted(strays.items(), key=lambda item: -item[1])[:_MOST_STRAY_NAMES])

    def _config(self, staged: _Visits) -> BrowserConfig:
        session, trial = self._session, staged.trial
        config = browser_config(
            trial,
            session.workload(trial),
            session.material(trial).places,
            session.url(trial),
            staged.drafts,
            certificates=session.certificates,
            work_dir=session.state,
            third_parties=session.material(trial).page.third_parties,
            floor=staged.floor,
            keylog_file=staged.capture.keylog(),
            qlog_dir=staged.capture.qlog_dir,
        )
        return changed(config, self._faults.load_changes(trial.arm))

"""One trial of a page elsewhere: a browser in this machine's own network, which waits for its turn at every visit."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from trifecta.analysis.checks.visits import Visits
from trifecta.analysis.polite_planner import TURNED_AWAY, retry_after_ns
from trifecta.contract.codec import changed, plain
from trifecta.contract.load import ClientReady, LoadSummary
from trifecta.contract.trial import TrialRow
from trifecta.design.model import Trial
from trifecta.design.workloads.far_page import FarPageWorkload
from trifecta.lab import linux
from trifecta.lab.engine import EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.far.page_configs import VisitOptions, page_config
from trifecta.workloads.far.page_look import GRACE_S
from trifecta.workloads.far.page_session import FarPageSession
from trifecta.workloads.far.session import Chosen
from trifecta.workloads.trial import Details, Observed, StagedTrial, TrialRunner, read_samples
from trifecta.workloads.visits.aggregate import VisitAggregate, read_visits
from trifecta.workloads.visits.configs import START_NS, Drafts, drafts_of
from trifecta.workloads.visits.programs import add_driver_cpu, ended_cpu_ns, own_cpu_ns

_LOADED_S = 60.0  # Python, Arrow and what drives the browser are loaded from a cold disk


@dataclass(kw_only=True)
class _FarPage(StagedTrial):
    """A trial under way."""

    workload: FarPageWorkload
    chosen: Chosen
    addresses: dict[str, str]
    drafts: Drafts
    driver: EngineProgram = field(init=False)
    loaded_cpu_ns: int = 0
    """CPU time of the driver before it was asked to work."""
    driven_cpu_ns: int = 0
    """That of the driver and the browser since."""
    visits: VisitAggregate | None = None


class FarPageTrialRunner(TrialRunner[FarPageSession, _FarPage]):
    """Every trial has a browser of its own. Nothing is started ahead: the pauses are longer than a start."""

    def _prepare(self, trial: Trial) -> _FarPage:
        session = self._session
        workload, chosen = session.workload(trial), session.chosen(trial)
        drafts = drafts_of(session.run, trial.trial, workload, session.state)
        addresses = session.addresses(trial)
        session.keeper.wait(session.page(trial)["octets"])
        return _FarPage(
            trial=trial,
            path=session.path(trial),
            samples=drafts.samples,
            capture=TrialCapture(session.run, session.study, trial, workload),
            details=Details(probe=None),
            workload=workload,
            chosen=chosen,
            addresses=addresses,
            drafts=drafts,
        )

    def _start(self, staged: _FarPage, stack: ExitStack) -> None:
        staged.driver = stack.enter_context(self._session.spawn_browser(staged.trial.client))
        with suppress(EngineError):  # it says so again when it is asked to work
            staged.driver.wait_loaded(_LOADED_S, self._session.stop)

    def _observed(self, staged: _FarPage) -> Observed:
        """The driver and the browser alone: this machine's counters are of all that it does."""
        return Observed({"driver": staged.driver.pid}, ())

    def _about_to_work(self, staged: _FarPage) -> None:
        staged.loaded_cpu_ns = linux.tree_cpu_ns(staged.driver.pid)

    def _work(self, staged: _FarPage, resources: ResourceObserver) -> LoadSummary:
        session, driver, trial = self._session, staged.driver, staged.trial
        if staged.chosen.spot is None:
            raise EngineError("client", None, staged.chosen.problem)
        observation = session.page(trial)
        options = VisitOptions(
            trial.trial,
            session.targets[staged.workload.url],
            trial.protocol,
            staged.addresses,
            session.given,
            session.keeper.manners.gap_ns(observation["octets"], observation["requests"]),
            trial.seed,
        )
        config = page_config(options, staged.workload, staged.drafts, session.state)
        driver.configure(changed(config, self._faults.load_changes(trial.arm)))
        ready = driver.wait_ready(ClientReady, START_NS / 1e9, session.stop)
        resources.follow("client", ready.pid)
        limit_s = config.total_timeout_ns / 1e9 + GRACE_S
        summary = driver.wait_summary(LoadSummary, limit_s, session.stop, resources.sample)
        for path in (*staged.drafts.files, *staged.drafts.folders):
            driver.get(path)
        return summary

    def _codes_for_all(self, staged: _FarPage) -> Collection[int]:
        return (EXIT_CANNOT, EXIT_UNSUPPORTED)

    def _blame(self, staged: _FarPage, error: EngineError) -> str:
        if staged.chosen.spot is None:
            return error.message
        return f"{error.role}: {error.message.removeprefix('error: ')}"

    def _after_client(self, staged: _FarPage) -> None:
        """What was sent counts, whatever became of it; who asked for patience gets it."""
        staged.driven_cpu_ns = ended_cpu_ns(staged.driver) - staged.loaded_cpu_ns
        load, keeper = staged.details.load, self._session.keeper
        add_driver_cpu(load, staged.driven_cpu_ns)
        if load is None:  # what a driver did that did not end well, nobody knows: as much as it was asked for
            observation, turns = self._session.page(staged.trial), staged.workload.turns(staged.trial.connection)
            sent = turns if staged.chosen.spot is not None else 0
            keeper.record_requests(sent * observation["octets"], max(1, sent * observation["requests"]))
            return
        keeper.record_requests(
            int(load.octets_about or 0), max(1, int(load.requests_made or 0)), self._began_ns(staged, load)
        )
        if load.ended == TURNED_AWAY:
            keeper.turned_away(retry_after_ns(plain(load), datetime.now(UTC).isoformat()))
        else:
            keeper.answered()

    def _began_ns(self, staged: _FarPage, load: LoadSummary) -> int:
        """When the first visit began: the times that a driver says are of measured ones."""
        observation = self._session.page(staged.trial)
        gap_ns = self._session.keeper.manners.gap_ns(observation["octets"], observation["requests"])
        return load.started_ns - staged.workload.warmup_visits * gap_ns

    def _own_cpu_ns(self, staged: _FarPage, resources: ResourceObserver) -> int:
        return own_cpu_ns(resources) + staged.driven_cpu_ns

    def _condense(self, staged: _FarPage) -> Aggregate | None:
        load = staged.details.load
        if load is not None:
            load.cpus = len(self._session.pins["client"] or os.sched_getaffinity(0))
        aggregate = read_samples(staged.samples, load, staged.errors)
        own = self._session.targets[staged.workload.url].host
        staged.visits = read_visits(
            staged.drafts, aggregate, staged.errors, tuple(host for host in staged.addresses if host != own)
        )
        return aggregate

    def _describe(
        self, staged: _FarPage, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        details, spot = staged.details, staged.chosen.spot
        details.server = {"name": staged.trial.server, "url": staged.workload.url, "cpu_ns": None}
        if spot is not None:
            own = self._session.targets[staged.workload.url].host
            details.server |= {"address": spot.address, "resolved": list(staged.chosen.resolved)}
            details.server["beside"] = {
                host: {"address": address, "cpu_ns": None} for host, address in staged.addresses.items() if host != own
            }

    def _row(self, staged: _FarPage, row: TrialRow) -> TrialRow:
        return row if staged.visits is None else {**row, **staged.visits.columns}

    def _visits(self, staged: _FarPage) -> Visits | None:
        return None if staged.visits is None else staged.visits.visits

    def _files(self, staged: _FarPage, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        return replace(staged.drafts.left(read=aggregate is not None), resources=resources.rows)

"""One trial at a server elsewhere: a load here, or at a vantage point, which waits for its turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from trifecta.analysis.polite_planner import TURNED_AWAY, retry_after_ns
from trifecta.contract.codec import plain
from trifecta.contract.load import LoadSummary
from trifecta.contract.machine import MachineFacts
from trifecta.design.model import Trial
from trifecta.design.workloads.far import FarWorkload
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram
from trifecta.lab.ssh.connection import HostLost
from trifecta.observers.resources import ResourceObserver
from trifecta.store.run import TrialFiles
from trifecta.workloads.aggregate import Aggregate
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.far.configs import Request, RequestSchedule, load_config
from trifecta.workloads.far.session import Chosen, FarSession
from trifecta.workloads.remote_client import without_client
from trifecta.workloads.trial import Details, Observed, StagedTrial, TrialRunner, beside_client, read_samples

_GRACE_S = 5.0  # beyond its own total timeout the load is taken for hung


@dataclass(kw_only=True)
class _StagedFarTrial(StagedTrial):
    """A trial under way."""

    workload: FarWorkload
    chosen: Chosen
    load: EngineProgram = field(init=False)
    begun_ns: int = 0
    """When the load was told to begin, by the clock here: a vantage point has one of its own."""

    @property
    def is_here(self) -> bool:
        """Whether this machine asks."""
        return not self.workload.distant


class FarTrialRunner(TrialRunner[FarSession, _StagedFarTrial]):
    """Nothing is started ahead: a request a second is not what a start would hold up."""

    def _prepare(self, trial: Trial) -> _StagedFarTrial:
        session = self._session
        workload, chosen = session.workload(trial), session.chosen(trial)
        session.keeper.wait(chosen.spot.answer_bytes if chosen.spot is not None else 0)
        return _StagedFarTrial(
            trial=trial,
            path=session.path(trial),
            samples=session.run.draft("samples", trial.trial, ".parquet"),
            capture=TrialCapture(session.run, session.study, trial, workload),
            details=Details(probe=None),
            workload=workload,
            chosen=chosen,
        )

    def _start(self, staged: _StagedFarTrial, stack: ExitStack) -> None:
        session = self._session
        place = session.place(staged.workload.asked_from)
        try:
            staged.load = stack.enter_context(place.start("load", session.log("load"), cpus=session.pins["client"]))
        except HostLost as error:  # since it was looked at
            staged.errors.append(str(error))

    def _observed(self, staged: _StagedFarTrial) -> Observed:
        """The client alone: this machine's counters are of all that it does. Of a vantage point nothing is read."""
        return Observed({"client": staged.load.pid} if staged.is_here else {}, ())

    def _work(self, staged: _StagedFarTrial, resources: ResourceObserver) -> LoadSummary:
        session, spot, trial = self._session, staged.chosen.spot, staged.trial
        if staged.errors:
            raise EngineError("load", None, "was not started")
        if spot is None:
            raise EngineError("load", None, staged.chosen.problem)
        request = Request(
            session.targets[staged.workload.url],
            spot.address,
            trial.protocol,
            session.authorities,
            spot.udp_payload_bytes,
            spot.status,
        )
        course = RequestSchedule(
            trial.trial,
            trial.connection,
            staged.workload.requests,
            staged.workload.before(trial.connection),
            session.keeper.manners.gap_ns(spot.answer_bytes),
            trial.seed,
        )
        config = load_config(request, staged.workload, course, staged.samples)
        staged.begun_ns = time.monotonic_ns()
        staged.load.configure(config)
        timeout_s = config.total_timeout_ns / 1e9 + _GRACE_S
        tick: Callable[[], None] = (
            resources.sample if staged.is_here else partial(self._look, staged.workload.asked_from)
        )
        summary = staged.load.wait_summary(LoadSummary, timeout_s, session.stop, tick)
        staged.load.get(staged.samples)
        return summary

    def _look(self, vantage: str) -> None:
        """Ten times a second: a trial whose host is lost need not wait for all of its timeouts."""
        if (lost := self._session.vantages.lost(vantage)) is not None:
            raise EngineError("load", None, f"had no more to do: {lost}")

    def _codes_for_all(self, staged: _StagedFarTrial) -> Collection[int]:
        return (EXIT_CANNOT, EXIT_BAD_INPUT, EXIT_UNSUPPORTED)

    def _blame(self, staged: _StagedFarTrial, error: EngineError) -> str:
        return error.message if staged.chosen.spot is None and not staged.errors else f"client {error.message}"

    def _after_client(self, staged: _StagedFarTrial) -> None:
        """What was sent counts, whatever became of it; a server that asked for patience gets it."""
        load, keeper = staged.details.load, self._session.keeper
        if load is None:
            # How far one got whose host is lost nobody knows: as if it had made them all.
            lost = staged.begun_ns > 0 and not staged.is_here
            keeper.record_requests(0, staged.workload.every_request(staged.trial.connection) if lost else 1)
            return
        octets = (load.wire_bytes_in or 0) + (load.wire_bytes_out or 0)
        keeper.record_requests(octets, max(1, load.samples), load.started_ns if staged.is_here else staged.begun_ns)
        if load.ended == TURNED_AWAY:
            keeper.turned_away(retry_after_ns(plain(load), datetime.now(UTC).isoformat()))
        else:
            keeper.answered()

    def _around(self, staged: _StagedFarTrial, machine: MachineFacts) -> MachineFacts:
        return machine if staged.is_here else without_client(machine, {})

    def _condense(self, staged: _StagedFarTrial) -> Aggregate | None:
        return read_samples(staged.samples, staged.details.load, staged.errors)

    def _describe(
        self, staged: _StagedFarTrial, aggregate: Aggregate | None, resources: ResourceObserver, *, wall_ns: int
    ) -> None:
        details = staged.details
        details.server = {"name": staged.trial.server, "url": staged.workload.url, "cpu_ns": None}
        if staged.chosen.spot is not None:
            details.server |= {"address": staged.chosen.spot.address, "resolved": list(staged.chosen.resolved)}
        if details.load is not None and staged.is_here:
            beside_client(details.load, resources.run_delay_ns("client"), wall_ns)

    def _files(self, staged: _StagedFarTrial, aggregate: Aggregate | None, resources: ResourceObserver) -> TrialFiles:
        samples = staged.samples if aggregate is not None else None
        return TrialFiles(samples=samples, resources=resources.rows) if staged.is_here else TrialFiles(samples=samples)

"""What stays up over the trials of a run, of every workload: who is given up, what paths do, links and certificates."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkConfig, LinkReady
from trifecta.contract.machine import NetworkFacts
from trifecta.contract.probe import MeasureSummary
from trifecta.contract.run import RunDocument
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.model import Cell, Levelled, PathSpec, RequestsWorkload, Study
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.builds import with_own
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.registry import BROWSERS, CLIENTS, SERVERS, SERVICES
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerAdapter
from trifecta.implementations.services.program import ServicesProgram
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.engine import EngineError, EngineProgram, Stopped, as_user_error
from trifecta.lab.hosts import KernelSettings
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.paths import link_config
from trifecta.lab.topology import Topology, Wire
from trifecta.store.files import full
from trifecta.store.run import RunDirectory
from trifecta.workloads.capturing import ONLY, TrialCapture
from trifecta.workloads.faults import NO_FAULTS, Faults

_LINK_READY_S = 10.0
READY_MORE_S = 10.0  # for each further protocol of a server that answers over one: the program is there
Work = TypeVar("Work", bound=RequestsWorkload)
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Adapters:
    """What a run may use, by name."""

    servers: Mapping[str, ServerAdapter] = field(default_factory=lambda: SERVERS)
    clients: Mapping[str, ClientAdapter] = field(default_factory=lambda: CLIENTS)
    browsers: Mapping[str, BrowserAdapter] = field(default_factory=lambda: BROWSERS)
    services: Mapping[str, ServicesProgram] = field(default_factory=lambda: SERVICES)

    def for_study(self, study: Study) -> Adapters:
        """With the servers that a study brings itself."""
        return replace(self, servers=with_own(self.servers, study))


@dataclass(frozen=True)
class SessionContext:
    """What every session is made of."""

    engine: Path
    run: RunDirectory
    study: Study
    stop: Callable[[], bool]
    adapters: Adapters = field(default_factory=Adapters)
    faults: Faults = NO_FAULTS


class Session(ABC, Generic[Work, Key]):
    """Raised by ``with``, taken down at its end. Everything it starts runs in the lab.

    ``Work`` is the class of the study's workloads. A ``Key`` stands for what a treatment needs and what can fail on its
    own: a server, or a place. Its cells cannot be measured then, those of the others can.
    """

    certificates: Certificates

    def __init__(self, common: SessionContext, kind: type[Work], pins: Mapping[str, frozenset[int] | None]) -> None:
        """Prepare; ``pins``: which program has which cores."""
        self.engine = common.engine
        self.run = common.run
        self.study = common.study
        self.stop = common.stop
        self.adapters = common.adapters
        self.faults = common.faults
        self.pins = pins
        self.failed: dict[Key, str] = {}
        """What did not come up, with the reason."""
        self.probes: dict[Hashable, MeasureSummary] = {}
        self.probed_at: dict[Hashable, float] = {}
        self._kind = kind
        self._stack = ExitStack()
        """Takes down what was raised, the last first."""

    def __enter__(self) -> Self:
        """Raise what needs no cells."""
        try:
            self._raise()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take everything down."""
        self._stack.close()

    @abstractmethod
    def _raise(self) -> None:
        """Raise what needs no cells; ``_stack`` takes it down."""

    @abstractmethod
    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise what the cells need; what does not come up is in ``failed``.

        ``more_sizes`` are served besides those of the study, by servers that serve sizes.
        """

    @abstractmethod
    def keys(self, at: Levelled) -> tuple[Key, ...]:
        """What a treatment needs, the measured one first."""

    @abstractmethod
    def level(self, key: Key) -> tuple[str, str]:
        """The factor and the level that are given up with this."""

    def problem(self, key: Key) -> str | None:
        """How this ended, in words; None while it runs, and where nothing runs between trials or is not ours to see."""
        return None

    def _restart(self, key: Key) -> None:
        """Start this again, and wait until it answers; ServerFailed when it does not."""

    def _end(self, key: Key) -> None:
        """End what is left of this."""

    @property
    def topologies(self) -> Sequence[Topology]:
        """The networks that are up: none, where the network is not ours."""
        return ()

    @abstractmethod
    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same way: one probe is enough for all of them."""

    @abstractmethod
    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        """What the path of a treatment does to packets; at first the largest one, which does not change, too."""

    def workload(self, at: Levelled) -> Work:
        """The workload of a treatment."""
        return plan.workload_of(self._kind, self.study, at)

    def path(self, at: Levelled) -> PathSpec:
        """The path of a treatment."""
        return self.study.paths[at.path]

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.run.path / "logs" / f"{name}.log"

    def certify(self, names: Sequence[str], addresses: Sequence[str]) -> None:
        """Make the certificates of the run."""
        self.certificates = make_certificates(self.run.path / "pki", names, addresses)

    @property
    def network(self) -> NetworkFacts:
        """Settings of the lab's kernel, for ``run.json``."""
        kernel = next((topology.kernel for topology in self.topologies), KernelSettings())
        return kernel.facts()

    def facts(self) -> RunDocument:
        """What is known once it is raised, for ``run.json``."""
        return {"network": self.network}

    def keys_of(self, cell: Cell) -> list[Key]:
        """What a cell needs, each once."""
        return list(dict.fromkeys(key for at in plan.treatments_of(self.study, cell) for key in self.keys(at)))

    def fail(self, key: Key, reason: str) -> None:
        """Give this up: it is ended, so that it takes nothing from the others."""
        self.failed[key] = reason
        self._end(key)

    def has_failed(self, cell: Cell) -> str | None:
        """Why a cell is given up; None when it is not."""
        return next((self.failed[key] for key in self.keys_of(cell) if key in self.failed), None)

    def failures(self) -> list[tuple[str, str, str]]:
        """What is given up: factor, level, reason."""
        return [(*self.level(key), reason) for key, reason in self.failed.items()]

    def down(self, cell: Cell) -> str | None:
        """How what a cell needs ended, in words; None while all of it runs."""
        return next(filter(None, map(self.problem, self.keys_of(cell))), None)

    def stand_up(self, cell: Cell) -> bool:
        """Start what ended of a cell again; False when it does not come up, and is given up."""
        for key in self.keys_of(cell):
            if key not in self.failed and self.problem(key) is not None:
                try:
                    self._restart(key)
                except ServerFailed as error:
                    self.fail(key, str(error))
        return self.has_failed(cell) is None

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Start anew, before a block of a cell, what that costs little beside ``block_ns``; False as `stand_up`."""
        return True

    def last_look(self) -> None:
        """What is looked at when no block follows: nothing."""

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the path of a treatment was not probed for so long."""
        last = self.probed_at.get(self.probe_key(at))
        return last is None or time.monotonic() - last >= every_s

    def probe(self, at: Levelled, seed: int) -> MeasureSummary:
        """Measure from outside the link what the path of a treatment does to packets."""
        key = self.probe_key(at)
        last = self.probes.get(key)
        summary = self._measure(at, seed, first=last is None)
        if last is not None:
            summary.largest_payload_bytes = last.largest_payload_bytes
        self.probes[key] = summary
        self.probed_at[key] = time.monotonic()
        return summary

    def probe_of(self, at: Levelled) -> MeasureSummary | None:
        """What the last probe of a treatment's path found."""
        return self.probes.get(self.probe_key(at))

    def link_config(
        self, path: PathSpec, seed: int, wire: str = ONLY, capture: TrialCapture | None = None
    ) -> LinkConfig:
        """What a link is asked to do. Of several wires each has weather of its own, the same for every arm."""
        own = link_config(path, seed if wire == ONLY else plan.stable_seed("wire", seed, wire))
        return changed(own if capture is None else capture.on_link(own, wire), self.faults.link)

    def spawn_link(self, topology: Topology, wire: Wire, name: str, log: str = "link") -> EngineProgram:
        """Start the link of a wire; it waits for its configuration."""
        if self.study.by_netem:
            topology.send_wire_frames(wire)
        middle = Namespaces(topology, self.engine).middle(wire)
        return middle.start("link", self.log(log), cpus=self.pins["link"], name=name)


def set_to_work(link: EngineProgram, config: LinkConfig, stop: Callable[[], bool]) -> EngineProgram:
    """Give a link its configuration and wait until it carries packets; one that cannot is ended.

    CannotError then: every trial would meet the same.
    """
    try:
        link.configure(config)
        link.wait_ready(LinkReady, _LINK_READY_S, stop)
    except EngineError as error:
        link.close()
        raise as_user_error(error) from error
    except BaseException:
        link.close()
        raise
    return link


def bring_up(server: RunningServer, *, renewed: bool = False) -> None:
    """Start a server; ServerFailed for whatever its adapter or program does wrong."""
    try:
        server.start(renewed=renewed)
    except (Stopped, EngineError):
        raise
    except CannotError as error:
        raise ServerFailed(str(error)) from error
    except Exception as error:
        if isinstance(error, OSError) and (no_room := full(error, server.site.state)) is not None:
            raise no_room from error  # no fault of the adapter's, and every other server would meet it
        words = " ".join(str(error).split())
        raise ServerFailed(f"the adapter of {server.adapter.name} fails: {type(error).__name__}: {words}") from error

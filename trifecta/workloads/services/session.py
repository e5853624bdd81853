"""What stays up over the trials of a study of services: places and certificates. Services are new for every trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkConfig
from trifecta.contract.probe import MeasureSummary
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.graph import Graph
from trifecta.design.model import Cell, Levelled, PathSpec, ServicesWorkload, Study
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.engine import EngineProgram
from trifecta.lab.host import pin_table
from trifecta.lab.host_graph import addresses_of
from trifecta.lab.hosts import NetworkFacts
from trifecta.lab.paths import link_config
from trifecta.lab.topology import Wire
from trifecta.store.run import RunDirectory
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.services.configs import dns_name
from trifecta.workloads.services.places import Ground, Place, PlaceKey, key_of
from trifecta.workloads.session import set_to_work


@dataclass
class ServicesSession:
    """Raised by ``with``, taken down at its end. Everything it starts runs in the lab."""

    engine: Path
    run: RunDirectory
    study: Study
    stop: Callable[[], bool]
    link_changes: Mapping[str, Any] = field(default_factory=dict)
    probes: dict[tuple[PlaceKey, str], MeasureSummary] = field(default_factory=dict)
    probed_at: dict[tuple[PlaceKey, str], float] = field(default_factory=dict)
    places: dict[PlaceKey, Place] = field(default_factory=dict)
    failed: dict[PlaceKey, str] = field(default_factory=dict)
    """Places that could not be raised, with the reason: their cells cannot be measured, the others can."""

    def __enter__(self) -> ServicesSession:
        """Make the certificates: every service of the study by its name, every host by its addresses."""
        self._stack = ExitStack()
        treatments = plan.treatments(self.study)
        graphs = [self.graph(at) for at in treatments]
        names = list(dict.fromkeys(dns_name(service) for graph in graphs for service in graph.services))
        most = max(self.workload(at).hosts for at in treatments)
        addresses = [address for number in range(1, most + 1) for address in addresses_of(number)]
        self.certificates: Certificates = make_certificates(self.run.path / "pki", names, addresses)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the places down."""
        self._stack.close()

    @property
    def messages(self) -> Path | None:
        """The folder of the messages to send; None for filler."""
        named = cast(ServicesWorkload, self.study.workload).messages
        return None if named is None else Path(named)

    def workload(self, at: Levelled) -> ServicesWorkload:
        """The workload of a treatment."""
        return cast(ServicesWorkload, plan.workload_for(self.study, at))

    def path(self, at: Levelled) -> PathSpec:
        """The path of a treatment."""
        return self.study.paths[at.path]

    def graph(self, at: Levelled) -> Graph:
        """Who calls whom."""
        return self.workload(at).graph

    def key(self, at: Levelled) -> PlaceKey:
        """Which place a treatment has."""
        # A capture is made by a link, so a path that does nothing has one too then.
        linked = self.path(at).linked or self.study.capture
        return key_of(self.graph(at), self.workload(at), linked=linked)

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise the places that the cells need; one that cannot be raised is in ``failed``."""
        ground = Ground(self.engine, pin_table(), self.run.path, self.messages)
        for at in plan.treatments(self.study, cells):
            key = self.key(at)
            if key in self.places or key in self.failed:
                continue
            place = Place(key, self.graph(at), self.workload(at), ground)
            try:
                self.places[key] = self._stack.enter_context(place)
            except CannotError as error:
                self.failed[key] = str(error)

    def has_failed(self, cell: Cell) -> str | None:
        """Why a place of a cell is not there; None when all are."""
        reasons = (self.failed.get(self.key(at)) for at in plan.treatments_of(self.study, cell))
        return next(filter(None, reasons), None)

    def failures(self) -> list[tuple[str, str, str]]:
        """What is given up: factor, level, reason."""
        return [("place", key.place, reason) for key, reason in self.failed.items()]

    def down(self, cell: Cell) -> str | None:
        """Services are new for every trial, so none is down before it."""
        return None

    def stand_up(self, cell: Cell) -> bool:
        """Nothing has to stand between trials."""
        return True

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Services are new for every trial."""
        return True

    def place(self, at: Levelled) -> Place:
        """The place of a treatment."""
        return self.places[self.key(at)]

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.run.path / "logs" / f"{name}.log"

    @property
    def network(self) -> NetworkFacts:
        """Settings of the lab's kernel, for ``run.json``."""
        for place in self.places.values():
            return place.topology.kernel.facts()
        return {"settings": {}, "unknown_settings": []}

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same way."""
        return self._probe_key(at)

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the wire of a treatment was not probed for so long; services of one host have none."""
        last = self.probed_at.get(self._probe_key(at))
        return bool(self.place(at).topology.wires) and (last is None or time.monotonic() - last >= every_s)

    def probe(self, at: Levelled, seed: int) -> MeasureSummary:
        """Measure what the first wire with the treatment's path on it (else the first) does to packets."""
        place, path = self.place(at), self.path(at)
        wire = next(iter(place.links), place.topology.wires[0])
        key = self._probe_key(at)
        asked = path if wire.impaired else PathSpec("clean")
        config = measure_config(asked, place.topology.address(wire.b), first=key not in self.probes)
        between = (place.at(wire.a), place.at(wire.b))
        with ExitStack() as stack:
            if wire.impaired:
                stack.enter_context(self.link(place, wire, path, seed))
            summary = measure_path(between, self.log("probe"), config, self.stop)
        summary.wire = wire.name
        if key in self.probes:
            summary.largest_payload_bytes = self.probes[key].largest_payload_bytes
        self.probes[key] = summary
        self.probed_at[key] = time.monotonic()
        return summary

    def probe_of(self, at: Levelled) -> MeasureSummary | None:
        """What the last probe of a treatment's path found."""
        return self.probes.get(self._probe_key(at))

    def link(self, place: Place, wire: Wire, path: PathSpec, seed: int) -> EngineProgram:
        """Start the link of a wire and wait until it carries packets."""
        return set_to_work(place.start_link(wire), self.link_config(place, wire, path, seed), self.stop)

    def link_config(self, place: Place, wire: Wire, path: PathSpec, seed: int) -> LinkConfig:
        """What the link of a wire is asked to do: every wire has weather of its own, the same for every arm."""
        own_seed = plan.stable_seed("wire", seed, wire.name)
        return changed(link_config(path, own_seed, devices=place.topology.devices(wire)), self.link_changes)

    def _probe_key(self, at: Levelled) -> tuple[PlaceKey, str]:
        return self.key(at), self.path(at).name

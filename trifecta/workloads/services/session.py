"""What stays up over the trials of a study of services: places and certificates. Services are new for every trial."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from trifecta.contract.probe import MeasureSummary
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.graph import Graph
from trifecta.design.model import Cell, Levelled, PathSpec, ServicesWorkload
from trifecta.design.services import SERVER_LEVEL
from trifecta.implementations.services.program import ServicesProgram
from trifecta.lab.engine import EngineProgram
from trifecta.lab.host import pin_table
from trifecta.lab.host_graph import addresses_of
from trifecta.lab.topology import Topology, Wire
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.services.configs import dns_name
from trifecta.workloads.services.places import Place, PlaceKey, PlacesContext, key_of
from trifecta.workloads.session import Session, SessionContext, set_to_work


class ServicesSession(Session[ServicesWorkload, PlaceKey]):
    """The places of the cells. Nothing in them has to stand between trials."""

    def __init__(self, common: SessionContext) -> None:
        """Prepare; nothing is raised before ``__enter__``."""
        super().__init__(common, ServicesWorkload, pin_table())
        self.places: dict[PlaceKey, Place] = {}

    def _raise(self) -> None:
        """The certificates: every service of the study by its name, every host by its addresses."""
        treatments = plan.treatments(self.study)
        graphs = [self.graph(at) for at in treatments]
        names = list(dict.fromkeys(dns_name(service) for graph in graphs for service in graph.services))
        most = max(self.workload(at).hosts for at in treatments)
        self.certify(names, [address for number in range(1, most + 1) for address in addresses_of(number)])

    @property
    def topologies(self) -> Sequence[Topology]:
        """Those of all places."""
        return [place.topology for place in self.places.values()]

    def graph(self, at: Levelled) -> Graph:
        """Who calls whom, with what its protocol has answered."""
        return self.workload(at).for_protocol(at.protocol).graph

    def key(self, at: Levelled) -> PlaceKey:
        """Which place a treatment has."""
        # A capture is made by a link, so a path that does nothing has one too then.
        linked = self.path(at).linked or self.study.capture
        return key_of(self.graph(at), self.workload(at), linked=linked)

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise the places that the cells need; one that cannot be raised is in ``failed``."""
        ground = PlacesContext(self.engine, self.pins, self.run.path)
        for at in plan.treatments(self.study, cells):
            key = self.key(at)
            if key in self.places or key in self.failed:
                continue
            place = Place(key, self.graph(at), self.workload(at), ground)
            try:
                self.places[key] = self._stack.enter_context(place)
            except CannotError as error:
                self.failed[key] = str(error)

    def keys(self, at: Levelled) -> tuple[PlaceKey, ...]:
        """The place of a treatment."""
        return (self.key(at),)

    def level(self, key: PlaceKey) -> tuple[str, str]:
        """The kind of place."""
        return "place", key.place

    def program(self, at: Levelled) -> ServicesProgram | None:
        """The program of a treatment's services; None for the engine's own."""
        return None if at.server == SERVER_LEVEL else self.adapters.services[at.server]

    def place(self, at: Levelled) -> Place:
        """The place of a treatment."""
        return self.places[self.key(at)]

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same way."""
        return self.key(at), self.path(at).name

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the wire of a treatment was not probed for so long; services of one host have none."""
        return bool(self.place(at).topology.wires) and super().probe_due(at, every_s)

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        """What the first wire with the treatment's path on it (else the first) does to packets."""
        place, path = self.place(at), self.path(at)
        wire = next(iter(place.links), place.topology.wires[0])
        emulated = path if wire.impaired else PathSpec("clean")
        config = measure_config(emulated, place.address_of(wire.b), first=first)
        between = (place.at(wire.a), place.at(wire.b))
        with ExitStack() as stack:
            if wire.impaired:
                link, asked_of_it = self.spawn_wire(place, wire), self.link_config(path, seed, wire.name)
                stack.enter_context(set_to_work(link, asked_of_it, self.stop))
            summary = measure_path(between, self.log("probe"), config, self.stop)
        summary.wire = wire.name
        return summary

    def spawn_wire(self, place: Place, wire: Wire) -> EngineProgram:
        """Start the link of a wire; it waits for its configuration."""
        return self.spawn_link(place.topology, wire, f"link {wire.name}", f"link-{wire.name}")

"""What stays up over the trials of a study of browsers: networks, names, certificates and servers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from trifecta.contract.probe import MeasureSummary
from trifecta.design import plan
from trifecta.design.model import BrowserWorkload, Cell, Levelled, PathSpec, Protocol
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import Site, label
from trifecta.lab.access import THIRD_PARTY
from trifecta.lab.engine import EngineProgram
from trifecta.lab.host import browser_pin_table
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.place import LocalPlace
from trifecta.lab.topology import Topology, Wire
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.session import Session, SessionContext, set_to_work
from trifecta.workloads.visits.configs import PORT, THIRD_PARTYS, options_for
from trifecta.workloads.visits.material import Key, Material, material_of, start_live
from trifecta.workloads.visits.place import NetworkKey, Place, ServerKey, Serving

Needed = tuple[NetworkKey, ServerKey]
"""A server, in the place with this network."""
THIRD_PARTYS_SERVER = "origin"  # in every cell, whichever server is measured
STATE = ".tmp-browsers"  # what browsers keep while they run; removed with the leftovers of a run


class BrowserSession(Session[BrowserWorkload, Needed]):
    """A network for each set of impaired wires and version of IP, with names, and servers that stay over the run."""

    def __init__(self, common: SessionContext) -> None:
        """Prepare; nothing is raised before ``__enter__``."""
        super().__init__(common, BrowserWorkload, browser_pin_table())
        self.places: dict[NetworkKey, Place] = {}
        self.materials: dict[Key, Material] = {}
        self.protocols: dict[Needed, list[Protocol]] = {}
        """What each server is asked over."""
        self.state = self.run.path / STATE

    def _raise(self) -> None:
        """Room for what browsers keep; the rest is raised when the cells are known."""
        self.state.mkdir(exist_ok=True)
        self._stack.callback(shutil.rmtree, self.state, ignore_errors=True)

    @property
    def topologies(self) -> Sequence[Topology]:
        """Those of all places."""
        return [place.network for place in self.places.values()]

    def network_key(self, at: Levelled) -> NetworkKey:
        """The network of a treatment: no wire is impaired when its path does nothing and nothing is captured."""
        linked, workload = self.path(at).linked or self.study.capture, self.workload(at)
        return NetworkKey(workload.impaired_wires if linked else (), workload.ip is not None)

    def keys(self, at: Levelled) -> tuple[Needed, ...]:
        """The servers of a treatment, the measured one first."""
        network = self.network_key(at)
        return tuple((network, key) for key in self.server_keys(at))

    def server_keys(self, at: Levelled) -> tuple[ServerKey, ...]:
        """What distinguishes the servers of a treatment in their place, the measured one first."""
        workload = self.workload(at)
        material = self.materials[workload.material]
        options = options_for(workload, at.protocol, material.page.third_parties)
        third_partys = replace(THIRD_PARTYS, ipv6=options.ipv6)
        return tuple(
            ServerKey(THIRD_PARTYS_SERVER, third_partys, workload.material, host)
            if host == THIRD_PARTY
            else ServerKey(at.server, options, workload.material, host, workload.place or "native")
            for host in material.serving
        )

    def level(self, key: Needed) -> tuple[str, str]:
        """The server, by name; of a third party's the page."""
        own = key[1]
        if own.host == THIRD_PARTY:
            return "page", self.materials[own.material].page.name
        return "server", own.server

    def problem(self, key: Needed) -> str | None:
        """How the server ended, in words; None while all of it runs."""
        network, own = key
        return self.places[network].servers[own].problem()

    def place(self, at: Levelled) -> Place:
        """Where a treatment runs."""
        return self.places[self.network_key(at)]

    def servers(self, at: Levelled) -> tuple[Serving, ...]:
        """The servers of a treatment, the measured one first."""
        place = self.place(at)
        return tuple(place.servers[key] for key in self.server_keys(at))

    def material(self, at: Levelled) -> Material:
        """What is served."""
        return self.materials[self.workload(at).material]

    def url(self, at: Levelled) -> str:
        """Where a visit goes."""
        lives = [serving.live for serving in self.servers(at) if serving.live is not None]
        return lives[0].player_url() if lives else self.material(at).url

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise the networks that the cells need, and start their servers; those that do not come up are in ``failed``.

        ``more_sizes`` is for servers of other workloads.
        """
        treatments = plan.treatments(self.study, cells)
        for at in treatments:
            workload = self.workload(at)
            if workload.material not in self.materials:
                self.materials[workload.material] = material_of(workload)
        names = dict.fromkeys(name for material in self.materials.values() for name in material.places)
        self.certify(list(names), [])
        wanted: dict[NetworkKey, dict[ServerKey, None]] = {}
        for at in treatments:
            wanted.setdefault(self.network_key(at), {}).update(dict.fromkeys(self.server_keys(at)))
            for needed in self.keys(at):
                protocols = self.protocols.setdefault(needed, [])
                offered = needed[1].options.offered
                protocol = at.protocol if at.protocol in offered else offered[0]
                if protocol not in protocols:
                    protocols.append(protocol)
        for network, keys in wanted.items():
            serving = Place(network, keys, self.engine, self.log("docker"))
            place = self.places[network] = self._stack.enter_context(serving)
            for key in keys:
                number = sum(len(each.servers) for each in self.places.values())
                place.servers[key] = self._serving(place, key, versions, number)
        for network, place in self.places.items():
            for key in place.servers:
                try:
                    self._restart((network, key))
                except ServerFailed as error:
                    self.fail((network, key), str(error))

    def _serving(self, place: Place, key: ServerKey, versions: Mapping[str, str], number: int) -> Serving:
        material, host = self.materials[key.material], place.network.host(key.host)
        log = f"{label(key.server)}-{number}"
        live = None
        if key.host == material.main:
            live = start_live(material, self.state / f"live-{number}", host, self.log(f"live-{number}"))
        state = self.run.path / "logs" / log
        site = Site(
            folder=state,
            certificates=self.certificates,
            address=place.address[key],
            port=PORT,
            state=state,
            replay=material.folder,
            live=live.folder if live is not None else None,
        )
        if live is not None:
            live.folder.mkdir(exist_ok=True)
        adapter = self.adapters.servers[key.server]
        running = RunningServer(
            adapter,
            versions.get(key.server) or adapter.find(),
            site,
            key.options,
            place.at(key),
            log=self.log(log),
            cpus=self.pins["server"],
        )
        return Serving(running, material, key.host, live)

    def _restart(self, key: Needed) -> None:
        network, own = key
        place = self.places[network]
        probing = (self.at(place, own.host), self.log("load"), self.run.path / ".tmp-ready.parquet")
        place.start_server(own, self.protocols[key], self.certificates, probing=probing, stop=self.stop)

    def _end(self, key: Needed) -> None:
        network, own = key
        self.places[network].servers[own].running.close()

    def at(self, place: Place, host: str) -> LocalPlace:
        """Where programs of a host are started."""
        return Namespaces(place.network, self.engine).place(host)

    def spawn_browser(self, place: Place, browser: str, instead: Sequence[str] = ()) -> EngineProgram:
        """Start the driver of a browser where clients run; it waits for its configuration."""
        driver = instead or (sys.executable, "-P", "-m", "trifecta.implementations.browsers.driver", browser)
        return self.at(place, "client").drive(
            driver, "load", self.log(f"client-{browser}"), cpus=self.pins["client"], name=f"client {browser}"
        )

    def link(
        self, place: Place, wire: Wire, path: PathSpec, seed: int, capture: TrialCapture | None = None
    ) -> EngineProgram:
        """Start the link of a wire for a path and wait until it carries packets."""
        config = self.link_config(path, seed, wire.name, capture)
        return set_to_work(self.spawn_link(place.network, wire, f"link {wire.name}"), config, self.stop)

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same way."""
        return self.path(at).name, self.network_key(at), self.material(at).main

    def _measure(self, at: Levelled, seed: int, *, first: bool) -> MeasureSummary:
        """What one wire with the path on it does to packets, from the client to the host that serves."""
        place, path, main = self.place(at), self.path(at), self.server_keys(at)[0]
        config = measure_config(path, place.address[main], first=first)
        with ExitStack() as stack:
            for number, wire in enumerate(place.network.links):
                # The path on one wire alone: what the study asks of each is what is measured.
                stack.enter_context(self.link(place, wire, path if number == 0 else PathSpec("clean"), seed))
            between = (self.at(place, "client"), self.at(place, main.host))
            summary = measure_path(between, self.log("probe"), config, self.stop)
        if place.network.links:
            summary.wire = place.network.links[0].name
        return summary

"""What stays up over the trials of a study of browsers: networks, names, certificates and servers."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from trifecta.contract.codec import changed
from trifecta.contract.probe import MeasureSummary
from trifecta.design import plan
from trifecta.design.model import BrowserWorkload, Cell, Levelled, PathSpec, Protocol, Study
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerAdapter, Site
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.engine import EngineProgram
from trifecta.lab.host import browser_pin_table
from trifecta.lab.hosts import NetworkFacts
from trifecta.lab.paths import link_config
from trifecta.lab.place import LocalPlace
from trifecta.lab.topology import Wire
from trifecta.store.run import RunDirectory
from trifecta.workloads.capturing import TrialCapture
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.session import set_to_work
from trifecta.workloads.visits.configs import PORT, options_for
from trifecta.workloads.visits.material import Key, Material, material_of, start_live
from trifecta.workloads.visits.place import Place, ServerKey, Serving

Wires = tuple[str, ...]
STATE = ".tmp-browsers"  # what browsers keep while they run; removed with the leftovers of a run


@dataclass
class BrowserSession:
    """Raised by ``with``, taken down at its end. Everything it starts runs in the lab's namespaces."""

    engine: Path
    run: RunDirectory
    study: Study
    adapters: Mapping[str, ServerAdapter]
    stop: Callable[[], bool]
    link_changes: Mapping[str, Any] = field(default_factory=dict)
    probes: dict[str, MeasureSummary] = field(default_factory=dict)
    probed_at: dict[str, float] = field(default_factory=dict)
    places: dict[Wires, Place] = field(default_factory=dict)
    materials: dict[Key, Material] = field(default_factory=dict)
    protocols: dict[tuple[Wires, ServerKey], list[Protocol]] = field(default_factory=dict)
    """What each server is asked over."""
    failed: dict[tuple[Wires, ServerKey], str] = field(default_factory=dict)
    """Servers that did not come up, with the reason: their cells cannot be measured, those of the others can."""

    def __enter__(self) -> BrowserSession:
        """Make room for what browsers keep; the rest is raised when the cells are known."""
        self.pins = browser_pin_table()
        self._stack = ExitStack()
        self.state = self.run.path / STATE
        self.state.mkdir(exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End servers and take the networks down."""
        self._stack.close()
        shutil.rmtree(self.state, ignore_errors=True)

    def workload(self, at: Levelled) -> BrowserWorkload:
        """The workload of a treatment."""
        return cast(BrowserWorkload, plan.workload_for(self.study, at))

    def path(self, at: Levelled) -> PathSpec:
        """The path of a treatment."""
        return self.study.paths[at.path]

    def wires(self, at: Levelled) -> Wires:
        """The wires that the path lies on; none when it does nothing to packets and nothing is captured."""
        linked = self.path(at).linked or self.study.capture
        return self.workload(at).impaired_wires if linked else ()

    def keys(self, at: Levelled) -> tuple[ServerKey, ...]:
        """The servers of a treatment, the measured one first."""
        workload = self.workload(at)
        material, options = workload.material, options_for(workload)
        hosts = self.materials[material].serving
        return tuple(ServerKey(at.server, options, material, host) for host in hosts)

    def place(self, at: Levelled) -> Place:
        """Where a treatment runs."""
        return self.places[self.wires(at)]

    def servers(self, at: Levelled) -> tuple[Serving, ...]:
        """The servers of a treatment, the measured one first."""
        place = self.place(at)
        return tuple(place.servers[key] for key in self.keys(at))

    def material(self, at: Levelled) -> Material:
        """What is served."""
        return self.materials[self.workload(at).material]

    def url(self, at: Levelled) -> str:
        """Where a visit goes."""
        lives = [serving.live for serving in self.servers(at) if serving.live is not None]
        return lives[0].player_url() if lives else self.material(at).url

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.run.path / "logs" / f"{name}.log"

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
        self.certificates: Certificates = make_certificates(self.run.path / "pki", list(names), [])
        wanted: dict[Wires, dict[ServerKey, None]] = {}
        for at in treatments:
            wanted.setdefault(self.wires(at), {}).update(dict.fromkeys(self.keys(at)))
            for key in self.keys(at):
                asked = self.protocols.setdefault((self.wires(at), key), [])
                if at.protocol not in asked:
                    asked.append(at.protocol)
        for wires, keys in wanted.items():
            place = self.places[wires] = self._stack.enter_context(Place(wires, keys))
            for key in keys:
                number = sum(len(each.servers) for each in self.places.values())
                place.servers[key] = self._serving(place, key, versions, number)
        for wires, place in self.places.items():
            for key in place.servers:
                try:
                    self._stand(wires, key)
                except ServerFailed as error:
                    self.fail(wires, key, str(error))

    def _serving(self, place: Place, key: ServerKey, versions: Mapping[str, str], number: int) -> Serving:
        material, host = self.materials[key.material], place.network.host(key.host)
        label = f"{key.server}-{number}"
        live = None
        if key.host == material.main:
            live = start_live(material, self.state / f"live-{number}", host, self.log(f"live-{number}"))
        state = self.run.path / "logs" / label
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
        running = RunningServer(
            self.adapters[key.server],
            versions[key.server],
            site,
            key.options,
            self.at(place, key.host),
            log=self.log(label),
            cpus=self.pins["server"],
        )
        return Serving(running, material, key.host, live)

    def _stand(self, wires: Wires, key: ServerKey) -> None:
        """Start a server and wait until it answers; ServerFailed when it does not."""
        ways = (self.at(self.places[wires], key.host), self.log("load"), self.run.path / ".tmp-ready.parquet")
        self.places[wires].stand(key, self.protocols[wires, key], self.certificates, ways=ways, stop=self.stop)

    def fail(self, wires: Wires, key: ServerKey, reason: str) -> None:
        """Give a server up: it is ended, so that it takes nothing from the others."""
        self.failed[wires, key] = reason
        self.places[wires].servers[key].running.close()

    def has_failed(self, cell: Cell) -> str | None:
        """Why a server of a cell is given up; None when none is."""
        every = plan.treatments_of(self.study, cell)
        reasons = (self.failed.get((self.wires(at), key)) for at in every for key in self.keys(at))
        return next(filter(None, reasons), None)

    def failures(self) -> list[tuple[str, str, str]]:
        """What is given up: factor, level, reason."""
        return [("server", key.server, reason) for (_, key), reason in self.failed.items()]

    def down(self, cell: Cell) -> str | None:
        """How a server of a cell ended, in words; None while all run."""
        every = plan.treatments_of(self.study, cell)
        return next(filter(None, (serving.problem() for at in every for serving in self.servers(at))), None)

    def stand_up(self, cell: Cell) -> bool:
        """Start those servers of a cell again that ended; False when one does not come up, and is given up."""
        for at in plan.treatments_of(self.study, cell):
            wires = self.wires(at)
            for key, serving in zip(self.keys(at), self.servers(at), strict=True):
                if serving.problem() is not None and (wires, key) not in self.failed:
                    try:
                        self._stand(wires, key)
                    except ServerFailed as error:
                        self.fail(wires, key, str(error))
        return self.down(cell) is None

    def renew(self, cell: Cell, block_ns: int) -> bool:
        """Servers stay over the run, and so does a live video behind them; browsers are new for every visit."""
        return True

    @property
    def network(self) -> NetworkFacts:
        """Settings of the lab's kernel, for ``run.json``."""
        for place in self.places.values():
            return place.network.kernel.facts()
        return {"settings": {}, "unknown_settings": []}

    def at(self, place: Place, host: str) -> LocalPlace:
        """Where programs of a host are started."""
        return LocalPlace(place.network.host(host), self.engine)

    def spawn_browser(self, place: Place, browser: str, instead: Sequence[str] = ()) -> EngineProgram:
        """Start the driver of a browser where clients run; it waits for its configuration."""
        driver = instead or (sys.executable, "-P", "-m", "trifecta.implementations.browsers.driver", browser)
        return self.at(place, "client").drive(
            driver, "load", self.log(f"client-{browser}"), cpus=self.pins["client"], name=f"client {browser}"
        )

    def link(
        self, place: Place, wire: Wire, path: PathSpec, seed: int, capture: TrialCapture | None = None
    ) -> EngineProgram:
        """Start the link of a wire for a path and wait until it carries packets: each wire has weather of its own."""
        own_seed = plan.stable_seed("wire", seed, wire.name)
        own = link_config(path, own_seed, devices=place.network.devices(wire))
        config = changed(own if capture is None else capture.on_link(own, wire.name), self.link_changes)
        middle = LocalPlace(place.network.middle(wire), self.engine)
        link = middle.start("link", self.log("link"), cpus=self.pins["link"], name=f"link {wire.name}")
        return set_to_work(link, config, self.stop)

    def probe_key(self, at: Levelled) -> Hashable:
        """The same for treatments whose packets take the same way."""
        return self._probe_key(at)

    def probe_due(self, at: Levelled, every_s: float) -> bool:
        """Whether the path of a treatment was not probed for so long."""
        last = self.probed_at.get(self._probe_key(at))
        return last is None or time.monotonic() - last >= every_s

    def probe(self, at: Levelled, seed: int) -> MeasureSummary:
        """Measure what one wire with the path on it does to packets, from the client to the host that serves."""
        place, path, name = self.place(at), self.path(at), self._probe_key(at)
        main = self.keys(at)[0]
        first = name not in self.probes
        config = measure_config(path, place.address[main], first=first)
        with ExitStack() as stack:
            for number, wire in enumerate(place.network.links):
                # The path on one wire alone: what the study asks of each is what is measured.
                stack.enter_context(self.link(place, wire, path if number == 0 else PathSpec("clean"), seed))
            between = (self.at(place, "client"), self.at(place, main.host))
            summary = measure_path(between, self.log("probe"), config, self.stop)
        if place.network.links:
            summary.wire = place.network.links[0].name
        if not first:
            summary.largest_payload_bytes = self.probes[name].largest_payload_bytes
        self.probes[name] = summary
        self.probed_at[name] = time.monotonic()
        return summary

    def probe_of(self, at: Levelled) -> MeasureSummary | None:
        """What the last probe of a treatment's path found."""
        return self.probes.get(self._probe_key(at))

    def _probe_key(self, at: Levelled) -> str:
        return f"{self.path(at).name} on {' '.join(self.wires(at))} to {self.material(at).main}"

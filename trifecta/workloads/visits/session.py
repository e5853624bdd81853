"""What stays up over the trials of a study of browsers: networks, names, certificates and servers."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from trifecta.design import browsers, plan
from trifecta.design.model import BrowserWorkload, Cell, PathSpec, Study
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerAdapter, Site
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.engine import EngineProcess
from trifecta.lab.host import pin_table
from trifecta.lab.paths import link_config
from trifecta.lab.topology import Wire
from trifecta.store.run import RunDirectory
from trifecta.workloads.probing import measure_config, measure_path
from trifecta.workloads.session import READY_MORE_S, set_to_work
from trifecta.workloads.visits.configs import PORT, options_for
from trifecta.workloads.visits.material import Material, material_of, same_material
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
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)
    probed_at: dict[str, float] = field(default_factory=dict)
    places: dict[Wires, Place] = field(default_factory=dict)
    materials: dict[tuple[object, ...], Material] = field(default_factory=dict)
    failed: dict[tuple[Wires, ServerKey], str] = field(default_factory=dict)
    """Servers that did not come up, with the reason: their cells cannot be measured, those of the others can."""

    def __enter__(self) -> BrowserSession:
        """Make room for what browsers keep; the rest is raised when the cells are known."""
        self.pins = pin_table()
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

    def workload(self, cell: Cell) -> BrowserWorkload:
        """The workload as it runs in a cell."""
        return cast(BrowserWorkload, plan.workload_for(self.study, cell))

    def path(self, cell: Cell) -> PathSpec:
        """The path of a cell."""
        return self.study.paths[str(cell.levels["path"])]

    def wires(self, cell: Cell) -> Wires:
        """The wires that the path of a cell lies on; none when it does nothing to packets."""
        return browsers.impaired_wires(self.workload(cell)) if self.path(cell).impaired else ()

    def key(self, cell: Cell) -> ServerKey:
        """The server of a cell."""
        workload = self.workload(cell)
        return ServerKey(str(cell.levels["server"]), options_for(workload), same_material(workload))

    def place(self, cell: Cell) -> Place:
        """Where a cell runs."""
        return self.places[self.wires(cell)]

    def server_for(self, cell: Cell) -> RunningServer:
        """The server of a cell."""
        return self.place(cell).servers[self.key(cell)].running

    def material(self, cell: Cell) -> Material:
        """What is served in a cell."""
        return self.materials[self.key(cell).material]

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.run.path / "logs" / f"{name}.log"

    def begin(self, cells: Sequence[Cell], versions: Mapping[str, str], more_sizes: Iterable[int] = ()) -> None:
        """Raise the networks that the cells need, and start their servers; those that do not come up are in ``failed``.

        ``more_sizes`` is for servers of other workloads.
        """
        for cell in cells:
            workload = self.workload(cell)
            if same_material(workload) not in self.materials:
                self.materials[same_material(workload)] = material_of(workload)
        hosts = dict.fromkeys(host for material in self.materials.values() for host in material.page.hosts)
        self.certificates: Certificates = make_certificates(self.run.path / "pki", list(hosts), [])
        wanted: dict[Wires, dict[ServerKey, str]] = {}
        for cell in cells:
            wanted.setdefault(self.wires(cell), {})[self.key(cell)] = self.material(cell).host
        number = 0
        for wires, keys in wanted.items():
            place = self.places[wires] = self._stack.enter_context(Place(wires, keys.items()))
            for key in keys:
                material = self.materials[key.material]
                label = f"{key.server}-{number}"
                number += 1
                if material.live is not None:
                    live_log = self.log(f"live-{number}")
                    self._stack.enter_context(material.live.start(place.network.host(material.host), live_log))
                place.servers[key] = Serving(self._server(place, key, versions, label), material)
        for wires, place in self.places.items():
            for key in place.servers:
                try:
                    self._stand(place, key)
                except ServerFailed as error:
                    self.fail(wires, key, str(error))

    def _server(self, place: Place, key: ServerKey, versions: Mapping[str, str], label: str) -> RunningServer:
        material = self.materials[key.material]
        state = self.run.path / "logs" / label
        site = Site(
            folder=state,
            certificates=self.certificates,
            address=place.address[key],
            port=PORT,
            state=state,
            replay=material.folder,
            live=material.live.folder if material.live is not None else None,
        )
        return RunningServer(
            self.adapters[key.server],
            versions[key.server],
            site,
            key.options,
            place.network.host(material.host),
            log=self.log(label),
            cpus=self.pins["server"],
        )

    def _stand(self, place: Place, key: ServerKey) -> None:
        """Start a server and wait until it answers; ServerFailed when it does not."""
        place.start(key)
        place.wait_ready(
            key,
            self.study.factors[plan.PROTOCOL_FACTOR],
            self.certificates,
            ways=(self.engine, self.log("load"), self.run.path / ".tmp-ready.parquet"),
            stop=self.stop,
            more_s=READY_MORE_S,
        )

    def fail(self, wires: Wires, key: ServerKey, reason: str) -> None:
        """Give a server up: it is ended, so that it takes nothing from the others."""
        self.failed[wires, key] = reason
        self.places[wires].servers[key].running.close()

    def has_failed(self, cell: Cell) -> str | None:
        """Why the server of a cell is given up; None when it is not."""
        return self.failed.get((self.wires(cell), self.key(cell)))

    def failures(self) -> list[tuple[str, str, str]]:
        """What is given up: factor, level, reason."""
        return [("server", key.server, reason) for (_, key), reason in self.failed.items()]

    def down(self, cell: Cell) -> str | None:
        """How the server of a cell ended, in words; None while it runs."""
        server = self.server_for(cell)
        return None if server.running() else server.describe_end()

    def stand_up(self, cell: Cell) -> bool:
        """Start the server of a cell again; False when it does not come up, and is given up."""
        try:
            self._stand(self.place(cell), self.key(cell))
        except ServerFailed as error:
            self.fail(self.wires(cell), self.key(cell), str(error))
        return self.server_for(cell).running()

    @property
    def network(self) -> dict[str, Any]:
        """Settings of the lab's kernel, for ``run.json``."""
        for place in self.places.values():
            return {"settings": place.network.settings, "unknown_settings": place.network.missing_settings}
        return {"settings": {}, "unknown_settings": []}

    def spawn_browser(self, place: Place, browser: str, instead: Sequence[str] = ()) -> EngineProcess:
        """Start the driver of a browser where clients run; it waits for its configuration."""
        driver = instead or (sys.executable, "-P", "-m", "trifecta.implementations.browsers.driver", browser)
        return EngineProcess(
            self.engine,
            "load",
            place.network.host("client"),
            self.log(f"client-{browser}"),
            cpus=self.pins["client"],
            name=f"client {browser}",
            instead=driver,
        )

    def link(self, place: Place, wire: Wire, path: PathSpec, seed: int) -> EngineProcess:
        """Start the link of a wire for a path and wait until it carries packets: each wire has weather of its own."""
        own_seed = plan.stable_seed("wire", seed, wire.name)
        config = {**link_config(path, own_seed, devices=place.network.devices(wire)), **self.link_changes}
        link = EngineProcess(
            self.engine,
            "link",
            place.network.middle(wire),
            self.log("link"),
            cpus=self.pins["link"],
            name=f"link {wire.name}",
        )
        return set_to_work(link, config, self.stop)

    def probe_due(self, cell: Cell, every_s: float) -> bool:
        """Whether the path of a cell was not probed for so long."""
        last = self.probed_at.get(self._probe_key(cell))
        return last is None or time.monotonic() - last >= every_s

    def probe(self, cell: Cell, seed: int) -> dict[str, Any]:
        """Measure what one wire with the cell's path on it does to packets, from the client to the host that serves."""
        place, path, name = self.place(cell), self.path(cell), self._probe_key(cell)
        host = self.material(cell).host
        first = name not in self.probes
        config = measure_config(path, place.address[self.key(cell)], first=first)
        with ExitStack() as stack:
            for number, wire in enumerate(place.network.links):
                # The path on one wire alone: what the study asks of each is what is measured.
                stack.enter_context(self.link(place, wire, path if number == 0 else PathSpec("clean"), seed))
            between = (place.network.host("client"), place.network.host(host))
            summary = measure_path(self.engine, between, self.log("probe"), config, self.stop)
        if place.network.links:
            summary = {**summary, "wire": place.network.links[0].name}
        if not first:
            summary["largest_payload_bytes"] = self.probes[name].get("largest_payload_bytes")
        self.probes[name] = summary
        self.probed_at[name] = time.monotonic()
        return summary

    def probe_of(self, cell: Cell) -> dict[str, Any] | None:
        """What the last probe of a cell's path found."""
        return self.probes.get(self._probe_key(cell))

    def _probe_key(self, cell: Cell) -> str:
        return f"{self.path(cell).name} on {' '.join(self.wires(cell))} to {self.material(cell).host}"

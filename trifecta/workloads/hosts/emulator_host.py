"""The emulator on a host between client and server: the engine's link as a bridge between two devices of that host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.link import LinkConfig, LinkSummary
from trifecta.contract.probe import MeasureSummary
from trifecta.design.errors import CannotError
from trifecta.design.model import PathSpec
from trifecta.lab.engine import EngineError, EngineProgram, as_user_error
from trifecta.lab.machines import ConnectedMachine
from trifecta.lab.paths import link_config
from trifecta.workloads.session import set_to_work

NETEM_BRIDGE = "tf-netem"
"""How names of the bridges begin that links of netem make (engine/crates/link/src/netem/bridge.rs)."""
SETUP = PathSpec("setup")
_EVERY: tuple[ImpairmentDocument, ...] = ({"kind": "loss", "probability": 1.0},)
NOTHING_PASSES = PathSpec("nothing passes", forward=_EVERY, backward=_EVERY)


class EmulatorHost:
    """The host in the middle. While no link runs there, no packet passes between the hosts."""

    def __init__(
        self,
        machine: ConnectedMachine,
        log: Path,
        stop: Callable[[], bool],
        lying: Callable[[LinkConfig], LinkConfig],
    ) -> None:
        """``lying`` is given the configuration of every link, so that tests can see one that lies."""
        devices = machine.machine.devices
        assert devices is not None, "a study names them"
        self.machine = machine
        self.devices = devices
        self._log = log
        self._stop = stop
        self._lying = lying

    def spawn(self) -> EngineProgram:
        """Start a link; it waits for its configuration. CannotError when its host is lost."""
        return self.machine.place.start("link", self._log, name=f"link on {self.machine.machine.at}")

    def set_to_work(self, link: EngineProgram, path: PathSpec, seed: int) -> None:
        """Have a link carry packets over a path; one that cannot is ended, with CannotError."""
        set_to_work(link, self._config(path, seed), self._stop)

    @contextmanager
    def carrying(self, path: PathSpec, seed: int) -> Iterator[EngineProgram]:
        """A link that carries packets over a path, and is ended."""
        with self.spawn() as link:
            self.set_to_work(link, path, seed)
            yield link

    def _config(self, path: PathSpec, seed: int) -> LinkConfig:
        return self._lying(link_config(path, seed, devices=self.devices, bridge=True))

    def refuse_bridged(self) -> None:
        """CannotError where the kernel of the host passes packets on between its devices itself."""
        ports = {device: f"/sys/class/net/{device}/brport/bridge/uevent" for device in self.devices}
        contents = self.machine.read(*ports.values())
        for device, file in ports.items():
            # One of netem's is removed by the next link, if it is left of a link that is dead.
            if (bridge := contents.get(file, "").strip()) and f"INTERFACE={NETEM_BRIDGE}" not in bridge:
                text = (
                    f"{self._who}: {device} is a port of a bridge of the kernel's, which would forward every packet too"
                )
                raise CannotError(f"{text}; take it out: sudo ip link set {device} nomaster")

    def refuse_detours(self, address: str, measure: Callable[[], MeasureSummary]) -> None:
        """Have all packets lost in the link, and see whether the client's come by its device: CannotError if not."""
        with self.carrying(NOTHING_PASSES, 0) as link:
            probe = measure()
            try:
                summary = link.finish(LinkSummary)
            except EngineError as error:
                raise as_user_error(error) from error
        problem = _detour(self.devices, address, probe, summary)
        if problem is not None:
            raise CannotError(f"{self._who}: {problem}")

    @property
    def _who(self) -> str:
        return f"hosts.middle ({self.machine.machine.at})"


def _detour(devices: tuple[str, str], address: str, probe: MeasureSummary, summary: LinkSummary) -> str | None:
    """What is wrong with where a link stands that lost everything, and the remedy; None where nothing is."""
    there, back = devices
    forward, backward = summary.a_to_b.wire_packets, summary.b_to_a.wire_packets
    if probe.received:
        return (
            f"the client reaches {address} without crossing this host; give the server an address that is "
            "behind it, as {at: ..., address: 192.0.2.1}"
        )
    if not forward and not backward:
        return (
            f"none of {probe.sent} packets of the client to {address} came by {there} or {back}; join {there} to the "
            f"client's network and {back} to the server's, where devices may accept packets for others"
        )
    if 2 * min(forward, backward) > max(forward, backward):
        return f"packets come by {there} and {back} alike; join one to the client's side alone, one to the server's"
    if backward > forward:
        return f"the client's packets come by {back}; write devices: [{back}, {there}]"
    return None

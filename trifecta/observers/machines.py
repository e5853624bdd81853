"""Counters of machines that are not the lab's own: how much they grew over a trial.

What a machine's devices drop is part of the network as it is, and who else uses it is not known: of its counters
those alone are read that say that a host itself lost something. Who tracks connections there is not told to everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from trifecta.contract.machine import HostGrowth, TransportGrowth
from trifecta.lab.machines import ConnectedMachine
from trifecta.observers.transport import COUNTED, counters_of

_FOLDER = "/proc/net/"


class MachinesObserver:
    """Reads the counters of machines before and after a trial, in between nothing."""

    def __init__(self, machines: Mapping[str, ConnectedMachine]) -> None:
        """Watch these machines, by the name of the host in the trial."""
        self._machines = machines
        self._before: dict[str, dict[str, int]] = {}

    def begin(self) -> None:
        """A trial begins. CannotError when a machine is lost."""
        self._before = {name: _counters(machine) for name, machine in self._machines.items()}

    def end(self) -> TransportGrowth:
        """The trial ends: how much each counter grew, by host. CannotError when a machine is lost."""
        grown: TransportGrowth = {}
        for name, machine in self._machines.items():
            before, after = self._before[name], _counters(machine)
            counters = {key: value - before.get(key, 0) for key, value in after.items()}
            grown[name] = cast(HostGrowth, {"counters": counters, "devices": {}, "loopback": {}})
        return grown


def _counters(machine: ConnectedMachine) -> dict[str, int]:
    texts = machine.read(*(_FOLDER + name for name in COUNTED))
    return counters_of({name.removeprefix(_FOLDER): text for name, text in texts.items()})

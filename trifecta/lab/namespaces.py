"""The launcher of a lab: its places are hosts that this machine plays, each in a network namespace of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trifecta.lab.place import LocalPlace
from trifecta.lab.topology import Topology, Wire


class Namespaces:
    """A `trifecta.lab.launcher.Launcher` over the raised hosts of a topology, and the middles of its impaired wires."""

    def __init__(self, topology: Topology, engine: Path | None = None) -> None:
        """``engine`` is the engine's program; None: the one that is found when it is needed."""
        self._topology = topology
        self._engine = engine

    def places(self) -> Mapping[str, str]:
        """As `Launcher.places`."""
        return {name: name for name in self._topology.raised}

    def place(self, key: str) -> LocalPlace:
        """As `Launcher.place`."""
        return LocalPlace(self._topology.host(key), self._engine)

    def middle(self, wire: Wire) -> LocalPlace:
        """Where the link of an impaired wire runs."""
        return LocalPlace(self._topology.middle(wire), self._engine)

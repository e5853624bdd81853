"""A place in a container (`trifecta.lab.place`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from trifecta.lab.containers.daemon import DockerEngine
from trifecta.lab.containers.process import ContainerProcess
from trifecta.lab.engine import EngineProgram, Role


class ContainerPlace:
    """Containers of one host: each program of the engine that is started is the only process of a new one."""

    def __init__(self, docker: DockerEngine, *, aliases: Sequence[str] = (), ports: Iterable[int] = ()) -> None:
        """``aliases`` and ``ports``: as in `ContainerProcess`."""
        self._docker = docker
        self._aliases = aliases
        self._ports = tuple(ports)
        self._readable: list[Path] = []
        self._writable: list[Path] = []

    def start(self, role: Role, log: Path, *, name: str = "", cpus: frozenset[int] | None = None) -> EngineProgram:
        """Start a program of the engine, as `Place.start`."""
        return self.drive((), role, log, name=name, cpus=cpus)

    def drive(
        self,
        command: Sequence[str | Path],
        role: Role,
        log: Path,
        *,
        name: str = "",
        cpus: frozenset[int] | None = None,
    ) -> EngineProgram:
        """Start a program that stands alone and was put there, as `DrivingPlace.drive`."""
        return ContainerProcess(
            self._docker,
            role,
            log,
            cpus=cpus,
            name=name,
            aliases=self._aliases,
            ports=self._ports,
            readable=self._readable,
            writable=self._writable,
            instead=command,
        )

    def put(self, path: Path, *, writable: bool = False) -> None:
        """Have it mounted in containers that are made from now on."""
        (self._writable if writable else self._readable).append(path)

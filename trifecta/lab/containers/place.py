"""A place in a container (`trifecta.lab.place`)."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trifecta.lab.container_spec import ContainerSpec
from trifecta.lab.containers.daemon import DockerEngine
from trifecta.lab.containers.process import ContainerProcess
from trifecta.lab.containers.program import ContainerProgram
from trifecta.lab.engine import EngineProgram, Role


class ContainerPlace:
    """Containers of one host: each program that is started is the only process of a new one."""

    def __init__(
        self,
        docker: DockerEngine,
        *,
        aliases: Sequence[str] = (),
        ports: Iterable[int] = (),
        contained: ContainerSpec | None = None,
    ) -> None:
        """``aliases`` and ``ports``: as in `ContainerProcess`; ``contained``: what `run` runs, in its image."""
        self._docker = docker
        self._aliases = aliases
        self._ports = tuple(ports)
        self._contained = contained
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

    def run(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        cpus: frozenset[int] | None = None,
        environment: Mapping[str, str] | None = None,
        largest_file_bytes: int | None = None,
    ) -> ContainerProgram:
        """Start any program, as `OpenPlace.run`; of variables it has its ``environment`` alone."""
        program = ContainerProgram(
            self._docker,
            command,
            log,
            cpus=cpus,
            environment=environment,
            readable=self._readable,
            writable=self._writable,
            contained=self._contained,
        )
        if largest_file_bytes is not None and program.pid:
            with suppress(ProcessLookupError):  # it has ended already
                resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (largest_file_bytes, largest_file_bytes))
        return program

    def put(self, path: Path, *, writable: bool = False) -> None:
        """Have it mounted in containers that are made from now on, once; what may be written once is so from then."""
        if writable and path not in self._writable:
            self._writable.append(path)
        if not writable and path not in self._readable:
            self._readable.append(path)
        self._readable = [one for one in self._readable if one not in self._writable]

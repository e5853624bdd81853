"""A place: where programs are started, and what they find and leave there. Nobody above `lab` starts one otherwise.

What a trial does with its programs does not depend on where they run: on this machine (`LocalPlace`, in the network of
one of the lab's hosts), in a container (`trifecta.lab.containers.ContainerPlace`), on a host by SSH
(`trifecta.lab.ssh.place`), or at a node of a cluster (`trifecta.lab.agent_place`). Launchers know them by name.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from trifecta.lab import linux
from trifecta.lab.engine import EngineProcess, EngineProgram, Role, find_engine
from trifecta.lab.host import Host


class Place(Protocol):
    """Where programs of the engine are started."""

    def start(self, role: Role, log: Path, *, name: str = "", cpus: frozenset[int] | None = None) -> EngineProgram:
        """Start a program of the engine; it waits for its configuration. CannotError when the place refuses.

        Its diagnostics are appended to ``log``; ``name`` distinguishes it in messages; it runs on ``cpus`` when given.
        """

    def put(self, path: Path, *, writable: bool = False) -> None:
        """Have programs that are started from now on find this file or folder, at the same path.

        ``writable``: they may write there, and `EngineProgram.get` brings what they wrote.
        """


class DrivingPlace(Place, Protocol):
    """A place where other programs can stand in for the engine's."""

    def drive(
        self,
        command: Sequence[str | Path],
        role: Role,
        log: Path,
        *,
        name: str = "",
        cpus: frozenset[int] | None = None,
    ) -> EngineProgram:
        """Start a program that speaks the contract of the engine's ``role`` in its place; otherwise as `start`."""


class Program(Protocol):
    """A program of any kind that was started at a place."""

    @property
    def pid(self) -> int:
        """Process id, as this process sees it."""

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""

    def running(self) -> bool:
        """Whether it still runs."""

    def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended by itself, for so long at most."""

    def stop(self, grace_s: float) -> None:
        """Ask it to end (SIGTERM), and end it after the grace."""

    def close(self) -> None:
        """End it at once, whatever it does."""

    def get(self, path: Path) -> None:
        """Have here, at the same path, what it wrote there."""


class OpenPlace(DrivingPlace, Protocol):
    """A place where any program can be started, not the engine's alone."""

    def run(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        cpus: frozenset[int] | None = None,
        environment: Mapping[str, str] | None = None,
        largest_file_bytes: int | None = None,
    ) -> Program:
        """Start a program that is told nothing and appends what it says to ``log``.

        ``environment`` is added to that of this process. A file that it, or what it starts, writes beyond
        ``largest_file_bytes`` ends it (RLIMIT_FSIZE, getrlimit(2)). CannotError when it cannot be executed.
        """


class LocalPlace:
    """This machine, in the network of a host of the lab. Files are where they are."""

    def __init__(self, host: Host, engine: Path | None = None) -> None:
        """``engine`` is the engine's program; None: the one that is found when it is needed."""
        self._host = host
        self._known_engine = engine

    @property
    def _engine(self) -> Path:
        return self._known_engine or find_engine()

    def start(self, role: Role, log: Path, *, name: str = "", cpus: frozenset[int] | None = None) -> EngineProgram:
        """Start a program of the engine, as `Place.start`."""
        return EngineProcess(self._engine, role, self._host, log, cpus=cpus, name=name)

    def drive(
        self,
        command: Sequence[str | Path],
        role: Role,
        log: Path,
        *,
        name: str = "",
        cpus: frozenset[int] | None = None,
    ) -> EngineProgram:
        """Start a program that speaks the engine's contract, as `DrivingPlace.drive`."""
        return EngineProcess(self._engine, role, self._host, log, cpus=cpus, name=name, instead=command)

    def run(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        cpus: frozenset[int] | None = None,
        environment: Mapping[str, str] | None = None,
        largest_file_bytes: int | None = None,
    ) -> Program:
        """Start any program, as `OpenPlace.run`."""
        with log.open("ab") as log_file:
            process = self._host.popen(
                command, cpus=cpus, environment=environment, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file
            )
        if largest_file_bytes is not None:
            with suppress(ProcessLookupError, PermissionError):  # it has ended already, or is not ours to limit
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest_file_bytes, largest_file_bytes))
        return _Process(process)

    def put(self, path: Path, *, writable: bool = False) -> None:
        """They find it already: it is this machine's own file."""


class _Process:
    """A `Program` that is a process of this machine."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def running(self) -> bool:
        return linux.runs(self._process)

    def wait_end(self, timeout_s: float) -> None:
        if self.running():
            linux.wait_for_end(self._process.pid, timeout_s)

    def stop(self, grace_s: float) -> None:
        if self.running():
            self._process.terminate()
            self.wait_end(grace_s)
        self.close()

    def close(self) -> None:
        if self.running():
            self._process.kill()
        self._process.wait()

    def get(self, path: Path) -> None:
        """It is there: the program wrote this machine's own file."""

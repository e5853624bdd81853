"""Where the servers of a session are started: on the server's host, or in containers on its network."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from trifecta.design.errors import CannotError
from trifecta.implementations.running import ServerFailed
from trifecta.implementations.server import ServerAdapter
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.place import OpenPlace
from trifecta.lab.topology import Topology

if TYPE_CHECKING:
    from trifecta.lab.containers import DockerEngine

HOST = "server"


class ServerPlaces:
    """Has a Docker Engine from when a server needs one until it is closed, which comes after the servers' end."""

    def __init__(self, lab: Topology, engine: Path, log: Path) -> None:
        """``engine``: its program; ``log``: of the Docker Engine."""
        self.host = Namespaces(lab, engine).place(HOST)
        self._lab = lab
        self._engine = engine
        self._log = log
        self._docker: DockerEngine | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the Docker Engine."""
        self._stack.close()

    def of(self, adapter: ServerAdapter) -> OpenPlace:
        """Where the program of a server is started; CannotError when it needs a Docker Engine that does not start."""
        if adapter.contained is None:
            return self.host
        from trifecta.lab.containers import ContainerPlace

        return ContainerPlace(self._raised(), contained=adapter.contained)

    def prepare(self, adapter: ServerAdapter) -> None:
        """Have the image of a server, which is no part of what a start costs; ServerFailed when it cannot be had."""
        if adapter.contained is None:
            return
        try:
            self._raised().image(adapter.contained.image)
        except CannotError as error:
            raise ServerFailed(str(error)) from error

    def _raised(self) -> DockerEngine:
        if self._docker is None:
            from trifecta.lab.containers import DockerEngine

            docker = DockerEngine(self._lab, HOST, "host", self._engine, self._log)
            self._docker = self._stack.enter_context(docker)
        return self._docker

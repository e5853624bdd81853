"""Any program in a container, told nothing (`trifecta.lab.place.OpenPlace`)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trifecta.lab.container_spec import ContainerSpec
from trifecta.lab.containers.daemon import DockerEngine
from trifecta.lab.containers.process import ContainerProcess
from trifecta.lab.engine import EngineError

_LAST_WORDS_S = 1.0


class ContainerProgram(ContainerProcess):
    """A program as the only process of a container; what it says is appended to its log as it comes."""

    def __init__(
        self,
        docker: DockerEngine,
        command: Sequence[str | Path],
        log: Path,
        *,
        cpus: frozenset[int] | None = None,
        environment: Mapping[str, str] | None = None,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        contained: ContainerSpec | None = None,
    ) -> None:
        """Create and start the container, as `ContainerProcess`."""
        self._code: int | None = None
        self._keeper: threading.Thread | None = None
        super().__init__(
            docker,
            "origin",
            log,
            cpus=cpus,
            name=log.stem,
            readable=readable,
            writable=writable,
            instead=command,
            environment=environment,
            contained=contained,
        )
        self._keeper = threading.Thread(target=self._keep, name=f"log of {log.stem}", daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        """Until it ends. Its standard error is appended by ``_receive``."""
        with suppress(OSError, ValueError):  # closed meanwhile
            while True:
                self._poll.poll()
                received = self._receive()
                if received is None:
                    return
                if received:
                    with self._log.open("ab") as file:
                        file.write(received)

    def running(self) -> bool:
        """Whether it still runs; what one that has ended said is in its log, where Docker hands it over in time."""
        if super().running():
            return True
        if self._keeper is not None:
            self._keeper.join(_LAST_WORDS_S)
            self._keeper = None
        return False

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        if self._code is None and not self.running():
            with suppress(EngineError):
                self._code = self._exit_code()
        return self._code

    def stop(self, grace_s: float) -> None:
        """Ask it to end (SIGTERM), and end it after the grace."""
        if self.running():
            self._terminate()
            self.wait_end(grace_s)
        self.close()

    def close(self) -> None:
        """End it at once and remove the container."""
        if self.running():
            self._code = -signal.SIGKILL
        elif self._pid:
            _ = self.exit_code  # nobody can tell once the container is gone; one that never ran has none
        super().close()

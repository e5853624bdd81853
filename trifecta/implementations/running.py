"""A server that runs in the lab: started, known to be ready, watched, started again when it died."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError
from trifecta.implementations.server import ServerAdapter, ServerOptions, Site
from trifecta.lab import linux
from trifecta.lab.engine import Stopped
from trifecta.lab.host import Host

READY_TIMEOUT_S = 30.0  # a busy machine has taken more than 5 s
_READY_PAUSE_S = 0.02


class RunningServer:
    """One process of a server and what is known of it."""

    def __init__(
        self,
        adapter: ServerAdapter,
        version: str,
        site: Site,
        options: ServerOptions,
        host: Host,
        *,
        log: Path,
        cpus: frozenset[int] | None,
    ) -> None:
        """Prepare; ``start`` starts it."""
        self.adapter = adapter
        self.version = version
        self.site = site
        self.options = options
        self.restarts = -1
        self._host = host
        self._log = log
        self._cpus = cpus
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program; it may not be ready yet."""
        self.site.state.mkdir(parents=True, exist_ok=True)
        command = self.adapter.command(self.site, self.options)
        with self._log.open("ab") as log:
            self._log_start = log.tell()
            self._process = self._host.start(
                command.arguments,
                cpus=self._cpus,
                environment=command.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.restarts += 1

    def wait_ready(self, ask: Callable[[], str | None], stop: Callable[[], bool]) -> float:
        """Ask until it answers: ``ask`` makes one real request and returns None, or what went wrong. Seconds waited.

        CannotError when the program ends or does not answer in time.
        """
        began = time.monotonic()
        problem: str | None = "not asked yet"
        while problem is not None:
            if stop():
                raise Stopped
            if not self.running():
                raise CannotError(f"{self.adapter.name} ended before it was ready: {self.last_words()}")
            if time.monotonic() - began > READY_TIMEOUT_S:
                raise CannotError(
                    f"{self.adapter.name} does not answer within {READY_TIMEOUT_S:g} s ({problem}): {self.last_words()}"
                )
            problem = ask()
            if problem is not None:
                time.sleep(_READY_PAUSE_S)
        if not self.running():
            raise CannotError(f"another program answers in place of {self.adapter.name}: {self.last_words()}")
        return time.monotonic() - began

    @property
    def pid(self) -> int:
        """Process id of the program; 0 before it is started."""
        return self._process.pid if self._process is not None else 0

    def running(self) -> bool:
        """Whether the program runs."""
        return self._process is not None and self._process.poll() is None

    def cpu_ns(self) -> int | None:
        """CPU time of the program so far (user and system, all threads), None when it is gone."""
        try:
            return linux.process_cpu_ns(self.pid)
        except ProcessLookupError:
            return None

    def describe_end(self) -> str:
        """How the program ended, for the trial in which it did."""
        code = self._process.poll() if self._process is not None else None
        how = (
            "still runs" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        )
        return f"server {self.adapter.name} {how}"

    def last_words(self) -> str:
        """The end of its log since it was started, on one line."""
        with self._log.open("rb") as file:
            file.seek(self._log_start)
            words = " ".join(file.read()[-600:].decode(errors="replace").split())
        return words or f"it said nothing (see {self._log})"

    def facts(self) -> dict[str, Any]:
        """What is recorded of it in every trial."""
        return {
            "name": self.adapter.name,
            "version": self.version,
            "restarts": self.restarts,
            "tls_version": self.options.tls_version,
            **self.adapter.declared(self.options),
        }

    def close(self) -> None:
        """End the program: politely first."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

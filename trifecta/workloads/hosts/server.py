"""The engine's origin on a machine of its own, spoken to by its contract: started, ready, watched, started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trifecta.contract.origin import OriginReady, OriginSummary
from trifecta.contract.stored import Server
from trifecta.design.errors import CannotError
from trifecta.implementations.running import READY_TIMEOUT_S, ServerFailed
from trifecta.implementations.server import ServerOptions, Site
from trifecta.implementations.servers.origin import Origin
from trifecta.lab.engine import EngineError, EngineProgram
from trifecta.lab.machines import ConnectedMachine

ANSWER_S = 10.0  # every socket is bound by then: what does not answer now is not let through
GRACE_S = 2.0
_PAUSE_S = 0.05


@dataclass(frozen=True)
class ProcessUsage:
    """What a program had used at a moment, in ns; None where its machine does not tell."""

    cpu_ns: int | None
    run_delay_ns: int | None


class RemoteOrigin:
    """One origin of a run. It is started again when it died, and anew for blocks where that costs little."""

    def __init__(self, version: str, site: Site, options: ServerOptions, machine: ConnectedMachine, log: Path) -> None:
        """Prepare; ``start`` starts it. ``version`` is the engine's."""
        self.site = site
        self.options = options
        self.restarts = 0
        self.renewals = 0
        self._adapter = Origin()
        self._version = version
        self._machine = machine
        self._log = log
        self._program: EngineProgram | None = None
        self._ending = ""

    @property
    def name(self) -> str:
        """Its name among servers."""
        return self._adapter.name

    def start(self, stop: Callable[[], bool], *, renewed: bool = False) -> None:
        """Start it and wait until its sockets are bound; ServerFailed when it ends before. What runs is ended first.

        ``renewed``: it did not have to be started again, but for a block of its own; such starts are counted apart.
        """
        restarted = self._program is not None
        self.end()
        try:
            program = self._machine.place.start("origin", self._log, name=f"server {self.name}")
            self._program = program
            program.configure(self._adapter.config(self.site, self.options))
            program.wait_ready(OriginReady, READY_TIMEOUT_S, stop)
        except EngineError as error:
            self._ending = error.message
            program.close()
            raise ServerFailed(f"{self.name} does not come up: {error.message}") from error
        except CannotError as error:
            raise ServerFailed(str(error)) from error
        self._ending = ""
        self.renewals += renewed
        self.restarts += restarted and not renewed

    def wait_answers(
        self,
        asks: Sequence[Callable[[], str | None]],
        stopped: Callable[[], None],
        who: str = "the client's host",
    ) -> None:
        """Have it asked over each protocol until it answers: each gives None, or what went wrong; ServerFailed.

        ``stopped`` raises when the user wants no more; ``who`` asks.
        """
        for ask in asks:
            until = time.monotonic() + ANSWER_S
            while (problem := ask()) is not None:
                stopped()
                if not self.running():
                    raise ServerFailed(self.describe_end())
                if time.monotonic() > until:
                    port = self.site.port
                    raise ServerFailed(
                        f"{self.name} at {self.site.address} does not answer {who} ({problem}); "
                        f"open TCP and UDP port {port} between the hosts"
                    )
                time.sleep(_PAUSE_S)

    def running(self) -> bool:
        """Whether it runs, as far as is known here."""
        return self._program is not None and self._program.running() and self._machine.lost is None

    def describe_end(self) -> str:
        """How it ended, for the trial in which it did."""
        if self._machine.lost is not None:
            return f"the host of server {self.name} is lost ({self._machine.lost})"
        return f"server {self.name} ended" + (f": {self._ending}" if self._ending else "")

    def used(self) -> ProcessUsage:
        """What it has used so far."""
        usage = None if self._program is None else self._machine.used(self._program)
        return ProcessUsage(None, None) if usage is None else ProcessUsage(*usage)

    def facts(self) -> Server:
        """What is recorded of it in every trial."""
        known: Server = {
            "name": self.name,
            "version": self._version,
            "restarts": self.restarts,
            "renewals": self.renewals,
            "tls_version": self.options.tls_version,
            "proxy": False,
        }
        return cast(Server, {**known, **self._adapter.declared(self.options)})

    def end(self) -> None:
        """End it: politely first, and killed after the grace."""
        if self._program is None:
            return
        if self.running():
            with suppress(EngineError):  # one that does not say its last word in time is killed
                self._program.finish(OriginSummary, GRACE_S)
        self._program.close()

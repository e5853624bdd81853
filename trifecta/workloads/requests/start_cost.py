"""What starting a foreign client costs in a run: asked once for each client and protocol, where clients run."""

from __future__ import annotations

from contextlib import suppress

from trifecta.contract.load import LoadConfig, StartCost
from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.implementations.clients.jobs import only_start
from trifecta.lab.engine import EngineError
from trifecta.workloads.requests.session import RequestsSession

_TIMEOUT_S = 90.0  # the driver loads Python and Arrow, then starts the program three times, with 20 s for each


class StartCosts:
    """The answers so far."""

    def __init__(self, session: RequestsSession) -> None:
        """Nothing is started before it is asked for."""
        self._session = session
        self._known: dict[tuple[str, str, str], int | None] = {}

    def cpu_ns(self, client: str, config: LoadConfig) -> int | None:
        """CPU time of a start without a request; None when it is not known, and for the engine's own load.

        ``config`` is that of a trial. Stopped when the user asks for it.
        """
        if client == DEFAULT_CLIENT:
            return None
        key = (client, config.protocol, config.tls_version)
        if key not in self._known:
            self._known[key] = None
            with suppress(EngineError), self._session.spawn_client(client) as driver:
                driver.configure(only_start(config))
                self._known[key] = driver.wait_summary(StartCost, _TIMEOUT_S, self._session.stop).start_cpu_ns
        return self._known[key]

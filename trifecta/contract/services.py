"""Services of another program than the engine: its switches, beside the fields of load and origin, and its summary.

Of those configurations it follows what it has a word for (``implementations/programs/go-services/config.go``); what it
cannot follow is refused where the study is read (``design/workloads/services.py``).
"""

from __future__ import annotations

from trifecta.contract.common import ProgramOutput, StrictConfig, TcpSummary, Unsigned
from trifecta.contract.load import LoadConfig
from trifecta.contract.origin import OriginConfig, Statuses


class ProgramConfig(StrictConfig, frozen=True, kw_only=True):
    """Switches of the program, of calls that a service makes and of the client's alike."""

    own_tls: bool = False
    """Its HTTP client has a TLS configuration and is not told which protocols to speak: over TCP that is HTTP/1.1."""
    leak_ns: Unsigned = 0
    """How long a connection over TCP stays open after its one request; 0: it is closed."""
    verify: bool = True
    """Certificates."""
    attempts: Unsigned = 1
    """At a call that fails."""
    retry_delay_ns: Unsigned = 0
    """Before the second attempt; twice as long before each further one."""
    think_ns: Unsigned = 0
    """Between two requests of a client."""
    name_server: str | None = None
    """``ADDRESS:PORT`` that is asked for a callee's address before each connection; None: it is asked for once."""
    read_timeout_ns: Unsigned = 0
    """For a request that comes over TCP to arrive; 0: as long as it takes. Over QUIC there is no limit."""
    write_timeout_ns: Unsigned = 0
    """The same for its answer to leave, from the request's head on."""


class ClientPlacement(StrictConfig, frozen=True, kw_only=True):
    """The place of a client among those that are programs of their own, each with one request in flight.

    Number n of its requests and connections is ``n * of + number`` in its rows, where it is the client ``number``.
    """

    number: Unsigned
    of: Unsigned


class Begin(StrictConfig, frozen=True, kw_only=True):
    """The line that a client among others is told, when all are ready: when they make their first requests."""

    begin_ns: Unsigned


class ServicesLoadConfig(LoadConfig, frozen=True, kw_only=True):
    """What the client is asked to do."""

    program: ProgramConfig
    among: ClientPlacement | None = None
    """Other clients; None: it is all of them, and begins when it is ready."""


class ServicesOriginConfig(OriginConfig, frozen=True, kw_only=True):
    """What a service is asked to be."""

    program: ProgramConfig


class CallsOutput(ProgramOutput, kw_only=True):
    """The calls of one service by another."""

    protocol: str
    protocols_spoken: dict[str, Unsigned]
    status: dict[str, Unsigned]
    errors: dict[str, Unsigned]
    retried: Unsigned
    connections: Unsigned
    connections_lost_idle: Unsigned
    key_exchange: str | None
    tcp: TcpSummary | None


class ServicesSummary(ProgramOutput, kw_only=True):
    """What a service did."""

    service: str
    requests: Statuses
    errors: dict[str, Unsigned]
    calls: dict[str, CallsOutput]
    started_ns: Unsigned
    ended_ns: Unsigned
    cpu_user_ns: Unsigned
    cpu_system_ns: Unsigned
    max_rss_bytes: Unsigned

    def spoken(self) -> dict[str, int]:
        """Responses by protocol."""
        return self.requests.total()

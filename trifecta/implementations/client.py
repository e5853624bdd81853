"""What an adapter of a client says about it. The table of adapters is in ``registry.py``.

A client other than the engine's load is a foreign program: ``driver.py`` runs it in the client's host, speaks the
contract of docs/architecture.md, section 1.1, in its place, and writes the rows that the adapter makes of its output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.contract.sample import SampleRow
from trifecta.design import ip
from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.server import Command

Row = SampleRow
"""Columns of the sample row (``store.schema.SAMPLES``) that the client can see; the others become null. ``trial``,
``worker``, ``request`` and ``warmup`` are filled in by the driver, in the order in which the requests started.

Needed are ``started_ns``, and for a success ``done_ns`` and ``status``. A wrong status or length (``bytes_in``, content
octets) is found by the driver; what else the client knows to have failed is its ``error``, one of the classes of
docs/architecture.md, section 1.1. Times are CLOCK_MONOTONIC. A request that is in no row becomes a failed one."""


@dataclass(frozen=True)
class Job:
    """What a client is asked to do: the fields of the load configuration that a foreign client can follow."""

    protocol: Protocol
    address: str
    port: int
    server_name: str
    ca_file: Path
    connections: int
    streams: int
    """Requests in flight on each connection; with ``connection_mode`` new it is 1."""
    connection_mode: str
    """``new``: a connection for every request; ``reused``."""
    requests: int
    """Warm-up and measured requests together."""
    warmup_requests: int
    method: str
    path: str
    request_body_bytes: int
    expect_body_bytes: int | None
    expect_status: int | None
    connect_timeout_ns: int
    request_timeout_ns: int
    total_timeout_ns: int
    tls_version: str
    keylog_file: Path | None
    qlog_dir: Path | None
    state: Path
    """A folder of this job's own, removed afterwards; the program's working directory, in memory where it can be."""
    key_exchange: str = "X25519"
    """The one group to offer, in the names of study files (``factors.KEY_EXCHANGES``)."""
    cipher: str = "TLS_AES_128_GCM_SHA256"
    """The one cipher suite to offer; with TLS 1.2 ``TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256``."""
    tcp_nodelay: bool = True
    """Nagle's algorithm off."""

    @property
    def url(self) -> str:
        """The URL of every request; the name must be led to ``address`` by the client's own means, not by DNS."""
        return f"https://{self.server_name}:{self.port}{self.path}"

    @property
    def endpoint(self) -> str:
        """``address`` and port in one word; an address of IPv6 is in brackets."""
        return ip.endpoint(self.address, self.port)


@dataclass(frozen=True)
class Output:
    """What a foreign program left behind."""

    code: int
    """Its exit code; negative: the signal that ended it (also when its time was up, so output may be cut short)."""
    stdout: Path
    stderr: Path
    began_ns: int
    """CLOCK_MONOTONIC just before it was started."""
    began_wall_ns: int
    """CLOCK_REALTIME at the same moment."""
    ended_ns: int


class ClientAdapter(ABC):
    """One real client. An adapter only describes; starting, timing, limiting and recording is done for all alike."""

    name: str
    source: str
    """Where the program comes from and how to install it."""
    protocols: frozenset[Protocol] = frozenset({"h1", "h2", "h3"})
    sets_nodelay: bool = False
    """Whether it does as the job's ``tcp_nodelay`` says; others have Nagle's algorithm off."""

    @abstractmethod
    def find(self) -> str:
        """Look for the program and return its version; Unsupported, with the command that installs it, when missing."""

    @abstractmethod
    def command(self, job: Job) -> Command:
        """Write what it reads into ``job.state`` and return the command that does the job and ends."""

    def start_only(self, job: Job) -> Command | None:
        """The command that starts the program as for the job, and ends it without a request; None: there is none.

        What that costs is measured once and taken off the CPU time of trials (docs/clients.md).
        """
        return None

    @abstractmethod
    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        """One row for each request made or failed to be made; ValueError when the output is not understood.

        A line that was cut short because the program was killed is left out: its request is then missing, and failed.
        """

    def check_workload(self, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:  # noqa: B027
        """Raise Unsupported when this client cannot do such work: open loops, upload sizes, 0-RTT, ..."""

    def compares_content(self, job: Job) -> bool:
        """Whether the content of the responses is compared with the pattern, not only its length."""
        return True

    def declared(self) -> Declared:
        """What is known of it from its documentation or source: TLS library, congestion control, build options."""
        return {}

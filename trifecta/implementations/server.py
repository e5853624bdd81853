"""What an adapter of a server says about it. The table of adapters is in ``registry.py``."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trifecta.contract.common import Declared, Tuning
from trifecta.contract.digest import sha256_of
from trifecta.design import ip
from trifecta.design.model import PROTOCOLS, Protocol, RequestsWorkload
from trifecta.design.tuning import TcpSettings
from trifecta.lab.certificates import Certificates
from trifecta.lab.container_spec import ContainerSpec


@dataclass(frozen=True)
class ServerOptions:
    """What a cell asks of a server besides the site; servers with equal options are one process."""

    congestion_control: str = "cubic"
    tcp_nodelay: bool = True
    tls_version: str = "1.3"
    zero_rtt: bool = False
    quinn: str = "adapted"
    """How the engine's QUIC library is adapted (``design.quinn``); for `origin` alone."""
    tuning: Tuning = field(default_factory=Tuning)
    """What is set of its transports (``design.tuning``); for `origin` alone."""
    tcp: TcpSettings = field(default_factory=TcpSettings)
    """What the kernel does for its connections; whoever starts it sees to that, adapters need not."""
    max_streams: int = 250
    ipv6: bool = False
    """Whether the site's address is one of IPv6; whoever makes the site sees to that, adapters need not."""
    cpu_share: float | None = None
    """The share of one core that the program may use; whoever starts it sees to that, adapters need not."""
    read_timeout_ns: int | None = None
    """How long a request may take to arrive, from the connection's start or the end of the response before."""
    write_timeout_ns: int | None = None
    """How long a response may take, from the end of the request's head."""
    alt_svc: bool = False
    """Whether answers over TCP say that HTTP/3 is on the same port (RFC 7838)."""
    offered: tuple[Protocol, ...] = PROTOCOLS
    """Nothing else is spoken: only ``("h1",)`` is asked of servers that ``chooses_protocols``, of `origin` any."""


@dataclass(frozen=True)
class Site:
    """What a server serves, and where."""

    folder: Path
    """Holds ``bytes/N``: N octets, octet i is 0x61 + i % 26."""
    certificates: Certificates
    address: str
    port: int
    state: Path
    """A folder of this server's own, for its configuration and state."""
    replay: Path | None = None
    """A page archive (``pages.archive``) to answer from, for every host in it; ``folder`` is not needed then."""
    live: Path | None = None
    """A folder that changes while it is served, below ``/live/``."""
    qlog: Path | None = None
    """Where a server that can write qlog writes a file a QUIC connection."""

    @property
    def endpoint(self) -> str:
        """Address and port in one word, as configurations have them: an address of IPv6 is in brackets."""
        return ip.endpoint(self.address, self.port)


@dataclass(frozen=True)
class Command:
    """How a server is started: it stays in the foreground and logs to standard output and error."""

    arguments: tuple[str | Path, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[Path, ...] = ()
    """What it needs of the machine beside the site, where the adapter ``stands_alone``: its program and libraries."""


@dataclass(frozen=True)
class Backend:
    """A program behind a proxy: started before it, watched and ended with it, its CPU time counted apart."""

    name: str
    version: str
    command: Command
    link: str
    """How the proxy speaks to it, in a few words for the report: protocol, encryption, reuse of connections."""


class Unsupported(Exception):
    """This server cannot be used here, or not for this; the message says why and what to do."""


class ServerAdapter(ABC):
    """One real server. An adapter only describes; starting, waiting and restarting is done for all alike."""

    name: str
    source: str
    """Where the program comes from and how to install it."""
    protocols: frozenset[Protocol] = frozenset({"h1", "h2", "h3"})
    has_timeouts: bool = False
    """Whether it can be given ``read_timeout_ns`` and ``write_timeout_ns``."""
    refused_key_exchanges: frozenset[str] = frozenset()
    """Those of a study's key exchanges that its TLS does not accept as it is configured here."""
    chooses_protocols: bool = False
    """Whether it can be told to offer HTTP/1.1 alone (``offered``)."""
    stands_alone: bool = False
    """Whether it runs in a container that holds the engine's libraries and what `Command.reads` names, nothing else."""
    contained: ContainerSpec | None = None
    """The image that its program is in: it is run in a container on the network of its host; None: it is a process."""
    is_proxy: bool = False
    """Whether it passes requests on to another server: that adds a hop, which the report must say."""
    says_ready: bytes | None = None
    """What it writes to standard output or error once it can be used over every protocol, and never before.

    A server that answered real requests at its first start is then restarted for a block without them.
    """
    ready_within_s: float | None = None
    """How long it may take to answer for the first time, where that is not as long as any other may."""
    program_name: str = ""
    """What its program is called in the folder of a build (``nginx@FOLDER``); empty: it has no builds but its own."""
    build: Path | None = None
    """The program of another build, which it then finds and runs (``implementations.builds``)."""
    remedy: str = ""
    """What helps when its program does not run."""

    @abstractmethod
    def find(self) -> str:
        """Look for the program and return its version; Unsupported, with the command that installs it, when missing."""

    def program(self) -> Path | None:
        """The program, once it is found; None where that is not known."""
        return None

    def program_files(self) -> tuple[Path, ...]:
        """What is run: what makes two of them the same build."""
        program = self.program() if callable(self.program) else None  # adapters from outside may mean another thing
        return (program,) if isinstance(program, Path) else ()

    def identity(self) -> str | None:
        """SHA-256 of its program, as ``sha256sum`` has it; of several files, of their digests. None: not known."""
        digests = [sha256_of(path) for path in self.program_files()]
        return hashlib.sha256("".join(digests).encode()).hexdigest() if len(digests) > 1 else next(iter(digests), None)

    def backends(self, site: Site, options: ServerOptions) -> tuple[Backend, ...]:
        """The programs behind a proxy; write what they read into ``site.state``. None for a server that is not one."""
        return ()

    @abstractmethod
    def command(self, site: Site, options: ServerOptions) -> Command:
        """Write the configuration into ``site.state`` and return the command."""

    def check_workload(self, workload: RequestsWorkload) -> None:  # noqa: B027
        """Raise Unsupported when this server cannot answer such requests."""

    def declared(self, options: ServerOptions) -> Declared:
        """What is known of its transport from its documentation or source, where it cannot be read back."""
        return {}


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def label(server: str) -> str:
    """A level of the factor ``server`` as part of file names and of host names: ``nginx@./build`` is neither."""
    if _PLAIN.fullmatch(server):
        return server
    words = re.sub(r"[^a-z0-9]+", "-", server.lower())[-40:].strip("-")
    return f"{words}-{hashlib.sha256(server.encode(errors='surrogateescape')).hexdigest()[:8]}".lstrip("-")


def host_name(server: str) -> str:
    """What the server of a level is called in the lab, in its certificate and by clients."""
    return f"{label(server)}.lab"

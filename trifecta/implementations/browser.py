"""What an adapter of a browser says about it and does. The table of adapters is in ``registry.py``.

``driver.py`` speaks with the lab and keeps the browser in namespaces of its own, ``worker.py`` makes the visits there,
the same for every browser. An adapter starts its browser and gives *views*: a tab with all the state behind it (HTTP
cache, connections, session tickets, cookies). Everything is asyncio, in one thread. All times are CLOCK_MONOTONIC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from trifecta.contract.browser import RemotePageConfig
from trifecta.contract.common import Declared, Ip
from trifecta.contract.errors import ErrorClass
from trifecta.design import extras
from trifecta.design.model import BrowserWorkload, Protocol
from trifecta.implementations.server import Unsupported
from trifecta.implementations.visit import Fetch, Visit

CRASHED: Final = "browser:crashed"
HUNG: Final = "browser:hung"
"""Error classes of docs/architecture.md, section 1.1, that only a browser has."""


@dataclass(frozen=True)
class Watch:
    """What is asked of a visit of kind ``video``."""

    player_url: str
    watch_ns: int
    live: bool
    floor: tuple[float, ...] | None = None
    """The share of frames that this machine drops by itself, by rung, where that was measured."""


@dataclass(frozen=True)
class Job:
    """What a browser is asked to do in a trial: docs/architecture.md, section 1.1, "A browser"."""

    trial: str
    protocol: Protocol
    kind: Literal["page", "video"]
    url: str
    hosts: tuple[str, ...]
    """Names of all origins; nothing else is looked up."""
    third_parties: tuple[str, ...]
    """Those of them on which no protocol is forced: over TCP, HTTP/2 if their server has it."""
    addresses: Mapping[str, str]
    """Addresses of hosts that the name server is not asked for; in the lab none, so that DNS counts."""
    ip: Ip | None
    """Over which version of IP hosts are asked; None: IPv4. Their names have addresses of that version alone."""
    port: int
    ca_file: Path | None
    """Authorities that are trusted besides those that the browser brings."""
    discovery: Literal["forced", "alt-svc"]
    view: Literal["cold", "warm", "repeat"]
    visits: int
    """Measured ones."""
    warmup_visits: int
    seed: int
    visit_timeout_ns: int
    total_timeout_ns: int
    settle_ns: int
    filmstrip: bool
    viewport: tuple[int, int]
    watch: Watch | None
    state: Path
    """A folder in memory of this job's own: profiles, HOME and temporary files belong here. It goes with the driver,
    however that ends."""
    keylog_file: Path | None
    netlog_file: Path | None
    frames_dir: Path | None
    har_dir: Path | None
    qlog_dir: Path | None
    """Where a browser that can write qlog leaves a file a QUIC connection."""
    elsewhere: RemotePageConfig | None = None
    """Of a page of servers elsewhere: hosts without an address do not exist, and the user agent says who asks."""

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """Those on which the protocol is forced."""
        return tuple(host for host in self.hosts if host not in self.third_parties)


class BrowserFailed(Exception):
    """The browser as a whole is lost: this visit and all later ones have the error class ``error``."""

    def __init__(self, error: ErrorClass, message: str) -> None:
        """``error``: CRASHED or HUNG; ``message`` goes to the log."""
        self.error = error
        super().__init__(message)


class VisitFailed(Exception):
    """This visit failed; the next may not. ``error`` is a class of docs/architecture.md, section 1.1."""

    def __init__(self, error: ErrorClass, message: str) -> None:
        """``message`` goes to the log: the browser's own words."""
        self.error = error
        super().__init__(message)


@dataclass
class Recording:
    """What a view saw from a navigation on."""

    visit: Visit
    """The times of the page (``*_ns`` from the start of the navigation), as far as this browser tells. Counts and sums
    over fetches are filled in for all browsers alike (``records.summarise``)."""
    fetches: list[Fetch]
    """Every request, by start, with the failed ones; the first document is the page."""
    frames: list[tuple[int, bytes]] = field(default_factory=list)
    """The film strip: nanoseconds from the start of the navigation, and a JPEG picture of the viewport."""


class View(ABC):
    """A tab with everything behind it. Times out by itself nowhere: the worker limits every call."""

    @abstractmethod
    async def navigate(self, url: str, *, frames: bool = False) -> None:
        """Record from now on, go to ``url`` and return once the load event has ended.

        ``frames``: keep a film strip. VisitFailed when the main document fails or is no success (status of 400 or
        more); what was recorded until then can be collected. BrowserFailed when the browser is gone.
        """

    @abstractmethod
    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, through JSON; promises are awaited."""

    @abstractmethod
    async def collect(self) -> Recording:
        """Stop recording and return what was seen since ``navigate``, also where that failed or was cancelled."""

    @abstractmethod
    async def close_connections(self) -> None:
        """Close all connections and keep the rest: HTTP cache, session tickets, what is known of alternative services.

        Only the view ``repeat`` needs it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the tab and forget everything behind it."""


class RunningBrowser(ABC):
    """A browser that was started."""

    pid: int
    """Its first process, as the worker sees it; all others descend from it."""
    version: str
    helpers: frozenset[int] = frozenset()
    """Processes that belong to the driving library and not to the browser: their CPU time is not the browser's."""

    @abstractmethod
    async def open(self) -> View:
        """A view that knows nothing of any earlier one: no cache, no connection, no session ticket, no name."""

    @abstractmethod
    async def close(self) -> None:
        """Let the browser end by itself, so that its logs are whole. It need not succeed: what is left is killed."""

    def stray_lookups(self) -> int | None:
        """How often a name outside of ``hosts`` was looked up so far; None where the browser does not report."""
        return None


def extra_there() -> None:
    """Raise Unsupported, with the command that installs it, without the extra that drives browsers."""
    if lacking := extras.missing("browser"):
        raise Unsupported(
            f"the package {lacking[0]} is not installed, which drives it; run: {extras.remedy('browser')}"
        )


class BrowserAdapter(ABC):
    """One real browser."""

    name: str
    source: str
    """Where the program comes from and how to install it."""
    protocols: frozenset[Protocol] = frozenset({"h1", "h2", "h3"})

    @abstractmethod
    def find(self) -> str:
        """Look for the program and return its version; Unsupported, with the command that installs it, when missing."""

    @abstractmethod
    async def launch(self, job: Job) -> RunningBrowser:
        """Start it with a new profile in ``job.state``; Unsupported or BrowserFailed when it does not come up."""

    def load(self) -> None:  # noqa: B027
        """Import what ``launch`` needs, before anything is measured."""

    def check_workload(self, workload: BrowserWorkload, protocol: Protocol) -> None:  # noqa: B027
        """Raise Unsupported when this browser cannot do such work."""

    def declared(self) -> Declared:
        """What is known of it from its documentation or source: TLS library, congestion control, build."""
        return {}

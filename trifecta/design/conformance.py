"""What a conformance probe asks of an implementation, and what it records: plain records, no I/O.

Every implementation and protocol transfers the same objects. An object is transferred once: the first result stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trifecta.design.model import PathSpec, RequestsWorkload
from trifecta.design.study import path

Depth = Literal["off", "quick", "full"]
DEPTHS: tuple[Depth, ...] = ("off", "quick", "full")
Outcome = Literal["pass", "fail", "not_offered", "unsupported", "not_run"]
Role = Literal["server", "client"]

MARKS: dict[str, str] = {"pass": "✓", "fail": "✗", "not_offered": "–", "unsupported": "∅", "not_run": "…"}
"""A sign for each outcome, so that colour is never needed to tell them apart."""

OUTCOME_WORDS: dict[str, str] = {
    "pass": "every octet as asked",
    "fail": "failed, with the class of the error",
    "not_offered": "not offered by this implementation",
    "unsupported": "not found here, too old, or a protocol it does not speak",
    "not_run": "not asked, for the reason given",
}

CLEAN = PathSpec("clean")
ROUGH: PathSpec = path("rough", rtt="50 ms", loss="2 %").spec()
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class ConformanceCase:
    """One object and how it is transferred."""

    name: str
    label: str
    method: Literal["GET", "POST"]
    octets: int
    path: PathSpec
    timeout_ns: int
    """For the connection and for the request, each."""

    def workload(self) -> RequestsWorkload:
        """One request for the object; a POST sends as many octets as it asks for."""
        return RequestsWorkload(
            method=self.method,
            response_bytes=self.octets,
            request_bytes=self.octets if self.method == "POST" else 0,
            in_flight=1,
            requests=1,
            connect_timeout_ns=min(self.timeout_ns, 10 * _SECOND_NS),
            request_timeout_ns=self.timeout_ns,
        )


def _case(method: Literal["GET", "POST"], label: str, octets: int) -> ConformanceCase:
    return ConformanceCase(f"{method.lower()}_{octets}", f"{method} {label}", method, octets, CLEAN, 5 * _SECOND_NS)


_SIZES = (("0 B", 0), ("1 B", 1), ("1 kB", 1_000), ("1 MB", 1_000_000))
CASES: tuple[ConformanceCase, ...] = (
    *(_case("GET", *size) for size in _SIZES),
    *(_case("POST", *size) for size in _SIZES),
    # Lost handshake packets are sent again after 1, 2 and 4 s (RFC 6298 section 5; RFC 9002 section 6.2.2).
    ConformanceCase("rough_100000", "GET 100 kB rough", "GET", 100_000, ROUGH, 20 * _SECOND_NS),
)
LARGE = ConformanceCase("get_100000000", "GET 100 MB", "GET", 100_000_000, CLEAN, 60 * _SECOND_NS)
QUICK: tuple[ConformanceCase, ...] = tuple(case for case in CASES if case.name == "get_1000")


@dataclass(frozen=True)
class ConformanceResult:
    """One object of one implementation over one protocol; or, without a protocol, the implementation as a whole."""

    depth: str
    role: Role
    name: str
    version: str
    peer: str
    """The other end: the client that asked a server, the server that answered a client."""
    proxy: bool
    """A proxy adds a hop: it is not to be ranked against a file server."""
    protocol: str | None
    object: str | None
    label: str
    method: str | None
    octets: int | None
    path: str | None
    outcome: Outcome
    error: str | None
    """Class of the error (docs/architecture.md, section 1.1), or ``protocol``, ``server_ended``, ``not_ready``,
    ``client``, ``cannot_start``."""
    reason: str
    duration_ns: int | None
    evidence: str | None
    """Folder with log, configuration, keys, qlog and capture, relative to the folder of the run."""
    capture: str
    """What came of the capture of a failure, in words; empty when nothing failed."""


def cases(depth: str, *, large: bool = False) -> tuple[ConformanceCase, ...]:
    """The objects of a probe of this depth."""
    if depth == "off":
        return ()
    return QUICK if depth == "quick" else (*CASES, LARGE) if large else CASES

"""What a conformance probe asks of an implementation, and what it records: plain records, no I/O.

Every implementation and protocol transfers the same objects. An object is transferred once: the first result stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from trifecta.design.by_protocol import one_size
from trifecta.design.model import PathSpec, RequestsWorkload
from trifecta.design.study import path

Outcome = Literal["pass", "fail", "not_offered", "unsupported", "not_run"]
Role = Literal["server", "client"]

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
    method: str
    octets: int
    path: PathSpec
    timeout_ns: int
    """For the connection and for the request, each."""
    request_octets: int | None = None
    """Octets that are sent along; None: of a POST as many as it asks for, else none."""

    @property
    def content(self) -> int:
        """Octets of a right answer: HEAD and DELETE have none (RFC 9110, 9.3)."""
        return 0 if self.method in ("HEAD", "DELETE") else self.octets

    @property
    def status(self) -> int:
        """That of a right answer."""
        return 204 if self.method == "DELETE" else 200

    def workload(self) -> RequestsWorkload:
        """One request for the object; a POST sends as many octets as it asks for."""
        return RequestsWorkload(
            method=self.method,
            response_bytes=self.octets,
            request_bytes=self._sent,
            in_flight=1,
            requests=1,
            connect_timeout_ns=min(self.timeout_ns, 10 * _SECOND_NS),
            request_timeout_ns=self.timeout_ns,
        )

    @property
    def _sent(self) -> int:
        if self.request_octets is not None:
            return self.request_octets
        return self.octets if self.method == "POST" else 0


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


OWN = ConformanceCase("own", "own request", "GET", 0, CLEAN, 5 * _SECOND_NS)
"""What stands for the requests of a study itself: a server may answer 1 kB right, and them wrong."""


def own_cases(workloads: Iterable[RequestsWorkload]) -> tuple[ConformanceCase, ...]:
    """One case a method and size of requests that these workloads, each as a protocol meets it, make; none of services,
    pages and videos.
    """
    cases: dict[tuple[str, int, int], ConformanceCase] = {}
    for one in workloads:
        key = (one.method, one_size(one.response_bytes), one_size(one.request_bytes))
        if one.direct and key not in cases and key != ("GET", QUICK[0].octets, 0):
            label = f"{one.method} {_size(max(key[1:]))} (own)"
            limit = max(one.request_timeout_ns, OWN.timeout_ns)
            cases[key] = replace(
                OWN,
                name=f"{OWN.name}_{len(cases) + 1}" if cases else OWN.name,
                label=label,
                method=one.method,
                octets=key[1],
                timeout_ns=limit,
                request_octets=key[2],
            )
    return tuple(cases.values())


def _size(octets: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if octets >= size:
            return f"{octets / size:.4g} {unit}"
    return f"{octets} B"


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

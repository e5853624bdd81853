"""The workload of requests to a server that runs elsewhere, over the path as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.design import manners, quantity
from trifecta.design.manners import Manners
from trifecta.design.path_spec import PathSpec
from trifecta.design.protocols import SAFE_METHODS
from trifecta.design.workloads import estimates
from trifecta.design.workloads.requests import Family, Problem, RequestsWorkload

_TRIP_NS = 100_000_000  # of a path of which nothing is known before it is looked at


@dataclass(frozen=True)
class FarWorkload(RequestsWorkload):
    """The workload ``far``: ``requests`` of ``url`` one after the other, each with a pause behind its start.

    ``address`` is where the name's requests go: an IP address, or ``IPv4`` or ``IPv6``, one of whose addresses is
    chosen for every block. With reused connections, and where sessions are resumed, one request more comes before those
    that are measured. ``ca`` is a file of certificate authorities, in the place of the system's. ``pace_per_s``,
    ``volume_bytes`` a minute, and ``most_requests`` and ``most_bytes`` in all are caps; None: as they are at servers of
    others, or, with ``owned``, at one's own (``trifecta.design.manners``).
    """

    url: str = ""
    address: str = "IPv4"
    ca: str | None = None
    owned: bool | None = None
    pace_per_s: float | None = None
    volume_bytes: int | None = None
    most_requests: int | None = None
    most_bytes: int | None = None
    in_flight: int = 1
    kind: str = "far"

    @property
    def family(self) -> Family:
        """It leaves the machine."""
        return "far"

    @property
    def outside(self) -> bool:
        """It is the one that does."""
        return True

    @property
    def octets(self) -> int | None:
        """Nobody knows before it was looked at."""
        return None

    @property
    def compared(self) -> tuple[str, ...]:
        """What an answer is depends on these; two places need not answer alike."""
        return ("url", "method")

    @property
    def wires(self) -> tuple[str, ...]:
        """None of ours."""
        return ()

    @property
    def manners(self) -> Manners:
        """The caps in force."""
        usual = manners.TO_ONES_OWN if self.owned else manners.TO_OTHERS
        return Manners(
            self.pace_per_s or usual.pace_per_s,
            self.volume_bytes or usual.volume_bytes,
            self.most_requests or usual.most_requests,
            self.most_bytes or usual.most_bytes,
        )

    def before(self, connection: str) -> int:
        """Requests of a trial before those that are measured: they open the connection, or fetch a ticket."""
        return 1 if connection == "reused" or self.resumption else 0

    def every_request(self, connection: str) -> int:
        """All requests of a trial."""
        return self.requests + self.before(connection)

    # How long it takes.

    def least_ns(self, rtt_ns: int, protocol: str, connection: str) -> int:
        """The pauses alone."""
        return (self.every_request(connection) - 1) * self.manners.gap_ns(0)

    def work_ns(self, path: PathSpec, connection: str, client: str) -> float:
        """Each request with its pause, or with the round trips that it takes where these are longer."""
        trips = estimates.NEW_TRIPS if connection == "new" else 1
        return self.every_request(connection) * max(self.manners.gap_ns(0), trips * _TRIP_NS)

    # What no program can carry out, and what nobody should.

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """Besides what is impossible: what is more than a server of others should be asked."""
        return super().problem(protocols, path) or self._asked_problem(path) or self._cap_problem()

    def _asked_problem(self, path: PathSpec) -> Problem | None:
        if not self.url:
            return "url", "is missing; give what is asked for, such as 'url: https://www.example.org/'"
        if path.linked or path.trial is not None:
            return "path", "nothing of a path to a server elsewhere is emulated; remove its fields"
        if not self.requests or self.duration_ns:
            return "requests", "a trial at a server elsewhere counts its requests; give 'requests', and no duration"
        if self.warmup_requests or self.warmup_ns:
            return "warmup", "comes by itself where a connection has to be opened before; remove it"
        if self.method not in SAFE_METHODS:
            return "method", f"a {self.method} may change something there; use GET or HEAD (RFC 9110 section 9.2.1)"
        return None

    def _cap_problem(self) -> Problem | None:
        own, most = self.manners, manners.MOST if self.owned else manners.TO_OTHERS
        rate, size = quantity.format_frequency, quantity.format_size
        caps = (
            ("pace", own.pace_per_s, most.pace_per_s, rate(own.pace_per_s), rate(most.pace_per_s)),
            ("volume", own.volume_bytes, most.volume_bytes, size(own.volume_bytes), size(most.volume_bytes)),
            ("most_requests", own.most_requests, most.most_requests, f"{own.most_requests}", f"{most.most_requests}"),
            ("most_volume", own.most_bytes, most.most_bytes, size(own.most_bytes), size(most.most_bytes)),
        )
        for field, given, allowed, said, limit in caps:
            if given > allowed:
                what = f"{said} is more than {limit}"
                if self.owned:
                    return field, f"{what}, the most that is asked of any server; lower it"
                return field, f"{what}, the most at a server of others; lower it, or claim it as yours (--i-own-this)"
        return None

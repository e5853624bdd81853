"""The workload of requests to a server that runs elsewhere, over the path as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trifecta.design.path_spec import PathSpec
from trifecta.design.protocols import SAFE_METHODS
from trifecta.design.workloads import estimates
from trifecta.design.workloads.far_base import ROUND_TRIP_NS, FarBaseWorkload
from trifecta.design.workloads.requests import Family, Problem


@dataclass(frozen=True)
class FarWorkload(FarBaseWorkload):
    """The workload ``far``: ``requests`` of ``url`` one after the other, each with a pause behind its start.

    With reused connections, and where sessions are resumed, one request more comes before those that are measured.
    """

    kind: str = "far"

    family: ClassVar[Family] = "far"
    """Single requests."""
    compared: ClassVar[tuple[str, ...]] = ("url", "method")
    """What an answer is depends on these; two places need not answer alike."""

    def before(self, connection: str) -> int:
        """Requests of a trial before those that are measured: they open the connection, or fetch a ticket."""
        return 1 if connection == "reused" or self.resumption else 0

    def every_request(self, connection: str) -> int:
        """All requests of a trial."""
        return self.requests + self.before(connection)

    def turns(self, connection: str) -> int:
        """A turn is a request."""
        return self.every_request(connection)

    # How long it takes.

    def least_ns(self, rtt_ns: int, protocol: str, connection: str) -> int:
        """The pauses alone."""
        return (self.every_request(connection) - 1) * self.manners.gap_ns(0)

    def work_ns(self, path: PathSpec, connection: str, client: str) -> float:
        """Each request with its pause, or with the round trips that it takes where these are longer."""
        round_trips = estimates.NEW_CONNECTION_ROUND_TRIPS if connection == "new" else 1
        return self.every_request(connection) * max(self.manners.gap_ns(0), round_trips * ROUND_TRIP_NS)

    # What no program can carry out, and what nobody should.

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """Besides what is impossible: what is more than a server of others should be asked."""
        return super().problem(protocols, path) or self._asked_problem() or self.unaskable(path)

    def _asked_problem(self) -> Problem | None:
        if not self.url:
            return None  # that is said first
        if not self.requests or self.duration_ns:
            return "requests", "a trial at a server elsewhere counts its requests; give 'requests', and no duration"
        if self.warmup_requests or self.warmup_ns:
            return "warmup", "comes by itself where a connection has to be opened before; remove it"
        if self.method not in SAFE_METHODS:
            return "method", f"a {self.method} may change something there; use GET or HEAD (RFC 9110 section 9.2.1)"
        return None

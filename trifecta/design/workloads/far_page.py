"""The workload of a page that a server elsewhere serves, visited by browsers, over the path as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trifecta.design import manners
from trifecta.design.path_spec import PathSpec
from trifecta.design.workloads import estimates
from trifecta.design.workloads.browsers import BrowserWorkload
from trifecta.design.workloads.far_base import ROUND_TRIP_NS, FarBaseWorkload
from trifecta.design.workloads.requests import Family, Problem

_USUAL_REQUESTS = 30  # of a page of which nothing is known before it is looked at
_LOAD_ROUND_TRIPS = 12


@dataclass(frozen=True)
class FarPageWorkload(FarBaseWorkload, BrowserWorkload):
    """The workload ``far-page``: a browser visits the page at ``url``, with nothing kept from before.

    Between the starts of two visits lies a pause, as long as the page's requests and octets ask for. For the browser
    there are the host of the URL and ``third_parties``, and no other; no protocol is forced on third parties.
    """

    third_parties: tuple[str, ...] | None = None
    filmstrip: bool = True
    kind: str = "far-page"

    family: ClassVar[Family] = "far-visits"
    """Visits that leave the machine."""
    compared: ClassVar[tuple[str, ...]] = ("url",)
    """What a visit gets depends on it; two places need not answer alike."""

    @property
    def films(self) -> bool:
        """As the study asks."""
        return self.filmstrip

    @property
    def shown(self) -> tuple[str, str]:
        """The page."""
        return "url", self.url

    @property
    def hosts_beside(self) -> tuple[str, ...]:
        """Third parties."""
        return self.third_parties or ()

    @property
    def look_turns(self) -> int:
        """A visit by each browser, of a run that goes on once more; those that find third parties besides."""
        return manners.PAGE_LOOKS + 1 if self.third_parties else 2

    def turns(self, connection: str) -> int:
        """A turn is a visit."""
        return self.visits + self.warmup_visits

    # How long it takes.

    def least_ns(self, rtt_ns: int, protocol: str, connection: str) -> int:
        """The pauses alone, of a page that is one request."""
        return (self.turns(connection) - 1) * self.manners.gap_ns(0) + self.turns(connection) * self.settle_ns

    def _visit_ns(self, path: PathSpec) -> float:
        """A visit with its pause, of a page that is like others."""
        loading = estimates.VISIT_NS + self.settle_ns + _LOAD_ROUND_TRIPS * ROUND_TRIP_NS
        return max(loading, self.manners.gap_ns(estimates.OTHER_PAGE, _USUAL_REQUESTS))

    # What no program can carry out, and what nobody should.

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """Besides what nobody should: HTTP/1.1 cannot be forced on one host alone from here."""
        if self.third_parties and "h1" in protocols:
            text = "no browser turns HTTP/2 off for one host alone, and third parties are left as they are"
            return "third_parties", f"{text}; take HTTP/1.1 out of factors.protocol"
        return self.unaskable(path)

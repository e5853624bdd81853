"""What the visits of a browser in one trial come to, as the checks need it. Measured visits only, no warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class FetchResult(NamedTuple):
    """What a visit got of one request (method and URL)."""

    times: int
    status: int | None
    octets: int | None
    """Decoded content; None where the browser does not report, or took it from its cache."""


@dataclass(frozen=True)
class Visit:
    """One visit, page or watch. Times in ns; None: it did not happen, or this browser does not report."""

    number: int
    error: str | None = None
    load_ns: int | None = None
    cpu_ns: int | None = None
    """CPU time of the browser with all its processes, from the start to the load event, or to the end of the watch."""
    fetched: Mapping[str, FetchResult] = field(default_factory=dict)
    """``GET https://...`` -> what came. Without requests that failed, or to which the recording has no answer."""
    first_protocol: str | None = None
    """Of the first answer that came over the network."""
    connections: int | None = None
    resumed_connections: int | None = None
    startup_ns: int | None = None
    watched_ns: int | None = None
    played_ns: int | None = None
    rebuffer_ns: int | None = None
    frames_shown: int | None = None
    frames_dropped: int | None = None
    frames_dropped_floor: int | None = None
    stalled_at_end: bool = False


@dataclass(frozen=True)
class Visits:
    """The visits of a trial. Counts are over the requests of visits without an error."""

    visits: tuple[Visit, ...]
    warmup_visits: int = 0
    fetches: int = 0
    """Requests answered over the network."""
    from_cache: int = 0
    protocols: Mapping[str, int] = field(default_factory=dict)
    """Protocol -> requests answered over it; those to third parties are not among them."""
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Protocol -> some URLs that were answered over it."""
    untold: int = 0
    """Requests answered over the network of which the browser does not report the protocol."""
    third_parties: tuple[str, ...] = ()
    """Hosts of the page that are not its own: with them HTTP/2 is spoken in every arm."""
    third_party_protocols: Mapping[str, int] = field(default_factory=dict)
    """Protocol (``none``: not told) -> requests that they answered over it."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """URL -> requests for it that failed."""
    failed_classes: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    """URL -> requests for it that were answered with a status of 400 to 499, though not because it is missing."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """URL -> requests for it to which the recording has no answer."""
    unfinished: int = 0
    """Requests that still ran when the visit was over."""
    segments: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(rung, segment) of a video -> decoded octets."""

    @property
    def loaded(self) -> tuple[Visit, ...]:
        """The visits without an error."""
        return tuple(visit for visit in self.visits if visit.error is None)

"""Visits, fetches and what a player did: from what a browser said to the rows of ``store.visits`` and ``samples``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trifecta.contract.errors import ErrorClass
from trifecta.contract.origins import origin_of
from trifecta.implementations.visit import Fetch, Visit

if TYPE_CHECKING:
    from trifecta.store.parquet import Table

Row = dict[str, Any]
Record = TypeVar("Record")


@dataclass
class PlaybackRow:
    """What a player did at one moment, a row of PLAYBACK."""

    time_ns: int
    event: str
    position_ns: int | None = None
    buffer_ns: int | None = None
    rung: int | None = None
    bitrate_bits_per_s: int | None = None
    frames_shown: int | None = None
    frames_dropped: int | None = None
    live_latency_ns: int | None = None


@dataclass
class VisitRecord:
    """Everything of one visit that ends up in files of the trial."""

    number: int
    warmup: bool
    visit: Visit
    fetches: list[Fetch] = field(default_factory=list)
    playback: list[PlaybackRow] = field(default_factory=list)

    def to_json(self) -> str:
        """On one line, for the pipe between worker and driver."""
        return json.dumps(self, default=_as_json, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> VisitRecord:
        """What ``to_json`` wrote."""
        document = json.loads(text)
        return cls(
            document["number"],
            document["warmup"],
            _read(Visit, document["visit"]),
            [_read(Fetch, each) for each in document["fetches"]],
            [_read(PlaybackRow, each) for each in document["playback"]],
        )


def _as_json(record: Any) -> Any:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _read(kind: type[Record], values: Mapping[str, Any]) -> Record:
    return kind(**values)


@dataclass
class Played:
    """What a watch of a video gave (``playback.watch``)."""

    error: ErrorClass | None = None
    visit: dict[str, Any] = field(default_factory=dict)
    """Fields of the visit that it knows: ``startup_ns``, ``rebuffers``, ..."""
    started_ns: int | None = None
    """When play was asked for: the visit's durations count from then."""
    rows: list[PlaybackRow] = field(default_factory=list)
    segments: dict[str, tuple[int | None, int | None, int | None]] = field(default_factory=dict)
    """URL of a segment -> its rung, number and length in ns; the last two are null for an initialization section."""
    failed_url: str | None = None
    """What the player asked for in vain when it gave up: the error of that request is then the visit's."""
    note: str | None = None
    """What the player says of its error, for the log."""


_OF_THE_PAGE = (
    "dns_ns", "connect_ns", "tls_ns", "request_ns", "ttfb_ns", "response_ns", "dom_content_loaded_ns", "load_ns",
    "fcp_ns", "lcp_ns",
)  # fmt: skip


CANCELLED: Final = "browser:cancelled"
_CLOCK_ERROR_NS = 10_000_000  # of the player's, at the very most


def _cut_off(fetch: Fetch, played: Played) -> bool:
    """Whether a request was under way when the watch was over: that ended it, and it did not fail."""
    if played.started_ns is None or played.visit.get("watched_ns") is None:
        return False
    over = played.started_ns + int(played.visit["watched_ns"])
    return fetch.done_ns is None or fetch.done_ns >= over - _CLOCK_ERROR_NS


def apply_played(record: VisitRecord, played: Played) -> None:
    """Put what a player knows into the visit and its fetches.

    The times of the page that holds the player are left out: durations of a watch count from play. What was under way
    when the watch was over is no failed request; it has no end.
    """
    for name in _OF_THE_PAGE:
        setattr(record.visit, name, None)
    for name, value in played.visit.items():
        setattr(record.visit, name, value)
    if played.started_ns is not None:
        record.visit.started_ns = played.started_ns
    record.playback = played.rows
    for fetch in record.fetches:
        if fetch.url in played.segments:
            fetch.kind = "media"  # a script asked for it; what it is for is what counts
            fetch.rung, fetch.segment, fetch.media_ns = played.segments[fetch.url]
        if fetch.error == CANCELLED and _cut_off(fetch, played):
            fetch.error = fetch.done_ns = None
    summarise(record.visit, record.fetches)
    failed = [fetch.error for fetch in record.fetches if fetch.url == played.failed_url and fetch.error is not None]
    record.visit.error = failed[-1] if failed else played.error


def number_connections(fetches: Sequence[Fetch]) -> None:
    """Give connections their ordinals in the visit, in the order in which they were first used."""
    ordinals: dict[int | str, int] = {}
    for fetch in fetches:
        if fetch.connection is not None:
            fetch.connection = ordinals.setdefault(fetch.connection, len(ordinals))


def tell_third_parties(fetches: Sequence[Fetch], hosts: Collection[str]) -> None:
    """Mark the fetches from these hosts, and the others as the page's own."""
    for fetch in fetches:
        fetch.third_party = origin_of(fetch.url).rpartition(":")[0] in hosts


def summarise(visit: Visit, fetches: Sequence[Fetch]) -> None:
    """Fill in what is counted or summed over the fetches of a visit, the same for every browser.

    Connections to third parties, which no protocol is forced on, are counted apart.
    """
    network = [fetch for fetch in fetches if not fetch.from_cache]
    visit.requests = len(network)
    visit.failed_requests = sum(fetch.error is not None for fetch in network)
    visit.missing_requests = sum(bool(fetch.missing) for fetch in network)
    visit.origins = len({origin_of(fetch.url) for fetch in network})
    theirs = [fetch for fetch in network if fetch.third_party]
    visit.third_party_requests = len(theirs)
    by_connection: dict[int | str, list[Fetch]] = {}
    for fetch in network:
        if fetch.connection is not None and not fetch.third_party:
            by_connection.setdefault(fetch.connection, []).append(fetch)
    if by_connection or not network:
        visit.third_party_connections = len({fetch.connection for fetch in theirs} - {None})
        connections = list(by_connection.values())
        visit.connections = len(connections)
        visit.quic_connections = sum(any(each.protocol == "h3" for each in own) for own in connections)
        visit.tcp_connections = len(connections) - visit.quic_connections
        if all(fetch.resumed is not None for own in connections for fetch in own):
            visit.resumed_connections = sum(any(each.resumed for each in own) for own in connections)
        if all(fetch.zero_rtt is not None for own in connections for fetch in own):
            visit.zero_rtt_connections = sum(any(each.zero_rtt for each in own) for own in connections)
    for name in ("wire_bytes", "header_bytes", "body_bytes", "decoded_bytes"):
        sizes = [getattr(fetch, name) for fetch in network if fetch.error is None]
        setattr(visit, name, None if None in sizes else sum(sizes))
    visit.work = work_digest(network)


def work_digest(fetches: Iterable[Fetch]) -> str:
    """A digest of what was fetched from the network, in any order: equal for equal work (method, URL, status, octets).

    Content octets are the decoded ones: what a browser makes of a response does not depend on the protocol.
    """
    lines = sorted(f"{each.method} {each.url} {each.status} {each.decoded_bytes}" for each in fetches)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


_NOT_IN_ROW = {
    "connect_end_ns", "send_start_ns", "status_text", "request_headers", "response_headers", "remote_address",
    "redirect_url", "request_body_bytes",
}  # fmt: skip


@dataclass(frozen=True)
class Tables:
    """The tables of a trial."""

    samples: Table
    visits: Table
    fetches: Table
    playback: Table


def tables(records: Sequence[VisitRecord], *, trial: str, kind: str, view: str, browser: str, protocol: str) -> Tables:
    """All rows of a trial; ValueError when a value has not the type of its column."""
    from trifecta.store.parquet import Table
    from trifecta.store.schema import SAMPLES
    from trifecta.store.visits import FETCHES, PLAYBACK, VISITS

    samples: list[Row] = []
    visits: list[Row] = []
    fetched: list[Row] = []
    played: list[Row] = []
    for record in records:
        key: Row = {"trial": trial, "visit": record.number, "warmup": record.warmup}
        same = {"kind": kind, "view": view, "browser": browser, "protocol": protocol}
        visits.append(_as_json(record.visit) | key | same)
        samples.append(_sample(record, kind) | {"trial": trial})
        for number, fetch in enumerate(record.fetches):
            row = {name: value for name, value in _as_json(fetch).items() if name not in _NOT_IN_ROW}
            fetched.append(row | key | {"fetch": number, "origin": origin_of(fetch.url)})
        played += [_as_json(row) | key for row in record.playback]
    return Tables(Table(samples, SAMPLES), Table(visits, VISITS), Table(fetched, FETCHES), Table(played, PLAYBACK))


def _sample(record: VisitRecord, kind: str) -> Row:
    """The visit as a sample: of a page until its load event, of a video until the first frame."""
    visit = record.visit
    done = visit.load_ns if kind == "page" else visit.startup_ns
    first = next((each for each in record.fetches if each.kind == ("document" if kind == "page" else "media")), None)
    row: Row = {
        "worker": 0,
        "request": record.number,
        "warmup": record.warmup,
        "started_ns": visit.started_ns,
        "done_ns": None if done is None else visit.started_ns + done,
        "bytes_out": 0,
        "bytes_in": visit.body_bytes or 0,
        "header_bytes_in": visit.header_bytes or 0,
        "resumed": False,
        "zero_rtt": False,
        "error": visit.error,
    }
    if first is not None:
        names: tuple[str, ...] = (
            "connect_start_ns",
            "tcp_connected_ns",
            "secured_ns",
            "request_sent_ns",
            "first_byte_ns",
        )
        if kind == "video":
            names = names[-1:]
        row |= {name: getattr(first, name) for name in (*names, "protocol", "status", "tls_version", "cipher")}
        row |= {"resumed": bool(first.resumed), "zero_rtt": bool(first.zero_rtt)}
    return row

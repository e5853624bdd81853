"""The report's section on servers elsewhere: looks, the places of blocks, and the hour."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.far import LOOKS, PLACES, FarSummary, derive, hour_of
from trifecta.contract.far import AddressObservation, Look
from trifecta.report import tables
from trifecta.report.far import words
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table


@dataclass(frozen=True)
class Content:
    """What the page shows."""

    sentences: list[str]
    looks: Table
    places: Table
    hour: Table


def draw(connection: duckdb.DuckDBPyConnection, about: RunFacts, derived: FarSummary) -> Content:
    """Everything the page shows."""
    looks, places = queries.ask(connection, LOOKS), queries.ask(connection, PLACES)
    hour = queries.ask(connection, hour_of(about.baseline))
    sentences = [line for look in about.looks for line in _lines(look["when"], look["places"])]
    sentences += [line for look in about.looks for line in _page_sentences(look)]
    return Content(
        [*sentences, *words.slow(derived.slow_udp)],
        tables.build(looks, "looks", "Looks, before and after", ("when and where", "look"), _LOOKS),
        tables.build(places, "far-places", "Where the blocks went", ("cell", "cell"), _PLACES),
        tables.build(hour, "far-hour", "The hour: the baseline, block by block", ("cell", "cell"), _HOUR),
    )


def _page_sentences(look: Look) -> list[str]:
    """What browsers saw at the same time, and what robots.txt said."""
    visits = [" ".join(words.page_lines(page)) for page in look.get("pages", [])]
    return [f"{look['when'].capitalize()}: {line}" for line in visits] + [
        words.robots_line(robots) for robots in look.get("robots", [])
    ]


def _lines(when: str, places: list[AddressObservation]) -> list[str]:
    return [f"{when.capitalize()}: {' '.join(words.place_lines(place))}" for place in places]


_LOOKS = [
    Column("from", "vantage"),
    Column("protocol", "protocol", "protocol"),
    Column("URL", "url"),
    Column("status", "status", "count"),
    Column("error", "error"),
    Column("content", "content_bytes", "size"),
    Column("TCP connect", "connect_ns", "duration"),
    Column("handshake", "handshake_ns", "duration"),
    Column("wait", "wait_ns", "duration"),
    Column("transfer", "transfer_ns", "duration"),
    Column("minimum RTT", "min_rtt_ns", "duration"),
    Column("lost", "lost", "count"),
    Column("idle", "idle_rtt_ns", "duration"),
    Column("while content arrived", "loaded_rtt_ns", "duration"),
    Column("UDP", "udp"),
    Column("HTTP/3 announced by", "announced"),
    Column("UDP payload", "udp_payload_bytes", "size"),
]
_PLACES = [
    Column("address", "address"),
    Column("protocol", "arm", "protocol"),
    Column("trials", "trials", "count"),
    Column("median latency", "latency_ns", "duration"),
    Column("minimum RTT", "min_rtt_ns", "duration"),
    Column("our packets lost", "lost", "count"),
    Column("content", "content_bytes", "size"),
    Column("transfer", "transfer_ns", "duration"),
]
_HOUR = [
    Column("block", "block", "count"),
    Column("began (UTC)", "began_utc"),
    Column("baseline", "baseline_ns", "duration"),
    Column("address", "address"),
]

SECTION = Section(
    "elsewhere",
    "The path, from here",
    derive=lambda run: derive(run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, run.about, derived),
    page="elsewhere.html.j2",
)

"""Servers elsewhere: the looks at them as a table, where blocks went, and what the hour did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import duckdb

from trifecta.analysis import far
from trifecta.conclude import queries
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.query import Query
from trifecta.contract.far import Look, RequestOutcome
from trifecta.design.machine import from_where

LOOKS = Query(
    "looks",
    """
SELECT t.number, t.utc || ', ' || t.address AS look, t.vantage, t.protocol, t.url, t.status, t.error, t.content_bytes,
       t.connect_ns, t.handshake_ns, t.wait_ns, t.transfer_ns, t.min_rtt_ns, t.lost, t.idle_rtt_ns, t.loaded_rtt_ns,
       t.udp, t.announced, t.udp_payload_bytes
FROM looks AS t
ORDER BY t.number
""",
    ("number",),
)
# Where the blocks of a cell went, and what each arm saw there. What was lost is of the packets sent from here.
PLACES = Query(
    "far_places",
    """
SELECT t.cell, t.address, t.arm, count(*) AS trials, median(t.latency_p50_ns) AS latency_ns,
       min(t.min_rtt_ns) AS min_rtt_ns, sum(t.lost) AS lost, median(t.transfer_p50_ns) AS transfer_ns,
       median(t.content) AS content_bytes
FROM (SELECT cell, arm, json_extract_string(server_json, 'address') AS address, latency_p50_ns, transfer_p50_ns,
             bytes_in / nullif(samples - errors, 0) AS content,
             CAST(coalesce(json_extract_string(load_json, '/tcp/min_rtt_ns'),
                           json_extract_string(load_json, '/quic/min_rtt_ns')) AS BIGINT) AS min_rtt_ns,
             CAST(coalesce(json_extract_string(load_json, '/tcp/retransmits'),
                           json_extract_string(load_json, '/quic/lost_packets')) AS BIGINT) AS lost
      FROM trials WHERE valid AND NOT is_aa) AS t
GROUP BY t.cell, t.address, t.arm
ORDER BY t.cell, t.address, t.arm
""",
    ("cell", "address", "arm"),
)
# The hour: every block of a cell with what the baseline took in it.
HOUR = Query(
    "far_hour",
    """
SELECT t.cell, t.block, min(t.wall_started_utc) AS began_utc, median(t.latency_p50_ns) AS baseline_ns,
       any_value(json_extract_string(t.server_json, 'address')) AS address
FROM trials AS t
WHERE t.valid AND (t.arm = '{baseline}' OR t.is_aa)
GROUP BY t.cell, t.block
ORDER BY t.cell, t.block
""",
    ("cell", "block"),
)


class LookRow(TypedDict):
    """Of the view ``looks``: one request over one protocol, with what is known of its place."""

    number: int
    moment: str
    utc: str
    url: str
    address: str
    vantage: str | None
    protocol: str
    status: int | None
    error: str | None
    content_bytes: int
    connect_ns: int | None
    handshake_ns: int | None
    wait_ns: int | None
    transfer_ns: int | None
    min_rtt_ns: int | None
    lost: int | None
    udp_payload_bytes: int | None
    idle_rtt_ns: int | None
    loaded_rtt_ns: int | None
    udp: str | None
    announced: str


@dataclass(frozen=True)
class FarSummary:
    """What a run says of servers elsewhere."""

    looks: list[LookRow]
    slow_udp: list[str]
    """Addresses, and from where, at which content came over HTTP/3 at less than half of TCP's rate, over all trials."""

    @property
    def rows(self) -> dict[str, list[LookRow]]:
        """By view."""
        return {"looks": self.looks}


@dataclass(frozen=True)
class ArmOverPlaces:
    """What was decided of an arm at all places from which a server elsewhere was asked."""

    rest: str
    """The cells without the place."""
    arm: str
    reference: str
    places: Mapping[str, Sequence[str]]
    """By verdict."""


def judges_rates(answers: Iterable[RequestOutcome]) -> bool:
    """Whether answers over TCP and QUIC are large enough to tell whether one is slow."""
    return all(far.rates_over_both(answers))


def arms_over_places(comparisons: Iterable[Comparison]) -> list[ArmOverPlaces]:
    """Comparisons that differ in the place alone, side by side; nothing of a study that names no places.

    Each rests on the blocks of its own place: nothing is pooled.
    """
    known: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for one in comparisons:
        vantage = levels(one.cell).get("vantage")
        if vantage is not None:
            by_kind = known.setdefault((one.without("vantage"), one.arm, one.reference), {})
            by_kind.setdefault(one.kind, []).append(vantage)
    return [ArmOverPlaces(*key, by_kind) for key, by_kind in known.items()]


class _Rate(TypedDict):
    address: str | None
    vantage: str | None
    protocol: str
    octets: float | None
    took_ns: int | None


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> FarSummary | None:
    """Work it out from looks and trials; None for a run in a lab."""
    if not about.is_outside:
        return None
    sql = (
        "SELECT json_extract_string(server_json, 'address') AS address, "
        "json_extract_string(factors_json, 'vantage') AS vantage, protocol, "
        "bytes_in / nullif(samples - errors, 0) AS octets, transfer_p50_ns AS took_ns FROM trials WHERE valid"
    )
    # The octets of a visit are of all its requests, and its transfer of the document alone: no rate.
    slow = [] if about.is_browser else _slow(queries.select(connection, _Rate, sql))
    return FarSummary(list(_rows(about.looks)), slow)


def _rows(looks: Sequence[Look]) -> Iterator[LookRow]:
    number = 0
    for look in looks:
        for place in look["places"]:
            for one in place["answers"]:
                yield {
                    "number": number,
                    "moment": look["when"],
                    "utc": look["utc"],
                    "url": place["url"],
                    "address": place["address"],
                    "vantage": place.get("vantage"),
                    "protocol": one["protocol"],
                    "status": one["status"],
                    "error": one["error"],
                    "content_bytes": one["content_bytes"],
                    "connect_ns": one["connect_ns"],
                    "handshake_ns": one["handshake_ns"],
                    "wait_ns": one["wait_ns"],
                    "transfer_ns": one["transfer_ns"],
                    "min_rtt_ns": one["min_rtt_ns"],
                    "lost": one["lost"],
                    "udp_payload_bytes": one["udp_payload_bytes"],
                    "idle_rtt_ns": place["idle_rtt_ns"],
                    "loaded_rtt_ns": place["loaded_rtt_ns"],
                    "udp": place["udp"],
                    "announced": ", ".join(place["announced"]),
                }
                number += 1


def _slow(rates: Sequence[_Rate]) -> list[str]:
    """The addresses at which HTTP/3 brought content much slower than TCP did."""
    pairs: dict[str, dict[bool, list[tuple[int, int]]]] = {}
    for row in rates:
        octets, took_ns = row["octets"], row["took_ns"]
        if row["address"] is None or octets is None or not took_ns or octets < far.ENOUGH_BYTES:
            continue
        where = f"{row['address']}{from_where(row['vantage'])}"
        by_kind = pairs.setdefault(where, {True: [], False: []})
        by_kind[row["protocol"] == "h3"].append((round(octets), took_ns))
    return [where for where, round_trips in pairs.items() if far.is_slow(round_trips[True], round_trips[False])]


def hour_of(baseline: str) -> Query:
    """The query of the hour, of this baseline."""
    return Query(HOUR.name, HOUR.sql.replace("{baseline}", baseline.replace("'", "''")), HOUR.key)

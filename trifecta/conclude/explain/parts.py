"""Reads what the time of a request, a cycle, a page load or a video's start was made of.

A mean by part for every trial that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, cast

import duckdb

from trifecta.analysis.causes import (
    ASK,
    LATE,
    ROUND_TRIPS,
    SEND,
    SETUP,
    TRANSFER,
    WAIT,
    WHOLE_SETUP,
    TrialParts,
    least_setup_round_trips,
    split_setup,
)
from trifecta.analysis.startup_delay import START_PARTS, FetchTimes, start_parts
from trifecta.analysis.transport.attribution import attribute
from trifecta.analysis.transport.differences import mean_parts
from trifecta.analysis.transport.parts import PARTS as PACKET_PARTS
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.packets.metrics import CAPTURED, read
from trifecta.conclude.queries import select

REQUESTS, CYCLES, LOADS, STARTS, PACKETS = "requests", "cycles", "page loads", "video starts", "packets"

_REQUESTS = """
SELECT t.cell, t.arm, t.block, t.trial, coalesce(sum(s.late_ns), 0) / sum(s.requests) AS late_ns,
       coalesce(sum(s.setup_ns), 0) / sum(s.requests) AS setup_ns,
       sum(s.send_ns) / sum(s.sent) AS send_ns, sum(s.wait_ns) / sum(s.sent) AS wait_ns,
       sum(s.transfer_ns) / sum(s.requests) AS transfer_ns, sum(s.ask_ns) / sum(s.requests) AS ask_ns,
       sum(s.requests)::BIGINT AS requests, sum(s.sent)::BIGINT AS told
FROM request_sums AS s JOIN trials AS t USING (trial)
WHERE t.valid AND list_contains(?, t.cell) AND NOT s.warmup AND s.success AND s.answered
GROUP BY t.cell, t.arm, t.block, t.trial ORDER BY t.trial
"""
_OPENED = """
SELECT s.trial, s.protocol, s.tls_version, s.resumed, s.zero_rtt, sum(s.requests)::BIGINT AS requests
FROM request_sums AS s JOIN trials AS t USING (trial)
WHERE t.valid AND list_contains(?, t.cell) AND NOT s.warmup AND s.success AND s.opened
GROUP BY ALL
"""
# Where paths are compared there is no one round trip of a cell.
_RTT = """
SELECT cell, median(CAST(json_extract(probe_json, '$.rtt_ns.p50') AS DOUBLE)) AS rtt_ns FROM trials
WHERE list_contains(?, cell) GROUP BY cell HAVING count(DISTINCT path) = 1
"""

# A cycle with every call that it made: what is neither a way nor a handshake, services had it.
_CYCLES = """
SELECT t.cell, t.arm, t.block, t.trial, avg(c.setup_ns) AS setup_ns, avg(c.there_ns) AS there_ns,
       avg(c.back_ns) AS back_ns, avg(c.whole_ns - c.setup_ns - c.there_ns - c.back_ns) AS own_ns
FROM (SELECT trial, request, max(returned_ns - started_ns) FILTER (WHERE ordinal = 0) AS whole_ns,
             sum(coalesce(secured_ns - started_ns, 0)) AS setup_ns,
             sum(arrived_ns - coalesce(secured_ns, started_ns)) AS there_ns, sum(returned_ns - replied_ns) AS back_ns
      FROM spans WHERE NOT warmup GROUP BY trial, request
      HAVING count(*) = count(arrived_ns) AND count(*) = count(replied_ns) AND count(*) = count(returned_ns)
         AND count(error) = 0 AND bool_and(caller_host IS NOT DISTINCT FROM callee_host)) AS c
     JOIN trials AS t USING (trial)
WHERE t.valid AND list_contains(?, t.cell) AND c.whole_ns IS NOT NULL
GROUP BY t.cell, t.arm, t.block, t.trial ORDER BY t.trial
"""
CYCLE_PARTS = {
    "setup_ns": "set-up of connections, on all hops",
    "there_ns": "ways there, on all hops",
    "own_ns": "the services themselves",
    "back_ns": "ways back, on all hops",
}

_LOADS = """
SELECT t.cell, t.arm, t.block, t.trial, avg(coalesce(v.dns_ns, 0)) AS dns_ns,
       avg(coalesce(v.connect_ns, 0)) AS connect_ns, avg(coalesce(v.request_ns, 0)) AS request_ns,
       avg(coalesce(v.response_ns, 0)) AS response_ns,
       avg(v.load_ns - coalesce(v.dns_ns, 0) - coalesce(v.connect_ns, 0) - coalesce(v.request_ns, 0)
           - coalesce(v.response_ns, 0)) AS rest_ns
FROM visits AS v JOIN trials AS t USING (trial)
WHERE t.valid AND list_contains(?, t.cell) AND v.error IS NULL AND NOT v.warmup AND v.load_ns IS NOT NULL
GROUP BY t.cell, t.arm, t.block, t.trial ORDER BY t.trial
"""
LOAD_PARTS = {
    "dns_ns": "DNS",
    "connect_ns": "connecting, with TLS, for the document",
    "request_ns": "request of the document and wait",
    "response_ns": "response of the document",
    "rest_ns": "everything after the document: its resources, and the browser itself",
}

# Of a video a visit's clock starts with play.
_STARTS = """
SELECT t.cell, t.arm, t.block, t.trial, v.visit, v.started_ns AS play_ns, v.started_ns + v.startup_ns AS frame_ns,
       list({'url': f.url, 'mime': f.mime, 'segment': f.segment, 'error': f.error, 'started_ns': f.started_ns,
             'done_ns': f.done_ns, 'dns_start_ns': f.dns_start_ns, 'dns_end_ns': f.dns_end_ns,
             'connect_start_ns': f.connect_start_ns, 'secured_ns': f.secured_ns}) AS fetches
FROM visits AS v JOIN trials AS t USING (trial) JOIN fetches AS f USING (trial, visit)
WHERE t.valid AND list_contains(?, t.cell) AND v.error IS NULL AND NOT v.warmup AND v.startup_ns IS NOT NULL
GROUP BY ALL ORDER BY t.trial, v.visit
"""


class TrialMeans(TypedDict):
    """A trial; the other columns are its means in ns."""

    cell: str
    arm: str
    block: int
    trial: str


class RequestMeans(TrialMeans):
    """Of ``_REQUESTS``: how long the phases of a trial's requests took, in ns, and of how many that is told."""

    late_ns: float
    setup_ns: float
    send_ns: float
    wait_ns: float
    transfer_ns: float
    ask_ns: float
    requests: int
    told: int


class ConnectionCounts(TypedDict):
    """Of ``_OPENED``: connections of one kind that requests of a trial opened."""

    trial: str
    protocol: str
    tls_version: str | None
    resumed: bool
    zero_rtt: bool
    requests: int


class RoundTrip(TypedDict):
    """Of ``_RTT``: of the path of a cell, as it was probed."""

    cell: str
    rtt_ns: float | None


class Start(TrialMeans):
    """Of ``_STARTS``: a watch from play to its first frame, with what was fetched."""

    visit: int
    play_ns: int
    frame_ns: int
    fetches: list[FetchTimes]


def of_the_verdict(about: RunFacts, of: str) -> bool:
    """Whether the whole of these parts is what verdicts are about: a page's load is no mean of its requests."""
    return not (about.is_browser and of == PACKETS)


@dataclass(frozen=True)
class Parts:
    """What a cell's trials were made of: whose time it is, the parts in the order of time, and what is to be noted.

    ``round_trips`` by arm: what its set-up needs at least, as the mean over requests; ``rtt_ns`` is the path's, as it
    was probed.
    """

    of: str
    names: tuple[str, ...]
    trials: list[TrialParts]
    round_trips: Mapping[str, float] = field(default_factory=dict)
    rtt_ns: float | None = None


def of_cells(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, cells: Sequence[str], *, packets: bool = True
) -> dict[str, list[Parts]]:
    """The parts by cell, those of its packets first where there are any, of browsers last; nothing where nothing can
    be split."""
    program_parts = _program(connection, about, cells)
    trial_parts = {}
    for cell in cells:
        pair = [_packets(connection, cell) if packets else None, program_parts.get(cell)]
        if about.is_browser:  # its requests overlap: their mean is not what the verdict is about
            pair.reverse()
        trial_parts[cell] = [one for one in pair if one is not None and one.trials]
    return trial_parts


def _program(connection: duckdb.DuckDBPyConnection, about: RunFacts, cells: Sequence[str]) -> dict[str, Parts]:
    if about.is_video:
        return _starts(connection, cells)
    if about.is_browser:
        return _columns(connection, _LOADS, cells, LOADS, LOAD_PARTS)
    if str(about.workload.get("kind")) != "requests":
        return _columns(connection, _CYCLES, cells, CYCLES, CYCLE_PARTS)
    return _requests(connection, cells)


def _columns(
    connection: duckdb.DuckDBPyConnection, sql: str, cells: Sequence[str], of: str, columns: Mapping[str, str]
) -> dict[str, Parts]:
    trial_parts: dict[str, Parts] = {}
    for row in select(connection, TrialMeans, sql, [list(cells)]):
        parts = trial_parts.setdefault(row["cell"], Parts(of, tuple(columns.values()), []))
        means = cast(Mapping[str, float], row)
        values = {name: float(means[column]) for column, name in columns.items()}
        parts.trials.append(TrialParts(row["arm"], row["block"], values))
    return trial_parts


def _starts(connection: duckdb.DuckDBPyConnection, cells: Sequence[str]) -> dict[str, Parts]:
    """The mean over the watches of a trial; those whose first segment is not among the requests are left out."""
    watches_by_trial: dict[tuple[str, str, int, str], list[dict[str, float]]] = {}
    for row in select(connection, Start, _STARTS, [list(cells)]):
        parts = start_parts(row["play_ns"], row["frame_ns"], row["fetches"])
        if parts is not None:
            watches_by_trial.setdefault((row["cell"], row["arm"], row["block"], row["trial"]), []).append(parts)
    trial_parts: dict[str, Parts] = {}
    for (cell, arm, block, _), watches in watches_by_trial.items():
        means = {name: sum(one[name] for one in watches) / len(watches) for name in START_PARTS}
        trial_parts.setdefault(cell, Parts(STARTS, START_PARTS, [])).trials.append(TrialParts(arm, block, means))
    return trial_parts


def _requests(connection: duckdb.DuckDBPyConnection, cells: Sequence[str]) -> dict[str, Parts]:
    rtts = {one["cell"]: one["rtt_ns"] for one in select(connection, RoundTrip, _RTT, [list(cells)])}
    opened: dict[str, list[ConnectionCounts]] = {}
    for kind in select(connection, ConnectionCounts, _OPENED, [list(cells)]):
        opened.setdefault(kind["trial"], []).append(kind)
    request_means: dict[str, list[RequestMeans]] = {}
    for row in select(connection, RequestMeans, _REQUESTS, [list(cells)]):
        request_means.setdefault(row["cell"], []).append(row)
    return {cell: _of_requests(rows, opened, rtts.get(cell)) for cell, rows in request_means.items()}


def _of_requests(
    rows: Sequence[RequestMeans], opened: Mapping[str, Sequence[ConnectionCounts]], rtt_ns: float | None
) -> Parts:
    """What one client of the cell does not report, over any protocol, is not split for any."""
    needed = [_round_trips(opened.get(row["trial"], []), row["requests"]) for row in rows]
    sent, known = all(row["told"] == row["requests"] for row in rows), None not in needed
    setup = (ROUND_TRIPS, SETUP) if known else (WHOLE_SETUP,)
    names = (LATE, *setup, *((SEND, WAIT) if sent else (ASK,)), TRANSFER)
    trials, by_arm = [], dict[str, list[float]]()
    for row, round_trips in zip(rows, needed, strict=True):
        parts = {LATE: row["late_ns"], TRANSFER: row["transfer_ns"]}
        parts |= {SEND: row["send_ns"], WAIT: row["wait_ns"]} if sent else {ASK: row["ask_ns"]}
        if known and round_trips is not None:
            by_arm.setdefault(row["arm"].split("#")[0], []).append(round_trips)
            parts |= split_setup(row["setup_ns"], round_trips, rtt_ns)
        else:
            parts[WHOLE_SETUP] = row["setup_ns"]
        trials.append(TrialParts(row["arm"], row["block"], {name: float(value) for name, value in parts.items()}))
    means = {arm: sum(values) / len(values) for arm, values in by_arm.items()}
    return Parts(REQUESTS, names, trials, means, rtt_ns)


def _round_trips(opened: Sequence[ConnectionCounts], requests: int) -> float | None:
    """Before a request, as the mean of a trial; None where a connection's TLS is not known."""
    total = 0.0
    for row in opened:
        round_trips = least_setup_round_trips(
            row["protocol"], row["tls_version"], resumed=bool(row["resumed"]), zero_rtt=bool(row["zero_rtt"])
        )
        if round_trips is None:
            return None
        total += round_trips * row["requests"]
    return total / requests if requests else 0.0


def _packets(connection: duckdb.DuckDBPyConnection, cell: str) -> Parts | None:
    """Where the captured trials' requests spent their time; what cannot be split is left out."""
    captured = CAPTURED.replace("{and_cell}", " AND t.cell = ?")
    sql = f"WITH {captured} SELECT trial, arm, block, capture FROM one GROUP BY ALL ORDER BY trial, capture"  # noqa: S608
    rows = connection.execute(sql, [cell]).fetchall()
    trials = []
    for _, arm, block, capture in rows:
        times, _ = attribute(read(connection, capture))
        if times:
            trials.append(TrialParts(str(arm), int(block), mean_parts(times)))
    return Parts(PACKETS, PACKET_PARTS, trials) if trials else None

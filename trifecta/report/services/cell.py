"""What a cell shows of its services: cycles hop by hop, elapsed times, success, failures, the cost of every service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.services import catalogue
from trifecta.design import naming
from trifecta.design.phrases import listed
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import style
from trifecta.report.figures.latency import Phase
from trifecta.report.figures.waterfall import HOP_PHASES, Hop, is_wide, waterfall
from trifecta.report.tables import Column, Table

MOST_OPEN = 12  # rows of a table of hops that are shown at once


@dataclass(frozen=True)
class CellPart:
    """What a cell shows of its services."""

    figures: list[Figure]
    phases: list[Phase]  # those that the figures show, for their legend
    hops: Table
    open_hops: bool
    tables: list[Table]
    waterfall_sql: str


def success_table(answer: QueryResult, identity: str, heading: tuple[str, str], cell: str | None = None) -> Table:
    """Success rates with intervals: of one cell by protocol, or of all that the answer has."""
    columns = [
        Column(naming.factor(), "arm", "protocol") if cell is None else Column("", "arm", "protocol"),
        Column("success", "rate", "rate"),
        Column("interval", "low,high", "rate_interval"),
        Column("requests", "requests", "count"),
        Column("failed", "failed", "count"),
        Column("trials", "trials", "count"),
        Column("design effect", "design_effect", "ratio"),
        Column("failed in excluded trials", "excluded_failed", "count"),
    ]
    if cell is not None:
        columns = columns[1:]
    if not any(row["excluded_failed"] for row in answer):
        columns = [column for column in columns if column.name != "excluded_failed"]
    notes = [
        "Requests of a trial fail together: the design effect says how many times that widens the variance, and the "
        "interval is that of so many fewer requests (Korn and Graubard). Where none failed it takes requests as "
        "independent; if only whole trials could fail, it would start lower."
    ]
    return tables.build(answer, identity, "Request success", heading, columns, cell=cell, notes=notes)


def cell_part(about: RunFacts, answers: Mapping[str, QueryResult], cell: str, number: int) -> CellPart:
    """The part of one cell, from the answers of all queries by name."""
    cycles = answers[catalogue.WATERFALL.name]
    hops = _hop_table(about, answers[catalogue.HOPS.name], cell, number)
    cell_tables = [
        success_table(answers[catalogue.SUCCESS.name], f"success-{number}", ("protocol", "arm"), cell),
        _failure_table(answers[catalogue.FAILURES.name], cell, number),
        *([_client_table(answers[catalogue.CLIENTS.name], cell, number)] if _is_fan_in(about) else []),
        _cost_table(answers[catalogue.SERVICE_COSTS.name], cell, number),
    ]
    return CellPart(
        figures=_waterfalls(about, cycles, cell, number),
        phases=[one for one in HOP_PHASES if any(row[one.column] for row in cycles.where(cell=cell))],
        hops=hops,
        open_hops=len(hops.lines) <= MOST_OPEN,
        tables=[one for one in cell_tables if one.lines],
        waterfall_sql=catalogue.WATERFALL.text(cell),
    )


def _waterfalls(about: RunFacts, answer: QueryResult, cell: str, number: int) -> list[Figure]:
    figures = []
    for quantile in ("median", "p99"):
        rows = {arm: answer.of(Hop, cell=cell, quantile=quantile, arm=arm) for arm in about.arms}
        there = {arm: hops for arm, hops in rows.items() if hops}
        if not there:
            continue
        chosen = [f"{style.name(arm)} {hops[0]['trial']}, request {hops[0]['request']}" for arm, hops in there.items()]
        missing = [style.name(arm) for arm in rows if arm not in there]
        caption = f"Real cycles, one a {naming.noun()}: {listed(chosen)}."
        if missing:
            caption += f" None of {listed(missing)}: it lies among failed cycles, or there are too few."
        figures.append(
            Figure(
                f"Hop by hop: the {quantile} cycle",
                caption,
                waterfall(there, quantile, f"w{number}{quantile}"),
                is_wide(there),
            )
        )
    return figures


def _hop_table(about: RunFacts, answer: QueryResult, cell: str, number: int) -> Table:
    columns = tables.values_of_arms(about.arms, "duration", "_ns")
    notes = [
        "elapsedXY: from X's call to its arrival at Y, or from Y's reply to its return; the way there includes the "
        "handshake. Medians of a trial, geometric mean over blocks; medians of parts do not add up to that of the "
        "whole. Hops that failed are left out of theirs, and count as longest in the whole."
    ]
    if about.is_between_hosts:
        notes.append(
            "Each host has its own clock, so a call from one to another has no one-way times: "
            "`ways_ns` of the view `spans` has both together."
        )
    return tables.build(answer, f"hops-{number}", "Elapsed times", ("part", "name"), columns, cell=cell, notes=notes)


def _failure_table(answer: QueryResult, cell: str, number: int) -> Table:
    columns = [
        Column("began at", "hop"),
        Column("why", "error"),
        Column("requests", "requests", "count"),
        Column("trials", "trials", "count"),
        Column("in excluded trials", "excluded", "count"),
    ]
    return tables.build(
        answer, f"failures-{number}", "Where and why requests failed", ("protocol", "arm"), columns, cell=cell
    )


def _is_fan_in(about: RunFacts) -> bool:
    return str(about.workload.get("kind")) == "fan-in"


def _client_table(answer: QueryResult, cell: str, number: int) -> Table:
    """Clients one by one and together: a mean over all can hide that some of them wait."""
    columns = [
        Column("clients", "clients", "count"),
        Column("pooled p50", "pooled_ns", "duration"),
        Column("pooled p99", "pooled_p99_ns", "duration"),
        Column("fastest client", "fastest_ns", "duration"),
        Column("middle client", "middle_ns", "duration"),
        Column("slowest client", "slowest_ns", "duration"),
        Column("trials", "trials", "count"),
    ]
    notes = [
        "Pooled: over the requests of all clients. A client's number is its own median in a trial; of these the "
        "smallest, the middle and the largest, each the median over trials."
    ]
    heading = ("protocol", "arm")
    return tables.build(answer, f"clients-{number}", "Client by client", heading, columns, cell=cell, notes=notes)


def _cost_table(answer: QueryResult, cell: str, number: int) -> Table:
    columns = [
        Column(naming.factor(), "arm", "protocol"),
        Column("host", "host"),
        Column("CPU per 1,000 requests", "cpu_ns_per_1000", "duration"),
        Column("interval", "cpu_ns_per_1000_low,cpu_ns_per_1000_high", "duration_interval"),
        Column("CPU per MB", "cpu_ns_per_mb", "duration"),
        Column("memory, peak", "rss_bytes", "size"),
        Column("interval", "rss_bytes_low,rss_bytes_high", "size_interval"),
        Column("of its cgroup, peak", "cgroup_memory_bytes", "size"),
        Column("interval", "cgroup_memory_bytes_low,cgroup_memory_bytes_high", "size_interval"),
    ]
    notes = [
        "MB: content that the client sent and received. memory: the largest resident set of a trial; that of a "
        "container's control group includes the kernel's share. Warm-up requests count: they cost something."
    ]
    return tables.build(
        answer, f"services-{number}", "What each service cost", ("service", "service"), columns, cell=cell, notes=notes
    )

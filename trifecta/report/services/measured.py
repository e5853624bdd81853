"""What the analysis of services needs of a run: rows of trials with what each service cost, grouped by cell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import duckdb

from trifecta.analysis import costs
from trifecta.analysis.costs import Cost, Usage
from trifecta.analysis.cycles import HopRow
from trifecta.analysis.means import logs_by_block
from trifecta.contract.trial import TrialRow
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS, SERVICES
from trifecta.design.sba import CLIENT
from trifecta.design.services import LETTERS
from trifecta.report.catalogue import Query
from trifecta.report.comparisons import levels
from trifecta.report.content import cells_in_order
from trifecta.report.facts import RunFacts
from trifecta.report.queries import select
from trifecta.report.services import catalogue

Row = dict[str, Any]
KINDS = ("chain", "fan-in", "sba-registration")
CPU, MEMORY = SERVICES
_COLUMNS = "trial, cell, arm, block, is_aa, valid, samples, success_rate, bytes_in, bytes_out, load_json, server_json"


@dataclass(frozen=True)
class Measured:
    """A run of services: its cells in the study's order, and rows by cell."""

    cells: dict[str, dict[str, str]]  # key -> levels
    trials: dict[str, list[Row]]
    hops: dict[str, list[HopRow]]
    arms: list[str]
    metric: Metric
    confidence: float

    def logs(self, cell: str, metric: Metric, arm: str) -> dict[int, float]:
        """Log value of every usable block."""
        return logs_by_block(cast(list[TrialRow], self.trials.get(cell, [])), metric, arm)


def is_services(about: RunFacts) -> bool:
    """Whether the run is about services that call each other."""
    return str(about.workload.get("kind")) in KINDS


def read(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Measured:
    """Read the trials and the medians of their hops."""
    metric = METRICS[about.metric]
    columns = ", ".join(dict.fromkeys([*_COLUMNS.split(", "), metric.name]))
    trials = _rows(connection, f"SELECT {columns} FROM trials ORDER BY block, trial")  # noqa: S608 - known columns
    requests = {row["trial"]: row for row in _rows(connection, catalogue.TRIAL_REQUESTS.text())}
    read_out: dict[str, dict[str, Row]] = {}
    for reading in _rows(connection, catalogue.TRIAL_USAGE.text()):
        read_out.setdefault(reading["trial"], {})[reading["process"]] = reading
    client = CLIENT if about.workload.get("kind") == "sba-registration" else LETTERS[0]
    for row in trials:
        counted = requests.get(row["trial"], {"requests": 0, "succeeded": 0})
        services = _costs(row, client, read_out.get(row["trial"], {}))
        row.update(
            {"requests": counted["requests"], "succeeded": counted["succeeded"], "services": services},
            **_totals(services),
        )
    keys = cells_in_order(about, {row["cell"] for row in trials})
    return Measured(
        cells={key: levels(key) for key in keys},
        trials=_by_cell(trials),
        hops=_hops(connection),
        arms=about.arms,
        metric=metric,
        confidence=about.confidence,
    )


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _hops(connection: duckdb.DuckDBPyConnection) -> dict[str, list[HopRow]]:
    found: dict[str, list[HopRow]] = {}
    for row in select(connection, HopRow, catalogue.TRIAL_HOPS.text()):
        found.setdefault(row["cell"], []).append(row)
    return found


def _by_cell(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["cell"], []).append(row)
    return found


def _costs(row: Row, client: str, read: Mapping[str, Row]) -> dict[str, Row]:
    """What each service cost in a trial, the client among them; ``read`` has the readings of ``resources``."""
    load = json.loads(row["load_json"] or "{}") or {}
    server = json.loads(row["server_json"] or "{}") or {}
    told = {client: _client(load)} | {str(name): one for name, one in (server.get("services") or {}).items()}
    requests, content = costs.work(cast(TrialRow, row))
    said = {}
    for name, one in told.items():
        here = read.get(name, {})
        spent = one.get("cpu_ns") if here.get("cpu_ns") is None else here["cpu_ns"]
        resident = one.get("peak_rss_bytes") if here.get("rss_bytes") is None else here["rss_bytes"]
        group = here.get("cgroup_memory_bytes")
        usage = Usage(name, 0, 0, {"cpu_ns": spent}, {"rss_bytes": resident, "cgroup_memory_bytes": group})
        cost = Cost(usage, requests, content)
        said[name] = {
            "host": one.get("host"),
            "cpu_ns_per_1000": cost.per_1000_requests("cpu_ns"),
            "cpu_ns_per_mb": cost.per_mb("cpu_ns"),
            **usage.peak,
        }
    return said


def _client(load: Mapping[str, Any]) -> Row:
    """What the client says of itself, for runs whose server_json leaves it out."""
    spent = [load.get("cpu_user_ns"), load.get("cpu_system_ns")]
    known = [value for value in spent if value is not None]
    return {"cpu_ns": sum(known) if known else None, "peak_rss_bytes": load.get("max_rss_bytes"), "host": "host1"}


def _totals(services: Mapping[str, Row]) -> Row:
    """All services together; nothing where one of them is not known."""
    spent = [one["cpu_ns_per_1000"] for one in services.values()]
    memory = [one["rss_bytes"] for one in services.values()]
    return {
        CPU.name: None if None in spent else sum(spent) / 1000,
        MEMORY.name: None if None in memory else sum(memory),
    }


def queries_of_cells() -> tuple[Query, ...]:
    """The queries that a cell shows."""
    return (
        catalogue.WATERFALL,
        catalogue.HOPS,
        catalogue.SUCCESS,
        catalogue.FAILURES,
        catalogue.SERVICE_COSTS,
        catalogue.CLIENTS,
    )

"""What the analysis of services needs of a run: rows of trials with what each service cost, grouped by cell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import duckdb

from trifecta.analysis import costs
from trifecta.analysis.cycles import HopRow
from trifecta.analysis.means import logs_by_block
from trifecta.conclude.cells import cells_in_order
from trifecta.conclude.comparisons import levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import select
from trifecta.conclude.services import catalogue
from trifecta.contract.trial import TrialRow
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS, SERVICES
from trifecta.design.sba import CLIENT
from trifecta.design.services import LETTERS

KINDS = ("chain", "fan-in", "sba-registration")
CPU, MEMORY = SERVICES
_COLUMNS = "trial, cell, arm, block, is_aa, valid, samples, success_rate, bytes_in, bytes_out, load_json, server_json"


class Requests(TypedDict):
    """Of `catalogue.TRIAL_REQUESTS`: how many a trial made."""

    trial: str
    requests: int
    succeeded: int


class Reading(TypedDict):
    """Of `catalogue.TRIAL_USAGE`: what a process used in a trial."""

    trial: str
    process: str
    cpu_ns: int | None
    rss_bytes: int | None
    cgroup_memory_bytes: int | None


class ServiceCost(TypedDict):
    """What one service cost in a trial."""

    host: str | None
    cpu_ns_per_1000: float | None
    cpu_ns_per_mb: float | None
    rss_bytes: int | None
    cgroup_memory_bytes: int | None


class Trial(TrialRow, total=False):
    """A trial with its requests, what each service cost, and `SERVICES` of all together."""

    requests: int
    succeeded: int
    services: dict[str, ServiceCost]
    cpu_ns_per_request: float | None
    rss_bytes: int | None


@dataclass(frozen=True)
class ServicesRun:
    """A run of services: its cells in the study's order, and rows by cell."""

    cells: dict[str, dict[str, str]]  # key -> levels
    trials: dict[str, list[Trial]]
    hops: dict[str, list[HopRow]]
    arms: list[str]
    metric: Metric
    confidence: float

    def logs(self, cell: str, metric: Metric, arm: str) -> dict[int, float]:
        """Log value of every usable block."""
        return logs_by_block(self.trials.get(cell, []), metric, arm)


def is_services(about: RunFacts) -> bool:
    """Whether the run is about services that call each other."""
    return str(about.workload.get("kind")) in KINDS


def read(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> ServicesRun:
    """Read the trials and the medians of their hops."""
    metric = METRICS[about.metric]
    columns = ", ".join(dict.fromkeys([*_COLUMNS.split(", "), metric.name]))
    trials = select(connection, Trial, f"SELECT {columns} FROM trials ORDER BY block, trial")  # noqa: S608 - known columns
    requests = {row["trial"]: row for row in select(connection, Requests, catalogue.TRIAL_REQUESTS.text())}
    read_out: dict[str, dict[str, Reading]] = {}
    for reading in select(connection, Reading, catalogue.TRIAL_USAGE.text()):
        read_out.setdefault(reading["trial"], {})[reading["process"]] = reading
    client = CLIENT if about.workload.get("kind") == "sba-registration" else LETTERS[0]
    for row in trials:
        counted = requests.get(row["trial"])
        row["requests"], row["succeeded"] = (counted["requests"], counted["succeeded"]) if counted else (0, 0)
        row["services"] = services = _costs(row, client, read_out.get(row["trial"], {}))
        row["cpu_ns_per_request"], row["rss_bytes"] = _totals(services)
    keys = cells_in_order(about, {row["cell"] for row in trials})
    return ServicesRun(
        cells={key: levels(key) for key in keys},
        trials=_by_cell(trials),
        hops=_hops(connection),
        arms=about.arms,
        metric=metric,
        confidence=about.confidence,
    )


def _hops(connection: duckdb.DuckDBPyConnection) -> dict[str, list[HopRow]]:
    hop_rows: dict[str, list[HopRow]] = {}
    for row in select(connection, HopRow, catalogue.TRIAL_HOPS.text()):
        hop_rows.setdefault(row["cell"], []).append(row)
    return hop_rows


def _by_cell(rows: Sequence[Trial]) -> dict[str, list[Trial]]:
    trials: dict[str, list[Trial]] = {}
    for row in rows:
        trials.setdefault(row["cell"], []).append(row)
    return trials


def _costs(row: Trial, client: str, read: Mapping[str, Reading]) -> dict[str, ServiceCost]:
    """What each service cost in a trial, the client among them; ``read`` has the readings of ``resources``."""
    load = json.loads(row["load_json"] or "{}") or {}
    server = json.loads(row["server_json"] or "{}") or {}
    summaries = {client: _client(load)} | {str(name): one for name, one in (server.get("services") or {}).items()}
    work = costs.work(row)
    service_costs: dict[str, ServiceCost] = {}
    for name, one in summaries.items():
        here = read.get(name)
        spent = one.get("cpu_ns") if here is None or here["cpu_ns"] is None else here["cpu_ns"]
        resident = one.get("peak_rss_bytes") if here is None or here["rss_bytes"] is None else here["rss_bytes"]
        group = None if here is None else here["cgroup_memory_bytes"]
        service_costs[name] = {
            "host": one.get("host"),
            "cpu_ns_per_1000": work.per_1000_requests(spent),
            "cpu_ns_per_mb": work.per_mb(spent),
            "rss_bytes": resident,
            "cgroup_memory_bytes": group,
        }
    return service_costs


def _client(load: Mapping[str, Any]) -> dict[str, Any]:
    """What the client says of itself, for runs whose server_json leaves it out."""
    spent = [load.get("cpu_user_ns"), load.get("cpu_system_ns")]
    known = [value for value in spent if value is not None]
    return {"cpu_ns": sum(known) if known else None, "peak_rss_bytes": load.get("max_rss_bytes"), "host": "host1"}


def _totals(services: Mapping[str, ServiceCost]) -> tuple[float | None, int | None]:
    """CPU a request and memory of all services together; None where one of them is not known."""
    spent = [one["cpu_ns_per_1000"] for one in services.values()]
    memory = [one["rss_bytes"] for one in services.values()]
    cpu = sum(one for one in spent if one is not None) / 1000
    return None if None in spent else cpu, None if None in memory else sum(one for one in memory if one is not None)

"""What the figures of bourbon2020's evaluation show (14 to 21), from the runs of its campaign.

A place in its figures is a scenario, a test and, in the fan-in, how many clients ask at once. Every place that the
study drew is told, those that were not run with the reason; what the campaign adds to the study is not (the path
without reordering, larger responses of the fan-in).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import duckdb

from trifecta.analysis.success import Rate, success_rate
from trifecta.conclude import queries
from trifecta.conclude.facts import read as read_facts
from trifecta.conclude.query import Query
from trifecta.conclude.reproduction.own_cells import counted_trials, of_trials
from trifecta.conclude.reproduction.places import CPU
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.conclude.services import measured
from trifecta.conclude.services.measured import Trial
from trifecta.conclude.visits.published import levels_of, study_of
from trifecta.design import plan
from trifecta.design.by_protocol import octets_over
from trifecta.design.model import PROTOCOL_NAMES, Study
from trifecta.design.model import Cell as StudyCell
from trifecta.design.percentiles import held_sql

ARMS = ("h1", "h2", "h3")
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
SERVICES = {"A": ("A", "B", "C", "D"), "B": ("A", "B")}
"""By suite its microservices."""
CLIENTS = (4, 50)
PAYLOADS = (128, 1024, 10240)

# Failed requests are longer than every other, of their parts as well; the mean is of the others, as the study's, which
# recorded no other (table 12). A to B has the handshake in it, as in the study.
ELAPSED = Query(
    "bourbon2020_elapsed",
    """
WITH part AS (
  SELECT trial, 'whole' AS part, latency_censored_ns AS ns FROM samples WHERE NOT warmup
  UNION ALL
  SELECT trial, 'there', CASE WHEN error IS NULL THEN there_ns ELSE 'infinity'::DOUBLE END
  FROM spans WHERE ordinal = 0 AND NOT warmup
  UNION ALL
  SELECT trial, 'back', CASE WHEN error IS NULL THEN back_ns ELSE 'infinity'::DOUBLE END
  FROM spans WHERE ordinal = 0 AND NOT warmup)
SELECT t.cell, t.arm, p.part, count(*) AS requests, count(*) FILTER (WHERE isinf(p.ns)) AS failed,
  avg(p.ns) FILTER (WHERE NOT isinf(p.ns)) AS mean_ns, {shares}
FROM part AS p JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa{and_cell}
GROUP BY t.cell, t.arm, p.part
ORDER BY t.cell, t.arm, p.part
""".replace(
        "{shares}",
        ", ".join(
            f"{held_sql(f'quantile_disc(p.ns, {share})', share, 'count(*)')} AS p{share * 100:.0f}_ns"
            for share in SHARES
        ),
    ),
    ("cell", "arm", "part"),
)


@dataclass(frozen=True)
class Scenario:
    """A scenario of the study: its name there, and where the campaign runs it."""

    name: str
    run: str
    place: str
    path: str
    spread: bool
    """Over several hosts."""

    def hosts(self, suite: str) -> int:
        """How many hosts the services of a suite have."""
        return {"A": 4, "B": 2}[suite] if self.spread else 1

    @property
    def containers(self) -> bool:
        """Whether its services run in containers."""
        return self.place != "native"


def _pair(name: str, run: str, path: str, after: str = "") -> tuple[Scenario, Scenario]:
    return (
        Scenario(f"{name}_01{after}", run, "docker-host", path, name != "single"),
        Scenario(f"{name}_02{after}", run, "native", path, name != "single"),
    )


SCENARIOS = (
    *_pair("single", "single", "normal"),
    *_pair("distributed", "distributed", "normal"),
    *_pair("distributed", "distributed_delay", "lag", "_delay"),
    *_pair("distributed", "distributed_loss", "lossy", "_loss"),
)
"""Table 10 of the study, in its order: containers, then native."""


@dataclass(frozen=True)
class Elapsed:
    """How long requests took, or one of their parts: percentiles in ns, inf among failures, None where not held.

    ``mean`` is of those that succeeded, None where none did.
    """

    requests: int
    failed: int
    shares: tuple[float | None, ...]
    mean: float | None


@dataclass(frozen=True)
class ServiceUsage:
    """What a service used, over trials: the one in the middle, the least and the most."""

    middle: float
    least: float
    most: float
    trials: int


@dataclass(frozen=True)
class Cell:
    """A place in the study's figures and what was measured there; ``missing`` says why nothing was."""

    suite: str
    scenario: Scenario
    test: str
    arm: str
    payload_bytes: int
    clients: int
    missing: str = ""
    elapsed: Mapping[str, Elapsed] = field(default_factory=dict)
    """By part: ``whole``, ``there``, ``back``."""
    success: Rate | None = None
    cpu: Mapping[str, ServiceUsage] = field(default_factory=dict)
    """By service its share of a core, 1 for all of it."""
    memory: Mapping[str, ServiceUsage] = field(default_factory=dict)
    """By service the octets that it held at most in a trial."""
    to_normal: float | None = None
    """Of a place with lag or loss: its mean by that of the same place on the normal network (6.2.1 has averages)."""


def read(folder: Path, study: StudyResult) -> list[Cell]:
    """Every place of the study's figures, suite by suite in its order; ``folder`` is that of the reproduction."""
    cells: list[Cell] = []
    runs = {run["name"] for run in study.runs}
    for suite in SERVICES:
        by_key: dict[tuple[str, int, int, str], Cell] = {}
        for run in dict.fromkeys(scenario.run for scenario in SCENARIOS):
            if f"{run}-{suite}" in runs:
                by_key |= dict(_run(folder, f"{study.published.id}/{run}-{suite}", suite, study))
        places = [
            by_key.get(_key(one)) or replace(one, missing=_missing_reason(one, study))
            for one in _published_cells(suite)
        ]
        cells += _against_normal(places)
    return cells


def _key(cell: Cell) -> tuple[str, int, int, str]:
    return cell.scenario.name, cell.payload_bytes, cell.clients, cell.arm


def _published_cells(suite: str) -> Iterator[Cell]:
    """The places that the study's figures have, tables 10 and 11; 50 clients took a further host (annex V)."""
    for scenario in SCENARIOS:
        for clients in (1,) if suite == "A" else CLIENTS if scenario.spread else CLIENTS[:1]:
            for payload in PAYLOADS if suite == "A" else PAYLOADS[:1]:
                for arm in ARMS:
                    yield Cell(suite, scenario, _test(suite, payload, arm), arm, payload, clients)


def _test(suite: str, payload: int, arm: str) -> str:
    """The study's name of a test: A1 to A9, B1 to B3."""
    return f"{suite}{PAYLOADS.index(payload) * len(ARMS) + ARMS.index(arm) + 1}"


def _missing_reason(cell: Cell, study: StudyResult) -> str:
    """Why a place was not run: that of its run, or of its half of the run."""
    run = f"{cell.scenario.run}-{cell.suite}"
    reason = study.missing.get(run) or study.missing.get(f"{run}, place {cell.scenario.place}")
    reason = reason or study.missing.get(f"{run}, protocol {PROTOCOL_NAMES[cell.arm]}", "")
    return reason if reason.startswith("not run") else f"not run: {reason}" if reason else "not run"


def _run(folder: Path, run: str, suite: str, result: StudyResult) -> Iterator[tuple[tuple[str, int, int, str], Cell]]:
    """The places of one run that the study has, each with that of its figures."""
    about = read_facts(folder / run)
    study = study_of(about)
    with queries.connect(folder / run) as connection:
        own = counted_trials([place for place in result.places if place.run == run])
        elapsed: dict[tuple[str, str], dict[str, Elapsed]] = {}
        for row in queries.ask(connection, of_trials(ELAPSED, own)):
            values = tuple(row[f"p{share * 100:.0f}_ns"] for share in SHARES)
            parts = elapsed.setdefault((row["cell"], row["arm"]), {})
            parts[row["part"]] = Elapsed(row["requests"], row["failed"], values, row["mean_ns"])
        shares = _cpu_shares(connection)
        trials = measured.read(connection, about).trials
    for cell in plan.cells(study):
        levels = levels_of(study, cell)
        scenario = next((one for one in SCENARIOS if one.path == levels["path"] and one.place == levels["place"]
                         and str(one.hosts(suite)) == levels["hosts"]), None)  # fmt: skip
        sizes = {arm: payload_of(study, cell, arm, suite) for arm in ARMS if arm in plan.arms(study)}
        payload = min(sizes.values())  # of several, as its code has them, each is that of its test
        clients = 1 if suite == "A" else int(levels["clients"])
        known = (PAYLOADS if suite == "A" else PAYLOADS[:1], (1,) if suite == "A" else CLIENTS)
        if scenario is None or payload not in known[0] or clients not in known[1]:
            continue
        for arm, size in sizes.items():
            blank = Cell(suite, scenario, _test(suite, payload, arm), arm, size, clients)
            here = [row for row in trials.get(cell.key, ()) if row["arm"] == arm]
            if here:
                count = [row for row in here if row["trial"] in own]
                cell_with_values = _with_measurements(
                    blank, count, elapsed.get((cell.key, arm), {}), (shares, about.confidence)
                )
                yield (scenario.name, payload, clients, arm), cell_with_values


def payload_of(study: Study, cell: StudyCell, arm: str, suite: str) -> int:
    """What a cell asks for, or posts, over a protocol."""
    workload = plan.workload_for(study, plan.treatment(study, cell, arm))
    return octets_over(workload.request_bytes if suite == "A" else workload.response_bytes, arm)


def _cpu_shares(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], float | None]:
    return {(row["trial"], row["process"]): row["share"] for row in queries.ask(connection, CPU)}


def _with_measurements(
    cell: Cell,
    trials: Sequence[Trial],
    elapsed: Mapping[str, Elapsed],
    more: tuple[Mapping[tuple[str, str], float | None], float],
) -> Cell:
    """A place with what its trials say; those that do not count are left out."""
    shares, confidence = more
    if not trials:
        return replace(cell, missing="no trial counts")
    names = SERVICES[cell.suite]
    cpu = {name: _use([shares.get((row["trial"], name)) for row in trials]) for name in names}
    held = [(name, [row["services"].get(name) for row in trials]) for name in names]
    memory = {name: _use([one["rss_bytes"] for one in costs if one is not None]) for name, costs in held}
    return replace(
        cell,
        elapsed=elapsed,
        success=success_rate([(row["requests"], row["succeeded"]) for row in trials], confidence),
        cpu={name: use for name, use in cpu.items() if use is not None},
        memory={name: use for name, use in memory.items() if use is not None},
    )


def _use(values: Sequence[float | None]) -> ServiceUsage | None:
    known = [value for value in values if value is not None]
    return ServiceUsage(median(known), min(known), max(known), len(known)) if known else None


def _against_normal(places: Sequence[Cell]) -> list[Cell]:
    """Places of impaired networks with their mean by that of the same scenario on the normal one."""
    normal = {_same(one): _mean(one) for one in places if one.scenario.run == "distributed"}
    cells = []
    for one in places:
        base, here = normal.get(_same(one)), _mean(one)
        cells.append(replace(one, to_normal=here / base) if one.scenario.path != "normal" and here and base else one)
    return cells


def _same(cell: Cell) -> tuple[str, int, int, str]:
    return cell.scenario.place, cell.payload_bytes, cell.clients, cell.arm


def _mean(cell: Cell) -> float | None:
    return cell.elapsed["whole"].mean if "whole" in cell.elapsed else None

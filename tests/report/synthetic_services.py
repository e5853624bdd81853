"""Makes a run of services: invented cycles with their hops, costs of every service, and reasons to fail.

The world is built so that the report has something to find: HTTP/3 saves a round trip in every handshake, and loses
where messages are large, clients many or packets out of order; containers cost it most; far paths fail now and then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.report.synthetic import ARMS, STEP_NS
from tests.report.synthetic_parts import CIPHER, checks_of, trial_row, write_facts
from trifecta.analysis.reordering import reorders
from trifecta.design import plan
from trifecta.design.model import Cell, CheckResult, PathSpec, ServicesWorkload, Study
from trifecta.design.services import protocols_of
from trifecta.design.study_file import parse_study
from trifecta.store import schema

PATHS = """
  normal: {delay: 250 us}
  lag: {delay: 50 ms, jitter: {distribution: normal, sigma: 20 ms, reorder: true}, loss: 1 %}
  lag-in-order: {delay: 50 ms, jitter: {distribution: normal, sigma: 20 ms}, loss: 1 %}
"""
CHAIN = "kind: chain\n  hosts: 4"
FACTORS = {
    "path": "[normal, lag, lag-in-order]",
    "connection": "[new]",
    "request": "[128 B, 1 kB, 10 kB]",
    "place": "[native, docker-bridge]",
}


@dataclass
class ServicesShape:
    """How large the invented run is, and what it asks."""

    workload: str = CHAIN
    factors: dict[str, str] = field(default_factory=lambda: dict(FACTORS))
    blocks: int = 13
    cycles: int = 24
    seed: int = 11
    title: str = "Microservices"
    failing: bool = True
    study: Study = field(init=False)

    def __post_init__(self) -> None:
        factors = "\n".join(f"  {name}: {levels}" for name, levels in self.factors.items())
        text = f"""study: services
title: {json.dumps(self.title)}
workload:
  {self.workload}
  requests: {self.cycles}
factors:
  protocol: [HTTP/1.1, HTTP/2, HTTP/3]
{factors}
baseline: HTTP/2
paths:{PATHS}
metric: latency_p50
margin: 5 %
blocks: {{at_least: 4, at_most: 200}}
budget: 10 h
seed: {self.seed}
"""
        self.study = parse_study(text, "synthetic.yaml")


@dataclass
class _World:
    """One trial: what its hops take."""

    rng: np.random.Generator
    workload: ServicesWorkload
    path: PathSpec
    new: bool
    weather: float

    @cached_property
    def _reorders(self) -> bool:
        return reorders(asdict(self.path))

    def _way(self, protocol: str, payload: int) -> float:
        one_way = self.path.rtt_ns / 2 if self.workload.hosts > 1 else 0
        sigma = 20e6 if any(step.get("kind") == "jitter" for step in self.path.forward) else 0
        jitter = abs(float(self.rng.normal(0, sigma))) if sigma else 0.0
        late = 0.25 * one_way if protocol == "h3" and self._reorders else 0.0
        cpu = 40_000 + payload * {"h1": 4.0, "h2": 5.0, "h3": 28.0}[protocol]
        crowd = 1 + self.workload.clients / (60.0 if protocol == "h3" else 150.0)
        container = {"native": 1.0, "docker-host": 1.03, "docker-bridge": 1.5 if protocol == "h3" else 1.2}
        cpu *= crowd * container[self.workload.place] * self.weather * float(self.rng.lognormal(0, 0.15))
        return one_way + jitter + late + cpu

    def handshake(self, protocol: str) -> float:
        if not self.new:
            return 0.0
        rtt = self.path.rtt_ns if self.workload.hosts > 1 else 0
        trips = 1 if protocol == "h3" else 2
        return trips * rtt + {"h1": 900e3, "h2": 950e3, "h3": 1_250e3}[protocol] * float(self.rng.lognormal(0, 0.1))

    def there(self, protocol: str) -> float:
        return self._way(protocol, self.workload.request_bytes)

    def back(self, protocol: str) -> float:
        return self._way(protocol, 200)

    def fails(self) -> bool:
        return bool(self.rng.random() < 0.6 * self.path.loss)


def _cycle(world: _World, arm: str, start: int, failing: bool) -> Iterator[dict[str, Any]]:
    """The hops of one cycle in the order of their calls."""
    graph = world.workload.graph
    speaks = protocols_of(graph, arm, world.workload.inside)  # type: ignore[arg-type]
    walk = graph.walk()
    rows: list[dict[str, Any]] = []
    doomed = int(world.rng.integers(0, len(walk))) if failing and world.fails() else None

    def follow(place: int, now: int) -> tuple[int, int, bool]:
        """(Place of the next call that is not within this one, when this one ended, whether it succeeded)."""
        caller, call, depth = walk[place]
        protocol = speaks[caller, call.to]
        row: dict[str, Any] = {"ordinal": place, "depth": depth, "caller": caller, "callee": call.to}
        row |= {"method": "POST" if call.method == "same" else call.method, "path": call.path, "started_ns": now}
        row |= dict.fromkeys(("secured_ns", "arrived_ns", "replied_ns", "returned_ns", "status", "error"))
        rows.append(row)
        if place == doomed:
            row |= {"error": "timeout" if world.rng.random() < 0.7 else "connect"}
            return len(walk), now + 1_000_000_000, False
        opened = world.handshake(protocol)
        if opened:
            row["secured_ns"] = int(now + opened)
        at = int(now + opened + world.there(protocol))
        row["arrived_ns"] = at
        at += int(world.rng.lognormal(np.log(60_000), 0.2))
        following, fine = place + 1, True
        while fine and following < len(walk) and walk[following][2] > depth:
            following, at, fine = follow(following, at + 15_000)
        row["replied_ns"] = at + 20_000
        row["returned_ns"] = int(at + 20_000 + world.back(protocol))
        row |= {"status": 200 if fine else 504, "error": None if fine else "status"}
        return (following if fine else len(walk)), row["returned_ns"], fine

    _, end, _ = follow(0, start)
    yield from rows
    assert rows[0]["started_ns"] < end


def _samples(hops: list[dict[str, Any]], protocol: str) -> pa.Table:
    """A row a cycle, from its first hop."""
    made = []
    for hop in hops:
        if hop["ordinal"]:
            continue
        ok, sent = hop["error"] is None, hop["secured_ns"] or hop["started_ns"]
        # Connections that are used again were opened before.
        opening = hop["started_ns"] if hop["secured_ns"] else hop["started_ns"] - 300_000
        secured = hop["secured_ns"] or hop["started_ns"] - 1_000
        row = {name: hop[name] for name in ("trial", "request", "connection", "client", "warmup", "status", "error")}
        row |= {"worker": 0, "stream": None, "intended_ns": None, "started_ns": hop["started_ns"]}
        row |= {"connect_start_ns": opening, "secured_ns": secured, "request_sent_ns": sent + 9_000}
        row["tcp_connected_ns"] = None if protocol == "h3" else (opening + secured) // 2
        row |= {"first_byte_ns": hop["returned_ns"] and hop["returned_ns"] - 5_000, "done_ns": hop["returned_ns"]}
        row |= {"protocol": protocol, "tls_version": "1.3", "cipher": CIPHER, "resumed": False, "zero_rtt": False}
        row |= {"bytes_out": 900, "bytes_in": 700 if ok else 0, "header_bytes_in": 60}
        made.append(row)
    return pa.Table.from_pylist(made, schema.SAMPLES.arrow())


def _services(world: _World, protocol: str, cycles: int) -> dict[str, Any]:
    """What every service but the client cost."""
    found = {}
    factor = {"native": 1.0, "docker-host": 1.02, "docker-bridge": 1.08}[world.workload.place]
    for place, name in enumerate(world.workload.graph.services[1:]):
        each = {"h1": 180e3, "h2": 190e3, "h3": 310e3}[protocol] * factor * float(world.rng.lognormal(0, 0.04))
        memory = {"h1": 9e6, "h2": 10e6, "h3": 14e6}[protocol] * factor * float(world.rng.lognormal(0, 0.01))
        found[name] = {
            "cpu_ns": int(each * cycles),
            "peak_rss_bytes": int(memory),
            "host": f"host{min(place + 2, world.workload.hosts)}",
            "place": world.workload.place,
            "protocols_spoken": {protocol: cycles},
            "summary": {},
        }
    return found


def _trial(
    rng: np.random.Generator, shape: ServicesShape, cell: Cell, arm: str, trial: str, clock: int
) -> tuple[list[dict[str, Any]], pa.Table, dict[str, Any], PathSpec]:
    workload = plan.workload_for(shape.study, plan.treatments_of(shape.study, cell)[0])
    assert isinstance(workload, ServicesWorkload)
    protocol = arm.removesuffix("#aa")
    path = shape.study.paths[str(cell.levels["path"])]
    world = _World(rng, workload, path, cell.levels["connection"] == "new", float(rng.lognormal(0, 0.02)))
    hops: list[dict[str, Any]] = []
    at = clock
    for request in range(shape.cycles):
        own = {"trial": trial, "request": request, "connection": request, "client": request % workload.clients}
        made = list(_cycle(world, protocol, at, shape.failing))
        hops += [own | {"warmup": False} | hop for hop in made]
        at = max(hop["returned_ns"] or hop["started_ns"] for hop in made) + 20_000
    return hops, _samples(hops, protocol), _services(world, protocol, shape.cycles), path


def write_services_run(run: Path, shape: ServicesShape | None = None) -> Path:
    """Make the run directory ``run`` and return it."""
    shape = shape or ServicesShape()
    rng = np.random.default_rng(shape.seed)
    for folder in ("trials", "samples", "spans", "link", "resources", "logs"):
        (run / folder).mkdir(parents=True)
    rows: list[dict[str, Any]] = []
    checks: list[CheckResult] = []
    number, clock = 0, 1_000_000_000_000
    for block in range(shape.blocks):
        for cell in plan.cells(shape.study):
            for position, arm in enumerate(rng.permutation(ARMS).tolist()):
                trial = f"t{number:05d}"
                hops, samples, services, path = _trial(rng, shape, cell, arm, trial, clock)
                pq.write_table(pa.Table.from_pylist(hops, schema.SPANS.arrow()), run / "spans" / f"{trial}.parquet")
                pq.write_table(samples, run / "samples" / f"{trial}.parquet")
                bad = shape.failing and number == 9
                head = {
                    "trial": trial,
                    "block": block,
                    "cell": cell.key,
                    "treatment": f"protocol={arm.removesuffix('#aa')},{cell.key}",
                    "arm": arm,
                    "is_aa": arm.endswith("#aa"),
                    "position": position,
                    "seed": 1000 + block,
                    "factors_json": json.dumps({"protocol": arm.removesuffix("#aa"), **cell.levels}),
                    "wall_started_utc": "2026-01-02T03:04:05Z",
                    "valid": not bad,
                    "protocol": arm.removesuffix("#aa"),
                    "path": str(cell.levels["path"]),
                    "connection": str(cell.levels["connection"]),
                    "server": "services",
                    "client": "load",
                }
                row = trial_row(rng, samples, head, path, "closed")
                link = json.loads(row["link_json"])
                row["link_json"] = json.dumps({"links": {"host1-host2": link}} if link else None)
                row["server_json"] = json.dumps(json.loads(row["server_json"]) | {"services": services})
                found = checks_of(trial, bad, warned=False)
                row |= {"checks_json": json.dumps([asdict(check) for check in found]), "error": None}
                pq.write_table(pa.Table.from_pylist([row], schema.TRIALS.arrow()), run / "trials" / f"{trial}.parquet")
                rows.append(row)
                checks += found
                number += 1
                clock += STEP_NS
    write_facts(run, shape.study, rows, checks, troubles=False)
    return run

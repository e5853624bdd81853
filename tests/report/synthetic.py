"""Makes a run directory of invented but plausible numbers, laid out exactly as ``docs/architecture.md`` 2.1 says.

The report is developed and tested on it: every kind of verdict, failed and warning checks, excluded trials, failed
requests, phases that a protocol does not have. Nothing here is ever shown as a measurement.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.report.synthetic_parts import CIPHER, PATHS, checks_of, trial_row, write_facts
from trifecta.design.model import CheckResult, Study
from trifecta.design.plan import arms, cells
from trifecta.design.study_file import parse_study
from trifecta.store import schema

ARMS = ("h1", "h2", "h3", "h2#aa")
STEP_NS = 20_000_000_000


@dataclass
class Shape:
    """How large and how troubled the invented run is."""

    blocks: int = 11
    samples_per_trial: int = 200
    seed: int = 7
    title: str = "The race"
    paths: tuple[str, ...] = ("clean", "far", "rough")
    connections: tuple[str, ...] = ("new", "reused")
    servers: tuple[str, ...] = ("origin", "caddy")
    clients: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    http3_wait: dict[str, float] = field(default_factory=dict)  # factor by server, so that programs differ
    troubles: bool = True
    left_out: str = ""  # an arm none of whose trials count
    loop: str = "closed"
    in_flight: int = 10
    rates: dict[str, float] = field(default_factory=dict)  # of an open loop, with the factor of HTTP/3's wait at each
    metric: str = "latency_p50"
    compare: str = "protocol"
    requests: tuple[str, ...] = ()  # sizes of requests, then they are POST
    responses: tuple[str, ...] = ()
    study: Study = field(init=False)

    def __post_init__(self) -> None:
        self.study = parse_study(self.text(), "synthetic.yaml")

    def text(self) -> str:
        """The study file of the run."""
        spec = {
            "clean": "  clean: {}",
            "near": "  near: {rtt: 2 ms}",
            "far": "  far: {rtt: 80 ms, rate: 100 Mbit/s, queue: 1 bdp}",
            "rough": "  rough: {rtt: 50 ms, rate: 20 Mbit/s, queue: 1 bdp, loss: 2 %}",
        }
        paths = "\n".join(spec[name] for name in self.paths)
        clients = f"\n  client: [{', '.join(self.clients)}]" if self.clients else ""
        sizes = {"request": self.requests, "response": self.responses}
        more = "".join(f"\n  {name}: [{', '.join(levels)}]" for name, levels in sizes.items() if levels)
        rates = f"\n  rate: [{', '.join(self.rates)}]" if self.rates else ""
        loop = "loop: open" if rates else "loop: open\n  rate: 500/s" if self.loop == "open" else "loop: closed"
        return f"""study: race
title: {json.dumps(self.title)}
workload:
  kind: requests
  method: {"POST" if self.requests else "GET"}
{"" if self.responses else "  response: 10 kB"}
  in_flight: {500 if rates or self.loop == "open" else self.in_flight}
  {loop}
  duration: 1 s
  warmup: 100 ms
factors:
  protocol: [HTTP/1.1, HTTP/2, HTTP/3]
  path: [{", ".join(self.paths)}]
  connection: [{", ".join(self.connections)}]
  server: [{", ".join(self.servers)}]{clients}{rates}{more}
{"" if self.compare == "protocol" else f"compare: {self.compare}"}
baseline: {"HTTP/2" if self.compare == "protocol" else getattr(self, f"{self.compare}s")[0]}
paths:
{paths}
metric: {self.metric}
margin: 5 %
blocks: {{at_least: 4, at_most: 200}}
budget: 10 min
seed: {self.seed}
"""

    def cells(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield cell key and levels."""
        if self.compare != "protocol" or self.requests or self.responses:
            yield from (
                (cell.key, {name: str(level) for name, level in cell.levels.items()}) for cell in cells(self.study)
            )
            return
        for path in self.paths:
            for connection in self.connections:
                for server in self.servers:
                    for client, rate in itertools.product(self.clients or ("",), self.rates or ("",)):
                        levels = {"path": path, "connection": connection, "server": server}
                        levels |= ({"client": client} if client else {}) | ({"rate": rate} if rate else {})
                        yield ",".join(f"{name}={level}" for name, level in levels.items()), levels


def _samples(
    rng: np.random.Generator, shape: Shape, trial: str, arm: str, levels: dict[str, str], start: int
) -> pa.Table:
    n = shape.samples_per_trial
    protocol = levels["protocol"]
    path = PATHS[levels["path"]]
    rtt = path.rtt_ns or 120_000
    new = levels["connection"] == "new"

    def spread(mean: float, sigma: float = 0.08) -> np.ndarray[Any, Any]:
        return rng.lognormal(math.log(mean), sigma, n)

    lost = rng.random(n) < path.loss * (4 if protocol == "h1" else 2.5)
    recovery = np.where(lost, spread(rtt * (1.1 if protocol == "h3" else 2.2), 0.4), 0.0)
    tcp = spread(rtt + 60_000) if new and protocol != "h3" else None
    secure = spread(rtt + (900_000 if protocol == "h3" else 700_000)) if new else None
    send = spread(40_000, 0.3)
    # Some cells are unquiet, so that some verdicts stay open.
    unquiet = rng.lognormal(0, 0.05) if levels["path"] == "rough" and levels["server"] == "caddy" else 1.0
    slow = 1.25 if levels["server"] == "caddy" else 1.0
    wait = unquiet * spread(rtt + 150_000 * slow * (1.35 if protocol == "h3" else 1.0)) + recovery
    wait *= shape.rates.get(levels.get("rate", ""), 1.0) if protocol == "h3" else 1.0
    wait *= shape.http3_wait.get(levels["server"], 1.0) if protocol == "h3" else 1.0
    transfer = spread(60_000 if path.rate_bits_per_s is None else 8e13 / path.rate_bits_per_s, 0.25)
    zero = np.zeros(n)
    total = (tcp if tcp is not None else zero) + (secure if secure is not None else zero) + send + wait + transfer

    in_flight = shape.in_flight
    lanes = np.arange(n) % in_flight
    started = np.empty(n, np.int64)
    for lane in range(in_flight):
        of_lane = lanes == lane
        ends = np.cumsum(total[of_lane] + 10_000)
        started[of_lane] = start + np.concatenate(([0], ends[:-1])).astype(np.int64)
    failed = (rng.random(n) < 0.004) & (levels["path"] == "rough") if shape.troubles else np.zeros(n, bool)
    mark = started.astype(np.float64)
    connect_start = started.copy()
    tcp_connected = secured = None
    if new:
        if tcp is not None:
            mark = mark + tcp
            tcp_connected = mark.astype(np.int64)
        assert secure is not None
        mark = mark + secure
        secured = mark.astype(np.int64)
    sent = (mark + send).astype(np.int64)
    first = (mark + send + wait).astype(np.int64)
    done = (mark + send + wait + transfer).astype(np.int64)
    if not new:
        # Connections were opened before the first request; only that request's row carries the times.
        connect_start = np.full(n, start - 3 * rtt, np.int64)
        secured = np.full(n, start - 1_000, np.int64)
        tcp_connected = None if protocol == "h3" else np.full(n, start - 2 * rtt, np.int64)
    opened_here = np.ones(n, bool) if new else np.arange(n) < (in_flight if protocol == "h1" else 1)
    error = np.where(failed, "timeout", None)

    def times(values: np.ndarray[Any, Any] | None, missing: np.ndarray[Any, Any]) -> pa.Array:
        if values is None:
            return pa.nulls(n, pa.int64())
        return pa.array(values, pa.int64(), mask=missing)

    def constant(value: str | None) -> pa.Array:
        return pa.array([value], pa.string()).take(pa.array(np.zeros(n, np.int64)))

    intended = started - rng.integers(0, 20_000, n) if shape.loop == "open" else None
    return pa.table(
        {
            "trial": constant(trial),
            "worker": pa.array(np.zeros(n, np.uint16)),
            "connection": pa.array(np.arange(n) if new else lanes * (protocol == "h1"), pa.uint32()),
            "client": pa.array(lanes, pa.uint32()),
            "stream": pa.nulls(n, pa.uint64()) if protocol == "h1" else pa.array(np.arange(n) * 4, pa.uint64()),
            "request": pa.array(np.arange(n), pa.uint64()),
            "warmup": pa.array(started < start + (done.max() - start) * 0.1),
            "intended_ns": times(intended, np.zeros(n, bool)),
            "started_ns": pa.array(started, pa.int64()),
            "connect_start_ns": times(connect_start, ~opened_here),
            "tcp_connected_ns": times(tcp_connected, ~opened_here),
            "secured_ns": times(secured, ~opened_here),
            "request_sent_ns": pa.array(sent, pa.int64()),
            "first_byte_ns": times(first, failed),
            "done_ns": times(done, failed),
            "protocol": constant(protocol),
            "tls_version": constant("1.3"),
            "cipher": constant(CIPHER),
            "resumed": pa.array(np.zeros(n, bool)),
            "zero_rtt": pa.array(np.zeros(n, bool)),
            "status": pa.array(np.full(n, 200), pa.uint16(), mask=failed),
            "bytes_out": pa.array(np.zeros(n), pa.uint64()),
            "bytes_in": pa.array(np.where(failed, 0, 10_000), pa.uint64()),
            "header_bytes_in": pa.array(np.full(n, {"h1": 180, "h2": 60, "h3": 66}[protocol]), pa.uint64()),
            "error": pa.array(error, pa.string()),
        }
    )


def write_run(run: Path, shape: Shape | None = None) -> Path:
    """Make the run directory ``run`` and return it."""
    shape = shape or Shape()
    rng = np.random.default_rng(shape.seed)
    for folder in ("trials", "samples", "link", "resources", "logs"):
        (run / folder).mkdir(parents=True)
    rows: list[dict[str, Any]] = []
    checks: list[CheckResult] = []
    number, clock = 0, 1_000_000_000_000
    for block in range(shape.blocks):
        for cell, place in shape.cells():
            for position, arm in enumerate(
                rng.permutation(ARMS if shape.compare == "protocol" else arms(shape.study)).tolist()
            ):
                trial = f"t{number:05d}"
                levels = {shape.compare: arm.removesuffix("#aa"), **place}
                samples = _samples(rng, shape, trial, arm, levels, clock)
                pq.write_table(samples, run / "samples" / f"{trial}.parquet")
                bad = (shape.troubles and number in (17, 101)) or arm == shape.left_out
                head = {
                    "trial": trial,
                    "block": block,
                    "cell": cell,
                    "treatment": f"{shape.compare}={levels[shape.compare]},{cell}",
                    "arm": arm,
                    "is_aa": arm.endswith("#aa"),
                    "position": position,
                    "seed": 1000 + block,
                    "factors_json": json.dumps(levels),
                    "wall_started_utc": f"2026-01-02T03:{number // 60 % 60:02d}:{number % 60:02d}Z",
                    "valid": not bad,
                    **levels,
                }
                row = trial_row(rng, samples, head, PATHS[levels["path"]], shape.loop)
                row["client"] = levels.get("client", "load")
                if levels["server"] in shape.proxies:
                    row["server_json"] = json.dumps(json.loads(row["server_json"]) | {"proxy": True})
                found = checks_of(trial, bad, shape.troubles and number in (5, 40))
                row |= {"checks_json": json.dumps([asdict(check) for check in found]), "error": None}
                pq.write_table(pa.Table.from_pylist([row], schema.TRIALS.arrow()), run / "trials" / f"{trial}.parquet")
                (run / "link" / f"{trial}.json").write_text(row["link_json"])
                rows.append(row)
                checks += found
                number += 1
                clock += STEP_NS
    write_facts(run, shape.study, rows, checks, troubles=shape.troubles)
    return run

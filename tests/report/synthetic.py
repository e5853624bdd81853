"""Makes a run directory of invented but plausible numbers, laid out exactly as ``docs/architecture.md`` 2.1 says.

The report is developed and tested on it: every kind of verdict, failed and warning checks, excluded trials, failed
requests, phases that a protocol does not have. Nothing here is ever shown as a measurement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trifecta.analysis.verdict import verdicts as judge
from trifecta.design.model import CheckResult, PathSpec, Study
from trifecta.design.study_file import parse_study
from trifecta.store import schema

ARMS = ("h1", "h2", "h3", "h2#aa")
PATHS: dict[str, PathSpec] = {
    "clean": PathSpec("clean"),
    "far": PathSpec("far", rtt_ns=80_000_000, rate_bits_per_s=100_000_000),
    "rough": PathSpec("rough", rtt_ns=50_000_000, rate_bits_per_s=20_000_000, queue_bytes=125_000, loss=0.02),
}
CIPHER = "TLS_AES_128_GCM_SHA256"
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
    loop: str = "closed"
    metric: str = "latency_p50"
    study: Study = field(init=False)

    def __post_init__(self) -> None:
        self.study = parse_study(self.text(), "synthetic.yaml")

    def text(self) -> str:
        """The study file of the run."""
        spec = {
            "clean": "  clean: {}",
            "far": "  far: {rtt: 80 ms, rate: 100 Mbit/s, queue: 1 bdp}",
            "rough": "  rough: {rtt: 50 ms, rate: 20 Mbit/s, queue: 1 bdp, loss: 2 %}",
        }
        paths = "\n".join(spec[name] for name in self.paths)
        clients = f"\n  client: [{', '.join(self.clients)}]" if self.clients else ""
        loop = "loop: open\n  rate: 500/s" if self.loop == "open" else "loop: closed"
        return f"""study: race
title: {json.dumps(self.title)}
workload:
  kind: requests
  method: GET
  response: 10 kB
  in_flight: 10
  {loop}
  duration: 1 s
  warmup: 100 ms
factors:
  protocol: [HTTP/1.1, HTTP/2, HTTP/3]
  path: [{", ".join(self.paths)}]
  connection: [{", ".join(self.connections)}]
  server: [{", ".join(self.servers)}]{clients}
baseline: HTTP/2
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
        for path in self.paths:
            for connection in self.connections:
                for server in self.servers:
                    for client in self.clients or ("",):
                        levels = {"path": path, "connection": connection, "server": server}
                        levels |= {"client": client} if client else {}
                        yield ",".join(f"{name}={level}" for name, level in levels.items()), levels


def _samples(
    rng: np.random.Generator, shape: Shape, trial: str, arm: str, levels: dict[str, str], start: int
) -> pa.Table:
    n = shape.samples_per_trial
    protocol = arm.removesuffix("#aa")
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
    wait *= shape.http3_wait.get(levels["server"], 1.0) if protocol == "h3" else 1.0
    transfer = spread(60_000 if path.rate_bits_per_s is None else 8e13 / path.rate_bits_per_s, 0.25)
    zero = np.zeros(n)
    total = (tcp if tcp is not None else zero) + (secure if secure is not None else zero) + send + wait + transfer

    in_flight = 10
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


def _transport(protocol: str, path: PathSpec) -> dict[str, Any]:
    rtt = path.rtt_ns or 120_000
    if protocol == "h3":
        quic = {"min_rtt_ns": rtt, "srtt_ns": rtt + 90_000, "lost_packets": 12, "sent_packets": 900}
        quic |= {"congestion_window_bytes": 41_000, "congestion_events": 3, "mtu_bytes": 1452}
        return {"tcp": None, "quic": quic | {"congestion_control": "cubic", "initial_window_bytes": 14_720}}
    tcp = {"min_rtt_ns": rtt, "srtt_ns": rtt + 70_000, "retransmits": 9, "congestion_window_bytes": 43_440}
    tcp |= {"congestion_control": "cubic", "mss_bytes": 1448, "nodelay": True, "initial_window_bytes": 14_480}
    return {"tcp": tcp, "quic": None}


def _link(rng: np.random.Generator, path: PathSpec, packets: int) -> dict[str, Any] | None:
    if not path.rtt_ns:
        return None
    lost = int(rng.binomial(packets, path.loss))
    one_way = path.rtt_ns // 2
    direction = {
        "wire_packets": packets,
        "wire_bytes": packets * 1_100,
        "delivered": packets - lost,
        "lost": lost,
        "queue_dropped": 3 if path.queue_bytes else 0,
        "corrupted": 0,
        "duplicated": 0,
        "reordered": 0,
        "delay_asked_ns": one_way,
        "delay_given_ns": {
            "p50": one_way + int(rng.integers(8_000, 30_000)),
            "p99": one_way + 70_000,
            "max": one_way + 400_000,
        },
        "lateness_ns": {"p50": 9_000, "p90": 30_000, "p99": int(rng.integers(40_000, 90_000)), "max": 380_000},
        "loss_asked": path.loss,
        "loss_given": lost / packets,
        "rate_asked_bits_per_s": path.rate_bits_per_s,
        "rate_given_bits_per_s": path.rate_bits_per_s and path.rate_bits_per_s * 0.997,
        "queue_peak_bytes": 90_000,
        "device_drops": 0,
        "send_errors": 0,
    }
    spent = {"cpu_user_ns": 21_000_000, "cpu_system_ns": 44_000_000, "wall_ns": 1_100_000_000, "realtime": True}
    return {"a_to_b": direction, "b_to_a": dict(direction), **spent}


def _quantile(values: np.ndarray[Any, Any], share: float) -> float | None:
    return int(np.quantile(values, share)) if len(values) else None


def _trial_row(
    rng: np.random.Generator, samples: pa.Table, head: dict[str, Any], path: PathSpec, loop: str
) -> dict[str, Any]:
    columns = {
        name: samples[name].to_numpy(zero_copy_only=False)
        for name in ("started_ns", "done_ns", "warmup", "first_byte_ns", "request_sent_ns")
    }
    error = samples["error"].is_null().to_numpy()
    ok = error & ~columns["warmup"]
    origin = samples["intended_ns"].to_numpy(zero_copy_only=False) if loop == "open" else columns["started_ns"]
    latency = columns["done_ns"][ok] - origin[ok]
    started, ended = int(columns["started_ns"].min()), int(np.nanmax(columns["done_ns"]))
    protocol = head["protocol"]
    failures = int((~error).sum())
    load = {
        "trial": head["trial"],
        "samples": len(samples),
        "errors": failures,
        "ended": "duration",
        "started_ns": started,
        "ended_ns": ended,
        "measured_ns": ended - started,
        "cpu_user_ns": 30_000_000,
        "cpu_system_ns": 20_000_000,
        "max_rss_bytes": 14_000_000,
        "schedule_lag_ns": {"p50": 4_000, "p90": 9_000, "p99": 20_000, "max": 90_000} if loop == "open" else None,
        "missed_slots": 0,
        "connections_opened": 1,
        "wire_bytes_out": 60_000,
        "wire_bytes_in": 2_000_000,
        "key_exchange": "X25519",
        "udp_receive_errors": 0,
        "versions": {"engine": "0.1.0", "rustls": "0.23.0", "quinn_proto": "0.11.0"},
        "busy_ratio": float(rng.uniform(0.05, 0.3)),
        **_transport(protocol, path),
    }
    server = {
        "name": head["server"],
        "version": "2.11.0" if head["server"] == "caddy" else "0.1.0",
        "congestion_control": {"tcp": "cubic", "quic": "cubic"},
        "cpu_user_ns": 40_000_000,
        "cpu_system_ns": 10_000_000,
        "restarted": False,
    }
    rtt = path.rtt_ns or 40_000
    probe = {
        "sent": 200,
        "received": 197,
        "loss_forward": path.loss,
        "loss_backward": path.loss,
        "rtt_ns": {"min": rtt, "p50": rtt + 61_000, "p90": rtt + 80_000, "p99": rtt + 140_000, "max": rtt + 300_000},
        "one_way_forward_ns": {"p50": rtt // 2 + 30_000},
        "one_way_backward_ns": {"p50": rtt // 2 + 31_000},
        "reordered": 0,
        "duplicates": 0,
        "rate_bits_per_s": None,
        "largest_payload_bytes": 1472,
    }
    machine = {
        "steal_ratio": 0.001,
        "pressure_cpu_some_ratio": 0.02,
        "load_average_1": 0.9,
        "other_cpu_ratio": 0.03,
        "clocksource": "tsc",
        "frequency_hz": None,
    }
    phases = ("connect_start_ns", "tcp_connected_ns", "secured_ns")
    connect, tcp, secured = (samples[name].to_numpy(zero_copy_only=False).astype(float) for name in phases)
    return head | {
        "samples": len(samples),
        "errors": failures,
        "error_classes_json": json.dumps({"timeout": failures} if failures else {}),
        "latency_p50_ns": _quantile(latency, 0.5),
        "latency_p95_ns": _quantile(latency, 0.95),
        "latency_p99_ns": _quantile(latency, 0.99),
        "latency_mean_ns": float(latency.mean()),
        "requests_per_s": float(ok.sum() / ((ended - started) * 0.9e-9)),
        "success_rate": float(error.mean()),
        "client_cpu_ns_per_request": float(
            {"h1": 52_000, "h2": 48_000, "h3": 66_000}[protocol] * rng.lognormal(0, 0.04)
        ),
        "server_cpu_ns_per_request": float(
            {"h1": 61_000, "h2": 55_000, "h3": 92_000}[protocol] * rng.lognormal(0, 0.04)
        ),
        "ttfb_p50_ns": int(np.nanmedian(columns["first_byte_ns"] - columns["started_ns"])),
        "connect_p50_ns": None if protocol == "h3" else int(np.nanmedian(tcp - connect)),
        "tls_p50_ns": int(np.nanmedian(secured - (connect if protocol == "h3" else tcp))),
        "wait_p50_ns": int(np.nanmedian(columns["first_byte_ns"] - columns["request_sent_ns"])),
        "transfer_p50_ns": int(np.nanmedian(columns["done_ns"] - columns["first_byte_ns"])),
        "bytes_in": int(10_000 * error.sum()),
        "bytes_out": 0,
        "started_ns": started - 30_000_000,
        "ended_ns": ended + 5_000_000,
        "load_json": json.dumps(load),
        "link_json": json.dumps(_link(rng, path, max(1_000, len(samples) * 10))),
        "server_json": json.dumps(server),
        "probe_json": json.dumps(probe),
        "machine_json": json.dumps(machine),
    }


CHECKS = ("protocol", "same_work", "path", "headroom", "drops", "parity", "steady_state", "machine", "clocks", "errors")


def _checks(trial: str, bad: bool, warned: bool) -> list[CheckResult]:
    results = []
    for name in CHECKS:
        if bad and name == "path":
            results.append(
                CheckResult(
                    name,
                    trial,
                    "fail",
                    "The probe saw a round trip of 91.2 ms where 80.0 ms was asked (14 % off).",
                    91.2e6,
                    81.6e6,
                    "Leave the machine alone while measuring, or ask for a longer delay.",
                )
            )
        elif warned and name == "machine":
            results.append(
                CheckResult(
                    name,
                    trial,
                    "warn",
                    "The hypervisor took 2.4 % of the CPU during the trial.",
                    0.024,
                    0.01,
                    "Use a machine of your own.",
                )
            )
        else:
            results.append(CheckResult(name, trial, "pass", f"{name} held in every sample.", None, None, ""))
    return results


def write_parquet(path: Path, records: list[Any], columns: pa.Schema) -> None:
    """Write dataclass records as one Parquet file."""
    pq.write_table(pa.Table.from_pylist([asdict(record) for record in records], columns), path)


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
            for position, arm in enumerate(rng.permutation(ARMS).tolist()):
                trial = f"t{number:05d}"
                levels = {"protocol": arm.removesuffix("#aa"), **place}
                samples = _samples(rng, shape, trial, arm, levels, clock)
                pq.write_table(samples, run / "samples" / f"{trial}.parquet")
                bad = shape.troubles and number in (17, 101)
                head = {
                    "trial": trial,
                    "block": block,
                    "cell": cell,
                    "treatment": f"protocol={levels['protocol']},{cell}",
                    "arm": arm,
                    "is_aa": arm.endswith("#aa"),
                    "position": position,
                    "seed": 1000 + block,
                    "factors_json": json.dumps(levels),
                    "wall_started_utc": f"2026-01-02T03:{number // 60 % 60:02d}:{number % 60:02d}Z",
                    "valid": not bad,
                    **levels,
                }
                row = _trial_row(rng, samples, head, PATHS[place["path"]], shape.loop)
                row["client"] = place.get("client", "load")
                if place["server"] in shape.proxies:
                    row["server_json"] = json.dumps(json.loads(row["server_json"]) | {"proxy": True})
                found = _checks(trial, bad, shape.troubles and number in (5, 40))
                row |= {"checks_json": json.dumps([asdict(check) for check in found]), "error": None}
                pq.write_table(pa.Table.from_pylist([row], schema.TRIALS), run / "trials" / f"{trial}.parquet")
                (run / "link" / f"{trial}.json").write_text(row["link_json"])
                rows.append(row)
                checks += found
                number += 1
                clock += STEP_NS
    verdicts = judge(shape.study, rows)
    for cell, *_ in shape.cells():
        checks.append(CheckResult("blocks", cell, "pass", f"{shape.blocks} blocks, 6 needed.", shape.blocks, 6, ""))
        checks.append(
            CheckResult(
                "noise_floor",
                cell,
                "pass",
                "Two runs of HTTP/2 against itself agree: ratio 1.003 [0.98, 1.02].",
                0.021,
                0.05,
                "",
            )
        )
    write_parquet(run / "checks.parquet", checks, schema.CHECKS)
    write_parquet(run / "verdicts.parquet", verdicts, schema.VERDICTS)
    study = shape.study
    facts = {
        "schema": schema.SCHEMA_VERSION,
        "trifecta": "0.1.0",
        "python": "3.11.2",
        "engine": {"engine": "0.1.0", "rustls": "0.23.31", "quinn_proto": "0.11.12"},
        "study": {"name": study.name, "title": study.title, "sha256": "0" * 64, "metric": study.metric},
        "seed": shape.seed,
        "argv": ["trifecta", "race", "--seed", str(shape.seed)],
        "started_utc": "2026-01-02T03:00:00+00:00",
        "servers": {"origin": {"version": "0.1.0"}, "caddy": {"version": "2.11.0"}},
        "unsupported": [{"factor": "server", "level": "nginx", "reason": "not installed"}] if shape.troubles else [],
        "machine": {"kernel": "Linux 6.1.0", "cpus": 2, "cpu_model": "Example CPU", "memory_bytes": 8_000_000_000},
        "pins": {"client": [1], "server": [0], "link": [0]},
        "parity": {"tls_version": "1.3", "certificate": "ECDSA P-256, verified", "mtu_bytes": 1500},
        "faults": {},
        "state": "budget",
        "ended_because": "the budget of 3 min has no room for another block",
        "elapsed_ns": 178_000_000_000,
        "time_share": {"load": 0.8, "link_start": 0.05},
        "measuring_share": 0.8,
    }
    (run / "run.json").write_text(json.dumps(facts, indent=1))
    (run / "study.yaml").write_text(study.source)
    with (run / "planner.jsonl").open("w") as planner:
        for cell, *_ in shape.cells():
            planner.write(json.dumps({"cell": cell, "block": 0, "reason": "first blocks", "elapsed_ns": 1}) + "\n")
        planner.write('{"cell": "cut off by a cra')
    return run

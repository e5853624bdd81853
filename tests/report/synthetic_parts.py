"""What invented runs are made of: paths, transports, links, rows of trials, checks, and the files beside the trials."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trifecta.analysis.verdict import verdicts as judge
from trifecta.design.model import CheckResult, PathSpec, Study
from trifecta.store import schema

PATHS: dict[str, PathSpec] = {
    "clean": PathSpec("clean"),
    "near": PathSpec("near", rtt_ns=2_000_000),
    "far": PathSpec("far", rtt_ns=80_000_000, rate_bits_per_s=100_000_000),
    "rough": PathSpec("rough", rtt_ns=50_000_000, rate_bits_per_s=20_000_000, queue_bytes=125_000, loss=0.02),
}
CIPHER = "TLS_AES_128_GCM_SHA256"


def transport(protocol: str, path: PathSpec) -> dict[str, Any]:
    rtt = path.rtt_ns or 120_000
    if protocol == "h3":
        quic = {"min_rtt_ns": rtt, "srtt_ns": rtt + 90_000, "lost_packets": 12, "sent_packets": 900}
        quic |= {"congestion_window_bytes": 41_000, "congestion_events": 3, "mtu_bytes": 1452}
        return {"tcp": None, "quic": quic | {"congestion_control": "cubic", "initial_window_bytes": 14_720}}
    tcp = {"min_rtt_ns": rtt, "srtt_ns": rtt + 70_000, "retransmits": 9, "congestion_window_bytes": 43_440}
    tcp |= {"congestion_control": "cubic", "mss_bytes": 1448, "nodelay": True, "initial_window_bytes": 14_480}
    return {"tcp": tcp, "quic": None}


def link(rng: np.random.Generator, path: PathSpec, packets: int) -> dict[str, Any] | None:
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


def quantile(values: np.ndarray[Any, Any], share: float) -> float | None:
    return int(np.quantile(values, share)) if len(values) else None


def trial_row(
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
        **transport(protocol, path),
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
        "latency_p50_ns": quantile(latency, 0.5),
        "latency_p95_ns": quantile(latency, 0.95),
        "latency_p99_ns": quantile(latency, 0.99),
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
        "link_json": json.dumps(link(rng, path, max(1_000, len(samples) * 10))),
        "server_json": json.dumps(server),
        "probe_json": json.dumps(probe),
        "machine_json": json.dumps(machine),
    }


CHECKS = ("protocol", "same_work", "path", "headroom", "drops", "parity", "steady_state", "machine", "clocks", "errors")


def checks_of(trial: str, bad: bool, warned: bool) -> list[CheckResult]:
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


def write_facts(
    run: Path, study: Study, rows: list[dict[str, Any]], checks: list[CheckResult], *, troubles: bool
) -> None:
    """Write what stands beside the trials: verdicts, checks, ``run.json``, the study, the planner's decisions."""
    verdicts = judge(study, rows)
    cells = dict.fromkeys(row["cell"] for row in rows)
    blocks = 1 + max(row["block"] for row in rows)
    for cell in cells:
        checks.append(CheckResult("blocks", cell, "pass", f"{blocks} blocks, 6 needed.", blocks, 6, ""))
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
    write_parquet(run / "checks.parquet", checks, schema.CHECKS.arrow())
    write_parquet(run / "verdicts.parquet", verdicts, schema.VERDICTS.arrow())
    facts = {
        "schema": 1,
        "trifecta": "0.1.0",
        "python": "3.11.2",
        "engine": {"engine": "0.1.0", "rustls": "0.23.31", "quinn_proto": "0.11.12"},
        "study": {"name": study.name, "title": study.title, "sha256": "0" * 64, "metric": study.metric},
        "seed": study.seed,
        "argv": ["trifecta", "race", "--seed", str(study.seed)],
        "started_utc": "2026-01-02T03:00:00+00:00",
        "servers": {"origin": {"version": "0.1.0"}, "caddy": {"version": "2.11.0"}},
        "unsupported": [{"factor": "server", "level": "nginx", "reason": "not installed"}] if troubles else [],
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
        for cell in cells:
            planner.write(json.dumps({"cell": cell, "block": 0, "reason": "first blocks", "elapsed_ns": 1}) + "\n")
        planner.write('{"cell": "cut off by a cra')

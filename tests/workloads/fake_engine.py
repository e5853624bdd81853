"""Stands in for the engine where a test is about the runner: it speaks the protocol, and measures nothing.

Environment: FAKE_LOAD is a JSON document of exceptional behaviour by trial number: {"3": "crash" | "hang" | "refuse"}.
"""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import sys
import time
from pathlib import Path

GRANTED = {"realtime": False, "memory_locked": False, "short_slice": False}
WALL = {"realtime_offset_ns": 0, "realtime_bound_ns": 0}
REFUSED = ("arp", "neighbour_discovery", "multicast", "other_protocol", "malformed")


def stand_in(path: Path) -> Path:
    """Write to ``path`` a program that stands in for the engine, and give it back."""
    from tests.workloads.drive import REPOSITORY
    from trifecta.store import schema

    surroundings = f"PYTHONPATH='{REPOSITORY}' FAKE_COLUMNS='{json.dumps(schema.SAMPLES.columns)}'"
    path.write_text(f'#!/bin/sh\n{surroundings} exec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def say(key: str, value: object) -> None:
    print(json.dumps({key: value}), flush=True)


def until_asked_to_end() -> None:
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def write(samples: dict[str, object], path: str) -> None:
    """Write what these expressions of DuckDB say as the samples of a trial: it starts faster than PyArrow."""
    import duckdb

    columns = ", ".join(
        f'({samples.get(name, "NULL")})::{kind} AS "{name}"' for name, kind in json.loads(os.environ["FAKE_COLUMNS"])
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"COPY (SELECT {columns}) TO '{path}' (FORMAT parquet)")


def load(config: dict[str, object]) -> int:
    trial = str(config["trial"])
    behaviour = json.loads(os.environ.get("FAKE_LOAD", "{}")).get(str(int(trial[1:])) if trial != "t00000" else "ready")
    if behaviour == "refuse":
        print("error: samples_file: cannot be written; choose another folder", file=sys.stderr)
        return 3
    if behaviour == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "hang":
        time.sleep(3600)
    say("ready", {"protocol": config["protocol"], "address": config["address"], "port": config["port"], "process": 1})
    protocol, count = str(config["protocol"]), int(str(config["requests"]))
    typical = {"h1": 3_000_000, "h2": 2_000_000, "h3": 1_000_000}[protocol]
    generator = random.Random(f"{trial} {config['seed']}")
    began = time.monotonic_ns()
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0.02")))
    starts = [began + request * 10_000 for request in range(count)]
    ends = [start + int(typical * generator.uniform(0.98, 1.02)) for start in starts]
    write(
        {
            "trial": f"'{trial}'", "worker": 0, "connection": 0, "request": f"unnest({[*range(count)]})",
            "warmup": f"unnest({[request < int(str(config['warmup_requests'])) for request in range(count)]})",
            "started_ns": f"unnest({starts})", "request_sent_ns": f"unnest({[start + 1000 for start in starts]})",
            "first_byte_ns": f"unnest({[start + 2000 for start in starts]})", "done_ns": f"unnest({ends})",
            "protocol": f"'{protocol}'", "tls_version": "'TLSv1.3'", "cipher": "'TLS13_AES_128_GCM_SHA256'",
            "resumed": False, "zero_rtt": False, "status": 200, "bytes_out": 0, "bytes_in": config["expect_body_bytes"],
            "header_bytes_in": 50,
        },
        str(config["samples_file"]),
    )  # fmt: skip
    ended = time.monotonic_ns()
    say(
        "summary",
        {
            "trial": trial, "samples": count, "errors": 0, "ended": "requests", "started_ns": began, "ended_ns": ended,
            "measured_ns": ended - began, "cpu_user_ns": 1_000_000, "cpu_system_ns": 1_000_000, "busy_ratio": 0.3,
            "missed_slots": 0, "udp_receive_errors": 0, "tcp": None, "quic": None, "key_exchange": "X25519",
            "max_rss_bytes": 1, "schedule_lag_ns": None, "connections_opened": 1, "connections_lost_idle": 0,
            "wire_bytes_out": 1, "wire_bytes_in": 1,
        },
    )  # fmt: skip
    return 0


def direction(asked: list[dict[str, object]]) -> dict[str, object]:
    """What a link says of a direction in which it did nothing but carry."""
    quantiles = {"min": 0, "p50": 0, "p90": 0, "p99": 0, "max": 0}
    lateness = {"min": 0, "p50": 1000, "p90": 2000, "p99": 3000, "max": 4000}
    none = (
        "lost", "queue_dropped", "corrupted", "duplicated", "reordered", "delay_asked_ns", "queue_peak_bytes",
        "device_drops", "send_errors", "super_packets", "delivered_bytes", "out_of_order", "memory_dropped",
        "in_flight", "rate_busy_ns", "rate_busy_periods", "transmit_drops", "truncated", "timestamps_replaced",
    )  # fmt: skip
    told = [
        {"kind": each["kind"], "asked": {name: value for name, value in each.items() if name != "kind"},
         "met": 0, "hit": 0, "clamped": 0, "queue_peak_bytes": None}
        for each in asked
    ]  # fmt: skip
    return dict.fromkeys(none, 0) | {
        "wire_packets": 1000, "wire_bytes": 1_000_000, "delivered": 1000, "delay_given_ns": quantiles,
        "delay_scheduled_ns": quantiles, "lateness_ns": lateness, "loss_asked": 0.0, "loss_given": 0.0,
        "rate_asked_bits_per_s": None, "rate_given_bits_per_s": None, "refused": dict.fromkeys(REFUSED, 0),
        "impairments": told,
    }  # fmt: skip


def main() -> int:
    if sys.argv[1] == "--version":
        from trifecta import __version__

        names = ("rustls", "quinn_proto", "aws_lc_rs", "parquet")
        print(
            json.dumps({"engine": __version__, **dict.fromkeys(names), "architecture": "none", "quic_adaptations": []})
        )
        return 0
    role, source = sys.argv[1:3]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    config = json.loads(sys.stdin.readline() if source == "-" else Path(source).read_text())
    if role == "load":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
        return load(config)
    if role == "probe" and config["role"] == "measure":
        times = {"min": 20_000, "p50": 30_000, "p90": 40_000, "p99": 50_000, "max": 60_000}
        shares = dict.fromkeys(("loss", "loss_forward", "loss_backward"), 0.0)
        ways = dict.fromkeys(("rtt_ns", "one_way_forward_ns", "one_way_backward_ns"), times)
        counts = ("send_errors", "reordered", "duplicates", "reordered_forward", "duplicates_forward", "train_received")
        summary = {"role": "measure", "sent": 200, "received": 200, "ended": "done", "rate_bits_per_s": None}
        last = {"largest_payload_bytes": 1472, **WALL}
        say("summary", summary | shares | ways | dict.fromkeys(counts, 0) | last)
        return 0
    ready = {"role": "reflect", "address": config.get("address"), "port": config.get("port"), **WALL}
    if role == "link":
        ready = {"a_device": "ra", "b_device": "rb", **GRANTED, "receive_buffer_bytes": 1}
    say("ready", ready)
    until_asked_to_end()
    summary = {
        "started_ns": 0, "ended_ns": 1, "ended": "signal", "cpu_user_ns": 0, "cpu_system_ns": 0, "max_rss_bytes": 1,
        "wall_ns": 1_000_000_000, **GRANTED, "spin_ns": 0, "split": "merge", "seed": config.get("seed", 0),
    }  # fmt: skip
    say("summary", summary | {way: direction(config.get(way) or []) for way in ("a_to_b", "b_to_a")})
    return 0


if __name__ == "__main__":
    sys.exit(main())

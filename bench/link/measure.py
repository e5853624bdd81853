"""What is measured of a path that is up: one-way delay, TCP throughput, small packets a second."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from tests.engine.netns import ENGINE, ROOT, Hosts

TRAFFIC = ROOT / "tests/engine/traffic.py"


def one_way_delay_us(hosts: Hosts, packets: int = 2_000) -> dict[str, float]:
    """Quantiles of the one-way delay at 500 packets a second, client to server, in us."""
    measured = hosts.probe(packets=packets, interval_ns=2_000_000)
    return {name: measured["one_way_forward_ns"][name] / 1e3 for name in ("p50", "p99", "max")}


def tcp_gbit_per_s(hosts: Hosts, seconds: float = 4, congestion: str = "cubic") -> float:
    """What a receiver gets of one TCP connection (iperf3), in Gbit/s."""
    server = hosts.start("server", ["iperf3", "-s", "-1"])
    time.sleep(0.3)
    arguments = ["iperf3", "-c", hosts.server_address, "-t", str(seconds), "-O", "1", "-J", "-C", congestion]
    report = json.loads(hosts.run("client", arguments))
    server.communicate(timeout=20)
    return float(report["end"]["sum_received"]["bits_per_second"]) / 1e9


def small_packets_per_s(hosts: Hosts, seconds: float = 4) -> dict[str, float]:
    """64 B frames (22 octets of UDP payload) that arrive in a second, and that were sent."""
    seconds_of_sink = str(seconds + 2)
    sink = hosts.python("server", TRAFFIC, "udp-sink", "--address", hosts.server_address, "--seconds", seconds_of_sink)
    assert sink.stdout is not None
    sink.stdout.readline()
    before = _received(hosts)
    flood = [
        sys.executable,
        str(TRAFFIC),
        "flood",
        "--address",
        hosts.server_address,
        "--payload",
        "22",
        "--seconds",
        str(seconds),
    ]
    sent: dict[str, Any] = json.loads(hosts.run("client", flood))
    # What arrives while it was sent: what is still queued then does not count.
    received = _received(hosts) - before
    sink.kill()
    sink.communicate()
    return {"received": received / sent["seconds"], "sent": sent["sent"] / sent["seconds"]}


def _received(hosts: Hosts) -> int:
    for line in hosts.run("server", ["cat", "/proc/net/dev"]).splitlines():
        if line.strip().startswith(f"{hosts.server_device}:"):
            return int(line.split()[2])
    raise AssertionError(f"no {hosts.server_device}")


def engine_version() -> str:
    """What is measured."""
    return subprocess.run([str(ENGINE), "--version"], capture_output=True, text=True, check=True).stdout.strip()

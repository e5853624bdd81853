"""What a relay adds to a hop, ours against nginx as a reverse proxy: ``python -m bench.relay``.

A sends cycles (POST, 128 octets of body) on an open loop over HTTP/2, one kept connection, to the last service D:
straight, through our relay, and through nginx, in turns on loopback. nginx speaks HTTP/1.1 to the server behind it, so
our relay is measured that way too. A latency counts from the time at which the schedule wanted the cycle. What a hop
adds is the difference of the medians (and of the 99th percentiles) to the straight way; "inside" is what the relay's
own stamps say: arrived to forwarded and returned to replied.

All run on core 1, so that a hop costs what its programs and the kernel do. With ``--apart`` what is compared has core 0
for itself; then every message wakes a core that was idle, which in a virtual machine takes longer than the relay.

nginx is that of ``python -m bench.peers``, or the one in PATH. Nothing else may run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench import peers
from bench.load.clients import ENGINE
from bench.testbed import process_cpu_s
from trifecta.lab.certificates import Certificates, make_certificates

NAME = "d.lab"
MEDIAN_TARGET_US, P99_TARGET_US = 60.0, 200.0
NGINX = """daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 60s; tcp_nodelay on;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  upstream last {{ server 127.0.0.1:{behind}; keepalive 200; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} ssl http2; http2_max_concurrent_streams 256;
    ssl_protocols TLSv1.3; ssl_ecdh_curve X25519; ssl_certificate {chain}; ssl_certificate_key {key};
    location / {{
      proxy_pass https://last; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host {name};
      proxy_ssl_name {name}; proxy_ssl_server_name on; proxy_ssl_protocols TLSv1.3; proxy_ssl_verify on;
      proxy_ssl_trusted_certificate {authority}; client_body_buffer_size 64k;
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Turn:
    """One run of one way: microseconds, and the compared program's CPU."""

    median_us: float
    p99_us: float
    inside_us: float | None
    cpu_us: float | None
    failures: int


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _program(command: list[str], core: int, log: Path) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as sink:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(10)


@contextlib.contextmanager
def _origin(
    folder: Path, name: str, core: int, pki: Certificates, relay: Mapping[str, object]
) -> Iterator[tuple[int, int]]:
    """Run a service; its port and process."""
    document = {"address": "127.0.0.1", "port": 0, "certificate_file": str(pki.chain), "key_file": str(pki.key)}
    config = folder / f"{name}.json"
    config.write_text(json.dumps({**document, "protocols": ["h1", "h2"], "relay": relay}))
    with _program([str(ENGINE), "origin", str(config)], core, folder / f"{name}.log") as process:
        assert process.stdout
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"bench.relay: {name} did not start: {(folder / f'{name}.log').read_text()}")
        yield int(json.loads(line)["ready"]["port"]), process.pid


@contextlib.contextmanager
def _nginx(folder: Path, core: int, pki: Certificates, behind: int) -> Iterator[tuple[int, int]]:
    """Run nginx as a reverse proxy; its port and the process of its worker."""
    command = peers.nginx() or [shutil.which("nginx") or "nginx"]
    port, config = _free_port(), folder / "nginx.conf"
    files = {"chain": pki.chain, "key": pki.key, "authority": pki.authority}
    config.write_text(NGINX.format(folder=folder, port=port, behind=behind, name=NAME, **files))
    with _program([*command, "-p", str(folder), "-c", str(config)], core, folder / "nginx.log") as process:
        deadline = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"bench.relay: nginx does not answer: {(folder / 'nginx.log').read_text()}")
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield port, int(children[0])


def _load(folder: Path, pki: Certificates, port: int, to: str, rate: int, seconds: float) -> tuple[Path, Path, int]:
    samples, spans = folder / "samples.parquet", folder / "spans.parquet"
    document = {
        "trial": "relay", "protocol": "h2", "address": "127.0.0.1", "port": port, "server_name": NAME,
        "ca_file": str(pki.authority), "connections": 1, "streams": 100, "connection_mode": "reused",
        "loop": {"kind": "open", "rate_per_s": rate, "arrivals": "constant"}, "duration_ns": int(seconds * 1e9),
        "warmup_ns": 1_000_000_000, "method": "POST", "path": "/chain", "message": {"body_bytes": 128}, "to": to,
        "expect_status": 200, "samples_file": str(samples), "spans_file": str(spans), "cpu": 1,
    }  # fmt: skip
    config = folder / "load.json"
    config.write_text(json.dumps(document))
    command = [str(ENGINE), "load", str(config)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 60, check=False
    )
    if done.returncode:
        raise SystemExit(f"bench.relay: load: {done.stderr}")
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    return samples, spans, int(summary["errors"] + summary["missed_slots"])


def _turn(folder: Path, pki: Certificates, port: int, to: str, pid: int | None, rate: int, seconds: float) -> Turn:
    before = process_cpu_s([pid]) if pid else 0.0
    samples, spans, failures = _load(folder, pki, port, to, rate, seconds)
    cpu = process_cpu_s([pid]) - before if pid else None
    median, p99, count = (
        duckdb.connect()
        .execute(
            f"select quantile_cont(t, 0.5), quantile_cont(t, 0.99), count(*) from"
            f" (select (done_ns - intended_ns) / 1e3 as t from '{samples}' where not warmup and error is null)"
        )
        .fetchall()[0]
    )
    inside = (
        duckdb.connect()
        .execute(
            f"select quantile_cont((o.started_ns - i.arrived_ns + i.replied_ns - o.returned_ns) / 1e3, 0.5)"
            f" from '{spans}' i join '{spans}' o on i.request = o.request and i.depth = 0 and o.depth = 1"
            " where not i.warmup"
        )
        .fetchall()[0][0]
    )
    cycles = count + rate  # a second of warm-up
    return Turn(median, p99, inside, cpu * 1e6 / cycles if cpu is not None else None, failures)


def _report(turns: dict[str, list[Turn]]) -> bool:
    def middle(name: str, field: str) -> float:
        return statistics.median(getattr(turn, field) or 0.0 for turn in turns[name])

    base_median, base_p99 = middle("straight", "median_us"), middle("straight", "p99_us")
    print("| way | median | p99 | a hop adds, median | a hop adds, p99 | inside | CPU a cycle | failed or missed |")
    print("|---|---|---|---|---|---|---|---|")
    for name, runs in turns.items():
        median, p99 = middle(name, "median_us"), middle(name, "p99_us")
        cells = [f"{median:.1f} us", f"{p99:.1f} us"]
        if name == "straight":
            cells += ["", "", "", ""]
        else:
            inside = f"{middle(name, 'inside_us'):.1f} us" if runs[0].inside_us is not None else ""
            cells += [
                f"{median - base_median:.1f} us",
                f"{p99 - base_p99:.1f} us",
                inside,
                f"{middle(name, 'cpu_us'):.1f} us",
            ]
        print(f"| {name} | {' | '.join(cells)} | {sum(run.failures for run in runs)} |")
    ours, added = "our relay, HTTP/2 behind", {}
    for name in turns:
        added[name] = (middle(name, "median_us") - base_median, middle(name, "p99_us") - base_p99)
    for name in turns:
        if name.startswith("nginx"):
            for other in [way for way in turns if way.startswith("our relay")]:
                print(f"\n{other} / {name}: {added[other][0] / added[name][0]:.2f} of what it adds at the median.")
    met = added[ours][0] <= MEDIAN_TARGET_US and added[ours][1] <= P99_TARGET_US
    verdict = "met" if met else "missed"
    print(f"\nAt most {MEDIAN_TARGET_US:.0f} us median and {P99_TARGET_US:.0f} us p99 a hop: {verdict}.")
    return met


def main() -> int:
    """Measure in turns and print Markdown; 0 when the target is met and nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run, after a second of warm-up")
    parser.add_argument("--rate", type=int, default=1000, help="cycles a second")
    parser.add_argument("--apart", action="store_true", help="a core of its own for what is compared")
    given = parser.parse_args()
    core = 0 if given.apart else 1
    found = bool(peers.nginx() or shutil.which("nginx"))
    os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory(prefix="bench-relay-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        pki = make_certificates(folder / "pki", [NAME], ["127.0.0.1"])
        behind, _ = stack.enter_context(_origin(folder, "last", 1, pki, {"service": "D", "routes": {"/chain": {}}}))
        ways: dict[str, tuple[int, str, int | None]] = {"straight": (behind, "D", None)}
        for protocol, spoken in (("h2", "HTTP/2"), ("h1", "HTTP/1.1")):
            service = {"name": NAME, "address": "127.0.0.1", "port": behind, "protocol": protocol,
                       "connection_mode": "reused", "connections": 200 if protocol == "h1" else 1}  # fmt: skip
            route = {"calls": [{"to": "D", "path": "/chain"}]}
            relay = {
                "service": "B",
                "routes": {"/chain": route},
                "services": {"D": service},
                "ca_file": str(pki.authority),
            }
            port, pid = stack.enter_context(_origin(folder, f"relay-{protocol}", core, pki, relay))
            ways[f"our relay, {spoken} behind"] = (port, "B", pid)
        if found:
            port, pid = stack.enter_context(_nginx(folder, core, pki, behind))
            ways["nginx, HTTP/1.1 behind"] = (port, "D", pid)
        else:
            print("nginx is not there; `python -m bench.peers` brings it", file=sys.stderr)
        turns: dict[str, list[Turn]] = {way: [] for way in ways}
        for number in range(given.turns):
            order = list(ways)
            for way in order[number % len(order) :] + order[: number % len(order)]:
                turns[way].append(_turn(folder, pki, *ways[way], given.rate, given.seconds))
    met = _report(turns)
    return 0 if met and not any(turn.failures for runs in turns.values() for turn in runs) else 1


if __name__ == "__main__":
    raise SystemExit(main())

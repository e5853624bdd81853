"""Run the load benchmark, print Markdown tables: ``python -m bench.load [requests|new|bulk|rate|origin] [--quick]``."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

from bench import peers
from bench.load import servers
from bench.load.clients import CLIENTS, ENGINE, NAME, Cost, Work, available, settle
from bench.testbed import SERVER, Host, hosts, measured, process_cpu_s

REQUESTS = {1: 15_000, 10: 60_000, 100: 100_000}
SIZES = [100, 1000, 10_000]
BULK = 100_000_000


class Bench:
    """The testbed of one run: hosts, folder, repetitions."""

    def __init__(self, client: Host, server: Host, folder: Path, repetitions: int, only: list[str]) -> None:
        self.client, self.server, self.folder, self.repetitions, self.only = client, server, folder, repetitions, only
        self.port = 8443

    def work(self, protocol: str, in_flight: int, size: int, requests: int, new: bool = False) -> Work:
        """Return a cell of work on this testbed."""
        return Work(protocol, in_flight, size, requests, new, self.port, str(self.folder / "ca.pem"))

    def turns(self, work: Work) -> dict[str, list[Cost]]:
        """Run every client ``repetitions`` times in turns on the same work."""
        costs: dict[str, list[Cost]] = {
            name: [] for name in available(work.protocol) if not self.only or name in self.only
        }
        for _ in range(self.repetitions):
            for name, kept in costs.items():
                kept.append(CLIENTS[name][0](work, self.client))
        return costs


def _medians(costs: dict[str, list[Cost]], field: str) -> dict[str, float | None]:
    medians: dict[str, float | None] = {}
    for name, runs in costs.items():
        good = [getattr(run, field) for run in runs if run.ok and getattr(run, field) > 0]
        medians[name] = statistics.median(good) if len(good) * 2 > len(runs) else None
        for run in runs:
            if not run.ok:
                print(f"<!-- {name}: {run.note} -->")
    return medians


def _row(label: str, medians: dict[str, float | None], target: float, unit: str, higher: bool = False) -> None:
    ours = medians.get("load")
    others = {name: value for name, value in medians.items() if name != "load" and value}
    best = (max if higher else min)(others, key=lambda name: others[name]) if others else None
    ratio = ours / others[best] if ours and best else None
    met = "" if ratio is None else "yes" if (ratio >= target if higher else ratio <= target) else "**no**"
    cells = ", ".join(f"{name} {value:,.2f}" if value else f"{name} failed" for name, value in medians.items())
    shown = f"{ratio:.2f}" if ratio is not None else "-"
    print(f"| {label} | {cells} {unit} | {best or '-'} | {shown} | {target} | {met} |", flush=True)


def _head(title: str) -> None:
    print(
        f"\n### {title}\n\n| cell | medians | best peer | ratio | target | met |\n|---|---|---|---|---|---|", flush=True
    )


def requests(bench: Bench, quick: bool) -> None:
    """Client CPU per request over reused connections."""
    for server in ("nginx", "origin"):
        with servers.run(server, bench.folder, bench.server, bench.client, bench.port):
            _head(f"Client CPU per request, reused connections, against {server}")
            for protocol in ("h1", "h2", "h3"):
                for in_flight, count in REQUESTS.items():
                    for size in [1000] if quick else SIZES:
                        work = bench.work(protocol, in_flight, size, count)
                        target = 0.95 if (protocol, in_flight, server) == ("h2", 100, "nginx") else 0.8
                        costs = bench.turns(work)
                        _row(
                            f"{protocol}, {in_flight} in flight, {size} B",
                            _medians(costs, "cpu_us_per_request"),
                            target,
                            "us",
                        )
                        if in_flight == 100 and size == 1000:
                            label = f"{protocol}, requests per second"
                            _row(label, _medians(costs, "requests_per_s"), 1.0, "/s", higher=True)


def new(bench: Bench, quick: bool) -> None:
    """Client CPU per request with a new connection for each."""
    with servers.run("nginx", bench.folder, bench.server, bench.client, bench.port):
        _head("Client CPU per request, a new connection for each, against nginx")
        for protocol in ("h1", "h2", "h3"):
            medians = _medians(bench.turns(bench.work(protocol, 10, 1000, 1000, new=True)), "cpu_us_per_request")
            for peer, target in (("h2load", 0.6), ("oha", 1.05)):
                if peer == "oha" and protocol != "h1":
                    continue  # its --disable-keepalive does not reach HTTP/2 and HTTP/3: 66 us is no handshake
                if peer in medians:
                    _row(f"{protocol} against {peer}", {n: medians.get(n) for n in ("load", peer)}, target, "us")


def bulk(bench: Bench, quick: bool) -> None:
    """Client CPU for one response of 100 MB on a veth of MTU 1500."""
    for server in ("nginx", "origin"):
        with servers.run(server, bench.folder, bench.server, bench.client, bench.port):
            _head(f"Client CPU for 100 MB, against {server}")
            for protocol in ("h1", "h2", "h3"):
                medians = _medians(bench.turns(bench.work(protocol, 1, BULK, 1)), "cpu_us_per_request")
                _row(protocol, {name: value and value / 1000 for name, value in medians.items()}, 1.0, "ms")


def rate(bench: Bench, quick: bool) -> None:
    """Open loop at 30,000 requests a second: schedule lag of our client."""
    print("\n### Open loop, 30,000 requests a second, 100 B\n")
    print("| protocol | lag p50 us | p99 us | missed | errors | met |\n|---|---|---|---|---|---|")
    with servers.run("origin", bench.folder, bench.server, bench.client, bench.port):
        for protocol in ("h1", "h2", "h3"):
            connections, streams = (100, 1) if protocol == "h1" else (4, 25)
            config = {
                "trial": "bench", "protocol": protocol, "address": SERVER, "port": bench.port, "server_name": NAME,
                "ca_file": str(bench.folder / "ca.pem"), "connections": connections, "streams": streams,
                "connection_mode": "reused", "loop": {"kind": "open", "rate_per_s": 30000, "arrivals": "constant"},
                "requests": 90_000, "duration_ns": 0, "method": "GET", "path": "/bytes/100", "expect_body_bytes": 100,
                "samples_file": str(bench.folder / "rate.parquet"),
            }  # fmt: skip
            summaries = []
            for _ in range(bench.repetitions):
                done = measured([str(ENGINE), "load", "-"], bench.client, json.dumps(config) + "\n")
                summaries.append(json.loads(done.stdout.splitlines()[-1])["summary"])
            lag = {q: statistics.median(s["schedule_lag_ns"][q] / 1000 for s in summaries) for q in ("p50", "p99")}
            missed, errors = (max(s[field] for s in summaries) for field in ("missed_slots", "errors"))
            met = "yes" if lag["p99"] < 100 and not missed and not errors else "**no**"
            print(f"| {protocol} | {lag['p50']:.1f} | {lag['p99']:.1f} | {missed} | {errors} | {met} |", flush=True)


def origin(bench: Bench, quick: bool) -> None:
    """Requests per second per core of the origin against nginx: server CPU per request, driven by our client."""
    _head("Server: requests per CPU second at 1 kB, 100 in flight (origin is ours, nginx the peer)")
    for protocol in ("h1", "h2", "h3"):
        rates: dict[str, list[float]] = {"load": [], "nginx": []}
        for _ in range(bench.repetitions):
            for name, kept in (("origin", "load"), ("nginx", "nginx")):
                with servers.run(name, bench.folder, bench.server, bench.client, bench.port) as pids:
                    before = process_cpu_s(pids)
                    work = bench.work(protocol, 100, 1000, 100_000)
                    cost = CLIENTS["load"][0](work, bench.client)
                    if cost.ok:
                        rates[kept].append(work.requests / max(process_cpu_s(pids) - before, 1e-3))
        _row(protocol, {name: statistics.median(r) if r else None for name, r in rates.items()}, 1.0, "/s", higher=True)


PARTS = {"requests": requests, "new": new, "bulk": bulk, "rate": rate, "origin": origin}


def main() -> int:
    """Parse the command line, raise the testbed, run the parts asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them by default")
    parser.add_argument("--quick", action="store_true", help="1 kB only, fewer turns")
    parser.add_argument("--turns", type=int, default=0, help="repetitions of each client (default 5, quick 3)")
    parser.add_argument("--clients", default="", help="comma-separated subset of " + ", ".join(CLIENTS))
    options = parser.parse_args()
    if os.geteuid() != 0 or not peers.nginx():
        print("bench.load: needs root and the peers; run: sudo .venv/bin/python -m bench.peers")
        return 3
    for name, version in peers.versions().items():
        print(f"* {name}: {version}")
    with tempfile.TemporaryDirectory(prefix="trifecta-bench-") as scratch, hosts() as (client, server):
        folder = Path(scratch)
        folder.chmod(0o755)
        servers.certificates(folder)
        servers.site(folder, [*SIZES, BULK])
        for file in folder.glob("*.pem"):
            file.chmod(0o644)
        only = [name for name in options.clients.split(",") if name]
        bench = Bench(client, server, folder, options.turns or (3 if options.quick else 5), only)
        for part in options.parts or PARTS:
            PARTS[part](bench, options.quick)
        for note in settle():
            print(f"void: {note}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Two engines on the same work, in turns: ``python -m bench.engines OLD NEW [--repetitions 9]`` (root).

Each serves and asks itself, in two namespaces joined by a veth pair. What a request costs the client and the server in
CPU time (user and system), medians, and the new by the old; 1 is as before.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.load import servers
from bench.load.clients import Work, load
from bench.testbed import Host, hosts, process_cpu_s

PORT = 8443
BULK = 100_000_000


@dataclass(frozen=True)
class Cell:
    """``requests`` of ``size`` octets with ``in_flight`` outstanding."""

    label: str
    requests: int
    size: int
    in_flight: int = 10
    new: bool = False


CELLS = (
    Cell("reused connections, 1 in flight, 1 kB", 15_000, 1000, 1),
    Cell("reused connections, 100 in flight, 1 kB", 100_000, 1000, 100),
    Cell("a new connection a request, 10 in flight, 1 kB", 1000, 1000, 10, new=True),
    Cell("one response of 100 MB", 1, BULK, 1),
)


def cost(engine: Path, work: Work, folder: Path, client: Host, server: Host) -> tuple[float, float]:
    """CPU of the client and of the server, us a request; SystemExit where a request failed."""
    with servers.run("origin", folder, server, client, PORT, engine=engine) as pids:
        before = process_cpu_s(pids)
        asked = load(work, client, engine=engine)
        served = process_cpu_s(pids) - before
    if not asked.ok or asked.completed != work.requests:
        raise SystemExit(f"bench.engines: {engine}: {asked.completed} of {work.requests} done; {work}: {asked.note}")
    return asked.cpu_us_per_request, served * 1e6 / work.requests


def main() -> None:
    """Print one row a protocol and cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    print(
        "| protocol | work | client old, new us | new / old | server old, new us | new / old |\n"
        "|---|---|---|---|---|---|"
    )
    with hosts() as (client, server), tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        servers.certificates(folder)
        for cell in CELLS:
            for protocol in ("h1", "h2", "h3"):
                ca_file = str(folder / "ca.pem")
                work = Work(protocol, cell.in_flight, cell.size, cell.requests, cell.new, PORT, ca_file)
                costs: dict[Path, list[tuple[float, float]]] = {options.old: [], options.new: []}
                for turn in range(options.repetitions):
                    order = (options.old, options.new) if turn % 2 else (options.new, options.old)
                    for engine in order:
                        costs[engine].append(cost(engine, work, folder, client, server))
                told = []
                for side in (0, 1):
                    old, new = (statistics.median(one[side] for one in costs[e]) for e in (options.old, options.new))
                    told += [f"{old:,.1f}, {new:,.1f}", f"{new / old:.2f}" if old else "-"]
                print(f"| {protocol} | {cell.label} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()

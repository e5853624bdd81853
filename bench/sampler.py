"""``python -m bench.sampler [SECONDS]``: what the resource observer costs, target below 1 % of a core.

Eight services on four hosts are read ten times a second: processes, control groups and the hosts' devices. They are two
threads each, idle at first, then all at work for the engine's load. Peer: psutil reads CPU time, memory, threads and
context switches of the same processes (nothing of control groups and other hosts), in turns with ours.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from trifecta.contract.load import ClosedLoop, LoadConfig
from trifecta.contract.origin import OriginConfig, OriginReady
from trifecta.lab import sandbox
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.cgroups import cgroup_paths
from trifecta.lab.engine import EngineProcess, find_engine
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Topology, Wire
from trifecta.observers.resources import ResourceObserver

SERVICES, HOSTS, PERIOD_S, TARGET = 8, 4, 0.1, 0.01
TURNS = 4
PORT = 8443


def groups(pid: int) -> dict[str, Path]:
    """Control groups to read: the process's own, as a container has them; else a root, which costs as much to read."""
    roots = {name: Path("/sys/fs/cgroup") / name for name in ("memory", "cpuacct")}
    return {name: path for name, path in roots.items() if path.is_dir()} | cgroup_paths(pid)


def read_with_psutil(processes: list[psutil.Process]) -> None:
    """As much of a reading as psutil offers."""
    for process in processes:
        with process.oneshot():
            process.cpu_times()
            process.memory_info()
            process.num_threads()
        # psutil tells the main thread's switches only: those of others are read of the others.
        for thread in process.threads():
            psutil.Process(thread.id).num_ctx_switches()


def spent_ns(read: Callable[[], None], seconds: float) -> list[int]:
    """CPU time of each reading, at ten a second."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.thread_time_ns()
        read()
        found.append(time.thread_time_ns() - before)
        time.sleep(PERIOD_S)
    return found


@contextmanager
def services(lab: Topology, certificates: Certificates, folder: Path) -> Iterator[dict[str, EngineProcess]]:
    """Eight origins of two workers, two on each host."""
    with ExitStack() as stack:
        running = {}
        for number in range(SERVICES):
            host = lab.names[number % HOSTS]
            name = chr(ord("A") + number)
            service = EngineProcess(find_engine(), "origin", lab.host(host), folder / f"{name}.log", name=name)
            stack.enter_context(service)
            service.configure(
                OriginConfig(
                    address=lab.address(host),
                    port=PORT + number // HOSTS,
                    workers=2,
                    certificate_file=str(certificates.chain),
                    key_file=str(certificates.key),
                )
            )
            running[name] = service
        for service in running.values():
            service.wait_ready(OriginReady, 20)
        yield running


@contextmanager
def work(lab: Topology, certificates: Certificates, folder: Path, seconds: float) -> Iterator[None]:
    """A client for every service, each on its service's host."""
    with ExitStack() as stack:
        for number in range(SERVICES):
            host = lab.names[number % HOSTS]
            client = EngineProcess(find_engine(), "load", lab.host(host), folder / "load.log", name=f"load {number}")
            stack.enter_context(client)
            client.configure(
                LoadConfig(
                    trial="bench",
                    protocol=("h1", "h2", "h3")[number % 3],
                    address=lab.address(host),
                    port=PORT + number // HOSTS,
                    server_name="bench.lab",
                    ca_file=str(certificates.authority),
                    connections=2,
                    streams=5,
                    connection_mode="reused",
                    loop=ClosedLoop(),
                    duration_ns=int(seconds * 1e9),
                    method="GET",
                    path="/bytes/1000",
                    expect_body_bytes=1000,
                    expect_status=200,
                    total_timeout_ns=int((seconds + 30) * 1e9),
                    samples_file=str(folder / f"{number}.parquet"),
                )
            )
        yield


def compare(lab: Topology, running: dict[str, EngineProcess], seconds: float) -> tuple[list[int], list[int], int]:
    """CPU time of readings by the observer and by psutil, in turns, and the rows of one of the observer's."""
    pids = {name: service.pid for name, service in running.items()}
    cgroups = {name: [groups(pid)] for name, pid in pids.items()}
    ours: list[int] = []
    theirs: list[int] = []
    processes = [psutil.Process(pid) for pid in pids.values()]
    with closing(ResourceObserver("bench", pids, cgroups=cgroups, hosts=lab.hosts)) as observer:
        observer.sample()
        rows = len(observer.rows)
        for _ in range(TURNS):
            ours += spent_ns(observer.sample, seconds / TURNS)
            theirs += spent_ns(lambda: read_with_psutil(processes), seconds / TURNS)
        assert all(row.get("cgroup_cpu_ns") for row in observer.rows if row["process"] in pids and any(cgroups["A"]))
    return ours, theirs, rows


def share(readings: list[int]) -> float:
    """Share of a core that ten such readings a second take."""
    return statistics.mean(readings) / (PERIOD_S * 1e9)


def main() -> int:
    """Print both tables; 0 when the target is met."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    sandbox.enter()
    shares: list[float] = []
    wires = [Wire(f"host{a + 1}", f"host{b + 1}") for a, b in itertools.pairwise(range(HOSTS))]
    with tempfile.TemporaryDirectory() as scratch, host_graph([f"host{n + 1}" for n in range(HOSTS)], wires) as lab:
        folder = Path(scratch)
        certificates = make_certificates(folder / "pki", ["bench.lab"], [])
        with services(lab, certificates, folder) as running:
            found: dict[str, Any] = {"idle": compare(lab, running, seconds)}
            with work(lab, certificates, folder, 2 * seconds + 5):
                time.sleep(1)
                found["at work"] = compare(lab, running, seconds)
    print(f"{SERVICES} services on {HOSTS} hosts, ten readings a second, CPU time of the reading thread\n")
    print(
        "| services | reader | rows | median us | p99 us | share of a core | below 1 % |\n|---|---|---|---|---|---|---|"
    )
    for state, (ours, theirs, rows) in found.items():
        for reader, readings in (("Trifecta", ours), (f"psutil {psutil.__version__}", theirs)):
            count = rows if reader == "Trifecta" else SERVICES
            median, p99 = statistics.median(readings) / 1e3, statistics.quantiles(readings, n=100)[98] / 1e3
            met = "yes" if share(readings) < TARGET else "**no**"
            print(f"| {state} | {reader} | {count} | {median:.0f} | {p99:.0f} | {share(readings):.2%} | {met} |")
        shares.append(share(ours))
    return 0 if max(shares) < TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())

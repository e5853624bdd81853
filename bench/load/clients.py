"""How each client is asked for the same work and how its answer is read: one function and a line in ``CLIENTS``."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.testbed import SERVER, Finished, Host, measured, measured_until_idle

ENGINE = Path(__file__).resolve().parents[2] / "engine/target/release/trifecta-engine"
NAME = "bench.lab"


@dataclass(frozen=True)
class Work:
    """One cell: ``requests`` of ``size`` octets with ``in_flight`` outstanding, connections new or reused."""

    protocol: str  # h1, h2, h3
    in_flight: int
    size: int
    requests: int
    new: bool
    port: int
    ca_file: str


@dataclass(frozen=True)
class Cost:
    """What a client spent on its work; ``ok`` says that it did all of it."""

    ok: bool
    cpu_us_per_request: float
    requests_per_s: float
    note: str = ""
    completed: int = 0


def _cost(done: Finished, completed: int, wall_s: float, work: Work) -> Cost:
    ok = done.code == 0 and completed >= 0.999 * work.requests
    note = (
        "" if ok else f"{completed} of {work.requests} done, exit {done.code}: {(done.stderr or done.stdout)[-160:]!r}"
    )
    each = max(completed, 1)
    return Cost(ok, done.cpu_s * 1e6 / each, completed / wall_s if wall_s else 0.0, note, completed)


def load(work: Work, host: Host, *, engine: Path = ENGINE) -> Cost:
    """Our client (of ``engine``): every sample recorded and written, responses validated, certificate verified."""
    connections, streams = (work.in_flight, 1) if work.protocol == "h1" or work.new else (1, work.in_flight)
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "trial": "bench", "protocol": work.protocol, "address": SERVER, "port": work.port, "server_name": NAME,
            "ca_file": work.ca_file, "connections": connections, "streams": streams,
            "connection_mode": "new" if work.new else "reused", "loop": {"kind": "closed"}, "requests": work.requests,
            "duration_ns": 0, "method": "GET", "path": f"/bytes/{work.size}", "expect_body_bytes": work.size,
            "total_timeout_ns": 100_000_000_000, "samples_file": f"{folder}/samples.parquet",
        }  # fmt: skip
        done = measured([str(engine), "load", "-"], host, json.dumps(config) + "\n")
    lines = [line for line in done.stdout.splitlines() if '"summary"' in line]
    if not lines:
        return Cost(False, 0.0, 0.0, f"no summary, exit {done.code}: {done.stderr[-200:]!r}")
    summary = json.loads(lines[-1])["summary"]
    return _cost(done, summary["samples"] - summary["errors"], summary["measured_ns"] / 1e9, work)


def h2load(work: Work, host: Host) -> Cost:
    """h2load of nghttp2, built with HTTP/3; a new connection for every request is as many clients as requests."""
    command = [*(peers.h2load() or []), "-n", str(work.requests), "-t", "1", "--connect-to", f"{SERVER}:{work.port}"]
    command += ["--alpn-list", {"h1": "http/1.1", "h2": "h2", "h3": "h3"}[work.protocol]]
    if work.new:
        command += ["-c", str(work.requests), "-m", "1"]
    elif work.protocol == "h1":
        command += ["-c", str(work.in_flight), "-m", "1"]
    else:
        command += ["-c", "1", "-m", str(work.in_flight)]
    done = measured([*command, f"https://{NAME}:{work.port}/bytes/{work.size}"], host)
    succeeded = re.search(r"(\d+) succeeded", done.stdout)
    finished = re.search(r"finished in ([\d.]+)(us|ms|s)", done.stdout)
    wall = float(finished[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[finished[2]] if finished else 0.0
    return _cost(done, int(succeeded[1]) if succeeded else 0, wall, work)


def oha(work: Work, host: Host) -> Cost:
    """oha (hyper, h2, quinn); over HTTP/3 it idles 30 s at its end: its CPU is read then, its answer
    by ``settle``, and its rate means nothing.
    """
    command = [*(peers.oha() or []), "--no-tui", "--output-format", "json", "--insecure", "-n", str(work.requests)]
    command += ["--http-version", {"h1": "1.1", "h2": "2", "h3": "3"}[work.protocol]]
    command += ["--connect-to", f"{NAME}:{work.port}:{SERVER}:{work.port}"]
    if work.new:
        command += ["-c", str(work.in_flight), "--disable-keepalive"]
    elif work.protocol == "h1":
        command += ["-c", str(work.in_flight)]
    else:
        command += ["-c", "1", "-p", str(work.in_flight)]
    command.append(f"https://{NAME}:{work.port}/bytes/{work.size}")
    if work.protocol == "h3":
        cpu_s, process = measured_until_idle(command, host)
        LINGERING.append((process, work))
        return Cost(True, cpu_s * 1e6 / work.requests, 0.0)
    done = measured(command, host)
    completed, wall = _oha_answer(done.stdout)
    return _cost(done, completed, wall, work)


LINGERING: list[tuple[subprocess.Popen[str], Work]] = []


def _oha_answer(stdout: str) -> tuple[int, float]:
    try:
        answer = json.loads(stdout)
        return sum(answer["statusCodeDistribution"].values()), answer["summary"]["total"]
    except (ValueError, KeyError):
        return 0, 0.0


def settle() -> list[str]:
    """Wait for clients that linger; return a line for each that had not done its work, whose figures are void."""
    notes = []
    for process, work in LINGERING:
        completed, _ = _oha_answer(process.communicate(timeout=60)[0])
        if completed < 0.999 * work.requests:
            notes.append(f"oha, {work.protocol}, {work.in_flight} in flight, {work.size} B: {completed} done")
    LINGERING.clear()
    return notes


def wrk(work: Work, host: Host) -> Cost:
    """wrk (HTTP/1.1, keep-alive or ``Connection: close``); it runs for a time, not a count, and verifies nothing."""
    command = [*(peers.wrk() or []), "-t", "1", "-c", str(work.in_flight), "-d", "2s"]
    if work.new:
        command += ["-H", "Connection: close"]
    done = measured([*command, f"https://{SERVER}:{work.port}/bytes/{work.size}"], host)
    counted = re.search(r"(\d+) requests in ([\d.]+)s", done.stdout)
    if not counted:
        return Cost(False, 0.0, 0.0, (done.stderr or done.stdout)[-160:])
    requests = int(counted[1])
    ok = requests > 0 and "Non-2xx" not in done.stdout
    return Cost(ok, done.cpu_s * 1e6 / max(requests, 1), requests / float(counted[2]))


CLIENTS = {"load": (load, "h1 h2 h3"), "h2load": (h2load, "h1 h2 h3"), "oha": (oha, "h1 h2 h3"), "wrk": (wrk, "h1")}


def available(protocol: str) -> list[str]:
    """Return the clients that are here and speak ``protocol``, ours first."""
    found = {"load": True, "h2load": peers.h2load(), "oha": peers.oha(), "wrk": peers.wrk()}
    return [name for name, (_, spoken) in CLIENTS.items() if found[name] and protocol in spoken.split()]

"""Two network namespaces joined by a veth pair of MTU 1500, and processes measured in them.

Loopback would move 64 KB datagrams and segments; bulk is compared at wire size.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000
IDLE_S = 0.5
CLIENT, SERVER = "10.99.0.1", "10.99.0.2"
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Host:
    """A network namespace and the core its programs run on."""

    name: str
    core: int

    def enter(self) -> None:
        """Join the namespace and core; called in the child between fork and exec."""
        descriptor = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        if _libc.setns(descriptor, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(descriptor)
        os.sched_setaffinity(0, {self.core})
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _libc.prctl(1, signal.SIGKILL)


@dataclass(frozen=True)
class Finished:
    """What a measured process cost and printed."""

    cpu_s: float
    wall_s: float
    code: int
    stdout: str
    stderr: str


@contextlib.contextmanager
def hosts() -> Iterator[tuple[Host, Host]]:
    """Yield (client on core 1, server on core 0); the namespaces are removed at the end."""
    tag = f"tfb{os.getpid() % 100000}"
    client, server = Host(f"{tag}c", 1), Host(f"{tag}s", 0)
    script = f"""netns add {client.name}
netns add {server.name}
link add c0 netns {client.name} type veth peer name s0 netns {server.name}
"""
    subprocess.run(["ip", "-batch", "-"], input=script, text=True, check=True)
    try:
        for host, device, address in ((client, "c0", CLIENT), (server, "s0", SERVER)):
            commands = f"link set lo up\naddr add {address}/24 dev {device}\nlink set {device} up\n"
            # A restricted algorithm may not be a namespace's default, but a route may name it (ip-route(8), congctl).
            commands += f"route replace 10.99.0.0/24 dev {device} src {address} congctl cubic\n"
            subprocess.run(["ip", "-n", host.name, "-batch", "-"], input=commands, text=True, check=True)
            sysctls = {"ip_local_port_range": "1025 65535", "tcp_tw_reuse": "1", "tcp_no_metrics_save": "1"}
            writes = "; ".join(f"echo {value} > /proc/sys/net/ipv4/{key}" for key, value in sysctls.items())
            subprocess.run(["ip", "netns", "exec", host.name, "sh", "-c", writes], check=True)
        yield client, server
    finally:
        for host in (client, server):
            subprocess.run(["ip", "netns", "del", host.name], check=False)


def measured(command: list[str], host: Host, stdin: str | None = None, timeout_s: float = 120.0) -> Finished:
    """Run ``command`` in ``host`` to its end; CPU is user + system of the process and what it waited for."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=host.enter
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        if stdin is not None:
            _tell(process, stdin)
        stdout, stderr = process.communicate(timeout=timeout_s) if stdin is None else _drain(process, timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Finished(cpu, time.monotonic() - started, process.returncode, stdout, stderr)


def measured_until_idle(
    command: list[str], host: Host, timeout_s: float = 120.0
) -> tuple[float, subprocess.Popen[str]]:
    """Start a program that lingers when its work is done; return its CPU seconds when they stand still, and itself.

    CPU comes from ``/proc/PID/stat`` (ticks of 10 ms). What it prints at its end is left to the caller.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=host.enter
    )
    alarm = time.monotonic() + timeout_s
    last, spent = -1.0, 0.0
    while process.poll() is None and spent != last and time.monotonic() < alarm:
        time.sleep(IDLE_S)
        with contextlib.suppress(OSError):
            last, spent = spent, process_cpu_s([process.pid])
    return spent, process


def _tell(process: subprocess.Popen[str], text: str) -> None:
    """Write to standard input and leave it open, for its end would end the engine."""
    assert process.stdin
    process.stdin.write(text)
    process.stdin.flush()


def _drain(process: subprocess.Popen[str], timeout_s: float) -> tuple[str, str]:
    """Read to the end without closing standard input, which would end the engine."""
    assert process.stdout and process.stderr and process.stdin
    alarm = time.monotonic() + timeout_s
    out = process.stdout.read()
    err = process.stderr.read()
    process.wait(max(0.1, alarm - time.monotonic()))
    process.stdin.close()
    return out, err


@contextlib.contextmanager
def serving(command: list[str], host: Host, log: Path, stdin: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a server in ``host`` until the block ends; it is stopped by SIGTERM, its output goes to ``log``."""
    with log.open("w") as sink:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=sink, stderr=subprocess.STDOUT, text=True, preexec_fn=host.enter
        )
        if stdin is not None:
            _tell(process, stdin)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def process_cpu_s(pids: list[int]) -> float:
    """Return user + system seconds of running processes, from /proc/PID/stat."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / ticks

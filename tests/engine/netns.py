"""Network namespaces for tests and benchmarks of the link: three hosts in a row as in the lab, or two.

Names are unique to the process and everything is removed at the end. Processes are started through nsenter(1) and
ended by their own pid.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENGINE = Path(os.environ.get("TRIFECTA_ENGINE", ROOT / "engine/target/release/trifecta-engine"))
CLIENT, SERVER = "10.88.0.1", "10.88.0.2"
CLIENT_6, SERVER_6 = "fd88::1", "fd88::2"
CLIENT_MAC, SERVER_MAC = "02:00:0a:58:00:01", "02:00:0a:58:00:02"
_numbers = itertools.count()
_SYSCTLS = {
    "net/ipv4/tcp_rmem": "4096 131072 134217728",
    "net/ipv4/tcp_wmem": "4096 16384 134217728",
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv6/conf/all/accept_ra": "0",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/default/autoconf": "0",
    "net/ipv6/conf/default/addr_gen_mode": "1",
}


def can_make_namespaces() -> bool:
    """Whether this process may make network namespaces and has the tools for it."""
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        return False
    name = f"tl{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


@dataclass
class RunningEngine:
    """A part of the engine that has said that it is ready."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    summary: dict[str, Any] | None = None
    errors: str = ""

    def stop(self, timeout: float = 20) -> dict[str, Any]:
        """End it by SIGTERM, and its summary."""
        if self.summary is None:
            self.process.send_signal(signal.SIGTERM)
            self._finish(timeout)
        assert self.summary is not None, self.errors
        return self.summary

    def wait(self, timeout: float = 60) -> dict[str, Any]:
        """Wait until it ends by itself, and its summary."""
        self._finish(timeout)
        assert self.summary is not None, self.errors
        return self.summary

    def _finish(self, timeout: float) -> None:
        # Not communicate(): it closes standard input first, which would end the engine.
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        watchdog = threading.Timer(timeout, self.process.kill)
        watchdog.start()
        for line in self.process.stdout:
            self.summary = json.loads(line).get("summary", self.summary)
        self.errors = self.process.stderr.read()
        self.process.communicate()
        watchdog.cancel()


class Hosts:
    """Namespaces ``client`` and ``server``, with ``middle`` between them unless ``direct``; a context manager."""

    def __init__(self, *, direct: bool = False, neighbours: bool = True, mtu: int = 1500) -> None:
        self.prefix = f"tl{os.getpid()}-{next(_numbers)}"
        self.direct, self.neighbours, self.mtu = direct, neighbours, mtu
        self._processes: list[subprocess.Popen[str]] = []
        self.server_address = SERVER
        self.server_device = "eth0"
        self.names = ["client", "server"] if direct else ["client", "middle", "server"]

    def namespace(self, host: str) -> str:
        """The name of a host's namespace."""
        return f"{self.prefix}-{host}"

    def __enter__(self) -> Hosts:
        try:
            self._raise()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
        self._remove()

    def _remove(self) -> None:
        for host in self.names:
            subprocess.run(["ip", "netns", "del", self.namespace(host)], capture_output=True, check=False)

    def _raise(self) -> None:
        client, server = self.namespace("client"), self.namespace("server")
        for host in self.names:
            _ip([f"netns add {self.namespace(host)}"])
            settings = "; ".join(f"echo '{value}' > /proc/sys/{name}" for name, value in _SYSCTLS.items())
            self.run(host, ["sh", "-c", settings])
        if self.direct:
            cables = [
                f"link add eth0 netns {client} mtu {self.mtu} address {CLIENT_MAC} type veth "
                f"peer name eth0 netns {server} mtu {self.mtu} address {SERVER_MAC}"
            ]
        else:
            middle = self.namespace("middle")
            cables = [
                f"link add eth0 netns {client} mtu {self.mtu} address {CLIENT_MAC} type veth "
                f"peer name ra netns {middle} mtu {self.mtu}",
                f"link add eth0 netns {server} mtu {self.mtu} address {SERVER_MAC} type veth "
                f"peer name rb netns {middle} mtu {self.mtu}",
            ]
            self.run("middle", ["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"])
        _ip(cables)
        if not self.direct:
            _ip(["link set ra up", "link set rb up"], self.namespace("middle"))
        ends = (
            ("client", CLIENT, CLIENT_6, SERVER, SERVER_6, SERVER_MAC),
            ("server", SERVER, SERVER_6, CLIENT, CLIENT_6, CLIENT_MAC),
        )
        for host, own, own_6, peer, peer_6, mac in ends:
            lines = [
                "link set lo up",
                "link set eth0 up",
                f"address add {own}/24 dev eth0",
                f"address add {own_6}/64 dev eth0 nodad",
            ]
            if self.neighbours:
                lines += [f"neigh add {at} lladdr {mac} dev eth0 nud permanent" for at in (peer, peer_6)]
            _ip(lines, self.namespace(host))
            # Routes pin the congestion control, which an unprivileged namespace cannot set globally.
            _ip([f"route change 10.88.0.0/24 dev eth0 src {own} congctl cubic"], self.namespace(host))

    def command(self, host: str, arguments: list[str]) -> list[str]:
        """The command line that runs a program in a host."""
        return ["nsenter", f"--net=/run/netns/{self.namespace(host)}", *arguments]

    def run(self, host: str, arguments: list[str], timeout: float = 60) -> str:
        """Run a program to its end, and its output."""
        done = subprocess.run(
            self.command(host, arguments), capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == 0, f"{arguments}: {done.stderr}{done.stdout}"
        return done.stdout

    def start(self, host: str, arguments: list[str]) -> subprocess.Popen[str]:
        """Start a program; it is killed at the end if it still runs."""
        process = subprocess.Popen(
            self.command(host, arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def start_engine(self, host: str, part: str, config: dict[str, Any]) -> RunningEngine:
        """Start a part of the engine with this configuration and wait until it is ready."""
        process = subprocess.Popen(
            self.command(host, [str(ENGINE), part, "-"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            _, errors = process.communicate(timeout=10)
            raise AssertionError(f"the engine said nothing: {errors}")
        return RunningEngine(process, json.loads(line)["ready"])

    @contextlib.contextmanager
    def link(
        self, a_to_b: list[dict[str, Any]] | None = None, b_to_a: list[dict[str, Any]] | None = None, **more: Any
    ) -> Iterator[RunningEngine]:
        """The engine's link between both hosts; it has ended when the context is left."""
        config = {"a_device": "ra", "b_device": "rb", "a_to_b": a_to_b or [], "b_to_a": b_to_a or [], **more}
        engine = self.start_engine("middle", "link", config)
        try:
            yield engine
        finally:
            if engine.process.poll() is None:
                engine.stop()

    def probe(self, **config: Any) -> dict[str, Any]:
        """Measure the path from client to server with the engine's probe, and its summary."""
        address = config.pop("address", self.server_address)
        reflector = self.start_engine("server", "probe", {"role": "reflect", "address": address, "port": 9009})
        try:
            measure = {"role": "measure", "address": address, "port": 9009, **config}
            return self.start_engine("client", "probe", measure).wait(timeout=120)
        finally:
            reflector.stop()

    def python(self, host: str, script: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start a Python script in a host."""
        return self.start(host, [sys.executable, str(script), *arguments])


def _ip(lines: list[str], namespace: str | None = None) -> None:
    at = ["-n", namespace] if namespace else []
    subprocess.run(["ip", *at, "-batch", "-"], input="\n".join(lines), text=True, check=True, capture_output=True)

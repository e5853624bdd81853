"""rattan (crates.io): a path emulator written as a chain of cells."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from types import TracebackType

from tests.engine.netns import ROOT, Hosts

BINARY = ROOT / ".cache/rattan/bin/rattan"


def found() -> bool:
    """Whether it is installed where this benchmark looks."""
    return BINARY.exists()


class _RattanHosts(Hosts):
    """rattan makes the client's namespace itself and serves from the one it is started in."""

    def __init__(self, delay_ms: int) -> None:
        super().__init__(direct=True)
        self.names = ["server"]
        self._delay_ms = delay_ms
        self._client_pid = 0

    def _raise(self) -> None:
        subprocess.run(["ip", "netns", "add", self.namespace("server")], check=True)
        super().run("server", ["ip", "link", "set", "lo", "up"])
        # Without any delay rattan has no cell and carries nothing.
        delay = f"{self._delay_ms}ms" if self._delay_ms else "1us"
        inside = "echo PID $$; env | grep RATTAN; echo END; exec sleep 600"
        options = ["--uplink-delay", delay, "--downlink-delay", delay]
        process = self.start("server", [str(BINARY), "link", *options, "--", "sh", "-c", inside])
        assert process.stdout is not None
        said = {}
        for line in process.stdout:
            if line.strip() == "END":
                break
            key, _, value = line.strip().replace(" ", "=", 1).partition("=")
            said[key] = value
        assert "PID" in said, "rattan ran nothing"
        self._client_pid = int(said["PID"])
        time.sleep(0.5)
        self._find_server()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the program inside first: then rattan removes the namespaces it has made."""
        if self._client_pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._client_pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._processes[0].communicate(timeout=10)
        super().__exit__(kind, error, trace)

    def _find_server(self) -> None:
        """The device and address of its end in the server's namespace."""
        for line in super().run("server", ["ip", "-4", "-o", "address"]).splitlines():
            _, device, _, address, *_ = line.split()
            if device != "lo":
                self.server_device, self.server_address = device, address.split("/")[0]
                return
        raise AssertionError("rattan gave the server no address")

    def command(self, host: str, arguments: list[str]) -> list[str]:
        """The client's namespace has no name: it is that of the process rattan started in it."""
        if host == "client":
            return ["nsenter", f"--target={self._client_pid}", "--net", *arguments]
        return super().command(host, arguments)


@contextlib.contextmanager
def path(delay_ms: int, _loss: bool) -> Iterator[tuple[Hosts, float]]:
    """A path with this delay each way; its losses act on wire packets anyway, none is asked for."""
    with _RattanHosts(delay_ms) as hosts:
        yield hosts, delay_ms * 1e3

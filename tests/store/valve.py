"""A valve before a server: after so many octets of a client it holds what comes, or breaks the connection."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from contextlib import suppress
from pathlib import Path

from tests.store.servers import WAIT_S

_MOST = 65_536
Address = tuple[str, int] | str


class Valve(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Passes on to ``beyond``, the port of the loopback or the socket of this path; itself is of the same kind."""

    def __init__(self, beyond: int | Path, own: Path | None = None) -> None:
        """``own``: the path of its socket; None: it has a port."""
        self.beyond: Address = str(beyond) if isinstance(beyond, Path) else ("127.0.0.1", beyond)
        self.address_family = socket.AF_INET if own is None else socket.AF_UNIX
        super().__init__(str(own) if own else ("127.0.0.1", 0), _Passed)  # type: ignore[arg-type]  # or a path
        self._lock = threading.Lock()
        self.set()

    def set(self, most: int = sys.maxsize, *, before: tuple[bytes, int] | None = None, breaks: bool = False) -> None:
        """From now on pass so many octets of clients, then hold what comes, or break every connection.

        ``before``: hold, too, what a client sends at once that has these octets, when it comes for the so manyth time.
        """
        self.most, self.before, self.breaks, self.passed, self.seen = most, before, breaks, 0, 0
        self.reached, self.released = threading.Event(), threading.Event()

    def let_through(self, client: socket.socket, server: socket.socket) -> None:
        """Until the client ends, or no more is to pass."""
        while octets := client.recv(_MOST):
            with self._lock:
                if self.before is not None and self.before[0] in octets:
                    self.seen += 1
                    if self.seen == self.before[1]:
                        self.most = self.passed
                part = octets[: self.most - self.passed]
                self.passed += len(part)
            server.sendall(part)
            if len(part) < len(octets):
                self.reached.set()
                if not self.breaks:
                    self.released.wait(WAIT_S)
                return


class _Passed(socketserver.BaseRequestHandler):
    server: Valve
    request: socket.socket

    def handle(self) -> None:
        with socket.socket(self.server.address_family) as beyond:
            beyond.connect(self.server.beyond)
            if self.server.address_family == socket.AF_INET:  # what comes in two pieces goes on in two, at once
                for one in (beyond, self.request):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_copy, args=(beyond, self.request))
            back.start()
            with suppress(OSError):  # either end may go at any time
                self.server.let_through(self.request, beyond)
            for one in (beyond, self.request):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while octets := source.recv(_MOST):
            sink.sendall(octets)

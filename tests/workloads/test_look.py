"""A look at the pace of a stranger: the round trip while content comes is measured where the manners leave room."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from trifecta.design.workloads.far import FarWorkload
from trifecta.lab.certificates import Certificates, make_certificates
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.rate_limiter import RateLimiter
from trifecta.workloads.stat import read_url

NAME, ADDRESS = "slow.example", "127.0.0.1"
PIECES = 20
LONGER_NS = 200_000_000


@contextmanager
def dripping(certificates: Certificates, over_s: float) -> Iterator[tuple[int, Callable[[], int]]]:
    """A server whose answers come in 20 pieces over such a time; its port, and how many connected so far."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.chain, certificates.key)
    context.set_alpn_protocols(["http/1.1"])
    accepted: list[socket.socket] = []

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(65_536)
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (PIECES * 1000))
            for _ in range(PIECES):
                tls.sendall(b"x" * 1000)
                time.sleep(over_s / PIECES)

    def serve() -> None:
        with suppress(OSError):
            while True:
                accepted.append(listener.accept()[0])
                threading.Thread(target=answer, args=(accepted[-1],), daemon=True).start()

    with socket.create_server((ADDRESS, 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1], lambda: len(accepted)


@pytest.mark.parametrize(("over_s", "connects"), [(1.8, 2), (0.0, 0)])
def test_connects_beside_content_keep_to_the_pace(tmp_path: Path, over_s: float, connects: int) -> None:
    certificates = make_certificates(tmp_path / "pki", [NAME], [ADDRESS])
    with dripping(certificates, over_s) as (port, connected):
        workload = FarWorkload(url=f"https://{NAME}:{port}/")
        assert workload.manners.pace_per_s == 2
        looker = Looker(LocalPlace(LocalHost()), workload, RateLimiter(workload.manners), tmp_path / "look.log")
        took_ns: list[int] = []
        request = Request(read_url(workload.url), ADDRESS, "h1", certificates.authority)
        seen = looker.once(request, took_ns)
    assert (seen["error"], seen["status"], seen["content_bytes"]) == (None, 200, PIECES * 1000)
    assert connected() == 1 + connects
    assert min(connects, 1) <= len(took_ns) <= connects, "beside content, not before it"
    assert all(0 < one < LONGER_NS for one in took_ns), took_ns

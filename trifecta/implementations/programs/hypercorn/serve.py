"""Serves a folder with Hypercorn: HTTP/1.1 and HTTP/2 over TCP, HTTP/3 (aioquic) over UDP, on one port.

Runs in Hypercorn's own environment, as ``python -I serve.py CONFIG.json``. GET and HEAD answer with the file; POST, PUT
and PATCH read the content and then answer with the file, or with nothing where there is none; DELETE answers 204.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, BinaryIO

_CHUNK_BYTES = 65536
_UDP_RECEIVE_BUFFER_BYTES = 4 << 20  # net.core.rmem_max caps it (socket(7))
_ALLOWED = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Site:
    """An ASGI application (https://asgi.readthedocs.io): the files of a folder, which no path leaves."""

    def __init__(self, folder: Path) -> None:
        """Serve ``folder``."""
        self._folder = folder.resolve()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await _accompany(receive, send)
            return
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])  # ASGI's way to say so: WebSocket handshakes are refused
        method = scope["method"]
        if method not in _ALLOWED:
            await _answer(send, 405, 0, (b"allow", ", ".join(_ALLOWED).encode()))
            return
        if not await _read_content(receive):
            return
        if method == "DELETE":
            await _answer(send, 204, None)
            return
        path = self._find(scope["path"])
        if path is None and method in ("GET", "HEAD"):
            await _answer(send, 404, 0)
        elif path is None:
            await _answer(send, 200, 0)
        else:
            with path.open("rb") as file:
                await _answer(send, 200, path.stat().st_size, file=file if method != "HEAD" else None)

    def _find(self, name: str) -> Path | None:
        """The file of a path of a URL."""
        try:
            path = (self._folder / name.lstrip("/")).resolve()
            return path if path.is_relative_to(self._folder) and path.is_file() else None
        except (OSError, ValueError):  # a name too long, or with a zero octet
            return None


async def _accompany(receive: Receive, send: Send) -> None:
    """Agree to the start and the end of the server (ASGI's lifespan protocol)."""
    while True:
        moment = (await receive())["type"]
        await send({"type": f"{moment}.complete"})
        if moment == "lifespan.shutdown":
            return


async def _read_content(receive: Receive) -> bool:
    """Read all content; whether it came whole."""
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return False
        if not event.get("more_body", False):
            return True


async def _answer(
    send: Send, status: int, size: int | None, *fields: tuple[bytes, bytes], file: BinaryIO | None = None
) -> None:
    """Send a response; ``size`` is its content-length, None for a status that has none (RFC 9110, section 8.6)."""
    headers = [*fields]
    if size is not None:
        headers += [(b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    left = size or 0
    while file is not None and left > _CHUNK_BYTES:
        chunk = file.read(_CHUNK_BYTES)
        if not chunk:
            raise EOFError(f"{file.name} became shorter while it was served")
        left -= len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": file.read(left) if file is not None else b""})


def _write_qlog(folder: str) -> Any:
    """Have aioquic write qlog: Hypercorn has no setting for it. aioquic writes a file when its connection is over."""
    from functools import partial

    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.logger import QuicFileLogger
    from hypercorn.protocol import quic

    logger = QuicFileLogger(folder)
    quic.QuicConfiguration = partial(QuicConfiguration, quic_logger=logger)
    return logger


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    from hypercorn.asyncio import serve
    from hypercorn.config import Config, Sockets

    wanted = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))

    class Pinned(Config):  # type: ignore[misc,unused-ignore]  # Any where Hypercorn is not installed
        def create_ssl_context(self) -> ssl.SSLContext | None:
            """One TLS version: Hypercorn has no setting for it."""
            context: ssl.SSLContext | None = super().create_ssl_context()
            if context is not None:
                context.minimum_version = context.maximum_version = _VERSIONS[wanted["tls_version"]]
            return context

        def create_sockets(self) -> Sockets:
            """The UDP receive buffer that the origin asks for: with the default, datagrams are lost in it."""
            sockets = super().create_sockets()
            for udp in sockets.quic_sockets:
                udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UDP_RECEIVE_BUFFER_BYTES)
            return sockets

        def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
            """Without alt-svc, which would lead a client to another protocol than the one that is measured."""
            return [field for field in super().response_headers(protocol) if field[0] != b"alt-svc"]

    logger = _write_qlog(wanted["qlog"]) if wanted["qlog"] else None
    config = Pinned()
    config.bind = config.quic_bind = [wanted["bind"]]
    config.certfile, config.keyfile = wanted["certificate"], wanted["key"]
    config.backlog = 4096  # by default 100: a burst of new connections would overflow it
    config.loglevel = "WARNING"
    config.h2_max_concurrent_streams = wanted["max_streams"]
    config.keep_alive_max_requests = sys.maxsize  # by default a connection is closed after 1000 requests,
    config.keep_alive_timeout = 86400.0  # and after 5 s in which the study did something else
    config.graceful_timeout = 0.2  # QUIC connections that nobody closes would hold up the end
    asyncio.run(serve(Site(Path(wanted["folder"])), config))
    if logger is not None:
        for trace in list(logger._traces):
            logger.end_trace(trace)  # of connections whose end did not come


if __name__ == "__main__":
    main()

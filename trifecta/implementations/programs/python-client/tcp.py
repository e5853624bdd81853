"""TCP and Python's ssl, below HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import asyncio
import socket
import ssl
from abc import abstractmethod
from collections.abc import Callable
from typing import cast

import failures
from exchange import ALPN, Connection, Handshake
from failures import Failed
from rows import Job, now_ns

_OPENSSL_NAMES = {  # ssl tells those of TLS 1.2 in OpenSSL's words
    "ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
}


def tls_context(job: Job) -> ssl.SSLContext:
    """Verifies the server's certificate and name; offers one protocol and one version of TLS.

    The group, and the cipher suite of TLS 1.3, are in the file that OPENSSL_CONF names: ssl has no words for them.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(job.ca_file)
    version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[job.tls_version]
    context.minimum_version = context.maximum_version = version
    if job.tls_version == "1.2":
        context.set_ciphers({name: openssl for openssl, name in _OPENSSL_NAMES.items()}[job.cipher])
    context.set_alpn_protocols([ALPN[job.protocol]])
    if job.keylog_file:
        context.keylog_filename = job.keylog_file
    return context


async def open_tcp(
    job: Job, context: ssl.SSLContext, make: Callable[[Job, Handshake], TcpConnection], handshake: Handshake
) -> Connection:
    """Connect, shake hands, and agree on the protocol. Failed when that fails; ``handshake`` tells how far it came."""
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in job.address else socket.AF_INET
    connection = make(job, handshake)
    try:
        plain = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(plain, (job.address, job.port))
            handshake.tcp_connected_ns = now_ns()
            await loop.create_connection(
                lambda: connection, sock=plain, ssl=context, server_hostname=job.server_name,
                ssl_handshake_timeout=job.connect_timeout_ns / 1e9,
            )  # fmt: skip
        except BaseException:
            plain.close()
            raise
    except OSError as error:
        raise Failed(failures.of_exception(error, connecting=True)) from error
    # A server without ALPN speaks HTTP/1.1 (RFC 7301, section 3.1); then the row says that nothing was negotiated.
    if handshake.protocol != job.protocol and (connection.negotiated is not None or job.protocol != "h1"):
        connection.close()
        raise Failed("tls:alpn")
    return connection


class TcpConnection(Connection, asyncio.Protocol):
    """What HTTP/1.1 and HTTP/2 have in common."""

    def __init__(self, job: Job, handshake: Handshake) -> None:
        """The transport comes with ``connection_made``."""
        super().__init__(job, handshake)
        self.negotiated: str | None = None
        self._transport: asyncio.Transport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TLS stands."""
        handshake = self.handshake
        handshake.secured_ns = now_ns()
        self._transport = cast(asyncio.Transport, transport)
        if not self.job.tcp_nodelay:  # asyncio has turned Nagle's algorithm off by now
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        tls = transport.get_extra_info("ssl_object")
        self.negotiated = tls.selected_alpn_protocol()
        handshake.protocol = {name: protocol for protocol, name in ALPN.items()}.get(self.negotiated)
        name = tls.cipher()[0]
        handshake.cipher = _OPENSSL_NAMES.get(name, name)
        handshake.tls_version = tls.version().removeprefix("TLSv")
        handshake.resumed = bool(tls.session_reused)
        if handshake.protocol == self.job.protocol:
            self.begin()

    @abstractmethod
    def begin(self) -> None:
        """The protocol is agreed on. The server's first octets may be the next thing to happen."""

    @abstractmethod
    def lose(self, error: str) -> None:
        """The connection is of no use any more: what is under way fails."""

    def write(self, octets: bytes | None) -> None:
        """Hand octets to TLS."""
        if octets and self._transport is not None and not self._transport.is_closing():
            self._transport.write(octets)

    def pause_writing(self) -> None:
        """The kernel takes no more for now."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """It takes more."""
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.lose("closed" if exc is None else failures.of_exception(exc, connecting=False))
        self._may_write.set()

    def close(self) -> None:
        """End it with close_notify."""
        self.lose("closed")
        if self._transport is not None:
            self._transport.close()

"""HTTP/3 by aioquic."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import failures
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import ErrorCode, H3Connection, H3Stream
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicFileLogger
from aioquic.tls import CipherSuite, Group
from exchange import ALPN, PIECE_OCTETS, USER_AGENT, Connection, Exchange, Handshake
from failures import Failed
from rows import Job, now_ns

# As our load asks for; with the default, datagrams are lost here and not on the path.
_UDP_RECEIVE_BUFFER_OCTETS = 4 * 1024 * 1024
_SO_RCVBUFFORCE = 33  # socket(7); as quic-go does it
_AHEAD_OCTETS = 4 * PIECE_OCTETS  # aioquic copies all that it was given and was not acknowledged


def quic_configuration(job: Job) -> QuicConfiguration:
    """aioquic's defaults; one protocol, one cipher suite, and the server's certificate and name are verified."""
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=[ALPN["h3"]], server_name=job.server_name,
        cipher_suites=[CipherSuite[job.cipher.removeprefix("TLS_")]],
    )  # fmt: skip
    configuration.load_verify_locations(cafile=job.ca_file)
    if job.keylog_file:
        configuration.secrets_log_file = Path(job.keylog_file).open("a", encoding="ascii", buffering=1)  # noqa: SIM115
    if job.qlog_dir:
        configuration.quic_logger = QuicFileLogger(job.qlog_dir)
    return configuration


def _udp_socket(family: socket.AddressFamily) -> socket.socket:
    plain = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    plain.bind(("", 0))
    try:
        plain.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _UDP_RECEIVE_BUFFER_OCTETS)
    except PermissionError:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UDP_RECEIVE_BUFFER_OCTETS)  # up to net.core.rmem_max
    return plain


async def open_quic(job: Job, configuration: QuicConfiguration, handshake: Handshake) -> Connection:
    """Shake hands from a socket of its own. Failed when that fails; ``handshake`` tells how far it came."""
    loop = asyncio.get_running_loop()
    try:
        plain = _udp_socket(socket.AF_INET6 if ":" in job.address else socket.AF_INET)
        transport, protocol = await loop.create_datagram_endpoint(
            lambda: Http3(job, configuration, handshake), sock=plain
        )
    except OSError as error:
        raise Failed(failures.of_exception(error, connecting=True)) from error
    try:
        # aioquic distinguishes paths by the address as recvfrom(2) gives it: of IPv6 with flow and scope.
        address = (job.address, job.port)
        protocol.connect((*address, 0, 0) if plain.family == socket.AF_INET6 else address)
        await protocol.ready
    except Failed:
        transport.close()
        raise
    except OSError as error:
        transport.close()
        raise Failed(failures.of_exception(error, connecting=True)) from error
    except BaseException:
        protocol.end()
        raise
    return protocol.connection


class _Quic(QuicConnection):
    """Offers one group; aioquic has no setting for it and would make a key share for each that it knows."""

    group = Group.X25519

    def _initialize(self, peer_cid: bytes) -> None:
        super()._initialize(peer_cid)
        self.tls._supported_groups = [self.group]


class _Http(H3Connection):
    """Takes the answer to HEAD, which has the length of content that is not sent (RFC 9110, 9.3.2), for whole."""

    to_head = False

    def _check_content_length(self, stream: H3Stream) -> None:
        if not self.to_head:
            super()._check_content_length(stream)


class Http3(QuicConnectionProtocol):
    """What aioquic calls with the events of a connection."""

    def __init__(self, job: Job, configuration: QuicConfiguration, handshake: Handshake) -> None:
        """Not connected yet."""
        quic = _Quic(configuration=configuration)
        quic.group = Group[job.key_exchange.upper()]
        super().__init__(quic)
        self.connection = Http3Connection(job, handshake, self)
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.http = _Http(self._quic)
        self.http.to_head = job.method == "HEAD"
        self.exchanges: dict[int, Exchange] = {}
        self._draining: asyncio.Task[None] | None = None

    def quic_event_received(self, event: events.QuicEvent) -> None:
        """QUIC's events; those of streams become HTTP/3's."""
        at_ns = now_ns()
        if isinstance(event, events.HandshakeCompleted):
            self._secured(event, at_ns)
        elif isinstance(event, events.ConnectionTerminated):
            secured = self.connection.handshake.secured_ns is not None
            self._lose(failures.of_quic(event.error_code, event.frame_type, event.reason_phrase, secured=secured))
        elif isinstance(event, events.StreamReset) and event.stream_id in self.exchanges:
            self.exchanges[event.stream_id].fail(failures.of_h3_stream(event.error_code))
        for http_event in self.http.handle_event(event):
            exchange = self.exchanges.get(getattr(http_event, "stream_id", -1))
            if exchange is None:
                continue
            if isinstance(http_event, HeadersReceived):
                status = dict(http_event.headers).get(b":status")
                # RFC 9114, section 4.1: neither trailers nor an interim response.
                if status is not None and not status.startswith(b"1"):
                    exchange.head(int(status), at_ns)
            elif isinstance(http_event, DataReceived):
                exchange.content(http_event.data)
            if getattr(http_event, "stream_ended", False):
                exchange.finish(now_ns())

    def _secured(self, event: events.HandshakeCompleted, at_ns: int) -> None:
        handshake = self.connection.handshake
        handshake.secured_ns = at_ns
        handshake.protocol = "h3" if event.alpn_protocol == ALPN["h3"] else None
        handshake.tls_version = "1.3"
        schedule = self._quic.tls.key_schedule
        handshake.cipher = f"TLS_{schedule.cipher_suite.name}" if schedule is not None else None
        handshake.resumed = event.session_resumed
        if not self.ready.done():
            self.ready.set_result(None)

    def _lose(self, error: str) -> None:
        self.connection.lost = self.connection.lost or error
        if not self.ready.done():
            self.ready.set_exception(Failed(error))
            self.ready.exception()
        for exchange in list(self.exchanges.values()):
            exchange.fail(error)

    def transmit(self) -> None:
        """Give aioquic more content before it sends."""
        for stream, exchange in self.exchanges.items():
            if exchange.body_left and not exchange.done:
                self._feed(stream, exchange)
        super().transmit()

    def _feed(self, stream: int, exchange: Exchange) -> None:
        # aioquic tells nobody how much it holds: the version that has this buffer is pinned.
        sender = self._quic._streams[stream].sender
        while exchange.body_left and len(sender._buffer) < _AHEAD_OCTETS:
            self.http.send_data(stream, exchange.next_piece(PIECE_OCTETS), end_stream=exchange.body_left == 0)
        if exchange.body_left == 0:
            exchange.row.request_sent_ns = now_ns()

    def end(self) -> None:
        """Close; the socket follows when the draining period is over (RFC 9000, section 10.2.2)."""
        self._lose("closed")
        self._quic.close(error_code=ErrorCode.H3_NO_ERROR)  # the protocol's own close() takes no code before 1.0
        self.transmit()
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        await self.wait_closed()
        if self._transport is not None:
            self._transport.close()


class Http3Connection(Connection):
    """HTTP/3."""

    def __init__(self, job: Job, handshake: Handshake, protocol: Http3) -> None:
        """The protocol has the connection."""
        super().__init__(job, handshake)
        self._protocol = protocol

    async def exchange(self, exchange: Exchange) -> None:
        """Send the request and wait for the end of the response. Failed when it failed."""
        job, protocol = self.job, self._protocol
        if self.lost is not None:
            raise Failed(self.lost)
        authority = f"{job.server_name}:{job.port}"
        headers = [
            (b":method", job.method.encode()), (b":scheme", b"https"), (b":authority", authority.encode()),
            (b":path", job.path.encode()), (b"user-agent", USER_AGENT.encode()),
        ]  # fmt: skip
        if job.request_body_bytes or job.method in ("POST", "PUT", "PATCH"):
            headers.append((b"content-length", str(job.request_body_bytes).encode()))
        stream = protocol._quic.get_next_available_stream_id()
        exchange.row.stream = stream
        try:
            exchange.sent = True
            protocol.http.send_headers(stream, headers, end_stream=job.request_body_bytes == 0)
            protocol.exchanges[stream] = exchange
            protocol.transmit()
            if job.request_body_bytes == 0:
                exchange.row.request_sent_ns = now_ns()
            await exchange.ended()
        except asyncio.CancelledError:
            self._cancel(stream)
            raise
        finally:
            protocol.exchanges.pop(stream, None)

    def _cancel(self, stream: int) -> None:
        # RFC 9114, section 4.1.1: both directions of the stream.
        if self.lost is None:
            self._protocol._quic.stop_stream(stream, ErrorCode.H3_REQUEST_CANCELLED)
            self._protocol._quic.reset_stream(stream, ErrorCode.H3_REQUEST_CANCELLED)
            self._protocol.transmit()

    def close(self) -> None:
        """End it."""
        self._protocol.end()

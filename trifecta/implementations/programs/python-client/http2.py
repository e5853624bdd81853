"""HTTP/2 by h2."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from exchange import PIECE_OCTETS, USER_AGENT, Exchange, Handshake
from failures import Failed
from hyperframe.frame import Frame, GoAwayFrame
from rows import Job, now_ns
from tcp import TcpConnection

WINDOW_OCTETS = 1024 * 1024  # aioquic's, for a stream and for a connection; h2 would leave both at 65,535
_INITIAL_WINDOW_OCTETS = 65_535  # RFC 9113, section 6.9.2


class _H2(h2.connection.H2Connection):
    """Goes on after a GOAWAY, as RFC 9113, section 6.8, has it; h2 takes no more frames of any stream."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[h2.events.Event]]:
        event = h2.events.ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        event.additional_data = frame.additional_data or None
        return [], [event]


class Http2(TcpConnection):
    """HTTP/2."""

    def __init__(self, job: Job, handshake: Handshake) -> None:
        """Ready to begin."""
        super().__init__(job, handshake)
        self._h2 = _H2(h2.config.H2Configuration(client_side=True, header_encoding=None))
        self._exchanges: dict[int, Exchange] = {}
        self._changed = asyncio.Event()
        """Flow control or the number of streams may allow more than before."""

    def begin(self) -> None:
        """Send the preface and our settings."""
        codes = h2.settings.SettingCodes
        self._h2.local_settings = h2.settings.Settings(
            client=True, initial_values={codes.ENABLE_PUSH: 0, codes.INITIAL_WINDOW_SIZE: WINDOW_OCTETS}
        )
        self._h2.initiate_connection()
        # No setting changes the connection's window (RFC 9113, section 6.9.2).
        self._h2.increment_flow_control_window(WINDOW_OCTETS - _INITIAL_WINDOW_OCTETS)
        self.write(self._h2.data_to_send())

    async def exchange(self, exchange: Exchange) -> None:
        """Send the request and wait for the end of the response. Failed when it failed."""
        job = self.job
        headers = [
            (":method", job.method), (":scheme", "https"), (":authority", f"{job.server_name}:{job.port}"),
            (":path", job.path), ("user-agent", USER_AGENT),
        ]  # fmt: skip
        if job.request_body_bytes or job.method in ("POST", "PUT", "PATCH"):
            headers.append(("content-length", str(job.request_body_bytes)))
        while self.lost is None and self._h2.open_outbound_streams >= self._h2.remote_settings.max_concurrent_streams:
            await self._change()
        if self.lost is not None:
            raise Failed(self.lost)
        stream = self._h2.get_next_available_stream_id()
        self._exchanges[stream] = exchange
        exchange.row.stream = stream
        try:
            exchange.sent = True
            self._h2.send_headers(stream, headers, end_stream=job.request_body_bytes == 0)
            self.write(self._h2.data_to_send())
            if job.request_body_bytes:
                await self._send_content(stream, exchange)
            if exchange.body_left == 0:
                exchange.row.request_sent_ns = now_ns()
            await exchange.ended()
        except asyncio.CancelledError:
            self._cancel(stream)
            raise
        finally:
            self._exchanges.pop(stream, None)
            self._changed.set()

    async def _send_content(self, stream: int, exchange: Exchange) -> None:
        while exchange.body_left and not exchange.done:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size, PIECE_OCTETS)
            if room <= 0:
                await self._change()
                continue
            piece = exchange.next_piece(room)
            self._h2.send_data(stream, piece, end_stream=exchange.body_left == 0)
            self.write(self._h2.data_to_send())
            await self._may_write.wait()

    def _cancel(self, stream: int) -> None:
        try:
            self._h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
            self.write(self._h2.data_to_send())
        except h2.exceptions.ProtocolError:
            pass  # the stream or the connection has ended already

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def data_received(self, data: bytes) -> None:
        """Octets from the server."""
        at_ns = now_ns()
        try:
            for event in self._h2.receive_data(data):
                self._handle(event, at_ns)
        except h2.exceptions.InvalidBodyLengthError:
            # h2 ends the connection for it, and does not say which stream it was.
            self._fail_all(lambda _: "length")
            self.close()
        except h2.exceptions.ProtocolError:
            self.lose("malformed:http1_over_http2" if data.startswith(b"HTTP/") else "malformed:http2")
            self.close()
        self.write(self._h2.data_to_send())
        self._changed.set()

    def _handle(self, event: h2.events.Event, at_ns: int) -> None:
        if isinstance(event, h2.events.ConnectionTerminated):
            self.lost = "goaway"
            for stream, exchange in list(self._exchanges.items()):
                if event.last_stream_id is not None and stream > event.last_stream_id:
                    exchange.fail("goaway")
            return
        stream_id = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        under_way = self._exchanges.get(stream_id) if stream_id else None
        if under_way is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            under_way.head(int(dict(event.headers)[b":status"]), at_ns)
        elif isinstance(event, h2.events.DataReceived):
            under_way.content(event.data)
        elif isinstance(event, h2.events.StreamEnded):
            under_way.finish(now_ns())
        elif isinstance(event, h2.events.StreamReset):
            # Refused before it was processed, as what is behind a GOAWAY (RFC 9113, section 8.7).
            refused = event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
            under_way.fail("goaway" if refused else "reset" if event.remote_reset else "malformed:http2")

    def _fail_all(self, why: Callable[[Exchange], str]) -> None:
        for exchange in list(self._exchanges.values()):
            exchange.fail(why(exchange))

    def lose(self, error: str) -> None:
        """What is under way fails; a response that lacks content is too short."""
        self.lost = self.lost or error
        cut = error == "closed"
        self._fail_all(lambda exchange: "length" if cut and exchange.row.status is not None else error)
        self._changed.set()

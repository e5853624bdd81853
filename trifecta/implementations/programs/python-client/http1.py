"""HTTP/1.1 by h11."""

from __future__ import annotations

import h11
from exchange import PIECE_OCTETS, USER_AGENT, Exchange, Handshake
from failures import Failed
from rows import Job, now_ns
from tcp import TcpConnection


class Http1(TcpConnection):
    """HTTP/1.1, one request after the other."""

    def __init__(self, job: Job, handshake: Handshake) -> None:
        """Ready for a request."""
        super().__init__(job, handshake)
        self._h11 = h11.Connection(h11.CLIENT)
        self._now: Exchange | None = None

    def begin(self) -> None:
        """HTTP/1.1 has nothing to say before the first request."""

    async def exchange(self, exchange: Exchange) -> None:
        """Send the request and wait for the end of the response. Failed when it failed; then the connection is lost."""
        self._now = exchange
        job = self.job
        headers = [("host", f"{job.server_name}:{job.port}"), ("user-agent", USER_AGENT)]
        if job.request_body_bytes or job.method in ("POST", "PUT", "PATCH"):
            headers.append(("content-length", str(job.request_body_bytes)))
        try:
            if self.lost is not None:
                raise Failed(self.lost)
            exchange.sent = True
            head = self._h11.send(h11.Request(method=job.method, target=job.path, headers=headers))
            if job.request_body_bytes == 0:
                self.write((head or b"") + (self._h11.send(h11.EndOfMessage()) or b""))
            else:
                self.write(head)
                await self._send_content(exchange)
            if exchange.body_left == 0:
                exchange.row.request_sent_ns = now_ns()
            await exchange.ended()
        except BaseException:
            self.close()  # what comes of the response cannot be told from the next one
            raise
        finally:
            self._now = None
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
        else:
            self.close()

    async def _send_content(self, exchange: Exchange) -> None:
        while exchange.body_left and not exchange.done:
            self.write(self._h11.send(h11.Data(data=exchange.next_piece(PIECE_OCTETS))))
            await self._may_write.wait()
        if not exchange.body_left:
            self.write(self._h11.send(h11.EndOfMessage()))

    def data_received(self, data: bytes) -> None:
        """Octets from the server."""
        if self._now is None:
            self.close()  # nothing was asked: RFC 9112, section 9.2
            return
        self._take(self._now, data)

    def eof_received(self) -> None:
        """The server sends no more; the transport closes itself."""
        if self._now is not None:
            self._take(self._now, b"")
        self.lose("closed")

    def _take(self, exchange: Exchange, data: bytes) -> None:
        at_ns = now_ns()
        try:
            self._h11.receive_data(data)
            while True:
                event = self._h11.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return
                if isinstance(event, h11.Response):
                    exchange.head(event.status_code, at_ns)
                elif isinstance(event, h11.Data):
                    exchange.content(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    exchange.finish(now_ns())
        except h11.RemoteProtocolError:
            cut = data == b""
            exchange.fail("malformed:http1" if not cut else "closed" if exchange.row.status is None else "length")

    def lose(self, error: str) -> None:
        """What is under way fails."""
        self.lost = self.lost or error
        if self._now is not None:
            self._now.fail(error)

"""One request and its response, whatever the protocol, and what all connections have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from failures import Failed
from rows import Job, Row, now_ns

_ALPHABET = 26
PIECE_OCTETS = 64 * 1024
_PATTERN = bytes(0x61 + index % _ALPHABET for index in range(2 * PIECE_OCTETS + _ALPHABET))
ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
USER_AGENT = "python-client"


def pattern(offset: int, octets: int) -> bytes:
    """``octets`` of the content pattern from ``offset`` on."""
    start = offset % _ALPHABET
    if octets <= 2 * PIECE_OCTETS:
        return _PATTERN[start : start + octets]
    period = _PATTERN[start : start + _ALPHABET]
    return (period * (octets // _ALPHABET + 1))[:octets]


class Exchange:
    """A request under way. It ends once: with ``finish`` or ``fail``."""

    def __init__(self, job: Job, row: Row) -> None:
        """``row`` is filled in as the exchange goes on."""
        self.job = job
        self.row = row
        self.sent = False
        """Something of it was given to the connection."""
        self.right = True
        self.body_left = job.request_body_bytes
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._ended.done()

    def next_piece(self, limit: int) -> bytes:
        """The next octets of the request's content, at most ``limit``; they count as sent."""
        piece = pattern(self.row.bytes_out, min(limit, self.body_left))
        self.row.bytes_out += len(piece)
        self.body_left -= len(piece)
        return piece

    def head(self, status: int, at_ns: int) -> None:
        """The response's header section came."""
        self.row.status = status
        self.row.first_byte_ns = at_ns

    def content(self, octets: bytes | bytearray) -> None:
        """Content of the response: counted and compared."""
        if self.job.verifies_content and self.right:
            self.right = octets == pattern(self.row.bytes_in, len(octets))
        self.row.bytes_in += len(octets)

    def finish(self, at_ns: int) -> None:
        """The response is whole; it is judged."""
        if self.done:
            return
        row, job = self.row, self.job
        row.done_ns = at_ns
        if job.expect_status is not None and row.status != job.expect_status:
            row.error = "status"
        elif job.expected_octets is not None and row.bytes_in != job.expected_octets:
            row.error = "length"
        elif not self.right:
            row.error = "content"
        self._ended.set_result(None)

    def fail(self, error: str) -> None:
        """It ended with an error class."""
        if not self.done:
            self._ended.set_exception(Failed(error))
            self._ended.exception()  # seen, also when nobody waits any more

    async def ended(self) -> None:
        """Wait for its end; Failed when it failed."""
        await self._ended


@dataclass(eq=False)
class Handshake:
    """What is known of a connection's establishment, also when it failed."""

    number: int
    connect_start_ns: int = field(default_factory=now_ns)
    tcp_connected_ns: int | None = None
    secured_ns: int | None = None
    protocol: str | None = None
    tls_version: str | None = None
    cipher: str | None = None
    resumed: bool = False
    bound: bool = False
    """A row carries the connect times."""

    def describe(self, row: Row) -> None:
        """Fill in what a row tells of its connection; the first on it carries the connect times."""
        row.connection = self.number
        row.protocol, row.tls_version, row.cipher, row.resumed = (
            self.protocol, self.tls_version, self.cipher, self.resumed,
        )  # fmt: skip
        if not self.bound:
            self.bound = True
            row.connect_start_ns, row.tcp_connected_ns, row.secured_ns = (
                self.connect_start_ns, self.tcp_connected_ns, self.secured_ns,
            )  # fmt: skip


class Connection(ABC):
    """An open connection."""

    def __init__(self, job: Job, handshake: Handshake) -> None:
        """``handshake`` is filled in as it goes on."""
        self.job = job
        self.handshake = handshake
        self.users = 0
        self.lost: str | None = None
        """Why no request can be sent on it any more: an error class."""

    @abstractmethod
    async def exchange(self, exchange: Exchange) -> None:
        """Send the request and wait for the end of the response. Failed when it failed."""

    @abstractmethod
    def close(self) -> None:
        """End it; what is under way on it fails."""

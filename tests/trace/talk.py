"""Conversations over TCP that nobody sent: segments, TLS by Python's OpenSSL, HTTP/2 frames written out by hand.

So a capture says what a test wants it to say, by a stack that is not ours, in milliseconds and without a network.
"""

from __future__ import annotations

import contextlib
import ssl
import struct
from dataclasses import dataclass, field
from pathlib import Path

from tests.trace.rewrite import Packet
from trifecta.lab.certificates import Certificates, make_certificates

UP, DOWN = 0, 1
MS = 1_000_000
NAME = "origin.lab"
_FIN, _SYN, _RST, _PSH, _ACK = 1, 2, 4, 8, 16
_START_NS = 1_700_000_000_000_000_000


@dataclass
class Talk:
    """One TCP connection. Every segment is 1 ms after the one before; sequence numbers wrap soon."""

    client: bytes = bytes([192, 0, 2, 1])
    server: bytes = bytes([198, 51, 100, 1])
    ports: tuple[int, int] = (40000, 443)
    time_ns: int = _START_NS
    segment: int = 1400
    packets: list[Packet] = field(default_factory=list)
    initial: tuple[int, int] = (0xFFFFFF00, 77)
    sent: list[int] = field(default_factory=lambda: [0, 0])

    def put(self, way: int, flags: int, data: bytes = b"", options: bytes = b"") -> None:
        """One segment."""
        ends = (self.client, self.server) if way == UP else (self.server, self.client)
        ports = self.ports if way == UP else self.ports[::-1]
        sequence = (self.initial[way] + self.sent[way]) & 0xFFFFFFFF
        acknowledged = (self.initial[1 - way] + self.sent[1 - way]) & 0xFFFFFFFF if flags & _ACK else 0
        header = struct.pack(
            ">HHIIBBHHH", *ports, sequence, acknowledged, (20 + len(options)) << 2, flags, 0xFFFF, 0, 0
        )
        inside = header + options + data
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(inside), 0, 0x4000, 64, 6, 0, *ends)
        octets = bytes(12) + struct.pack(">H", 0x0800) + ip + inside
        self.packets.append(Packet(self.time_ns, octets, len(octets)))
        self.time_ns += MS
        self.sent[way] += len(data) + bool(flags & _SYN) + bool(flags & _FIN)

    def open(self) -> Talk:
        """SYN, SYN-ACK, ACK; with a window scale of 2^7."""
        scale = bytes([3, 3, 7, 0])
        self.put(UP, _SYN, options=scale)
        self.put(DOWN, _SYN | _ACK, options=scale)
        self.put(UP, _ACK)
        return self

    def send(self, way: int, data: bytes) -> None:
        """Octets, in segments."""
        for at in range(0, len(data), self.segment):
            self.put(way, _ACK | _PSH, data[at : at + self.segment])

    def close(self, way: int = UP) -> None:
        """Both ends say that they are done."""
        self.put(way, _FIN | _ACK)
        self.put(1 - way, _FIN | _ACK)
        self.put(way, _ACK)


class Secure:
    """TLS on a conversation; its keys are in ``keys``."""

    def __init__(
        self,
        talk: Talk,
        certificates: Certificates,
        keys: Path,
        *,
        version: str = "1.3",
        protocol: str = "h2",
        cipher: str | None = None,
    ) -> None:
        """Shake hands at once."""
        which = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
        self.client_context = ssl.create_default_context(cafile=str(certificates.authority))
        self.client_context.keylog_filename = str(keys)
        self.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_context.load_cert_chain(certificates.chain, certificates.key)
        for context in (self.client_context, self.server_context):
            context.minimum_version = context.maximum_version = which
            context.set_alpn_protocols([protocol])
            if cipher is not None:
                context.set_ciphers(cipher)
        self.begin(talk)

    def begin(self, talk: Talk, session: ssl.SSLSession | None = None) -> None:
        """Shake hands, on another conversation or with another session."""
        self.talk = talk
        self._in = (ssl.MemoryBIO(), ssl.MemoryBIO())  # what the end of this way reads: the server's for UP
        self._out = (ssl.MemoryBIO(), ssl.MemoryBIO())
        self.ends = (
            self.client_context.wrap_bio(self._in[DOWN], self._out[UP], server_hostname=NAME, session=session),
            self.server_context.wrap_bio(self._in[UP], self._out[DOWN], server_side=True),
        )
        done = [False, False]
        while not all(done):
            for way in (UP, DOWN):
                with contextlib.suppress(ssl.SSLWantReadError):
                    self.ends[way].do_handshake()
                    done[way] = True
                self._flush(way)

    def _flush(self, way: int) -> None:
        data = self._out[way].read()
        self._in[way].write(data)
        self.talk.send(way, data)

    def send(self, way: int, data: bytes) -> None:
        """Octets of the application; the other end reads them."""
        self.ends[way].write(data)
        self._flush(way)
        left = len(data)
        while left:
            left -= len(self.ends[1 - way].read(left))

    def close(self) -> None:
        """A closing alert of the client, and the end."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.ends[UP].unwrap()
        self._flush(UP)
        self.talk.close()


def secured(folder: Path, **asked: object) -> tuple[Talk, Secure, Path]:
    """A conversation after its handshake, and where its keys are."""
    certificates = make_certificates(folder / "pki", [NAME], [])
    keys = folder / "keys"
    talk = Talk().open()
    return talk, Secure(talk, certificates, keys, **asked), keys  # type: ignore[arg-type]


# HTTP/2 (RFC 9113). Field sections (RFC 7541): literals without an index and without Huffman's code.

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PUSH_PROMISE, CONTINUATION = 0, 1, 4, 5, 9
END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 4, 8, 32


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream)[:9] + payload


def section(*fields: tuple[str, str]) -> bytes:
    """A field section."""
    out = b""
    for name, value in fields:
        assert len(name) < 127
        assert len(value) < 127
        out += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return out


def asked(path: str, *fields: tuple[str, str], authority: str | None = NAME, method: str = "GET") -> bytes:
    """The field section of a request."""
    host = () if authority is None else ((":authority", authority),)
    return section((":method", method), (":scheme", "https"), *host, (":path", path), *fields)

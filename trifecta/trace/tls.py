"""TLS over TCP: where records lie in the octets of a direction, and what of them is plaintext."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trifecta.trace.capture_file import Ints
from trifecta.trace.segments import Stream
from trifecta.trace.values import cipher_name, group_name, numbers, record_overhead, texts

FIELDS = (
    "tls.record.opaque_type",
    "tls.record.content_type",
    "tls.record.length",
    "tls.record.padding_length",
    "tls.handshake.type",
    "tls.handshake.version",
    "tls.handshake.ciphersuite",
    "tls.handshake.extension.type",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.extensions_alpn_str",
    "tls.handshake.extensions_server_name",
    "tls.handshake.extensions_key_share_group",
    "tls.handshake.server_named_curve",
)
# RFC 8446 B.1
NAMES = {20: "change_cipher_spec", 21: "alert", 22: "handshake", 23: "application_data", 24: "heartbeat"}
_APPLICATION, _HANDSHAKE = 23, 22
_LONGEST = (1 << 14) + 2048  # RFC 5246 6.2.3
_PRE_SHARED_KEY, _EARLY_DATA = 41, 42  # RFC 8446 4.2
_CLIENT_HELLO, _SERVER_HELLO, _ENCRYPTED_EXTENSIONS, _SERVER_HELLO_DONE = 1, 2, 8, 14  # RFC 8446 4, RFC 5246 7.4


@dataclass(slots=True)
class Session:
    """What the handshake of a connection says."""

    version: str | None = None
    cipher: int | None = None
    alpn: str | None = None
    resumed: bool | None = None
    zero_rtt: bool | None = None
    key_exchange: str | None = None
    offered: tuple[str, ...] = ()  # protocols, by the client
    server_name: str | None = None  # RFC 6066, 3

    @property
    def offers(self) -> str | None:
        """The protocols that the client offered, as a comma list."""
        return ",".join(self.offered) or None

    @property
    def cipher_text(self) -> str | None:
        """The cipher suite by name."""
        return None if self.cipher is None else cipher_name(self.cipher)

    def learn(self, direction: int, row: dict[str, str]) -> None:
        """Take what a packet's handshake messages tell."""
        types = numbers(row["tls.handshake.type"])
        if not types:
            return
        extensions = numbers(row["tls.handshake.extension.type"])
        if direction == 0:
            if _CLIENT_HELLO in types and self.zero_rtt is None:
                self.zero_rtt = _EARLY_DATA in extensions
                self.offered = tuple(texts(row["tls.handshake.extensions_alpn_str"]))
                self.server_name = next(iter(texts(row["tls.handshake.extensions_server_name"])), None)
            return
        if _SERVER_HELLO in types and self.cipher is None:
            versions = numbers(row["tls.handshake.extensions.supported_version"])
            legacy = numbers(row["tls.handshake.version"])
            # RFC 8446 4.2.1: TLS 1.3 is named in the extension; the old field says 1.2 then.
            chosen = versions[0] if versions else (legacy[0] if legacy else 0)
            self.version = {0x0304: "1.3", 0x0303: "1.2", 0x0302: "1.1", 0x0301: "1.0"}.get(chosen)
            ciphers = numbers(row["tls.handshake.ciphersuite"])
            self.cipher = ciphers[0] if ciphers else None
            groups = numbers(row["tls.handshake.extensions_key_share_group"])
            self.key_exchange = group_name(groups[0]) if groups else None
            # A server that resumes names the key it took (RFC 8446 4.2.11); in TLS 1.2 its first flight has no
            # ServerHelloDone then (RFC 5246 7.3).
            if self.version == "1.3":
                self.resumed = _PRE_SHARED_KEY in extensions
            elif self.version is not None:
                self.resumed = _SERVER_HELLO_DONE not in types
        if types and self.version == "1.2" and _SERVER_HELLO_DONE in types:
            self.resumed = False
        curves = numbers(row["tls.handshake.server_named_curve"])  # before TLS 1.3: RFC 8422 5.4
        if curves and self.key_exchange is None:
            self.key_exchange = group_name(curves[0])
        chosen_alpn = texts(row["tls.handshake.extensions_alpn_str"])
        if chosen_alpn and self.alpn is None:
            self.alpn = chosen_alpn[0]


@dataclass(slots=True)
class Records:
    """The records of a direction: TCP octets [start, end), the type outside, and the type inside (-1: not known)."""

    start: Ints
    end: Ints
    outer: Ints
    inner: Ints
    padding: Ints
    broken: bool  # what follows is no record
    seen: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Plaintext:
    """Where the application's octets of a direction lie in those of TCP; ``end`` counts plaintext."""

    record_start: Ints
    record_end: Ints
    end: Ints
    base: int | None = None  # TCP without TLS: its first octet

    def total(self) -> int:
        """Octets known."""
        return int(self.end[-1]) if len(self.end) else 0

    def tcp_range(self, offset: int, count: int) -> tuple[int, int] | None:
        """The TCP octets whose records hold this plaintext; None where they were not seen."""
        if self.base is not None:
            return (self.base + offset, self.base + offset + count) if offset + count <= self.total() else None
        last = int(np.searchsorted(self.end, offset + max(count, 1) - 1, side="right"))
        if last >= len(self.end):
            return None
        first = int(np.searchsorted(self.end, offset, side="right"))
        return int(self.record_start[first]), int(self.record_end[last])

    def before(self, tcp_end: int) -> int:
        """Octets of plaintext that can be read when all of TCP below ``tcp_end`` is there."""
        if self.base is not None:
            return min(max(tcp_end - self.base, 0), self.total())
        count = int(np.searchsorted(self.record_end, tcp_end, side="right"))
        return int(self.end[count - 1]) if count else 0


def walk_records(data: npt.NDArray[np.uint8], stream: Stream) -> Records:
    """Find all whole records of a direction by their headers in the clear (RFC 8446 5.1)."""
    starts, ends, outer = [], [], []
    broken = False
    at = int(stream.start[0]) if len(stream.start) else 0
    last = int(stream.end[-1]) if len(stream.end) else 0
    begins, until, offsets = stream.start.tolist(), stream.end.tolist(), stream.offset.tolist()
    octets, piece = data.data, 0
    while at + 5 <= last:
        while until[piece] <= at:
            piece += 1
        place = offsets[piece] + at - begins[piece]
        head = octets[place : place + 5] if at + 5 <= until[piece] else stream.octets(data, at, 5)
        length = head[3] << 8 | head[4]
        if head[0] not in NAMES or head[1] != 3 or length > _LONGEST:
            broken = True
            break
        if at + 5 + length > last:
            break
        starts.append(at)
        ends.append(at + 5 + length)
        outer.append(head[0])
        at += 5 + length
    count = len(starts)
    unknown = np.full(count, -1, dtype=np.int64)
    as_array = [np.asarray(one, dtype=np.int64) for one in (starts, ends, outer)]
    return Records(as_array[0], as_array[1], as_array[2], unknown, np.zeros(count, dtype=np.int64), broken)


def see_inside(records: Records, content: list[int], lengths: list[int], padding: list[int]) -> bool:
    """Take the types that tshark found inside. Only where it saw the very same records; else they stay unknown."""
    own = (records.end - records.start - 5).tolist()
    if len(content) != len(own) or lengths[: len(own)] != own:
        plain = records.outer != _APPLICATION
        records.inner[plain] = records.outer[plain]
        return False
    records.inner[:] = content
    if len(padding) == len(own):
        records.padding[:] = padding
    return True


def plaintext(records: Records, session: Session) -> Plaintext | None:
    """Where the application's octets are; None where it cannot be known."""
    overhead = record_overhead(session.version, session.cipher)
    mine = records.inner == _APPLICATION
    if overhead is None or bool((records.inner < 0).any()):
        return None
    size = (records.end - records.start)[mine] - 5 - overhead - records.padding[mine]
    if bool((size < 0).any()):
        return None
    return Plaintext(records.start[mine], records.end[mine], np.cumsum(size))

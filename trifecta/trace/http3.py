"""HTTP/3: frames in the octets of QUIC streams, and the field sections in them (RFC 9114, RFC 9204).

Of our own, because tshark 4.0 does not read field sections, and puts whole DATA frames together to find their ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trifecta.design.extras import LazyModule
from trifecta.trace.rows import Frames, Half, Message
from trifecta.trace.segments import Coverage

if TYPE_CHECKING:
    import pylsqpack
else:
    pylsqpack = LazyModule("pylsqpack")

# RFC 9114 7.2, RFC 9218 7.2
TYPES = {
    0x0: "DATA",
    0x1: "HEADERS",
    0x3: "CANCEL_PUSH",
    0x4: "SETTINGS",
    0x5: "PUSH_PROMISE",
    0x7: "GOAWAY",
    0xD: "MAX_PUSH_ID",
    0xF0700: "PRIORITY_UPDATE",
    0xF0701: "PRIORITY_UPDATE",
}
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_CONTROL, _PUSH, _ENCODER = 0, 1, 2  # types of streams: RFC 9114 6.2, RFC 9204 4.2
_TABLE_CAPACITY = 1  # SETTINGS_QPACK_MAX_TABLE_CAPACITY (RFC 9204 5)
_LONGEST_SECTION = 1 << 20
_MOST_WAITING = 1 << 24  # octets kept of one stream while a hole is open


def read_varint(data: bytes | bytearray, at: int) -> tuple[int, int] | None:
    """A variable-length integer and the place after it (RFC 9000 16); None where the octets end before."""
    if at >= len(data):
        return None
    size = 1 << (data[at] >> 6)
    if at + size > len(data):
        return None
    return int.from_bytes(data[at : at + size]) & ((1 << (8 * size - 2)) - 1), at + size


@dataclass(slots=True)
class StreamReader:
    """One direction of a stream: finds frames without keeping content, whatever the order of the octets."""

    control: bool  # a unidirectional stream begins with its type (RFC 9114 6.2)
    kind: int | None = None
    skip_to: int = 0  # nothing below this offset is wanted
    buffer: bytearray = field(default_factory=bytearray)  # wanted octets from `skip_to` on
    waiting: dict[int, str] = field(default_factory=dict)  # hexadecimal, by offset
    waiting_octets: int = 0  # of these
    seen: Coverage = field(default_factory=Coverage)
    final: int | None = None
    ends: list[tuple[int, int]] = field(default_factory=list)  # (end, place in the table) of frames not yet whole
    lost: str | None = None  # why nobody can read on

    @property
    def is_complete(self) -> bool:
        """All octets up to the end were seen, and the last frame ends there."""
        return self.final is not None and self.seen.end >= self.final and self.read_to_its_end

    @property
    def read_to_its_end(self) -> bool:
        """Whether nothing is left between the last frame and the end of the stream, and the frame does not go on."""
        return self.lost is None and self.skip_to == self.final and not self.buffer

    @property
    def hole(self) -> int:
        """Octets that are missing before others, or before the end."""
        last = max(self.seen.later[-1][1] if self.seen.later else self.seen.end, self.final or 0)
        return last - self.seen.end - sum(high - low for low, high in self.seen.later)

    def add(self, offset: int, length: int, data: str, *, fin: bool) -> bool:
        """Octets of the stream; whether there is something to read now."""
        self.seen.add(offset, offset + length)
        if fin:
            self.final = offset + length
        if self.lost or offset + length <= self.skip_to + len(self.buffer):
            return False
        if offset > self.skip_to + len(self.buffer):
            self._wait(offset, data)
            return False
        self._take(offset, data)
        while self.waiting:
            ready = [one for one in self.waiting if one <= self.skip_to + len(self.buffer)]
            if not ready:
                break
            for one in sorted(ready):
                self._take(one, self._release(one))
        return True

    def _wait(self, offset: int, data: str) -> None:
        before = self.waiting.get(offset, "")
        if len(before) < len(data):
            self.waiting[offset] = data
            self.waiting_octets += (len(data) - len(before)) // 2
        if self.waiting_octets > _MOST_WAITING:
            self.lost = f"more than {_MOST_WAITING >> 20} MiB of it wait for octets before them"
            self.waiting.clear()

    def _release(self, offset: int) -> str:
        data = self.waiting.pop(offset)
        self.waiting_octets -= len(data) // 2
        return data

    def _take(self, offset: int, data: str) -> None:
        have = self.skip_to + len(self.buffer)
        if offset + len(data) // 2 > have:
            try:
                self.buffer += bytes.fromhex(data[2 * (have - offset) :])
            except ValueError:
                self.lost = "tshark's words for its octets cannot be read"

    def advance(self, to: int) -> None:
        """Read on at this offset."""
        del self.buffer[: to - self.skip_to]
        self.skip_to = to
        for one in [one for one, data in self.waiting.items() if one + len(data) // 2 <= to]:
            self._release(one)
        # What lies across the new place is wanted from there on.
        for one in sorted(one for one in self.waiting if one <= to + len(self.buffer)):
            self._take(one, self._release(one))


class Connection:
    """The streams of one QUIC connection."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.readers: dict[tuple[int, int], StreamReader] = {}
        self.messages: dict[int, Message] = {}
        self.is_http3 = False
        self.notes: set[str] = set()
        self._decoders: list[Any] = [None, None]
        self._capacity = [0, 0]
        self._early: list[list[bytes]] = [[], []]
        self._blocked: dict[tuple[int, int], Message] = {}

    def add(self, row: int, direction: int, stream: int, piece: tuple[int, int, str, bool]) -> None:
        """The data of one STREAM frame: offset, length, hexadecimal, fin."""
        key = (direction, stream)
        reader = self.readers.get(key)
        if reader is None:
            reader = self.readers[key] = StreamReader(control=bool(stream & 2))
        offset, length, data, fin = piece
        readable = reader.add(offset, length, data, fin=fin)
        if readable:
            self._read(row, direction, stream, reader)
        if reader.ends:
            still = []
            for end, place in reader.ends:
                if reader.seen.end >= end:
                    self.frames.row[place] = row
                else:
                    still.append((end, place))
            reader.ends = still

    def _read(self, row: int, direction: int, stream: int, reader: StreamReader) -> None:
        if reader.control and reader.kind is None:
            varint = read_varint(reader.buffer, 0)
            if varint is None:
                return
            reader.kind = varint[0]
            reader.advance(varint[1])
            self.is_http3 |= reader.kind == _CONTROL
        if reader.control and reader.kind == _ENCODER:
            octets = bytes(reader.buffer)
            reader.advance(reader.skip_to + len(octets))
            self._encoder(direction, octets)
            return
        if reader.kind == _PUSH:
            self.notes.add("responses were pushed: they are not in the table of messages")
        if reader.control and reader.kind != _CONTROL:
            reader.advance(reader.skip_to + len(reader.buffer))
            return
        while True:
            kind = read_varint(reader.buffer, 0)
            length = read_varint(reader.buffer, kind[1]) if kind else None
            if kind is None or length is None:
                return
            wanted = kind[0] in (_HEADERS, _SETTINGS)
            if wanted and length[0] > _LONGEST_SECTION:
                reader.lost = f"a frame of {length[0]} octets of fields or settings is not read"
                return
            if wanted and len(reader.buffer) < length[1] + length[0]:
                return
            start = reader.skip_to
            end = start + length[1] + length[0]
            payload = bytes(reader.buffer[length[1] : length[1] + length[0]]) if wanted else b""
            place = self.frames.add(
                row,
                direction,
                layer="h3",
                type=TYPES.get(kind[0], f"0x{kind[0]:x}"),
                stream=stream,
                offset=start,
                length=min(length[0], 0xFFFFFFFF),
                wire_length=min(end - start, 0xFFFFFFFF),
            )
            if reader.seen.end < end:
                reader.ends.append((end, place))
            self._take(direction, stream, kind[0], length[0], payload)
            reader.advance(end)

    def _take(self, direction: int, stream: int, kind: int, length: int, payload: bytes) -> None:
        if kind == _SETTINGS:
            self._settings(direction, payload)
            return
        if stream & 3 or kind not in (_DATA, _HEADERS):
            return  # requests are on the client's bidirectional streams (RFC 9114 6.1)
        if stream not in self.messages:
            self.messages[stream] = Message(-1, "h3", stream)
        message = self.messages[stream]
        half = message.halves[direction]
        if kind == _DATA:
            half.body_bytes = (half.body_bytes or 0) + length
            return
        half.header_bytes = (half.header_bytes or 0) + length
        try:
            _, fields = self._decoder(direction).feed_header(stream, payload)
        except pylsqpack.StreamBlocked:  # RFC 9204 2.2.1
            self._blocked[direction, stream] = message
        except (pylsqpack.DecompressionFailed, ValueError):
            self.notes.add("some HTTP/3 field sections could not be read")
        else:
            name_fields(message, direction, fields)

    def _settings(self, direction: int, payload: bytes) -> None:
        at = 0
        while at < len(payload):
            name = read_varint(payload, at)
            value = read_varint(payload, name[1]) if name else None
            if name is None or value is None:
                return
            if name[0] == _TABLE_CAPACITY:
                # What one end allows bounds what the other may encode (RFC 9204 3.2.3).
                self._capacity[1 - direction] = min(value[0], 1 << 20)
            at = value[1]

    def _decoder(self, direction: int) -> Any:
        if self._decoders[direction] is None:
            self._decoders[direction] = pylsqpack.Decoder(self._capacity[direction], 1 << 10)
        return self._decoders[direction]

    def _encoder(self, direction: int, octets: bytes) -> None:
        if not octets:
            return
        try:
            ready = self._decoder(direction).feed_encoder(octets)
            for stream in ready:
                _, fields = self._decoder(direction).resume_header(stream)
                message = self._blocked.pop((direction, stream), None)
                if message is not None:
                    name_fields(message, direction, fields)
        except (pylsqpack.EncoderStreamError, pylsqpack.DecompressionFailed, ValueError):
            self.notes.add("QPACK's encoder stream could not be read: some requests have no names")

    def holes(self) -> tuple[int, int]:
        """Octets that are missing before others, and of how many streams (each direction is one)."""
        missing = [reader.hole for reader in self.readers.values() if reader.hole]
        return sum(missing), len(missing)

    def finish(self) -> list[Message]:
        """The requests, in the order of their streams."""
        for _, stream in self.readers:
            if not stream & 3 and stream not in self.messages:  # its fields are missing
                self.messages[stream] = Message(-1, "h3", stream)
        for stream, message in self.messages.items():
            for direction in (0, 1):
                reader = self.readers.get((direction, stream))
                if reader is not None:
                    half: Half = message.halves[direction]
                    half.ended = reader.is_complete
                    half.shared = reader.hole > 0
        for (direction, stream), reader in self.readers.items():
            which = f"stream {stream}, {('up', 'down')[direction]}"
            if reader.lost is not None:
                self.notes.add(f"{which}: {reader.lost}; its messages are not known from octet {reader.skip_to} on")
            elif (
                not stream & 3
                and reader.final is not None
                and reader.final <= reader.seen.end
                and not reader.is_complete
            ):
                self.notes.add(f"{which}: its last frame does not end where the stream ends: its message is not known")
        if self._blocked:
            count = len(self._blocked)
            self.notes.add(f"names of {count} field sections are not known: what QPACK needs for them was not seen")
        return [self.messages[one] for one in sorted(self.messages)]


def name_fields(message: Message, direction: int, fields: list[tuple[bytes, bytes]]) -> None:
    """Take what the pseudo-header fields say."""
    for name, value in fields:
        text = value.decode("utf-8", "replace")
        if direction == 0 and name == b":method":
            message.method = text
        elif direction == 0 and name == b":authority":
            message.authority = text
        elif direction == 0 and name == b":path":
            message.path = text
        elif direction == 1 and name == b":status" and text.isdigit() and 200 <= int(text[:4]) <= 999:
            message.status = int(text)  # the final one: interim responses are not (RFC 9114 4.1)

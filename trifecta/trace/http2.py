"""HTTP/2: frames in the order of the plaintext, and the requests that they make."""

from __future__ import annotations

from dataclasses import dataclass, field

from trifecta.trace.rows import Frames, Half, Message
from trifecta.trace.segments import Stream
from trifecta.trace.tls import Plaintext
from trifecta.trace.values import numbers, texts

FIELDS = (
    "http2.type",
    "http2.length",
    "http2.streamid",
    "http2.flags",
    "http2.magic",
    "http2.window_update.window_size_increment",
    "http2.settings.initial_window_size",
    "http2.headers.method",
    "http2.headers.authority",
    "http2.headers.path",
    "http2.headers.status",
)
# RFC 9113 6, RFC 7838 4, RFC 8336, RFC 9218 7.1
TYPES = {
    0: "DATA",
    1: "HEADERS",
    2: "PRIORITY",
    3: "RST_STREAM",
    4: "SETTINGS",
    5: "PUSH_PROMISE",
    6: "PING",
    7: "GOAWAY",
    8: "WINDOW_UPDATE",
    9: "CONTINUATION",
    10: "ALTSVC",
    12: "ORIGIN",
    16: "PRIORITY_UPDATE",
}
_PREFACE = 24  # RFC 9113 3.4
_DATA, _HEADERS, _SETTINGS, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 4, 8, 9
_END_STREAM, _ACK, _PADDED, _PRIORITY = 1, 1, 8, 32


@dataclass(slots=True)
class Seen:
    """A frame as tshark told of it, with the TCP octet at which the packet ends that completed it."""

    kind: int
    length: int
    stream: int
    flags: int
    packet_end: int
    value: int | None = None
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Direction:
    """The frames of one direction in their order."""

    frames: list[Seen] = field(default_factory=list)
    preface: bool = False
    odd: bool = False  # tshark's lists do not fit each other

    def learn(self, row: dict[str, str], packet_end: int) -> None:
        """Take the frames of one packet."""
        self.preface |= bool(row["http2.magic"])
        kinds = numbers(row["http2.type"])
        if not kinds:
            return
        lengths, streams, flags = (numbers(row[f"http2.{name}"]) for name in ("length", "streamid", "flags"))
        if not len(kinds) == len(lengths) == len(streams) == len(flags):
            self.odd = True
            return
        found = [Seen(*one, packet_end) for one in zip(kinds, lengths, streams, flags, strict=True)]
        increments = numbers(row["http2.window_update.window_size_increment"])
        windows = [one for one in found if one.kind == _WINDOW_UPDATE]
        for one, value in zip(windows, increments, strict=False):
            one.value = value
        settings = [one for one in found if one.kind == _SETTINGS and not one.flags & _ACK]
        initial = numbers(row["http2.settings.initial_window_size"])
        if len(settings) == len(initial):
            for one, value in zip(settings, initial, strict=True):
                one.value = value
        sections = [one for one in found if one.kind == _HEADERS]
        for name in ("method", "authority", "path", "status"):
            values = texts(row[f"http2.headers.{name}"])
            if len(values) == len(sections):
                for one, text in zip(sections, values, strict=True):
                    one.fields[name] = text
            elif len(values) == 1 and sections:
                sections[0].fields[name] = values[0]  # the others are trailers
        self.frames += found


def place_frames(
    connection: int, way: int, found: Direction, *, plain: Plaintext | None, stream: Stream, frames: Frames
) -> str | None:
    """Add the rows of a direction. What is wrong with their TCP ranges, in words; these are null then."""
    at = _PREFACE if found.preface else 0
    places: list[tuple[int, tuple[int, int] | None]] = []
    wrong = None if plain is not None and not found.odd else "where records begin and end is not known"
    for one in found.frames:
        span = plain.tcp_range(at, 9 + one.length) if plain is not None else None
        # tshark completes a frame in the packet that has its last octet: the two ways to count must agree.
        if wrong is None and (span is None or _end_of_packet(stream, span[1]) != one.packet_end):
            wrong = "HTTP/2 frames and TLS records do not fit together"
        places.append((at, span))
        at += 9 + one.length
    for one, (offset, span) in zip(found.frames, places, strict=True):
        good = span if wrong is None else None
        frames.add(
            _row_at(stream, one.packet_end),
            way,
            connection=connection,
            layer="h2",
            type=TYPES.get(one.kind, f"0x{one.kind:02x}"),
            stream=one.stream,
            offset=offset if wrong is None else None,
            length=one.length,
            wire_length=9 + one.length,
            fin=bool(one.flags & _END_STREAM) if one.kind in (_DATA, _HEADERS) else None,
            value=one.value,
            tcp_start=good[0] if good else None,
            tcp_end=good[1] if good else None,
        )
    return wrong


def _end_of_packet(stream: Stream, tcp_end: int) -> int:
    place = stream.piece(tcp_end - 1)
    return int(stream.end[place]) if place < len(stream.end) else -1


def _row_at(stream: Stream, packet_end: int) -> int:
    return int(stream.row[stream.piece(packet_end - 1)])


def gather(connection: int, ways: tuple[Direction, Direction], plains: tuple[Plaintext | None, ...]) -> list[Message]:
    """Requests with their responses, by stream (RFC 9113 8.1)."""
    messages: dict[int, Message] = {}
    for way, found in enumerate(ways):
        plain, at = plains[way], _PREFACE if found.preface else 0
        for one in found.frames:
            offset, at = at, at + 9 + one.length
            if one.stream == 0 or one.kind not in (_DATA, _HEADERS, _CONTINUATION):
                continue
            if one.stream not in messages:
                messages[one.stream] = Message(connection, "h2", one.stream)
            message = messages[one.stream]
            half = message.halves[way]
            _take(message, half, way, one)
            span = plain.tcp_range(offset, 9 + one.length) if plain is not None else None
            if span is not None:
                half.ranges.append(span)
    return [messages[one] for one in sorted(messages)]


def _take(message: Message, half: Half, way: int, one: Seen) -> None:
    if one.kind == _DATA:
        half.body_bytes = (half.body_bytes or 0) + one.length  # padding included where there is any
        if one.flags & _PADDED:
            half.body_bytes = None
    else:
        extra = 5 if one.kind == _HEADERS and one.flags & _PRIORITY else 0
        half.header_bytes = (half.header_bytes or 0) + one.length - extra
        if way == 0:
            message.method = message.method or one.fields.get("method")
            message.authority = message.authority or one.fields.get("authority")
            message.path = message.path or one.fields.get("path")
        elif one.fields.get("status", "").isdigit():
            status = int(one.fields["status"])
            if message.status is None or message.status < 200:  # RFC 9110 15.2: interim responses come first
                message.status = status if status <= 65535 else None
    if one.kind in (_DATA, _HEADERS) and one.flags & _END_STREAM:
        half.ended = True

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
    "http2.padding",
    "http2.push_promise.promised_stream_id",
    "http2.header.count",
    "http2.header.name",
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
_DATA, _HEADERS, _SETTINGS, _PUSH_PROMISE, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 4, 5, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32  # RFC 9113 6.1, 6.2, 6.5
_PSEUDO = ("method", "authority", "path", "status")


@dataclass(slots=True)
class DissectedFrame:
    """A frame as tshark told of it, with the TCP octet at which the packet ends that completed it."""

    kind: int
    length: int
    stream: int
    flags: int
    packet_end: int
    value: int | None = None
    fields: dict[str, str] = field(default_factory=dict)
    padding: int | None = 0  # with its length octet; None: not known
    promised: int | None = None  # PUSH_PROMISE: the stream


@dataclass(slots=True)
class Direction:
    """The frames of one direction in their order."""

    frames: list[DissectedFrame] = field(default_factory=list)
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
        frames = [DissectedFrame(*one, packet_end) for one in zip(kinds, lengths, streams, flags, strict=True)]
        increments = numbers(row["http2.window_update.window_size_increment"])
        windows = [one for one in frames if one.kind == _WINDOW_UPDATE]
        for one, value in zip(windows, increments, strict=False):
            one.value = value
        settings = [one for one in frames if one.kind == _SETTINGS and not one.flags & _ACK]
        initial = numbers(row["http2.settings.initial_window_size"])
        if len(settings) == len(initial):
            for one, value in zip(settings, initial, strict=True):
                one.value = value
        padded = [one for one in frames if one.flags & _PADDED and one.kind in (_DATA, _HEADERS, _PUSH_PROMISE)]
        paddings = numbers(row["http2.padding"])
        for place, one in enumerate(padded):
            one.padding = paddings[place] + 1 if len(paddings) == len(padded) else None
        promises = [one for one in frames if one.kind == _PUSH_PROMISE]
        promised = numbers(row["http2.push_promise.promised_stream_id"])
        for one, stream in zip(promises, promised, strict=False):
            one.promised = stream
        _give_fields(row, [one for one in frames if one.kind in (_HEADERS, _PUSH_PROMISE, _CONTINUATION)])
        self.frames += frames


def _give_fields(row: dict[str, str], pieces: list[DissectedFrame]) -> None:
    """Give pseudo-header fields to the frames of their sections (RFC 9113 4.3), in their order."""
    counts, names = numbers(row["http2.header.count"]), texts(row["http2.header.name"])
    # tshark 4.0 reads each piece of a section for itself, later versions the whole with its last piece.
    ends = pieces if len(counts) == len(pieces) else [one for one in pieces if one.flags & _END_HEADERS]
    known = len(counts) == len(ends) and sum(counts) == len(names)
    for name in _PSEUDO:
        values = texts(row[f"http2.headers.{name}"])
        having, at = ends, 0
        if known:
            having = []
            for one, count in zip(ends, counts, strict=True):
                if f":{name}" in names[at : at + count]:
                    having.append(one)
                at += count
        if len(values) == len(having):  # else nobody knows whose they are
            for one, text in zip(having, values, strict=True):
                one.fields[name] = text


def place_frames(
    connection: int, direction: int, own: Direction, *, plain: Plaintext | None, stream: Stream, frames: Frames
) -> str | None:
    """Add the rows of a direction. What is wrong with their TCP ranges, in words; these are null then."""
    at = _PREFACE if own.preface else 0
    places: list[tuple[int, tuple[int, int] | None]] = []
    wrong = None if plain is not None and not own.odd else "where records begin and end is not known"
    for one in own.frames:
        span = plain.tcp_range(at, 9 + one.length) if plain is not None else None
        # tshark completes a frame in the packet that has its last octet: the two ways to count must agree.
        if wrong is None and (span is None or _end_of_packet(stream, span[1]) != one.packet_end):
            what = "octets of TCP" if plain is not None and plain.base is not None else "TLS records"
            wrong = f"HTTP/2 frames and {what} do not fit together"
        places.append((at, span))
        at += 9 + one.length
    for one, (offset, span) in zip(own.frames, places, strict=True):
        good = span if wrong is None else None
        frames.add(
            _row_at(stream, one.packet_end),
            direction,
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


def gather(
    connection: int, directions: tuple[Direction, Direction], plains: tuple[Plaintext | None, ...]
) -> list[Message]:
    """Requests with their responses, by stream (RFC 9113 8.1)."""
    messages: dict[int, Message] = {}
    for direction, direction_frames in enumerate(directions):
        plain, at = plains[direction], _PREFACE if direction_frames.preface else 0
        section, promise = 0, False  # the stream that a CONTINUATION goes on with
        for one in direction_frames.frames:
            offset, at = at, at + 9 + one.length
            if one.kind == _PUSH_PROMISE:
                section, promise = one.promised or 0, True
            elif one.kind == _HEADERS:
                section, promise = one.stream, False
            stream = section if one.kind in (_PUSH_PROMISE, _CONTINUATION) else one.stream
            if stream == 0 or one.kind not in (_DATA, _HEADERS, _PUSH_PROMISE, _CONTINUATION):
                continue
            if stream not in messages:
                messages[stream] = Message(connection, "h2", stream)
            message = messages[stream]
            if promise and one.kind != _DATA:
                _name(message, 0, one)  # what a server answers without having been asked (RFC 9113 8.4)
                continue
            half = message.halves[direction]
            _take(message, half, direction, one)
            span = plain.tcp_range(offset, 9 + one.length) if plain is not None else None
            if span is not None:
                half.ranges.append(span)
    for message in messages.values():
        for half, direction_frames in zip(message.halves, directions, strict=True):
            half.header_bytes = None if half.vague or direction_frames.odd else half.header_bytes
            half.body_bytes = (
                None if direction_frames.odd else half.body_bytes
            )  # some of its frames may not be among these
    return [messages[one] for one in sorted(messages)]


def pushed(directions: tuple[Direction, Direction]) -> int:
    """How many responses were promised."""
    return sum(one.kind == _PUSH_PROMISE for one in directions[1].frames)


def _take(message: Message, half: Half, direction: int, frame: DissectedFrame) -> None:
    if frame.kind == _DATA:
        known = half.body_bytes is not None and frame.padding is not None
        half.body_bytes = (half.body_bytes or 0) + frame.length - (frame.padding or 0) if known else None
    else:
        # RFC 9113 6.2: padding, and the five octets of a priority, are no part of the field section.
        extra = 5 if frame.kind == _HEADERS and frame.flags & _PRIORITY else 0
        half.header_bytes = (half.header_bytes or 0) + frame.length - extra - (frame.padding or 0)
        half.vague |= frame.padding is None
        _name(message, direction, frame)
    if frame.kind in (_DATA, _HEADERS) and frame.flags & _END_STREAM:
        half.ended = True


def _name(message: Message, direction: int, frame: DissectedFrame) -> None:
    if direction == 0:
        message.method = message.method or frame.fields.get("method")
        message.authority = message.authority or frame.fields.get("authority")
        message.path = message.path or frame.fields.get("path")
    elif frame.fields.get("status", "").isdigit():
        status = int(frame.fields["status"])
        if message.status is None and 200 <= status <= 65535:  # RFC 9110 15.2: interim responses come first
            message.status = status

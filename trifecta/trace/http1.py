"""HTTP/1.1: messages tile the plaintext of a direction, one after the other (nothing is pipelined)."""

from __future__ import annotations

from dataclasses import dataclass, field

from trifecta.trace.rows import Frames, Half, Message
from trifecta.trace.segments import Stream
from trifecta.trace.tls import Plaintext
from trifecta.trace.values import numbers, texts

FIELDS = (
    "http.request.method",
    "http.request.uri",
    "http.host",
    "http.response.code",
    "http.content_length",
    "http.chunk_size",
    "http.request.version",
    "http.response.version",
    "http.response.phrase",
    "http.request.line",
    "http.response.line",
)


@dataclass(slots=True)
class Seen:
    """A message as tshark told of it, when it was whole."""

    packet_end: int
    method: str | None = None
    path: str | None = None
    authority: str | None = None
    status: int | None = None
    content_length: int | None = None
    chunks: list[int] | None = None
    head: int | None = None  # octets of start line and fields, where they can be counted


@dataclass(slots=True)
class Direction:
    """The messages of a direction in their order."""

    messages: list[Seen] = field(default_factory=list)
    odd: bool = False

    def learn(self, way: int, row: dict[str, str], packet_end: int) -> None:
        """Take the message that a packet completes."""
        kind = "request" if way == 0 else "response"
        starts = texts(row["http.request.method" if way == 0 else "http.response.code"])
        if not starts:
            return
        if len(starts) > 1:
            self.odd = True
            return
        length, chunks = numbers(row["http.content_length"]), numbers(row["http.chunk_size"])
        one = Seen(
            packet_end,
            content_length=length[0] if length else None,
            chunks=chunks or None,
            head=_head_octets(way, row, texts(row[f"http.{kind}.line"])),
        )
        if way == 0:
            one.method, one.path = starts[0], row["http.request.uri"] or None
            one.authority = row["http.host"] or None
        else:
            status = numbers(row["http.response.code"])
            one.status = status[0] if status and status[0] <= 65535 else None
        self.messages.append(one)


def _head_octets(way: int, row: dict[str, str], lines: list[str]) -> int | None:
    if way == 0:
        first = f"{row['http.request.method']} {row['http.request.uri']} {row['http.request.version']}"
    else:
        first = f"{row['http.response.version']} {row['http.response.code']} {row['http.response.phrase']}"
    text = "".join(lines).replace("\\r\\n", "\r\n")
    if "\\" in text + first or not (text + first).isascii():
        return None  # tshark has written octets in a way that has another length
    return len(first) + 2 + len(text) + 2


def place_messages(
    connection: int,
    ways: tuple[Direction, Direction],
    plains: tuple[Plaintext | None, ...],
    streams: tuple[Stream, Stream],
    frames: Frames,
) -> tuple[list[Message], str | None]:
    """The requests of a connection with their responses, their frames, and what is wrong."""
    wrong = "pipelined requests" if ways[0].odd or ways[1].odd else None
    count = max(len(ways[0].messages), 0)
    messages = [Message(connection, "h1", None) for _ in range(count)]
    for way, found in enumerate(ways):
        plain, at = plains[way], 0
        final = [one for one in found.messages if way == 0 or one.status is None or one.status >= 200]
        for place, one in enumerate(final[:count]):
            message = messages[place]
            half = message.halves[way]
            half.ended = True
            message.method = message.method or one.method
            message.path, message.authority = message.path or one.path, message.authority or one.authority
            message.status = message.status or one.status
            half.body_bytes = None
            end = plain.before(one.packet_end) if plain is not None and wrong is None else None
            if plain is None or end is None or end <= at:
                half.header_bytes = one.head
                continue
            _measure(half, one, end - at, bodyless=way == 1 and message.method == "HEAD")
            _add_frames(connection, way, half, at, end, plain=plain, stream=streams[way], frames=frames)
            at = end
    return messages, wrong


def _measure(half: Half, one: Seen, total: int, *, bodyless: bool) -> None:
    """Part the octets of a message into head and content (RFC 9112 6.3)."""
    if bodyless or one.status in (204, 304):
        half.header_bytes, half.body_bytes = total, 0
    elif one.chunks is not None:
        half.header_bytes, half.body_bytes = one.head, sum(one.chunks)
    elif one.content_length is not None and one.content_length <= total:
        half.header_bytes, half.body_bytes = total - one.content_length, one.content_length
    elif one.method is not None:
        half.header_bytes, half.body_bytes = total, 0
    elif one.head is not None and one.head <= total:
        half.header_bytes, half.body_bytes = one.head, total - one.head


def _add_frames(
    connection: int, way: int, half: Half, at: int, end: int, *, plain: Plaintext, stream: Stream, frames: Frames
) -> None:
    whole = plain.tcp_range(at, end - at)
    if whole is not None:
        half.ranges.append(whole)
    head = half.header_bytes if half.header_bytes is not None else end - at
    for kind, begin, until in (("HEADERS", at, at + head), ("DATA", at + head, end)):
        span = plain.tcp_range(begin, until - begin) if until > begin else None
        if span is None:
            continue
        frames.add(
            int(stream.row[stream.piece(span[1] - 1)]),
            way,
            connection=connection,
            layer="h1",
            type=kind,
            offset=begin,
            length=until - begin,
            wire_length=until - begin,
            tcp_start=span[0],
            tcp_end=span[1],
        )

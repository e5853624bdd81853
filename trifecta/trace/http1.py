"""HTTP/1.1: messages tile the plaintext of a direction, one after the other; responses in the order of requests.

RFC 9112 9.3.2 demands that order of pipelined requests too.
"""

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
class DissectedMessage:
    """A message as tshark told of it, when it was whole."""

    packet: int  # in the order in which tshark was fed
    packet_end: int
    method: str | None = None
    path: str | None = None
    authority: str | None = None
    status: int | None = None
    content_length: int | None = None
    chunks: list[int] | None = None
    head: int | None = None  # octets of start line and fields, and of interim responses before, where they are known
    alone: bool = True  # no other message ends in this packet


@dataclass(slots=True)
class Direction:
    """The messages of a direction in their order. Interim responses (RFC 9110 15.2) are part of the next final one."""

    messages: list[DissectedMessage] = field(default_factory=list)
    interim: int | None = 0

    def learn(self, direction: int, row: dict[str, str], packet: int, packet_end: int) -> None:
        """Take the messages that a packet completes."""
        starts = texts(row["http.request.method" if direction == 0 else "http.response.code"])
        if not starts:
            return
        codes = numbers(row["http.response.code"]) if direction == 1 else []
        final = [place for place in range(len(starts)) if place >= len(codes) or not _is_interim(codes[place])]
        head = _head_octets(direction, row, len(starts))
        head = None if head is None or self.interim is None else head + self.interim
        self.interim = 0 if final else head
        for place in final:
            one = DissectedMessage(packet, packet_end, alone=len(final) == 1, head=head if len(final) == 1 else None)
            if direction == 0:
                one.method = starts[place]
                one.path = _one(texts(row["http.request.uri"]), place, len(starts))
                one.authority = _one(texts(row["http.host"]), place, len(starts))
            elif place < len(codes) and codes[place] <= 65535:
                one.status = codes[place]
            lengths, chunks = numbers(row["http.content_length"]), numbers(row["http.chunk_size"])
            if one.alone:
                one.content_length, one.chunks = lengths[0] if len(lengths) == 1 else None, chunks or None
            elif not chunks and len(lengths) == len(starts):
                one.content_length = lengths[place]
            self.messages.append(one)


def _is_interim(status: int) -> bool:
    return 100 <= status < 200 and status != 101  # after 101 there is no HTTP any more (RFC 9110 15.2.2)


def _one(values: list[str], place: int, count: int) -> str | None:
    """The value of one of several messages; None where not each of them has one."""
    return values[place] or None if len(values) == count else None


def _head_octets(direction: int, row: dict[str, str], count: int) -> int | None:
    """Octets of all start lines and fields in a packet."""
    kind, names = (
        ("request", ("method", "uri", "version")) if direction == 0 else ("response", ("version", "code", "phrase"))
    )
    parts = [texts(row[f"http.{kind}.{name}"]) for name in names]
    if direction == 1 and not parts[2]:
        parts[2] = [""] * count
    if any(len(one) != count for one in parts):
        return None
    text = "".join(texts(row[f"http.{kind}.line"])).replace("\\r\\n", "\r\n")
    text += "".join(f"{' '.join(one)}\r\n\r\n" for one in zip(*parts, strict=True))
    # tshark may have written octets in a way that has another length.
    return len(text) if text.isascii() and "\\" not in text else None


def place_messages(
    connection: int,
    directions: tuple[Direction, Direction],
    plains: tuple[Plaintext | None, ...],
    streams: tuple[Stream, Stream],
    frames: Frames,
    *,
    from_start: bool,
) -> tuple[list[Message], list[str]]:
    """The requests of a connection with their responses, their frames, and what is wrong."""
    requests, responses, notes = directions[0].messages, directions[1].messages, []
    if not from_start:
        # Responses come in the order of the requests, some of which were sent before the capture began.
        first = requests[0].packet if requests else 0
        orphans = sum(one.packet < first for one in responses) if requests else len(responses)
        responses = responses[orphans:]
        if orphans:
            notes.append(f"{orphans} responses belong to requests before the capture began: they are left out")
    messages = [Message(connection, "h1", None) for _ in requests]
    # Where one message ends and the next one begins in the same packet, only what a message says of itself parts them.
    pipelined = not all(one.alone for one in requests + responses)
    pipelined |= any(after.packet < one.packet for after, one in zip(requests[1:], responses, strict=False))
    for direction, placed in enumerate((requests, responses)):
        plain, place = plains[direction], 0
        at = 0 if from_start else -1  # what the first octets belong to is not known
        while place < min(len(placed), len(messages)):
            stop = place + 1
            while stop < len(placed) and placed[stop].packet == placed[place].packet:
                stop += 1
            block = placed[place:stop]
            mine = messages[place : place + len(block)]
            place += len(block)
            for message, one in zip(mine, block, strict=False):
                _name(message, message.halves[direction], one)
            end = plain.before(block[0].packet_end) if plain is not None else 0
            if plain is None or end <= at:
                continue
            half, one = mine[0].halves[direction], block[0]
            bodyless = direction == 1 and (mine[0].method == "HEAD" or one.status in (204, 304))
            size = _size(one, bodyless=bodyless) if len(block) == 1 else 0
            begin = end - size if at < 0 and size and not pipelined else at
            if pipelined and begin >= 0 and size:
                end = min(begin + size, end)
            if begin < 0 or (pipelined and not size):
                _share([message.halves[direction] for message in mine], begin, end, plain, streams[direction])
                at = -1
                continue
            _measure(half, one, end - begin, bodyless=bodyless)
            _add_frames(connection, direction, half, begin, end, plain=plain, stream=streams[direction], frames=frames)
            at = end
    if pipelined:
        notes.append("requests were pipelined: where one message ends and the next begins is not always known")
    return messages, notes


def _size(message: DissectedMessage, *, bodyless: bool) -> int:
    """Octets of a message by what it says itself (RFC 9112 6.3); 0 where it does not."""
    if message.head is None or (message.chunks is not None and not bodyless):
        return 0
    if bodyless or message.status == 101:
        return message.head
    return message.head + (message.content_length or 0) if message.method or message.content_length is not None else 0


def _name(message: Message, half: Half, one: DissectedMessage) -> None:
    half.ended = True
    half.header_bytes, half.body_bytes = one.head, None
    message.method = message.method or one.method
    message.path, message.authority = message.path or one.path, message.authority or one.authority
    message.status = message.status or one.status
    if not one.alone and (message.method == "HEAD" or one.status in (204, 304)):
        half.body_bytes = 0
    elif not one.alone:
        half.body_bytes = one.content_length


def _share(mine: list[Half], begin: int, end: int, plain: Plaintext, stream: Stream) -> None:
    """Messages that end in the same packet, the first of them at ``begin`` (-1: where is not known)."""
    last, first = plain.tcp_range(end - 1, 1), plain.tcp_range(max(begin, 0), end - max(begin, 0))
    if last is None or first is None:
        return
    together = begin >= 0 and stream.piece(first[0]) == stream.piece(first[1] - 1)
    for place, half in enumerate(mine):
        half.begins = together or (place == 0 and begin >= 0)
        half.shared = not together
        half.ranges.append(first if half.begins else last)


def _measure(half: Half, message: DissectedMessage, total: int, *, bodyless: bool) -> None:
    """Part the octets of a message into head and content (RFC 9112 6.3)."""
    if bodyless or message.status == 101:
        half.header_bytes, half.body_bytes = total, 0
    elif message.chunks is not None:
        half.header_bytes, half.body_bytes = message.head, sum(message.chunks)
    elif message.content_length is not None and message.content_length <= total:
        half.header_bytes, half.body_bytes = total - message.content_length, message.content_length
    elif message.method is not None:
        half.header_bytes, half.body_bytes = total, 0
    elif message.head is not None and message.head <= total:
        half.header_bytes, half.body_bytes = message.head, total - message.head


def _add_frames(
    connection: int, direction: int, half: Half, at: int, end: int, *, plain: Plaintext, stream: Stream, frames: Frames
) -> None:
    octet_range = plain.tcp_range(at, end - at)
    if octet_range is not None:
        half.ranges.append(octet_range)
    head = half.header_bytes if half.header_bytes is not None else end - at
    for kind, begin, until in (("HEADERS", at, at + head), ("DATA", at + head, end)):
        span = plain.tcp_range(begin, until - begin) if until > begin else None
        if span is None:
            continue
        frames.add(
            int(stream.row[stream.piece(span[1] - 1)]),
            direction,
            connection=connection,
            layer="h1",
            type=kind,
            offset=begin,
            length=until - begin,
            wire_length=until - begin,
            tcp_start=span[0],
            tcp_end=span[1],
        )

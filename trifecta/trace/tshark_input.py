"""What tshark is given: TCP octets once and in order, under addresses of their own; datagrams as they were."""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np
import numpy.typing as npt

from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.cleartext import PREFACE, prior_knowledge
from trifecta.trace.headers import FIN, Headers
from trifecta.trace.segments import Stream

_CLIENT_PORT, _TLS_PORT, _CLEAR_PORT = 50000, 443, 80
_MOST_PAYLOAD = 65535 - 40  # of one IPv4 packet
_MOST_PIECE = 40_000  # with what is left of a record (18 kB) it still fits
_BATCH = 1 << 20  # octets that are written at once
_RECORD = [("seconds", "<u4"), ("nanoseconds", "<u4"), ("captured", "<u4"), ("length", "<u4")]
_IPV4 = [
    *(("version", "u1"), ("service", "u1"), ("total", ">u2"), ("identity", ">u2"), ("fragment", ">u2")),
    *(("ttl", "u1"), ("protocol", "u1"), ("checksum", ">u2"), ("source", ">u4"), ("destination", ">u4")),
]
_TCP = [
    *(("source_port", ">u2"), ("destination_port", ">u2"), ("sequence", ">u4"), ("acknowledged", ">u4")),
    *(("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("tcp_checksum", ">u2"), ("urgent", ">u2")),
]


def _records(kind: list[tuple[str, str]], size: Ints, length: Ints) -> npt.NDArray[np.void]:
    """Headers of packets of a capture file. The time only keeps the order: the real ones are in the index."""
    heads = np.zeros(len(size), dtype=np.dtype(kind))
    number = np.arange(len(size))
    heads["seconds"], heads["nanoseconds"] = number // 1_000_000, number % 1_000_000 * 1000
    heads["captured"], heads["length"] = size, length
    return heads


class TcpFeed:
    """The octets of many connections. Each has addresses of its own, so that ports used again mix nothing up.

    A packet is what a segment of the capture completed: whole TLS records where ``ends`` tells where records end, so
    that tshark need not put them together; else the segment. `place`: the piece of the stream with its last octet.
    """

    def __init__(
        self,
        capture: CaptureFile,
        streams: dict[tuple[int, int], Stream],
        ends: dict[tuple[int, int], Ints],
        finished: Set[tuple[int, int]] = frozenset(),
    ) -> None:
        """``finished``: directions whose last octet is known, for it says where some messages of HTTP/1.1 end."""
        self.capture, self.streams, self.finished = capture, streams, finished
        self.clear = {one: self._is_clear(one) for one in {connection for connection, _ in streams}}
        columns: list[list[Ints]] = [[] for _ in range(6)]
        pieces: list[list[Ints]] = [[], [], []]
        before = 0
        for (connection, direction), stream in streams.items():
            if not len(stream.row):
                continue
            place, start, end = _cut(stream, ends.get((connection, direction)))
            key = np.full(len(place), connection * 2 + direction, dtype=np.int64)
            # A segment can be read when everything before it has been seen.
            when = np.maximum.accumulate(stream.row)[place]
            if direction == 0 and self.clear[connection] and prior_knowledge(capture.data, stream):
                # A server may speak first; what it says is HTTP/2 to tshark only behind the client's preface.
                when = np.where(start < stream.start[0] + len(PREFACE), -1, when)
            first = np.searchsorted(stream.end, start, side="right") + before
            for column, values in zip(columns, (key, place, when, start, end, first), strict=True):
                column.append(values)
            for column, values in zip(pieces, (stream.start, stream.end, stream.offset), strict=True):
                column.append(values)
            before += len(stream.row)
        empty = np.zeros(0, dtype=np.int64)
        key, place, when, start, end, first = (np.concatenate([empty, *column]) for column in columns)
        order = np.lexsort((place, when))
        self.key: Ints = key[order]
        self.place: Ints = place[order]
        self._start, self._end, self._first = start[order], end[order], first[order]
        self._pieces = [np.concatenate([empty, *column]) for column in pieces]

    def _is_clear(self, connection: int) -> bool:
        """Whether it does not begin with a TLS record (RFC 8446 5.1)."""
        stream = self.streams.get((connection, 0)) or self.streams[connection, 1]
        first = stream.octets(self.capture.data, int(stream.start[0]), 2) if len(stream.start) else b""
        return not (len(first) == 2 and 20 <= first[0] <= 23 and first[1] == 3)

    def packets(self) -> Iterator[bytes]:
        """The octets for tshark."""
        heads = self._heads()
        width, heads_view = heads.dtype.itemsize, heads.view(np.uint8).data
        data = self.capture.data.data
        starts, ends, offsets = (column.tolist() for column in self._pieces)
        batch: list[memoryview] = []
        size = 0
        rows = zip(self._start.tolist(), heads["captured"].tolist(), self._first.tolist(), strict=True)
        for number, (start, captured, first) in enumerate(rows):
            at, left, piece = start, captured - 40, first
            batch.append(heads_view[width * number : width * number + width])
            while left > 0:
                take = min(ends[piece] - at, left)
                begin = offsets[piece] + at - starts[piece]
                batch.append(data[begin : begin + take])
                at, left, piece = at + take, left - take, piece + 1
            size += captured
            if size >= _BATCH:
                yield b"".join(batch)
                batch, size = [], 0
        yield b"".join(batch)

    def _heads(self) -> npt.NDArray[np.void]:
        size = np.minimum(self._end - self._start, _MOST_PAYLOAD) + 40
        heads = _records([*_RECORD, *_IPV4, *_TCP], size, size)
        connection, down = self.key >> 1, self.key & 1 == 1
        client, server = 0x0A000000 | connection & 0xFFFFFF, 0x64400000 | connection >> 24 & 0xFF
        clear = np.asarray([self.clear[one] for one in connection.tolist()], dtype=np.bool_)
        port = np.where(clear, _CLEAR_PORT, _TLS_PORT)
        for name, value in (("version", 0x45), ("total", size), ("fragment", 0x4000), ("ttl", 64), ("protocol", 6)):
            heads[name] = value
        heads["source"], heads["destination"] = np.where(down, server, client), np.where(down, client, server)
        heads["source_port"] = np.where(down, port, _CLIENT_PORT)
        heads["destination_port"] = np.where(down, _CLIENT_PORT, port)
        heads["sequence"] = self._start & 0xFFFFFFFF
        for name, value in (("acknowledged", 1), ("offset", 0x50), ("flags", 0x18), ("window", 0xFFFF)):
            heads[name] = value
        keys, last = np.unique(self.key[::-1], return_index=True)
        ended = np.isin(keys, [number * 2 + direction for number, direction in self.finished])
        heads["flags"][len(self.key) - 1 - last[ended]] |= FIN
        return heads


def _cut(stream: Stream, ends: Ints | None) -> tuple[Ints, Ints, Ints]:
    """Packets of a direction: the piece that completes each, its first octet, and the one after its last.

    Behind the last whole record, and where segments are as large as a packet can be, they stay as they are.
    """
    until = stream.end
    if ends is not None and len(ends) and int((stream.end - stream.start).max()) <= _MOST_PIECE:
        record_ends = np.concatenate([stream.start[:1], ends])[np.searchsorted(ends, stream.end, side="right")]
        until = np.where(stream.end <= ends[-1], record_ends, stream.end)
    start = np.concatenate([stream.start[:1], until[:-1]])
    some = np.flatnonzero(until > start)
    return some, start[some], until[some]


class UdpFeed:
    """Datagrams with their IP headers, in the order of the file."""

    def __init__(self, capture: CaptureFile, headers: Headers, rows: Ints) -> None:
        self.capture, self.headers, self.rows = capture, headers, rows

    def packets(self) -> Iterator[bytes]:
        """The octets for tshark."""
        headers, index = self.headers, self.headers.index[self.rows]
        at, length = headers.ip_offset[self.rows], headers.ip_bytes[self.rows]
        until = np.minimum(at + length, self.capture.offset[index] + self.capture.captured[index])
        heads = _records(_RECORD, until - at, length).view(np.uint8).data
        data = self.capture.data.data
        batch: list[memoryview] = []
        size = 0
        for number, (begin, end) in enumerate(zip(at.tolist(), until.tolist(), strict=True)):
            batch += (heads[16 * number : 16 * number + 16], data[begin:end])
            size += end - begin
            if size >= _BATCH:
                yield b"".join(batch)
                batch, size = [], 0
        yield b"".join(batch)

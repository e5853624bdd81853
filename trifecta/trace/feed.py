"""What tshark is given: TCP octets once and in order, under addresses of their own; datagrams as they were."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Set

import numpy as np

from trifecta.trace import tshark
from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.headers import Headers
from trifecta.trace.segments import Stream

_CLIENT_PORT, _TLS_PORT, _CLEAR_PORT = 50000, 443, 80
_MOST_PAYLOAD = 65535 - 40  # of one IPv4 packet


class TcpFeed:
    """The segments of many connections. Each has addresses of its own, so that ports used again mix nothing up."""

    def __init__(
        self, capture: CaptureFile, streams: dict[tuple[int, int], Stream], finished: Set[tuple[int, int]] = frozenset()
    ) -> None:
        """``finished``: directions whose last octet is known, for it says where some messages of HTTP/1.1 end."""
        self.capture, self.streams, self.finished = capture, streams, finished
        keys, rows, places = [], [], []
        for (connection, direction), stream in streams.items():
            if not len(stream.row):
                continue
            # A segment can be read when everything before it has been seen.
            rows.append(np.maximum.accumulate(stream.row))
            keys.append(np.full(len(stream.row), connection * 2 + direction, dtype=np.int64))
            places.append(np.arange(len(stream.row)))
        empty = np.zeros(0, dtype=np.int64)
        when = np.concatenate([empty, *rows])
        order = np.lexsort((np.concatenate([empty, *places]), when))
        self.key: Ints = np.concatenate([empty, *keys])[order]
        self.place: Ints = np.concatenate([empty, *places])[order]
        self.clear = {one: self._is_clear(one) for one in {connection for connection, _ in streams}}

    def _is_clear(self, connection: int) -> bool:
        """Whether it does not begin with a TLS record (RFC 8446 5.1)."""
        stream = self.streams.get((connection, 0)) or self.streams[connection, 1]
        first = stream.octets(self.capture.data, int(stream.start[0]), 2) if len(stream.start) else b""
        return not (len(first) == 2 and 20 <= first[0] <= 23 and first[1] == 3)

    def packets(self) -> Iterator[bytes | memoryview]:
        """The octets for tshark."""
        data = memoryview(self.capture.data.data).cast("B")
        pairs = zip(self.key.tolist(), self.place.tolist(), strict=True)
        for number, (key, place) in enumerate(pairs):
            connection, direction = key >> 1, key & 1
            stream = self.streams[connection, direction]
            start, at = int(stream.start[place]), int(stream.offset[place])
            size = min(int(stream.end[place]) - start, _MOST_PAYLOAD)
            client = 0x0A000000 | connection & 0xFFFFFF
            server = 0x64400000 | connection >> 24 & 0xFF
            port = _CLEAR_PORT if self.clear[connection] else _TLS_PORT
            last = place + 1 == len(stream.end) and (connection, direction) in self.finished
            ends = (client, server, _CLIENT_PORT, port) if direction == 0 else (server, client, port, _CLIENT_PORT)
            header = struct.pack(
                ">BBHHHBBHIIHHIIBBHHH",
                *(0x45, 0, 40 + size, 0, 0x4000, 64, 6, 0, ends[0], ends[1], ends[2], ends[3]),
                *(start & 0xFFFFFFFF, 1, 0x50, 0x18 | last, 0xFFFF, 0, 0),
            )
            yield tshark.record(header, number, 0)[:8] + struct.pack("<II", 40 + size, 40 + size) + header
            yield data[at : at + size]


class UdpFeed:
    """Datagrams with their IP headers, in the order of the file."""

    def __init__(self, capture: CaptureFile, headers: Headers, rows: Ints) -> None:
        self.capture, self.headers, self.rows = capture, headers, rows

    def packets(self) -> Iterator[bytes | memoryview]:
        """The octets for tshark."""
        data, headers = memoryview(self.capture.data.data).cast("B"), self.headers
        ends = self.capture.offset[headers.index] + self.capture.captured[headers.index]
        for number, row in enumerate(self.rows.tolist()):
            at, length = int(headers.ip_offset[row]), int(headers.ip_bytes[row])
            packet = data[at : min(at + length, int(ends[row]))]
            yield tshark.record(packet, number, length)
            yield packet

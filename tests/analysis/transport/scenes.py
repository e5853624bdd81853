"""Tables of a dissection written by hand: packets that were sent, arrived or were lost, and the frames in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from trifecta.store.trace_schema import SCHEMAS

MS = 1_000_000
RECORD = 22  # header, content type and tag of TLS 1.3


@dataclass
class Scene:
    """One capture of both sides of a link, or of one."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    both_sides: bool = True
    numbers: int = 0
    ordinals: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})

    def connect(self, connection: int, protocol: str, **more: Any) -> None:
        """A connection."""
        transport = "udp" if protocol == "h3" else "tcp"
        row = {"connection": connection, "protocol": protocol, "transport": transport, "tls_version": "1.3"}
        self.rows["connections"].append(row | {"cipher": "TLS_AES_128_GCM_SHA256"} | more)

    def send(self, direction: str, sent_ms: float, arrived_ms: float | None, **more: Any) -> int:
        """A packet; its number at the sending side."""
        ordinal = self.ordinals[direction]
        self.ordinals[direction] += 1
        near, far = ("a", "b") if direction == "up" else ("b", "a")
        row = {"connection": 0, "direction": direction, "transport": "tcp", "flags": "ACK", "payload_bytes": 0}
        row |= {"packet_id": (direction == "down") << 63 | ordinal}
        row |= {"fate": "lost" if arrived_ms is None else "delivered"} | more
        self.numbers += 1
        number = self.numbers
        if not self.both_sides:
            self.rows["packets"].append(row | {"number": number, "time_ns": int(sent_ms * MS), "packet_id": None})
            return number
        self.rows["packets"].append(row | {"number": number, "side": near, "time_ns": int(sent_ms * MS)})
        if arrived_ms is not None:
            self.numbers += 1
            arrived = {"number": self.numbers, "side": far, "time_ns": int(arrived_ms * MS)}
            self.rows["packets"].append(row | arrived)
        return number

    def tcp(self, direction: str, sent_ms: float, arrived_ms: float | None, start: int, end: int, **more: Any) -> int:
        """A segment with the octets [start, end)."""
        return self.send(direction, sent_ms, arrived_ms, sequence=start, payload_bytes=end - start, **more)

    def records(self, direction: str, start: int, *frames: tuple[int, str, int], connection: int = 0) -> int:
        """A TLS record at this octet with HTTP/2 frames (stream, type, size on the wire); where it ends."""
        mine = [one for one in self.rows["frames"] if one["direction"] == direction and one["layer"] == "h2"]
        offset = sum(one["wire_length"] for one in mine if one["connection"] == connection)
        end = start + sum(size for _, _, size in frames) + RECORD
        common = {"connection": connection, "direction": direction, "tcp_start": start, "tcp_end": end}
        self.rows["frames"].append(
            common | {"layer": "tls", "type": "application_data", "offset": start, "wire_length": end - start}
        )
        for stream, kind, size in frames:
            row = {"layer": "h2", "type": kind, "stream": stream, "offset": offset, "wire_length": size}
            self.rows["frames"].append(common | row | {"length": size - 9})
            offset += size
        return end

    def quic(
        self, direction: str, sent_ms: float, arrived_ms: float | None, *streams: tuple[int, int, int], **more: Any
    ) -> int:
        """A datagram with one 1-RTT packet that holds pieces (stream, offset, length) of streams."""
        size = 40 + sum(length for _, _, length in streams)
        packet_number = str(self.ordinals[direction])
        row = {"transport": "udp", "flags": None, "payload_bytes": size, "packet_number": packet_number}
        row |= {"packet_type": "1-RTT"}
        number = self.send(direction, sent_ms, arrived_ms, **(row | more))
        for stream, offset, length in streams:
            one = {"number": number, "connection": 0, "direction": direction, "layer": "quic", "type": "STREAM"}
            one |= {"stream": stream, "offset": offset, "length": length, "packet_space": "application"}
            self.rows["frames"].append(one | {"packet_number": int(packet_number)})
        return number

    def request(self, stream: int | None, ordinal: int, start_ms: float, end_ms: float, **more: Any) -> None:
        """A request with its response."""
        row = {"connection": 0, "stream": stream, "request": ordinal, "complete": True}
        times = {"request_start_ns": int(start_ms * MS), "response_end_ns": int(end_ms * MS)}
        self.rows["messages"].append(row | times | more)

    def tables(self) -> dict[str, pa.Table]:
        """The four tables."""
        found = {}
        for name, schema in SCHEMAS.items():
            rows = self.rows[name]
            if name == "packets":
                rows = sorted(rows, key=lambda row: (row["time_ns"], row["number"]))
            found[name] = pa.Table.from_pylist([{"capture": "t"} | row for row in rows], schema=schema.arrow())
        return found

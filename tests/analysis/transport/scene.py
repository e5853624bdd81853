"""Tables of a dissection, written by hand: a link with both sides, times in ms from 0."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from trifecta.analysis.transport.columns import Connection, connections
from trifecta.store.trace_schema import SCHEMAS

MS = 1_000_000
LINK, IP, TCP, UDP = 14, 20, 32, 8


@dataclass
class Scene:
    """One connection. ``one_way_ms``: what the link takes; ``both``: captured at both sides, else at the client's."""

    transport: str = "tcp"
    protocol: str | None = "h2"
    one_way_ms: float = 25
    both: bool = True
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    about: dict[str, Any] = field(default_factory=dict)
    ordinal: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    def packet(
        self, ms: float, up: bool, payload: int = 0, *, lost: bool = False, late_ms: float = 0, **more: Any
    ) -> int:
        """A packet that leaves its sender at ``ms``; gives its number at the sender's side."""
        header = TCP if self.transport == "tcp" else UDP
        wire = LINK + IP + header + payload
        mine = "a" if up else "b"
        identity = (0 if up else 1 << 63) | self.ordinal[up]
        self.ordinal[up] += 1
        delay = int((self.one_way_ms + late_ms) * MS)
        first = len(self.rows["packets"]) + 1
        for side, at in ((mine, int(ms * MS)), ("b" if up else "a", int(ms * MS) + delay)):
            if side != mine and lost:
                continue
            if not self.both and side == "b":
                continue
            self.rows["packets"].append(
                {
                    "capture": "c", "number": len(self.rows["packets"]) + 1, "side": side if self.both else None,
                    "packet_id": identity if self.both else None, "time_ns": at, "direction": "up" if up else "down",
                    "connection": 0, "transport": self.transport, "wire_bytes": wire, "captured_bytes": wire,
                    "ip_header_bytes": IP, "transport_header_bytes": header, "payload_bytes": payload, "info": "",
                    "protocol": self.protocol, "fate": "lost" if lost else "delivered",
                    "delay_ns": delay if self.both and not lost else None, **more,
                }
            )  # fmt: skip
        return first

    def tcp(self, ms: float, up: bool, sequence: int, payload: int, acknowledged: int = 1, **more: Any) -> int:
        """A TCP segment, with ACK set and a window of 1 MB if nothing else is said."""
        given = {"flags": "ACK", "window": 1 << 20, "retransmission": False, **more}
        return self.packet(ms, up, payload, sequence=sequence, acknowledged=acknowledged, **given)

    def frame(self, number: int, layer: str, kind: str, length: int, header: int = 0, **more: Any) -> None:
        """A frame in a packet, by its number at the sender's side."""
        packet = next(row for row in self.rows["packets"] if row["number"] == number)
        self.rows["frames"].append(
            {
                "capture": "c", "number": number, "time_ns": packet["time_ns"], "side": packet["side"], "connection": 0,
                "direction": packet["direction"], "layer": layer, "type": kind, "length": length,
                "wire_length": length + header, **more,
            }
        )  # fmt: skip

    def message(self, *ms: float, **more: Any) -> None:
        """A request with its response: four times at the client."""
        names = ("request_start_ns", "request_end_ns", "response_start_ns", "response_end_ns")
        times = {name: int(at * MS) for name, at in zip(names, ms, strict=True)}
        ordinal = len(self.rows["messages"])
        self.rows["messages"].append(
            {
                "capture": "c",
                "connection": 0,
                "protocol": self.protocol,
                "request": ordinal,
                "complete": True,
                **times,
                **more,
            }
        )

    def tables(self) -> dict[str, pa.Table]:
        """The four tables."""
        row = {
            "capture": "c", "connection": 0, "protocol": self.protocol, "transport": self.transport,
            "tls_version": "1.3", "resumed": False, "zero_rtt": False, "decrypted": True, "migrated": False,
            **self.about,
        }  # fmt: skip
        rows = {**self.rows, "connections": [row]}
        return {
            name: pa.table(
                {f.name: pa.array([row.get(f.name) for row in rows[name]], type=f.type) for f in schema}, schema=schema
            )
            for name, schema in ((name, one.arrow()) for name, one in SCHEMAS.items())
        }

    def connection(self) -> Connection:
        """The connection as the analysis takes it."""
        tables = self.tables()
        (found,) = connections(tables["packets"], tables["frames"], tables["messages"], tables["connections"])
        return found

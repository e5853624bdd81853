"""Makes the four tables of an invented capture (``store.trace_schema``): handshake, requests, slow start, one loss.

The world is simple, so that a test can say what a figure must show: a path with a round trip and a rate, a window that
doubles every round trip, one packet lost on its way and sent again a round trip and a half later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trifecta.store import results_manifest
from trifecta.store.trace_schema import SCHEMAS
from trifecta.trace.dissection import Dissection

MS = 1_000_000
START = 1_790_000_000 * 10**9
MSS, QUIC_PAYLOAD = 1448, 1200
HEADERS = {"tcp": 14 + 20 + 32, "udp": 14 + 20 + 8}
TCP_FLIGHTS = (
    ("up", 0, "SYN", 0),
    ("down", 0, "SYN,ACK", 0),
    ("up", 0, "ACK", 0),
    ("up", 517, "ACK,PSH", 0),
    ("down", 1448, "ACK", 0),
    ("down", 900, "ACK,PSH", 0),
    ("up", 80, "ACK,PSH", 0),
)
QUIC_FLIGHTS = (
    ("up", 1200, "Initial", "CRYPTO,PADDING"),
    ("down", 1200, "Initial,Handshake", "ACK,CRYPTO;CRYPTO"),
    ("down", 1100, "Handshake", "CRYPTO"),
    ("up", 1200, "Initial,Handshake", "ACK;ACK,CRYPTO"),
)


@dataclass
class World:
    """What is captured. ``lose`` counts the packets with content of the response, from 0."""

    arm: str = "h2"
    capture: str = "t00001"
    requests: int = 3
    size: int = 200_000
    rtt_ns: int = 40 * MS
    rate_bits_per_s: float = 20e6
    server_ns: int = 2 * MS
    lose: Sequence[int] = (40,)
    keys: bool = True
    sides: bool = True
    concurrent: bool = True
    connection: int = 0
    start_ns: int = START
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    at: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    ordinal: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})

    @property
    def transport(self) -> str:
        return "udp" if self.arm == "h3" else "tcp"

    def packet(self, direction: str, time_ns: int, payload: int, lost: bool = False, **columns: Any) -> int:
        """A packet that its sender sends at ``time_ns``; returns its number at the sending side."""
        ordinal = self.ordinal[direction]
        self.ordinal[direction] += 1
        base: dict[str, Any] = {
            "capture": self.capture, "direction": direction, "connection": self.connection, "transport": self.transport,
            "source": "10.0.0.1" if direction == "up" else "10.0.0.2",
            "source_port": 40000 if direction == "up" else 443,
            "destination": "10.0.0.2" if direction == "up" else "10.0.0.1",
            "destination_port": 443 if direction == "up" else 40000, "payload_bytes": payload,
            "wire_bytes": payload + HEADERS[self.transport], "captured_bytes": payload + HEADERS[self.transport],
            "ip_header_bytes": 20, "transport_header_bytes": 8 if self.arm == "h3" else 32,
            "protocol": self.arm if self.keys else None, "fate": "lost" if lost else "delivered",
            "packet_id": (0 if direction == "up" else 1 << 63) | ordinal,
        }  # fmt: skip
        base |= columns
        near, far = ("a", "b") if direction == "up" else ("b", "a")
        if not self.sides:
            # Only the client's side was captured: what was lost is not there.
            if direction == "down" and lost:
                return 0
            seen = time_ns + (self.rtt_ns // 2 if direction == "down" else 0)
            row = base | {"side": None, "packet_id": None, "fate": None, "time_ns": seen}
            self.rows["packets"].append(row | {"number": len(self.rows["packets"]) + 1})
            return len(self.rows["packets"])
        number = len(self.rows["packets"]) + 1
        delay = None if lost else self.rtt_ns // 2
        self.rows["packets"].append(base | {"number": number, "side": near, "time_ns": time_ns, "delay_ns": delay})
        if not lost:
            far_row = {"number": number + 1, "side": far, "time_ns": time_ns + self.rtt_ns // 2, "delay_ns": delay}
            self.rows["packets"].append(base | far_row)
        return number

    def frame(self, number: int, time_ns: int, layer: str, kind: str, direction: str, **columns: Any) -> None:
        side = ({"up": "a", "down": "b"}[direction]) if self.sides else None
        row = {
            "capture": self.capture,
            "number": number,
            "time_ns": time_ns,
            "side": side,
            "connection": self.connection,
        }
        self.rows["frames"].append(row | {"direction": direction, "layer": layer, "type": kind} | columns)


def _handshake(world: World) -> tuple[int, int]:
    """Times when the client can send its request, and the next TCP sequence of the server."""
    now, half, sequence, last = world.start_ns, world.rtt_ns // 2, {"up": 0, "down": 0}, "up"
    crypto: dict[tuple[str, str], int] = {}  # octets of CRYPTO frames so far, by direction and packet number space
    flights = QUIC_FLIGHTS if world.arm == "h3" else TCP_FLIGHTS
    for place, (direction, payload, what, frames) in enumerate(flights):
        now += half + 100_000 if direction != last else 30_000 if place else 0
        last = direction
        if world.arm == "h3":
            form = "long" if "1-RTT" not in what else "short"
            number = world.packet(direction, now, payload, packet_type=what, header_form=form, frames=str(frames))
            space = what.split(",")[-1].lower()
            offset = crypto.get((direction, space), 0)
            crypto[direction, space] = offset + payload - 100
            world.frame(
                number, now, "quic", "CRYPTO", direction, length=payload - 100, offset=offset, packet_space=space
            )  # fmt: skip
        else:
            columns = {
                "flags": what,
                "sequence": sequence[direction],
                "acknowledged": sequence["down"],
                "window": 65535,
            }
            number = world.packet(direction, now, payload, **columns)
            sequence[direction] += payload + ("SYN" in what)
            if payload:
                world.frame(number, now, "tls", "handshake", direction, length=payload)
    return now + 30_000, sequence["down"]


def _plan(world: World) -> list[tuple[int, int, int, bool]]:
    """(stream, offset, length, last) of the response packets in the order they are first sent."""
    part = QUIC_PAYLOAD - 40 if world.arm == "h3" else MSS
    left = [[request * 4 if world.arm != "h2" else 1 + 2 * request, 0] for request in range(world.requests)]
    made = []
    while left:
        for one in list(left) if world.concurrent and world.arm != "h1" else left[:1]:
            length = min(part, world.size - one[1])
            made.append((one[0], one[1], length, one[1] + length == world.size))
            one[1] += length
            if one[1] == world.size:
                left.remove(one)
    return made


def tables(world: World) -> Dissection:
    """The tables of the world."""
    ready, sequence = _handshake(world)
    half = world.rtt_ns // 2
    starts: dict[int, int] = {}
    for request in range(world.requests):
        stream = request * 4 if world.arm != "h2" else 1 + 2 * request
        number = world.packet(
            "up", ready + request * 20_000, 90, header_form="short" if world.arm == "h3" else None,
            packet_type="1-RTT" if world.arm == "h3" else None, frames="STREAM" if world.arm == "h3" else None,
            flags=None if world.arm == "h3" else "ACK,PSH", sequence=None if world.arm == "h3" else 598 + 90 * request,
            acknowledged=None if world.arm == "h3" else sequence,
        )  # fmt: skip
        layer, kind = ("quic", "STREAM") if world.arm == "h3" else (world.arm, "HEADERS")
        at = 0 if world.arm == "h3" else 90 * request
        record = {} if world.arm == "h3" else {"tcp_start": 598 + at, "tcp_end": 688 + at}
        name = None if world.arm == "h1" else stream
        world.frame(
            number, ready + request * 20_000, layer, kind, "up", stream=name, offset=at, length=80, wire_length=80,
            fin=True, **record,
        )  # fmt: skip
        starts[stream] = ready + request * 20_000
    spacing = int(8e9 * (MSS + 80) / world.rate_bits_per_s)
    window, sent, now, ends = 10, 0, ready + half + world.server_ns, dict[int, int]()
    round_ends, first, octets = now + world.rtt_ns, dict[int, int](), 0
    for ordinal, (stream, offset, length, last) in enumerate(_plan(world)):
        if sent == window:
            now, sent, window = max(now, round_ends), 0, window * 2
            round_ends = now + world.rtt_ns
        sent += 1
        now += spacing
        lost = ordinal in world.lose
        at = (octets, stream, offset, length, last)
        _response(world, now, lost, at, sequence)
        if lost:
            _response(world, now + world.rtt_ns * 3 // 2, False, at, sequence, again=True)
        octets += length
        end = now + half + (world.rtt_ns * 3 // 2 if lost else 0)
        first.setdefault(stream, now + half)
        ends[stream] = max(ends.get(stream, 0), end)
        if ordinal % 2:
            _ack(world, now + half + 50_000, sequence + octets, ordinal)
    for request, (stream, started) in enumerate(starts.items()):
        world.rows["messages"].append(
            {
                "capture": world.capture, "connection": world.connection, "protocol": world.arm,
                "request": request, "method": "GET",
                "stream": None if world.arm == "h1" else stream, "authority": "origin.lab", "path": "/bytes/200000",
                "status": 200, "request_start_ns": started, "request_end_ns": started,
                "response_start_ns": first[stream],
                "response_end_ns": ends[stream], "request_header_bytes": 40, "response_header_bytes": 60,
                "request_body_bytes": 0, "response_body_bytes": world.size, "packets_up": 1, "packets_down": 9,
                "complete": True,
            } if world.keys else {}
        )  # fmt: skip
    return _dissection(world)


def _response(
    world: World, now: int, lost: bool, at: tuple[int, int, int, int, bool], sequence: int, again: bool = False
) -> None:
    octets, stream, offset, length, last = at
    if world.arm == "h3":
        columns: dict[str, Any] = {"header_form": "short", "packet_type": "1-RTT", "frames": "STREAM"}
        columns |= {"streams": str(stream), "quic_header_bytes": 20}
    else:
        columns = {"flags": "ACK", "sequence": sequence + octets, "acknowledged": 900, "retransmission": again}
    number = world.packet("down", now, length + (40 if world.arm == "h3" else 0), lost, **columns)
    if world.keys and number and not (again and world.arm != "h3"):
        layer, kind = ("quic", "STREAM") if world.arm == "h3" else (world.arm, "DATA")
        place = offset if world.arm == "h3" else octets
        record = {} if world.arm == "h3" else {"tcp_start": sequence + octets, "tcp_end": sequence + octets + length}
        world.frame(
            number, now, layer, kind, "down", stream=None if world.arm == "h1" else stream, offset=place, length=length,
            wire_length=length, fin=last, **record,
        )  # fmt: skip


def _ack(world: World, now: int, acknowledged: int, ordinal: int) -> None:
    if world.arm == "h3":
        columns: dict[str, Any] = {"header_form": "short", "packet_type": "1-RTT", "frames": "ACK"}
        world.packet("up", now, 40, acknowledged_ranges=f"[[0, {ordinal}]]", **columns)
    else:
        world.packet("up", now, 0, flags="ACK", sequence=900, acknowledged=acknowledged, window=262_144)


def _dissection(world: World) -> Dissection:
    packets = [row for row in world.rows["packets"] if row["side"] in (None, "a")]
    world.rows["connections"].append(
        {
            "capture": world.capture, "connection": world.connection, "protocol": world.arm if world.keys else None,
            "transport": world.transport, "client": "10.0.0.1", "server": "10.0.0.2", "client_port": 40000,
            "server_port": 443, "tls_version": "1.3", "cipher": "TLS_AES_128_GCM_SHA256", "alpn": world.arm,
            "resumed": False, "zero_rtt": False, "start_ns": packets[0]["time_ns"], "end_ns": packets[-1]["time_ns"],
            "packets": len(packets), "wire_bytes": sum(row["wire_bytes"] for row in packets),
            "payload_bytes": sum(row["payload_bytes"] for row in packets),
            "largest_wire_bytes": max(row["wire_bytes"] for row in packets), "decrypted": world.keys,
            "migrated": False, "truncated": None if world.keys else "keys",
        }
    )  # fmt: skip
    world.rows["packets"].sort(key=lambda row: row["time_ns"])
    numbers = {row["number"]: place for place, row in enumerate(world.rows["packets"], 1)}
    for row in (*world.rows["packets"], *world.rows["frames"]):
        row["number"] = numbers[row["number"]]
    if not world.keys:
        world.rows["frames"], world.rows["messages"] = [], []
    made = {name: pa.Table.from_pylist(world.rows[name], schema.arrow()) for name, schema in SCHEMAS.items()}
    return Dissection(**made, notes=[] if world.keys else [f"{world.capture}: no keys"])


def write_traces(run: Path, **changes: Any) -> None:
    """Give a synthetic run the tables of its trials, as if every trial had been captured and dissected."""
    rows = pq.read_table(run / "trials", columns=["trial", "arm", "block"]).to_pylist()
    found = []
    for place, row in enumerate(rows):
        rtt = (40 + row["block"] % 3) * MS  # so that blocks differ
        world = World(
            arm=row["arm"].removesuffix("#aa"),
            capture=f"{row['trial']}.pcapng",
            connection=place,
            rtt_ns=rtt,
            **changes,
        )
        found.append(tables(world))
    (run / "trace").mkdir()
    for name in SCHEMAS:
        pq.write_table(pa.concat_tables([getattr(one, name) for one in found]), run / "trace" / f"{name}.parquet")
    results_manifest.note(run, [f"trace/{name}.parquet" for name in SCHEMAS])

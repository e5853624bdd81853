"""Transfers of the engine over a link that drops exactly the packets it is told to, and what must have happened.

The truth is worked out octet by octet, from the link's log and the octets of its capture, by plain loops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.engine.netns import SERVER, Hosts
from tests.engine.test_capture import packets
from trifecta.lab.certificates import make_certificates
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection

PORT = 8443
LATE = 2**62


@dataclass(frozen=True)
class Packet:
    """A packet that was sent; `arrived_ns` is `LATE` where it did not arrive."""

    number: int
    ordinal: int
    sent_ns: int
    arrived_ns: int
    octets: bytes

    @property
    def tcp(self) -> tuple[int, int]:
        """Sequence number and octets of payload."""
        ip = 14
        header = (self.octets[ip] & 15) * 4
        total = struct.unpack_from("!H", self.octets, ip + 2)[0]
        at = ip + header
        return struct.unpack_from("!I", self.octets, at + 4)[0], total - header - (self.octets[at + 12] >> 4) * 4


@dataclass(frozen=True)
class Transfer:
    """One captured transfer."""

    dissection: Dissection
    capture: Path
    log: Path

    def tables(self) -> dict[str, Any]:
        """The four tables."""
        names = ("packets", "frames", "messages", "connections")
        return {name: getattr(self.dissection, name) for name in names}

    @cached_property
    def down(self) -> list[Packet]:
        """Packets of the server, in the order of sending."""
        return list(self._sent(1))

    def _sent(self, direction: int) -> Iterator[Packet]:
        seen = packets(self.capture)
        near, far = (1, 0) if direction else (0, 1)
        there = {one[2]: one[1] for one in seen if one[0] == far}
        for number, (side, time, identity, octets) in enumerate(seen, 1):
            if side == near and identity >> 63 == direction:
                yield Packet(number, identity & (1 << 48) - 1, time, there.get(identity, LATE), octets)

    def lost(self, direction: int) -> list[int]:
        """Ordinals that the link dropped."""
        rows = pq.read_table(self.log).to_pylist()
        return [row["ordinal"] for row in rows if row["direction"] == direction and row["fate"] == "lost"]

    def repeats(self) -> tuple[list[int], list[int]]:
        """Numbers of the server's packets that repeat octets, and of these the needless ones (TCP)."""
        first = next(one.tcp[0] for one in self.down if one.tcp[1] > 0)
        sent: set[int] = set()
        there: set[int] = set()
        again, needless = [], []
        for one in self.down:
            start, length = one.tcp
            mine = set(range(start - first, start - first + length))
            if mine & sent:
                again.append(one.number)
                if mine & sent <= there:
                    needless.append(one.number)
            sent |= mine
            if one.arrived_ns < LATE:
                there |= mine
        return again, needless

    def quic_repeats(self) -> tuple[set[int], set[int]]:
        """The same of QUIC, by the octets that the dissection found in its packets."""
        arrived = {one.number: one.arrived_ns < LATE for one in self.down}
        sent: dict[tuple[Any, ...], bool] = {}
        again, needed = set(), set()
        for number, mine in sorted(self._pieces().items()):
            before = [octet for octet in mine if octet in sent]
            if before:
                again.add(number)
            if not all(sent[octet] for octet in before):
                needed.add(number)
            sent |= {octet: sent.get(octet, False) or arrived[number] for octet in mine}
        return again, again - needed

    def late(self) -> set[int]:
        """Numbers of the server's packets that arrived behind one that was sent later (RFC 4737, 3.3)."""
        found, highest = set(), -1
        for one in sorted(self.down, key=lambda one: (one.arrived_ns, one.ordinal)):
            if one.arrived_ns < LATE:
                if one.ordinal < highest:
                    found.add(one.number)
                highest = max(highest, one.ordinal)
        return found

    def taken_for_lost(self) -> set[int]:
        """Those of them that were the first to bring octets which were sent again after them."""
        first: dict[tuple[Any, ...], int] = {}
        found = set()
        pieces = self._pieces()
        for one in self.down:
            for octet in pieces.get(one.number, ()):
                if octet in first:
                    found.add(first[octet])
                elif one.arrived_ns < LATE:
                    first[octet] = one.number
        return found & self.late()

    def _pieces(self) -> dict[int, set[tuple[Any, ...]]]:
        """The octets of each of the server's packets, by number."""
        if self.rows("tls"):
            return {one.number: {(octet,) for octet in range(one.tcp[0], sum(one.tcp))} for one in self.down}
        found: dict[int, set[tuple[Any, ...]]] = {}
        for row in self.rows("quic", "STREAM") + self.rows("quic", "CRYPTO"):
            where = (row["type"], row["stream"], row["type"] == "CRYPTO" and row["packet_space"])
            octets = range(row["offset"], row["offset"] + row["length"])
            found.setdefault(row["number"], set()).update((*where, octet) for octet in octets)
        return found

    def rows(self, layer: str, kind: str | None = None) -> list[dict[str, Any]]:
        """Frames of the server."""
        rows = self.dissection.frames.to_pylist()
        rows = [row for row in rows if row["direction"] == "down" and row["layer"] == layer]
        return [row for row in rows if kind is None or row["type"] == kind]

    @cached_property
    def _first(self) -> int:
        """What to take from a sequence number: the server's first octet is 1."""
        return min(one.tcp[0] for one in self.down if one.tcp[1] > 0) - 1

    def _octets(self, packet: Packet) -> tuple[int, int]:
        """Of a packet of the server: from the first to the one behind the last."""
        start, length = packet.tcp
        return start - self._first, start - self._first + length

    def _records(self, stream: int) -> list[tuple[int, int]]:
        """Octets of each TLS record with DATA of the stream."""
        frames = [row for row in self.rows("h2", "DATA") if row["stream"] == stream]
        records = [(row["tcp_start"], row["tcp_end"]) for row in self.rows("tls", "application_data")]
        return [one for one in records if any(_meet(one, (row["tcp_start"], row["tcp_end"])) for row in frames)]

    def behind_ns(self, number: int, stream: int) -> list[int]:
        """When each record with DATA of the stream, behind the octets of this lost packet, had arrived as a whole."""
        octets = {one.number: self._octets(one) for one in self.down}
        return [
            max(one.arrived_ns for one in self.down if _meet(record, octets[one.number]))
            for record in self._records(stream)
            if record[0] >= octets[number][1]
        ]

    def torn(self, number: int, stream: int) -> bool:
        """Whether this lost packet held octets of a record with DATA of the stream."""
        (lost,) = (self._octets(one) for one in self.down if one.number == number)
        return any(_meet(record, lost) for record in self._records(stream))

    def blocking(self) -> dict[int, dict[str, int]]:
        """ns in which octets of each stream waited, by what for."""
        return self._tcp_blocking() if self.rows("tls") else self._quic_blocking()

    def _quic_blocking(self) -> dict[int, dict[str, int]]:
        arrived = {one.number: one.arrived_ns for one in self.down}
        came: dict[int, dict[int, int]] = {}
        for row in self.rows("quic", "STREAM"):
            mine = came.setdefault(row["stream"], {})
            for octet in range(row["offset"], row["offset"] + row["length"]):
                mine[octet] = min(mine.get(octet, LATE), arrived[row["number"]])
        found = {}
        for stream, mine in came.items():
            top, spans = 0, set()
            for octet in sorted(mine):
                top = max(top, mine[octet])
                spans.add((mine[octet], top))
            found[stream] = {"own": union(spans), "records": 0, "others": 0}
        return found

    def _tcp_blocking(self) -> dict[int, dict[str, int]]:
        first = self._first
        size = max(one.tcp[0] + one.tcp[1] for one in self.down) - first
        came = [LATE] * size
        for one in self.down:
            start, length = one.tcp
            for octet in range(start - first, start - first + length):
                came[octet] = min(came[octet], one.arrived_ns)
        in_order, top = [0] * size, 0
        for octet in range(1, size):
            top = max(top, came[octet])
            in_order[octet] = top
        # A record of handshake messages may stand between those with HTTP: a server sends tickets when it likes to.
        records = {(row["tcp_start"], row["tcp_end"]) for row in self.rows("tls", "application_data")}
        http = sorted(self.rows("h2") + self.rows("h1"), key=lambda row: row["offset"])
        # Octet by octet of the plaintext: header of 5 octets in front, type and tag of 17 behind (RFC 8446, 5.2).
        held = {row["tcp_start"] for row in http}
        last = max(row["tcp_end"] for row in http)
        text = [
            (octet, end)
            for start, end in sorted(records)
            if min(held) <= start < last
            for octet in range(start + 5, end - 17)
        ]
        own: dict[int, int] = {}
        whole: dict[int, int] = {}
        spans: dict[int, dict[str, set[tuple[int, int]]]] = {}
        ends = dict(records)
        complete = {end: max(came[start:end]) for start, end in ends.items()}
        for row in http:
            stream = row["stream"] if row["stream"] is not None else 0
            mine = spans.setdefault(stream, {"own": set(), "records": set(), "others": set()})
            for octet, end in text[row["offset"] : row["offset"] + row["wire_length"]]:
                own[stream] = max(own.get(stream, 0), came[octet])
                whole[stream] = max(whole.get(stream, 0), complete[end], own[stream])
                mine["own"].add((came[octet], own[stream]))
                mine["records"].add((own[stream], whole[stream]))
                mine["others"].add((whole[stream], in_order[end - 1]))
        return {stream: {why: union(some) for why, some in mine.items()} for stream, mine in spans.items()}


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two ranges of octets have one in common."""
    return one[0] < other[1] and other[0] < one[1]


def union(spans: set[tuple[int, int]]) -> int:
    """How long at least one of these intervals lasts."""
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def transfer(
    hosts: Hosts,
    folder: Path,
    protocol: str,
    *,
    down: list[int] | None = None,
    up: list[int] | None = None,
    overtaking: float = 0,
    delay_ms: int = 20,
    rate_bits_per_s: int = 0,
    **more: Any,
) -> Transfer:
    """Two requests at once on one connection, over so many ms each way; the link drops these packets.

    `overtaking`: so large a share of the server's packets is sent ahead of the others by 5/6 of the delay.
    `rate_bits_per_s`: of what the server sends; 0: without limit. `more`: fields of the load.
    """
    pki = make_certificates(folder / "pki", ["origin.lab"], [SERVER])
    capture, log, keys = folder / "link.pcapng", folder / "link.parquet", folder / "keys.txt"
    origin = {"address": SERVER, "port": PORT, "certificate_file": str(pki.chain), "key_file": str(pki.key)}
    load = {"trial": "t", "protocol": protocol, "address": SERVER, "port": PORT, "server_name": "origin.lab"}
    load |= {"ca_file": str(pki.authority), "connections": 1, "streams": 1 if protocol == "h1" else 2, "requests": 2}
    load |= {
        "path": "/bytes/60000",
        "expect_body_bytes": 60000,
        "loop": {"kind": "closed"},
        "connection_mode": "reused",
    }
    load |= {
        "workers": 1,
        "duration_ns": 0,
        "warmup_requests": 0,
        "warmup_ns": 0,
        "method": "GET",
        "expect_status": 200,
    }
    load |= {"request_body_bytes": 0, "seed": 1, "resumption": False, "zero_rtt": False}
    load |= {"congestion_control": "cubic", "tcp_nodelay": True, "tls_version": "1.3", "key_exchange": "X25519"}
    load |= {"cipher": "TLS_AES_128_GCM_SHA256", "udp_receive_buffer_bytes": 4194304, "max_udp_payload_bytes": 1452}
    load |= {"connect_timeout_ns": 10**10, "request_timeout_ns": 10**10, "total_timeout_ns": 6 * 10**10}
    load |= {"samples_file": str(folder / "samples.parquet"), "keylog_file": str(keys)} | more
    delay = {"kind": "delay", "delay_ns": delay_ms * 1_000_000}
    schedules: list[list[dict[str, Any]]] = [
        [{"kind": "loss_schedule", "drop": one or []}, delay] for one in (up, down)
    ]
    if rate_bits_per_s:
        schedules[1].insert(1, {"kind": "rate", "bits_per_s": rate_bits_per_s})
    if overtaking:
        schedules[1].append({"kind": "reorder", "probability": overtaking, "gap_ns": delay_ms * 5_000_000 // 6})
    with hosts.link(*schedules, seed=5, capture_file=str(capture), log_file=str(log)) as link:
        server = hosts.start_engine("server", "origin", origin)
        summary = hosts.start_engine("client", "load", load).wait()
        server.stop()
        link.stop()
    assert summary["errors"] == 0, summary
    return Transfer(dissect([capture], keys, link_logs={capture: log}), capture, log)

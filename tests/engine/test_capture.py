"""The link's capture, read back and compared with what went through."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.engine.marks import IN_NAMESPACES
from tests.engine.netns import Hosts
from tests.engine.test_link import datagrams, delay, transfer

pytestmark = IN_NAMESPACES


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        yield hosts


def packets(file: Path) -> list[tuple[int, int, int, bytes]]:
    """Interface, time in ns, packet id and octets of every packet (draft-ietf-opsawg-pcapng)."""
    data = file.read_bytes()
    found, at = [], 0
    while at < len(data):
        kind, total = struct.unpack_from("=II", data, at)
        if kind == 6:
            interface, high, low, length, original = struct.unpack_from("=5I", data, at + 8)
            assert length == original
            (identity,) = struct.unpack_from("=Q", data, at + 28 + -(-length // 4) * 4 + 12)
            found.append((interface, high << 32 | low, identity, data[at + 28 : at + 28 + length]))
        at += total
    return found


def statistics(file: Path) -> dict[int, tuple[int, int]]:
    """By interface: packets, and those that were left out (isb_ifrecv, isb_ifdrop)."""
    data = file.read_bytes()
    found, at = {}, 0
    while at < len(data):
        kind, total = struct.unpack_from("=II", data, at)
        if kind == 5:
            interface, _, _, *said = struct.unpack_from("=3I HHQ HHQ I", data, at + 8)
            assert said[:2] + said[3:5] + said[6:] == [4, 8, 5, 8, 0]
            found[interface] = said[2], said[5]
        at += total
    return found


def test_both_sides_of_a_lossy_link_are_in_the_capture(hosts: Hosts, tmp_path: Path) -> None:
    file, drop = tmp_path / "link.pcapng", [3, 40, 41]
    impairments: list[dict[str, Any]] = [{"kind": "loss_schedule", "drop": drop}, delay(5)]
    with hosts.link(impairments, capture_file=str(file)) as link:
        rows = datagrams(hosts, tmp_path, 100)
    summary = link.stop()
    seen = packets(file)
    assert (summary["captured_packets"], summary["capture_missed"]) == (len(seen), 0)
    assert statistics(file) == {side: (sum(one[0] == side for one in seen), 0) for side in (0, 1)}
    forward = {side: [one for one in seen if one[0] == side and one[2] >> 63 == 0] for side in (0, 1)}
    assert [one[2] for one in forward[0]] == list(range(100))
    assert {one[2] for one in forward[1]} == set(range(100)) - set(drop)
    # The same octets on both sides, at least the delay apart, on the clock that the summary names.
    before = {identity: (time, octets) for _, time, identity, octets in forward[0]}
    for _, time, identity, octets in forward[1]:
        assert octets == before[identity][1]
        assert time - before[identity][0] >= 5_000_000
    assert len(rows) == 97
    first = forward[0][0][1] - summary["realtime_offset_ns"]
    assert summary["started_ns"] < first < summary["ended_ns"]


def test_no_packet_is_missed_at_200_mbit_per_s(hosts: Hosts, tmp_path: Path) -> None:
    file = tmp_path / "link.pcapng"
    rate = {"kind": "rate", "bits_per_s": 200_000_000, "queue_packets": 400}
    with hosts.link([rate, delay(5)], [delay(5)], capture_file=str(file)) as link:
        transfer(hosts, "tcp", "--size", "40000000", "--seconds", "20")
    summary = link.stop()
    assert summary["capture_missed"] == 0
    assert [summary[way]["device_drops"] for way in ("a_to_b", "b_to_a")] == [0, 0]
    seen = packets(file)
    for direction, name in enumerate(("a_to_b", "b_to_a")):
        way = summary[name]
        mine = [one for one in seen if one[2] >> 63 == direction]
        assert sum(one[0] == direction for one in mine) == way["wire_packets"]
        assert sum(one[0] != direction for one in mine) == way["delivered"]
    assert summary["a_to_b"]["rate_given_bits_per_s"] == pytest.approx(200e6, rel=0.02)
    # Wire-size packets, whatever the kernel handed over at once.
    assert np.max([len(one[3]) for one in seen]) == 1514


def test_no_acknowledgement_is_there_before_what_it_acknowledges(hosts: Hosts, tmp_path: Path) -> None:
    """A kernel answers within the link's system call: the capture has the time before it, the log that after it."""
    file, log = tmp_path / "link.pcapng", tmp_path / "link.parquet"
    with hosts.link([delay(2)], [delay(2)], capture_file=str(file), log_file=str(log)) as link:
        transfer(hosts, "tcp", "--size", "4000000", "--seconds", "20")
    summary = link.stop()
    seen = [(side, time, identity, *segment(octets)) for side, time, identity, octets in packets(file)]
    begin = next(sequence for side, _, identity, sequence, _, _ in seen if side == 0 and identity >> 63 == 0)
    there, reasons = 0, 0
    # Of equal times the arrival first: both were noted by the same clock.
    for _, _, identity, sequence, acknowledged, length in sorted(
        (one for one in seen if one[0] == 1), key=lambda one: (one[1], one[2] >> 63)
    ):
        if identity >> 63 == 0:
            there = max(there, sequence + length - begin & 0xFFFFFFFF)
        elif acknowledged:
            assert acknowledged - begin & 0xFFFFFFFF <= there
            reasons += 1
    assert there > 4_000_000
    assert reasons > 20
    left = {(row["direction"], row["ordinal"]): row for row in pq.read_table(log).to_pylist()}
    for side, time, identity, *_ in seen:
        if side != identity >> 63:
            row = left[identity >> 63, identity & (1 << 48) - 1]
            assert row["due_ns"] <= time - summary["realtime_offset_ns"] <= row["left_ns"]


def segment(octets: bytes) -> tuple[int, int, int]:
    """Sequence number, acknowledgement (0: none) and sequence space of a TCP segment over IPv4 (RFC 9293, 3.1)."""
    at = 14 + (octets[14] & 15) * 4
    sequence, acknowledged, offset, flags = struct.unpack_from("!IIBB", octets, at + 4)
    length = struct.unpack_from("!H", octets, 16)[0] - (at - 14) - (offset >> 4) * 4
    return sequence, acknowledged if flags & 0x10 else 0, length + bool(flags & 2) + (flags & 1)

"""Capture files written in other ways must tell the same; what is damaged ends them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from trifecta.trace.capture_file import CaptureFile, read_capture
from trifecta.trace.headers import parse_headers
from trifecta.trace.segments import _have_option, _options

SECOND = 1_000_000_000


def block(order: str, kind: int, body: bytes) -> bytes:
    total = 12 + len(body)
    return struct.pack(order + "II", kind, total) + body + struct.pack(order + "I", total)


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(order: str, *options: bytes, link_type: int = 1) -> bytes:
    return block(order, 1, struct.pack(order + "HHI", link_type, 0, 0) + b"".join(options) + bytes(4))


def packet(order: str, time: int, data: bytes, *options: bytes, which: int = 0, wire: int = 0) -> bytes:
    head = struct.pack(order + "IIIII", which, time >> 32, time & 0xFFFFFFFF, len(data), max(wire, len(data)))
    return block(order, 6, head + data + bytes(-len(data) % 4) + b"".join(options))


def read(tmp_path: Path, content: bytes) -> CaptureFile:
    file = tmp_path / "x.pcapng"
    file.write_bytes(content)
    return read_capture(file)


def whole(order: str) -> bytes:
    out = section(order)
    out += interface(order, option(order, 9, b"\x09"))  # ns
    out += interface(order, option(order, 9, b"\x83"), option(order, 14, struct.pack(order + "q", 100)), link_type=101)
    words = option(order, 1, b"lost: said"), option(order, 5, struct.pack(order + "Q", 1 << 63 | 5)), bytes(4)
    out += packet(order, 7 * SECOND + 3, b"abcde", *words, wire=90)
    out += block(order, 5, struct.pack(order + "III", 1, 0, 0))  # statistics that say nothing
    told = option(order, 4, struct.pack(order + "Q", 80)) + option(order, 5, struct.pack(order + "Q", 7))
    out += block(order, 5, struct.pack(order + "III", 0, 0, 0) + told + option(order, 7, struct.pack(order + "Q", 2)))
    out += packet(order, 20, b"xy", option(order, 5, struct.pack(order + "Q", 6)), which=1)
    return out


@pytest.mark.parametrize("order", "<>")
def test_both_orders_of_octets_and_clocks_of_each_interface(tmp_path: Path, order: str) -> None:
    found = read(tmp_path, whole(order))
    assert found.time_ns.tolist() == [7 * SECOND + 3, 20 * SECOND // 8 + 100 * SECOND]
    assert (found.captured.tolist(), found.wire.tolist(), found.interface.tolist()) == ([5, 2], [90, 2], [0, 1])
    assert [found.data[at : at + n].tobytes() for at, n in zip(found.offset, found.captured, strict=True)] == [
        b"abcde",
        b"xy",
    ]
    assert found.packet_id is not None
    assert found.packet_id.tolist() == [1 << 63 | 5, 6]
    assert found.comments == {0: "lost: said"}
    assert found.link_types == [1, 101]
    assert found.dropped == {0: 9}  # by the interface and by the system
    assert not found.notes


def test_sections_of_both_orders_have_interfaces_of_their_own(tmp_path: Path) -> None:
    found = read(tmp_path, whole("<") + whole(">"))
    assert found.interface.tolist() == [0, 1, 2, 3]
    assert found.time_ns[:2].tolist() == found.time_ns[2:].tolist()
    assert found.packet_id is None  # four interfaces are no link of ours
    assert sorted(found.comments) == [0, 2]
    assert found.dropped == {0: 9, 2: 9}


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (packet("<", 1, b"z", which=2), "damaged at packet 3"),  # there are two interfaces
        (packet("<", (1 << 64) - 1, b"z"), "packet 3 has no time that can be"),
        (packet("<", 1, b"zzzz").replace(struct.pack("<I", 4), struct.pack("<I", 400), 1), "damaged at packet 3"),
        (struct.pack("<II", 6, 33) + bytes(25), "damaged at packet 3"),
        (packet("<", 1, b"zzzz")[:-6], "cut in packet 3"),
    ],
)
def test_nothing_after_the_damage_counts(tmp_path: Path, bad: bytes, word: str) -> None:
    secrets = block("<", 10, struct.pack("<II", 0x544C534B, 4) + b"KEYS")
    found = read(tmp_path, whole("<") + bad + (secrets + packet("<", 9, b"late") if "cut" not in word else b""))
    assert len(found.offset) == 2
    assert found.secrets == b""
    assert word in " ".join(found.notes)
    assert np.all(found.time_ns > 0)


def test_an_option_that_is_longer_than_its_block_is_not_read(tmp_path: Path) -> None:
    content = whole("<") + packet("<", 9, b"z", struct.pack("<HH", 1, 8)) + packet("<", 10, b"late")
    found = read(tmp_path, content)
    assert len(found.offset) == 4
    assert list(found.comments) == [0]
    assert found.packet_id is None  # the last two have none


def test_options_of_tcp_are_found_behind_others(tmp_path: Path) -> None:
    """SACK behind padding and a timestamp (RFC 7323 appendix A), and none in what only looks like it."""
    timestamp, sack = bytes((1, 1, 8, 10, *b"\x05\x05\x05\x05\x05\x05\x05\x05")), bytes((1, 1, 5, 10, *range(8)))
    content = section("<") + interface("<", link_type=101)
    for options in (timestamp + sack, timestamp, bytes((0, 0, 0, 0)) + sack, bytes((8, 1)) + sack + bytes(2)):
        tcp = struct.pack(">HHIIBBHHH", 1, 2, 3, 4, (20 + len(options)) // 4 << 4, 16, 0, 0, 0) + options
        ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, 1, 2)
        content += packet("<", 1, ip + tcp)
    capture = read(tmp_path, content)
    headers = parse_headers(capture)
    rows = np.arange(len(headers.index))
    assert len(rows) == 4
    assert _have_option(capture, headers, rows, 5).tolist() == [True, False, False, False]
    told = [[kind for kind, _ in _options(capture, headers, row)] for row in rows.tolist()]
    assert [5 in kinds for kinds in told] == [True, False, False, False]

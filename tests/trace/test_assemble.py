"""Captures put together: order, keys, comments; and files that no link has written."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.trace.assemble import Assembled, NotOfLink, assemble, key_lines
from trifecta.trace.capture_file import read_capture

KEY = "CLIENT_TRAFFIC_SECRET_0 " + "ab" * 32 + " " + "cd" * 32
HEAD = 1_700_000_000_000_000_000


def block(kind: int, body: bytes) -> bytes:
    return struct.pack("=II", kind, 12 + len(body)) + body + struct.pack("=I", 12 + len(body))


def packet(side: int, time: int, identity: int, octets: bytes = b"x" * 5) -> bytes:
    """As the link writes it (engine/crates/link/src/capture.rs)."""
    words = struct.pack("=5I", side, time >> 32, time & 0xFFFFFFFF, len(octets), len(octets))
    options = struct.pack("=HHI", 2, 4, 1) + struct.pack("=HHQ", 5, 8, identity) + bytes(4)
    return block(6, words + octets + bytes(-len(octets) % 4) + options)


def head() -> bytes:
    section = struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1)
    return block(0x0A0D0D0A, section) + block(1, struct.pack("=HHI", 1, 0, 65535)) * 2


def write_log(path: Path, rows: list[tuple[int, int, str]]) -> Path:
    columns = [list(column) for column in zip(*rows, strict=True)]
    types = (pa.uint8(), pa.uint64(), pa.string())
    names = ("direction", "ordinal", "fate")
    pq.write_table(pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names), path)
    return path


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        kind, total = struct.unpack_from("=II", data, at)
        assert struct.unpack_from("=I", data, at + total - 4) == (total,)
        found.append((kind, data[at + 8 : at + total - 4]))
        at += total
    return found


def comment_of(body: bytes) -> str:
    at = 20 + -(-struct.unpack_from("=I", body, 12)[0] // 4) * 4
    while True:
        code, length = struct.unpack_from("=HH", body, at)
        if code == 0:
            return ""
        if code == 1:
            return body[at + 4 : at + 4 + length].decode()
        at += 4 + -(-length // 4) * 4


def test_packets_come_in_order_of_time_with_the_keys_before_them(tmp_path: Path) -> None:
    times = [5, 1, 2, 9, 3]
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.write_bytes(head() + b"".join(packet(n % 2, HEAD + t, n, bytes([t]) * t) for n, t in enumerate(times)))
    keys = [tmp_path / "client", tmp_path / "server", tmp_path / "missing"]
    keys[0].write_text(f"# comment\n{KEY}\nhalf a li")
    keys[1].write_text(KEY + "\n")
    assert assemble(raw, out, keys=keys) == Assembled(packets=5, comments=0, keys=1, whole=True)
    found = blocks(out.read_bytes())
    assert [kind for kind, _ in found] == [0x0A0D0D0A, 1, 1, 10, 6, 6, 6, 6, 6]
    assert found[3][1].rstrip(b"\0") == struct.pack("=II", 0x544C534B, len(KEY) + 1) + KEY.encode() + b"\n"
    assert [body[20] for _, body in found[4:]] == sorted(times)
    assert sorted(body for kind, body in found if kind == 6) == sorted(
        body for kind, body in blocks(raw.read_bytes()) if kind == 6
    )
    assert out.stat().st_mode & 0o777 == 0o600


def test_comments_say_what_the_link_did_where_it_did_it(tmp_path: Path) -> None:
    down, copy = 1 << 63, 1 << 48
    seen = [(0, 0), (0, 1), (1, 1), (1, 1 | copy), (0, 2), (1, 2), (1, down | 2), (0, down | 2), (0, 3), (0, 4)]
    seen += [(0, 5), (1, down | 3), (0, 6), (1, 6 | copy)]  # two had not left when the link ended
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.write_bytes(head() + b"".join(packet(side, HEAD + n, identity) for n, (side, identity) in enumerate(seen)))
    log = write_log(
        tmp_path / "log",
        [(0, 0, "lost"), (0, 1, "delivered"), (0, 1, "duplicate"), (0, 2, "corrupted"), (1, 2, "delivered"),
         (0, 3, "queue_dropped"), (0, 4, "delivered"), (0, 6, "duplicate")],
    )  # fmt: skip
    assert assemble(raw, out, log=log).comments == 11
    said = [comment_of(body).partition(":")[0] for kind, body in blocks(out.read_bytes()) if kind == 6]
    assert said == [
        "lost",
        *["duplicate"] * 3,
        *["corrupted"] * 2,
        "",
        "",
        "queue_dropped",
        "",
        *["under_way"] * 2,
        *["duplicate"] * 2,
    ]


def test_a_packet_that_was_lost_after_it_was_copied_is_lost_on_its_own_side_only(tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.write_bytes(head() + packet(0, HEAD, 7) + packet(1, HEAD + 1, 7))
    assemble(raw, out, log=write_log(tmp_path / "log", [(0, 7, "delivered"), (0, 7, "lost")]))
    said = [comment_of(body).partition(":")[0] for kind, body in blocks(out.read_bytes()) if kind == 6]
    assert said == ["lost", ""]


def test_a_link_that_died_leaves_the_packets_it_had_written(tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    whole = head() + packet(0, HEAD, 0) + packet(0, HEAD + 1, 1)
    raw.write_bytes(whole[:-3])
    assert assemble(raw, out) == Assembled(packets=1, comments=0, keys=0, whole=False)
    raw.write_bytes(head())
    assert assemble(raw, out) == Assembled(packets=0, comments=0, keys=0, whole=True)


def statistics(*dropped: int) -> bytes:
    """As the link ends its file (engine/crates/link/src/capture.rs)."""
    options = [struct.pack("=HHQHHQI", 4, 8, 100, 5, 8, count, 0) for count in dropped]
    return b"".join(block(5, struct.pack("=III", side, 0, 7) + one) for side, one in enumerate(options))


def test_the_statistics_of_the_link_stay_at_the_end(tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.write_bytes(head() + packet(1, 9, 0) + packet(0, 8, 0, b"yyy") + statistics(3, 4))
    assert assemble(raw, out) == Assembled(packets=2, comments=0, keys=0, whole=True)
    found = out.read_bytes()
    assert found.endswith(packet(0, 8, 0, b"yyy") + packet(1, 9, 0) + statistics(3, 4))
    assert read_capture(out).dropped == {0: 3, 1: 4}
    raw.write_bytes(head() + packet(0, 8, 0) + statistics(3, 4)[:-5])  # it died while it wrote them
    assert assemble(raw, out) == Assembled(packets=1, comments=0, keys=0, whole=False)
    assert read_capture(out).dropped == {0: 3}
    raw.write_bytes(head() + statistics(0, 0) + packet(0, 8, 0))
    with pytest.raises(NotOfLink, match="block of type 6"):
        assemble(raw, out)


def test_keys_are_told_from_what_is_none(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"\xff\xfe\n" + KEY.encode() + b"\nRSA 00\n" + KEY.encode() + b"\nCLIENT_RANDOM 0g 00\n")
    assert key_lines([file]) == [KEY.encode()]


@given(data=st.binary(max_size=300), cut=st.integers(0, 400), into=st.booleans())
def test_any_octets_are_refused_or_taken_whole(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int, into: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    raw, out = folder / "fuzzed-raw", folder / "fuzzed-assembled"
    good = head() + packet(0, HEAD, 0) + packet(1, HEAD + 9, 0) + statistics(1, 2)
    raw.write_bytes(good[:cut] + data + good[cut:] if into else data)
    try:
        made = assemble(raw, out)
    except NotOfLink:
        return
    assert sum(kind == 6 for kind, _ in blocks(out.read_bytes())) == made.packets

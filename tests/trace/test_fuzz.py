"""Captures and tshark's words that nobody has written on purpose: a UserError, or a partial result; nothing else."""

from __future__ import annotations

import shutil
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace import rewrite
from trifecta.design.errors import TrifectaError, UserError
from trifecta.trace import http1, http2, quic, tls
from trifecta.trace.capture_file import read_capture
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection
from trifecta.trace.flows import find_flows
from trifecta.trace.headers import parse_headers
from trifecta.trace.http3 import StreamReader, read_varint
from trifecta.trace.segments import Coverage, number_segments, read_sacks
from trifecta.trace.tshark import AGGREGATOR

CAPTURES = Path(__file__).parent / "captures"
SMALL = {name: (CAPTURES / f"{name}.pcapng").read_bytes()[:30_000] for name in ("h1", "h2", "h3")}


def as_pcap(data: bytes, link_type: int = 1) -> bytes:
    """The same packets as an old capture file."""
    out, at = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type), 0
    while at + 28 <= len(data):
        kind, total = struct.unpack_from("<II", data, at)
        if kind == 6 and at + total <= len(data):
            (length,) = struct.unpack_from("<I", data, at + 20)
            out += struct.pack("<IIII", at, 0, length, length) + data[at + 28 : at + 28 + length]
        at += total
    return out


changes = st.lists(st.tuples(st.integers(0, 29_999), st.integers(0, 255)), max_size=12)
wholes = st.tuples(st.sampled_from(["h1", "h2", "h3"]), st.booleans(), st.integers(0, 30_000), changes)


def damaged(what: tuple[str, bool, int, list[tuple[int, int]]]) -> bytes:
    name, old, length, flips = what
    data = bytearray(as_pcap(SMALL[name]) if old else SMALL[name])
    for at, value in flips:
        data[at % len(data)] = value
    return bytes(data[: max(length, 24)])


@settings(max_examples=60, deadline=None)
@given(wholes)
def test_headers_of_damaged_captures(what: tuple[str, bool, int, list[tuple[int, int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x"
        file.write_bytes(damaged(what))
        try:
            capture = read_capture(file)
        except UserError as error:
            assert "\n" not in str(error)
            return
        assert bool((capture.wire >= capture.captured).all())
        headers = parse_headers(capture)
        assert bool((headers.payload_captured <= headers.payload).all())
        assert bool((headers.payload >= 0).all())
        if len(headers.index):
            flows = find_flows(capture, headers)
            numbers = number_segments(capture, headers, flows)
            read_sacks(capture, headers, numbers)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@settings(max_examples=150, deadline=None)
@given(wholes)
def test_whole_dissections_of_damaged_captures(what: tuple[str, bool, int, list[tuple[int, int]]]) -> None:
    dissects_no_more_than_was_sent(what)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_quic_packet_that_calls_itself_longer_than_its_datagram() -> None:
    """Found by the test above."""
    dissects_no_more_than_was_sent(("h3", True, 1282, [(109, 1)]))


def dissects_no_more_than_was_sent(what: tuple[str, bool, int, list[tuple[int, int]]]) -> None:
    """A damaged capture is refused in one line, or what is told of it holds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.pcapng"
        file.write_bytes(damaged(what))
        try:
            found = dissect([file], CAPTURES / f"{what[0]}.keys")
        except TrifectaError as error:
            assert "\n" not in str(error)
            return
        no_more_than_was_sent(found)


def no_more_than_was_sent(found: Dissection) -> None:
    """Whatever was damaged: what is called complete is what was asked, by the client, of this server."""
    for one in found.messages.to_pylist():
        if one["complete"]:
            told = (one["method"], one["path"], one["status"], one["response_body_bytes"])
            assert told in (("GET", "/bytes/3000", 200, 3000), ("GET", "/bytes/4000", 200, 4000))
            assert one["authority"] == "origin.lab:8443"
            assert one["request_start_ns"] <= one["request_end_ns"]
            assert one["response_start_ns"] <= one["response_end_ns"]


words = st.one_of(
    st.text(max_size=8),
    st.integers(-5, 1 << 70).map(str),
    st.integers(0, 1 << 16).map(hex),
    st.sampled_from(["True", "1", "0", "GET", "200"]),
)
fields = st.lists(words, max_size=6).map(AGGREGATOR.join)


def some(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, str]]:
    """A row of tshark's: some fields have words, the others are empty."""
    told = st.dictionaries(st.sampled_from(names), fields, max_size=8)
    return told.map(lambda told: {**dict.fromkeys(names, ""), **told})


@settings(max_examples=100, deadline=None)
@given(some(quic.FIELDS), st.lists(st.sampled_from([0, 2, 6, 8, 10, 15, 24, 49, 300]), max_size=4))
def test_any_words_of_tshark_about_quic(row: dict[str, str], kinds: list[int]) -> None:
    row["quic.frame_type"] = AGGREGATOR.join(map(str, kinds))
    packets = quic.read_packets(row)
    frames = quic.read_frames(row, packets)
    for one in frames or []:
        assert one.packet is None or 0 <= one.packet < len(packets)


def test_a_stream_frame_that_is_only_an_end_has_no_octets() -> None:
    told = {
        "quic.frame_type": ["14", "13"],  # RFC 9000, 19.8: with offset and length; with offset and FIN
        "quic.stream.stream_id": ["0", "4"],
        "quic.stream.offset": ["0", "3"],
        "quic.stream.length": ["3"],
        "quic.stream.fin": ["False", "True"],
        "quic.stream_data": ["616263", "<MISSING>"],
    }
    row = dict.fromkeys(quic.FIELDS, "") | {name: AGGREGATOR.join(values) for name, values in told.items()}
    first, last = quic.read_frames(row, []) or []
    assert (first.stream, first.length, first.data, first.fin) == (0, 3, "616263", False)
    assert (last.stream, last.offset, last.length, last.data, last.fin) == (4, 3, 0, "", True)


def test_octets_that_are_none_end_a_stream_and_nothing_else() -> None:
    reader = StreamReader(control=False)
    reader.add(0, 3, "61zz63", fin=False)
    assert reader.lost
    assert not reader.buffer


@settings(max_examples=100, deadline=None)
@given(some((*tls.FIELDS, *http2.FIELDS, *http1.FIELDS)))
def test_any_words_of_tshark_about_tcp(row: dict[str, str]) -> None:
    two, one, session = http2.Direction(), http1.Direction(), tls.Session()
    for way in (0, 1):
        session.learn(way, row)
        one.learn(way, row, 1, 10)
    two.learn(row, 10)
    http2.gather(0, (two, two), (None, None))


@given(st.binary(max_size=9), st.integers(0, 10))
def test_variable_length_integers(data: bytes, at: int) -> None:
    found = read_varint(data, at)
    if found is not None:
        assert 0 <= found[0] < 1 << 62
        assert at < found[1] <= len(data)


@settings(max_examples=50, deadline=None)
@given(st.permutations(list(range(12))), st.integers(1, 40))
def test_a_stream_is_read_in_any_order(order: list[int], size: int) -> None:
    octets = bytes(at % 251 for at in range(12 * size))
    reader, got = StreamReader(control=False), bytearray()
    for piece in order:
        part = octets[piece * size : (piece + 1) * size]
        assert not reader.lost
        if reader.add(piece * size, len(part), part.hex(), fin=piece == 11):
            got += reader.buffer
            reader.advance(reader.skip_to + len(reader.buffer))
    assert bytes(got) == octets
    assert reader.seen.end == reader.final == len(octets)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30))
def test_coverage_counts_new_octets_exactly(pieces: list[tuple[int, int]]) -> None:
    coverage, seen = Coverage(), np.zeros(100, dtype=bool)
    for start, length in pieces:
        new = int((~seen[start : start + length]).sum())
        assert coverage.add(start, start + length) == new
        seen[start : start + length] = True
    first = int(np.flatnonzero(~seen)[0])
    assert coverage.end == first


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@settings(max_examples=4, deadline=None)
@given(wholes)
def test_some_whole_dissections_of_damaged_captures(what: tuple[str, bool, int, list[tuple[int, int]]]) -> None:
    """A few of those above, every time."""
    dissects_no_more_than_was_sent(what)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["moved", "early"]),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=4),
    st.lists(st.integers(0, 100), max_size=3),
    st.integers(0, 20_000),
)
def test_damaged_captures_of_somebody_else(
    name: str, flips: list[tuple[int, int]], missing: list[int], length: int
) -> None:
    """Octets changed, packets taken out, the file cut."""
    packets = rewrite.read_pcap(CAPTURES / f"aioquic-{name}.pcap")
    data = bytearray(rewrite.pcap(one for place, one in enumerate(packets) if place not in missing))
    for at, value in flips:
        data[at % len(data)] = value
    asked = {"/first", "/second", "/third", "/fourth", "/early", "/shape/0", "/shape/1"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.pcap"
        file.write_bytes(bytes(data[: max(length, 24)]))
        try:
            found = dissect([file], CAPTURES / f"aioquic-{name}.keys")
        except TrifectaError as error:
            assert "\n" not in str(error)
            return
    for one in found.messages.to_pylist():
        if one["complete"]:
            assert one["path"] in asked | {None}
            assert one["response_body_bytes"] == (0 if one["path"] == "/shape/1" else 2000 if name == "moved" else 1000)

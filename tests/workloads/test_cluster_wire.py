"""What head and node say: whole however it is cut, and refused where it is something else."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.design.errors import CannotError
from trifecta.workloads.cluster import wire
from trifecta.workloads.cluster.dispatch import Order
from trifecta.workloads.cluster.wire import Decoder, Message, NodeTask

SOME = [
    Message("beat"),
    Message("ran", cell="path=clean", block=3, files={"trials/t00012.parquet": b"PAR1\0x", "link/t00012.json": b""}),
    Message("ran", files={"trials/t00012.parquet": b"PAR1"}, stored={"samples/t00012.parquet": "0f" * 32}),
    Message("ready", facts={"trifecta": "1", "servers": {}}),
    Message("told", text="größer"),
]


@given(st.lists(st.integers(1, 60), max_size=40))
def test_messages_are_whole_however_they_are_cut(sizes: list[int]) -> None:
    octets = b"".join(map(wire.encode, SOME))
    decoder, found = Decoder(), []
    for size in sizes:
        found += decoder.feed(octets[:size])
        octets = octets[size:]
    found += decoder.feed(octets)
    assert found == SOME


@pytest.mark.parametrize(
    "octets",
    [
        b"trifecta: no such thing\n",
        b"tfn1" + struct.pack(">I", 1 << 30),
        b"tfn1" + struct.pack(">I", 2) + b"{}",
        b"tfn1" + struct.pack(">I", 4) + b"nope",
    ],
)
def test_what_is_no_message_is_refused_in_a_line(octets: bytes) -> None:
    with pytest.raises(CannotError) as said:
        list(Decoder().feed(octets))
    assert "\n" not in str(said.value)


def test_an_unknown_kind_and_a_negative_size_are_refused() -> None:
    good = {"kind": "beat", "text": "", "cell": "", "block": 0, "facts": {}, "files": [], "stored": {}}
    for change in (
        {"kind": "other"},
        {"files": [["trials/t00000.parquet", -1]]},
        {"stored": {"samples/t00000.parquet": "../0f"}},
        {"stored": ["samples/t00000.parquet"]},
    ):
        text = json.dumps(good | change).encode()
        with pytest.raises(CannotError, match="cannot be read"):
            list(Decoder().feed(b"tfn1" + struct.pack(">I", len(text)) + text))


def test_lines_to_a_node_are_read_as_written() -> None:
    asked, order = NodeTask("n\n1", "a: 1\nb: 2\n"), Order("path=clean", 4, 12, "because")
    for line in (wire.asked_line(asked), wire.order_line(order)):
        assert line.count(b"\n") == 1
    assert wire.read_asked(wire.asked_line(asked)) == asked
    assert wire.read_order(wire.order_line(order)) == order

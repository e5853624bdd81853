"""Captures that lack packets say so: which, and what nobody can know because of it."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.trace import rewrite
from trifecta.analysis.transport.trial import look_at
from trifecta.design.errors import UserError
from trifecta.store.trace_schema import TABLES
from trifecta.trace import udp
from trifecta.trace.analyse import analyse
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection
from trifecta.trace.http3 import Connection, StreamReader
from trifecta.trace.messages import _last_new
from trifecta.trace.missing_packets import PacketNumbers
from trifecta.trace.rows import Frames, Part
from trifecta.trace.summary import trace_metrics

CAPTURES = Path(__file__).parent / "captures"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
DOWN = 1 << 63
PROTOCOL_AT = 14 + 9  # of IPv4's header, after Ethernet's
OCTETS = {"h1": 3000, "h2": 4000, "h3": 4000}
REQUESTS = {"h1": 2, "h2": 4, "h3": 4}


def dissected(protocol: str, data: bytes, *, log: bool = False) -> Dissection:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{protocol}.pcapng"
        file.write_bytes(data)
        logs = {file: CAPTURES / f"{protocol}.link.parquet"} if log else None
        return dissect([file], CAPTURES / f"{protocol}.keys", link_logs=logs)


def cut(protocol: str, *gone: int, log: bool = False) -> Dissection:
    """Without these packets, as if the link had seen them on neither side."""
    return dissected(protocol, rewrite.without(CAPTURES / f"{protocol}.pcapng", lambda _, one: one in gone), log=log)


def left(protocol: str, gone: set[int]) -> list[rewrite.Packet]:
    """The packets of the client's side without these."""
    packets = rewrite.read(CAPTURES / f"{protocol}.pcapng", 0)
    return [packet for one, packet in zip(ids(protocol, 0), packets, strict=True) if one not in gone]


def one_side(protocol: str, *gone: int, side: int = 0) -> Dissection:
    """As somebody else would have captured it, at one side."""
    keep = {one: place for place, one in enumerate(ids(protocol, side))}
    places = {keep[one] for one in gone if one in keep}
    packets = rewrite.read(CAPTURES / f"{protocol}.pcapng", side)
    return dissected(protocol, rewrite.pcap(one for place, one in enumerate(packets) if place not in places))


def ids(protocol: str, side: int | None = None) -> list[int]:
    """Packet ids in the order of the file, of one side or each once."""
    data = (CAPTURES / f"{protocol}.pcapng").read_bytes()
    seen = [rewrite.sighting(block) for kind, block in rewrite.blocks(data) if kind == 6]
    return list(dict.fromkeys(one for where, one in seen if side is None or where == side))


def lacks(found: Dissection, connection: int = 0) -> set[str]:
    return set((found.connections["truncated"].to_pylist()[connection] or "").split(","))


def nothing_is_counted(found: Dissection) -> None:
    metrics = trace_metrics(found)
    assert metrics.num_rows > 50
    assert set(metrics["value"].to_pylist()) == {None}
    assert all("packets are missing" in note for note in metrics["note"].to_pylist())


@needs_tshark
def test_quic_packets_that_were_acknowledged_and_not_captured() -> None:
    """Those with the first octets of two responses: what the dissection said nothing of."""
    whole = cut("h3")
    first = [
        one["number"]
        for one in whole.frames.to_pylist()
        if (one["direction"], one["layer"], one["type"], one["offset"]) == ("down", "quic", "STREAM", 0)
        and one["stream"] in (0, 4)
    ]
    gone = {one["packet_id"] for one in whole.packets.to_pylist() if one["number"] in first}
    for found in (cut("h3", *gone), one_side("h3", *gone)):
        assert {"octets", "packets"} <= lacks(found)
        notes = " ".join(found.notes)
        many = len(gone)
        assert f"{many} QUIC packets that were acknowledged are not in the capture (0 up, {many} down)" in notes
        assert "octets of " in notes
        assert "are missing before others" in notes
        bodies = found.messages["response_body_bytes"].to_pylist()
        assert bodies == [None, None, 4000, 4000]
        assert found.messages["response_start_ns"].to_pylist()[:2] == [None, None]
        assert "2 of 4 requests are not whole in the capture" in notes
        assert set(found.messages["packets_down"].to_pylist()) == {None}
        nothing_is_counted(found)
    tables = {name: getattr(found, name) for name in TABLES}
    assert set(look_at(tables).values.values()) == {None}
    told = analyse(cut("h3", *gone)).connections[0]
    assert (told["round_trips_to_response"], told["packets_to_response"], told["time_to_response_ns"]) == (None,) * 3


@needs_tshark
def test_without_the_first_packet_of_a_client_nothing_of_its_connection_is_known() -> None:
    for found in (cut("h3", 0), one_side("h3", 0)):
        assert "its ClientHello is not in the capture" in " ".join(found.notes)
        assert {"start", "keys"} <= lacks(found)
        assert found.messages.num_rows == 0
    # Without any packet of the handshake it looks like nothing.
    found = one_side("h3", *ids("h3", 0)[:3])
    assert "connection 0: UDP that is not read here; QUIC whose first packets are not in the" in " ".join(found.notes)
    # Without the server's first packet nobody knows the connection ID that the client goes on with.
    found = cut("h3", next(one for one in ids("h3") if one & DOWN))
    assert "connection 1: its ClientHello is not in the capture" in " ".join(found.notes)
    assert "start" in lacks(found, 1)
    assert not any("the TLS keys are not theirs" in note for note in found.notes)


def test_without_the_server_hello_nothing_that_follows_is_known() -> None:
    part = Part()
    one = udp._Connection(part)
    one.client_hello = one.answered = True
    one.version, one.closed = "1", 5
    udp._finish(part, 0, one)
    assert part.facts[0].missing == {"start", "keys"}
    assert [note for _, note in part.connection_notes] == [
        "its ServerHello is not in the capture: nothing that is encrypted after it is known"
    ]


@needs_tshark
@pytest.mark.parametrize(("first", "word"), [(0, "a SYN or FIN"), (DOWN, "a SYN or FIN")])
def test_without_a_syn_the_octets_of_tcp_begin_where_they_were_acknowledged(first: int, word: str) -> None:
    whole, found = cut("h2"), cut("h2", first)
    assert word in " ".join(found.notes)
    assert ("start" in lacks(found)) == (first == 0)
    kept = [name for name in found.messages.column_names if not name.startswith("packets")]
    assert found.messages.select(kept).equals(whole.messages.select(kept))
    sequences = {one["packet_id"]: one["sequence"] for one in whole.packets.to_pylist()}
    assert all(one["sequence"] == sequences[one["packet_id"]] for one in found.packets.to_pylist())
    nothing_is_counted(found)


@needs_tshark
def test_octets_that_follow_a_missing_syn_are_missing_too() -> None:
    """The server's SYN and its first data: the client's acknowledgements tell where its octets begin."""
    whole, found = cut("h2"), cut("h2", DOWN, *(one for one in ids("h2") if DOWN < one <= DOWN | 3))
    assert "octets from 1 on are missing down" in " ".join(found.notes)
    sequences = {one["packet_id"]: one["sequence"] for one in whole.packets.to_pylist()}
    assert all(one["sequence"] == sequences[one["packet_id"]] for one in found.packets.to_pylist())


@needs_tshark
def test_packets_without_octets_tell_how_far_their_sender_had_come() -> None:
    """Of the second connection one SYN, one acknowledgement and one FIN, all of the client."""
    rows = [one for one in one_side("h1").packets.to_pylist() if one["connection"] == 1]
    order = ids("h1", 0)
    mine = {order[one["number"] - 1]: one for one in rows}
    gone = [one for one, row in mine.items() if row["direction"] == "down" or row["payload_bytes"]]
    found = one_side("h1", *gone)
    assert "connection 1: octets from 1 on are missing up" in " ".join(found.notes)
    assert lacks(found, 1) == {"octets"}


@needs_tshark
def test_octets_of_tcp_that_were_acknowledged_and_not_captured() -> None:
    """The last data of the server; behind it comes nothing but a FIN, so that no hole is seen."""
    whole = cut("h2").packets.to_pylist()
    data = [one for one in whole if one["direction"] == "down" and one["side"] == "b" and one["payload_bytes"]]
    last = max(data, key=lambda one: one["sequence"])
    gone = {one["packet_id"] for one in data if one["sequence"] == last["sequence"]}
    for found in (cut("h2", *gone), one_side("h2", *gone)):
        octets = last["payload_bytes"]
        assert f"{octets} octets that were acknowledged are not in the capture (0 up, {octets} down)" in " ".join(
            found.notes
        )
        assert {"octets", "packets"} <= lacks(found)
        nothing_is_counted(found)


def unacknowledged(found: Dissection) -> int:
    """The id of a packet of the client that only acknowledges, with others before and behind it."""
    packets = found.packets.to_pylist()
    up = [one for one in packets if one["direction"] == "up" and one["side"] == "a"]
    pure = [one for one in up[:-2] if one["flags"] == "ACK" and not one["payload_bytes"]]
    return int(pure[len(pure) // 2]["packet_id"])


@needs_tshark
def test_numbers_of_the_link_tell_of_packets_that_nobody_acknowledges() -> None:
    """A packet that only acknowledges, seen on neither side; then one that is not seen where it went."""
    whole = cut("h2", log=True)
    assert not any(word in note for note in whole.notes for word in ("missing", "dropped", "whole", "cannot"))
    assert lacks(whole) == {""}
    gone = unacknowledged(whole)
    found = cut("h2", gone)
    assert "1 packet that came to the link cannot be found" in " ".join(found.notes)
    assert lacks(found) == {"packets"}
    assert found.messages["response_body_bytes"].to_pylist() == [4000] * 4
    nothing_is_counted(found)
    data = rewrite.without(CAPTURES / "h2.pcapng", lambda side, one: side == 1 and one == gone)
    assert lacks(dissected("h2", data, log=True)) == {"packets"}
    # Without the log it may have been lost. But where the link says that it left out something, nobody knows.
    assert lacks(dissected("h2", data)) == {""}
    assert lacks(dissected("h2", data + rewrite.statistics((0, 0)))) == {""}
    found = dissected("h2", data + rewrite.statistics((0, 1)))
    assert lacks(found) == {"packets"}
    assert "1 packet was dropped by the capturing program" in " ".join(found.notes)


@needs_tshark
def test_numbers_of_the_link_tell_which_connection_lacks_packets() -> None:
    packets = [one for one in cut("h1").packets.to_pylist() if one["connection"] == 0 and one["direction"] == "up"]
    pure = [one["packet_id"] for one in packets[:-4] if one["flags"] == "ACK" and not one["payload_bytes"]]
    found = cut("h1", pure[-1], log=True)
    assert "packets" in lacks(found, 0)
    assert "acknowledged" not in " ".join(found.notes)


def test_a_stream_without_its_fields_is_a_request_too() -> None:
    http3 = Connection(Frames())
    http3.add(0, 1, 4, (100, 3, "010203", True))
    (message,) = http3.finish()
    assert (message.stream, message.method, [half.ended for half in message.halves]) == (4, None, [False, False])
    assert http3.holes() == (100, 1)


def test_the_last_octets_that_the_client_did_not_see() -> None:
    offset, length, seen = (np.array(one) for one in ([0, 5, 5, 10], [5, 5, 5, 5], [0, 1, 2, -1]))
    assert _last_new(offset, length, np.array([10, 20, 30, 40]), seen) == (10, None)
    assert _last_new(offset, length, np.array([10, 20, 30, 40]), np.array([0, 1, 2, 3])) == (10, 40)
    assert _last_new(offset + 1, length, np.array([10, 20, 30, 40]), np.array([0, 1, 2, 3])) == (None, None)


@needs_tshark
def test_a_response_whose_end_did_not_come_to_the_client_has_no_end() -> None:
    """Its sender's side has all of it; at the client's the last packet with octets of it is not there."""
    whole = cut("h3", log=True)
    rows = [one for one in whole.frames.to_pylist() if (one["direction"], one["type"]) == ("down", "STREAM")]
    last = max(one["number"] for one in rows if one["stream"] == 12)
    (gone,) = (one["packet_id"] for one in whole.packets.to_pylist() if one["number"] == last)
    data = rewrite.without(CAPTURES / "h3.pcapng", lambda side, one: (side, one) == (0, gone))
    for found in (dissected("h3", data, log=True), dissected("h3", data)):
        told = found.messages.to_pylist()
        assert [one["response_end_ns"] is None for one in told] == [False, False, False, True]
        assert [one["complete"] for one in told] == [True, True, True, False]
        assert [one["response_body_bytes"] for one in told] == [4000] * 4


@needs_tshark
def test_what_was_taken_out_of_a_whole_capture_is_no_fault_of_the_link() -> None:
    gone = unacknowledged(cut("h2"))
    data = rewrite.without(CAPTURES / "h2.pcapng", lambda _, one: one == gone) + rewrite.statistics((0, 0))
    found = dissected("h2", data)
    assert "taken out after the capture" in " ".join(found.notes)
    assert lacks(found) == {""}


@needs_tshark
@pytest.mark.parametrize("code", [5, 7])
def test_whoever_captured_says_what_was_dropped(code: int) -> None:
    """As dumpcap does: isb_ifdrop, isb_osdrop. Of several blocks of an interface the last one counts."""
    packets = rewrite.read(CAPTURES / "h1.pcapng")
    data = rewrite.pcapng(packets, (1,), (CAPTURES / "h1.keys").read_bytes())
    found = dissected("h1", data + rewrite.statistics((3,), code) + rewrite.statistics((12,), code))
    assert [note for note in found.notes if "dropped" in note] == [
        "12 packets were dropped by the capturing program: they are not in the file"
    ]
    assert found.messages["complete"].to_pylist() == [True, True]


def test_packet_numbers_that_were_acknowledged() -> None:
    numbers = PacketNumbers()
    for number in (0, 1, 2, 5, 9):
        numbers.see(0, "application", number)
    numbers.see(0, "initial", 3)
    numbers.acknowledge(1, "application", [(0, 2)])
    assert numbers.missing(0) == 0
    numbers.acknowledge(1, "application", [(5, 8), (0, 3)])
    numbers.acknowledge(1, "initial", [(0, 0)])
    assert (numbers.missing(0), numbers.missing(1)) == (5, 0)  # 3, 6, 7, 8; and 0 of the other space
    numbers.acknowledge(1, "application", [(4, 4), (6, 9), (1 << 70, 1 << 71)])
    assert numbers.missing(0) == 6
    numbers.unread[0] = 4  # these may be any of them
    assert numbers.missing(0) == 2


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8))), st.sets(st.integers(0, 40)))
def test_ranges_are_counted_once(ranges: list[tuple[int, int]], seen: set[int]) -> None:
    numbers = PacketNumbers()
    for number in seen:
        numbers.see(1, "application", number)
    numbers.acknowledge(0, "application", [(first, first + more) for first, more in ranges])
    told = {number for first, more in ranges for number in range(first, first + more + 1)}
    assert numbers.missing(1) == len(told - seen)


def test_a_long_stream_that_always_waits_for_something_can_be_read() -> None:
    """What waits is what counts, not what ever waited: 200 MB in pieces of which every second comes late."""
    reader, piece = StreamReader(control=False), 100_000
    data = "00" * piece
    for number in range(0, 2_000, 2):
        # The next hole opens before the one before it is filled, so that something always waits.
        reader.add((number + 1) * piece, piece, data, fin=False)
        reader.add((number + 3) * piece, piece, data, fin=False)
        reader.add(number * piece, piece, data, fin=False)
        reader.advance(reader.skip_to + len(reader.buffer))
        assert reader.lost is None
        assert reader.waiting_octets == sum(len(one) // 2 for one in reader.waiting.values()) == piece
    assert reader.skip_to == 2_000 * piece


def test_what_waits_for_octets_that_never_come_is_given_up_and_said() -> None:
    reader, piece = StreamReader(control=False), 1 << 20
    reader.add(0, 3, "000401", fin=False)  # a DATA frame of four octets
    reader.advance(3)
    for number in range(1, 20):
        reader.add(number * piece, piece, "00" * piece, fin=number == 19)
    assert reader.lost is not None
    assert "16 MiB" in reader.lost
    reader.add(3, piece, "00" * piece, fin=False)
    assert reader.hole == 0
    assert not reader.is_complete  # all octets were there, but nobody read them


def holds(found: Dissection, protocol: str) -> None:
    """What is told is right, and what is not told is not told in silence."""
    octets = OCTETS[protocol]
    rows = found.messages.to_pylist()
    for one in rows:
        assert one["response_body_bytes"] in (octets, None)
        assert one["request_body_bytes"] in (0, None)
        if one["complete"]:
            assert (one["response_body_bytes"], one["request_body_bytes"]) == (octets, 0)
            assert (one["method"], one["status"], one["path"]) == ("GET", 200, f"/bytes/{octets}")
    if sum(one["complete"] for one in rows) < REQUESTS[protocol]:
        # One that begins or ends in the middle may do so because the capture does.
        assert found.notes or any(found.connections["truncated"].to_pylist())


@functools.cache
def known(protocol: str) -> tuple[dict[tuple[Any, ...], set[Any]], frozenset[int]]:
    """Values of every metric of a whole capture, and the packets with which a connection begins or ends in a direction.

    That one of these is missing and was never acknowledged nobody can see.
    """
    found = cut(protocol, log=True)
    told: dict[tuple[Any, ...], set[Any]] = {}
    for row in trace_metrics(found).to_pylist():
        told.setdefault((row["direction"], row["family"], row["metric"]), set()).add(row["value"])
    ways: dict[tuple[int, str], list[int]] = {}
    for row in found.packets.to_pylist():
        ways.setdefault((row["connection"], row["direction"]), []).append(row["packet_id"])
    return told, frozenset(edge for way in ways.values() for edge in (min(way), max(way)))


def metrics_hold(found: Dissection, protocol: str) -> None:
    """Every number that is told is that of the whole capture."""
    for row in trace_metrics(found).to_pylist():
        values = known(protocol)[0][row["direction"], row["family"], row["metric"]]
        assert row["value"] is None or row["value"] in values, (row, values)


# One range or some packets here and there: where they begin and how many, as shares of the file.
removals = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 12)), min_size=1, max_size=4)


def some_packets_are_missing(protocol: str, parts: list[tuple[float, int]], kind: str) -> None:
    there = ids(protocol, 0 if kind == "one side" else None)
    gone = {one for start, count in parts for one in there[int(start * len(there)) :][:count]}
    if kind == "one side" and not any(one.octets[PROTOCOL_AT] in (6, 17) for one in left(protocol, gone)):
        with pytest.raises(
            UserError, match=r"nothing in it can be read: .*(neither TCP nor UDP|there is no packet in it)"
        ):
            one_side(protocol, *gone)
        return
    if kind == "one side":
        found = one_side(protocol, *gone)
    elif kind == "far":  # each is seen where it came in, and not where it went
        source = CAPTURES / f"{protocol}.pcapng"
        found = dissected(
            protocol, rewrite.without(source, lambda side, one: side != one >> 63 and one in gone), log=True
        )
    else:
        found = cut(protocol, *gone, log=True)
    if gone >= set(there[min(there.index(one) for one in gone) :]):  # no more than a capture that ends early
        return
    holds(found, protocol)
    if kind == "far" or (kind == "both sides" and not gone & known(protocol)[1]):
        metrics_hold(found, protocol)


kinds = st.sampled_from(["both sides", "one side", "far"])


@needs_tshark
@settings(max_examples=8, deadline=None)
@given(st.sampled_from(["h1", "h2", "h3"]), removals, kinds)
@example("h3", [(0.0, 8), (0.84375, 3), (0.375, 10)], "one side")  # what is left is an ICMP message
def test_packets_are_missing_here_and_there(protocol: str, parts: list[tuple[float, int]], kind: str) -> None:
    some_packets_are_missing(protocol, parts, kind)


@needs_tshark
@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["h1", "h2", "h3"]), removals, kinds)
def test_packets_are_missing_anywhere(protocol: str, parts: list[tuple[float, int]], kind: str) -> None:
    some_packets_are_missing(protocol, parts, kind)

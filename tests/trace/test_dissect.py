"""What a dissection says of small captures whose making is known (tests/trace/captures/README.md)."""

from __future__ import annotations

import itertools
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trifecta.design.errors import CannotError, UserError
from trifecta.store.trace_schema import SCHEMAS, TABLES
from trifecta.trace.assemble import assemble
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection

CAPTURES = Path(__file__).parent / "captures"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
DOWN = 1 << 63


def known(protocol: str) -> Dissection:
    log = CAPTURES / f"{protocol}.link.parquet"
    capture = CAPTURES / f"{protocol}.pcapng"
    return dissect([capture], CAPTURES / f"{protocol}.keys", link_logs={capture: log})


@pytest.fixture(scope="module")
def h1() -> Dissection:
    return known("h1")


@pytest.fixture(scope="module")
def h2() -> Dissection:
    return known("h2")


@pytest.fixture(scope="module")
def h3() -> Dissection:
    return known("h3")


def rows(table: Any, **where: Any) -> list[dict[str, Any]]:
    return [one for one in table.to_pylist() if all(one[key] == value for key, value in where.items())]


@needs_tshark
@pytest.mark.parametrize(("protocol", "requests", "octets"), [("h1", 2, 3000), ("h2", 4, 4000), ("h3", 4, 4000)])
def test_messages_have_one_shape_for_all_protocols(
    request: pytest.FixtureRequest, protocol: str, requests: int, octets: int
) -> None:
    found: Dissection = request.getfixturevalue(protocol)
    assert {name: getattr(found, name).schema for name in TABLES} == {
        name: one.arrow() for name, one in SCHEMAS.items()
    }
    messages = found.messages.to_pylist()
    assert len(messages) == requests
    for one in messages:
        assert one["protocol"] == protocol
        told = {key: one[key] for key in ("method", "authority", "path", "status", "complete")}
        path = f"/bytes/{octets}"
        assert told == {
            "method": "GET",
            "authority": "origin.lab:8443",
            "path": path,
            "status": 200,
            "complete": True,
        }
        assert (one["request_body_bytes"], one["response_body_bytes"]) == (0, octets)
        assert one["request_header_bytes"] > 20
        assert one["response_header_bytes"] > 30
        # 10 ms there and 10 ms back, and nothing in between but the server.
        assert 20_000_000 <= one["response_start_ns"] - one["request_end_ns"] < 60_000_000
        assert one["request_start_ns"] <= one["request_end_ns"]
        assert one["response_start_ns"] <= one["response_end_ns"]
        assert one["packets_up"] == 1
        assert one["packets_down"] >= -(-octets // 1452)
    connection = found.connections.to_pylist()[0]
    assert (connection["protocol"], connection["tls_version"], connection["decrypted"]) == (protocol, "1.3", True)
    assert (connection["cipher"], connection["key_exchange"]) == ("TLS_AES_128_GCM_SHA256", "X25519")
    assert connection["truncated"] is None


@needs_tshark
def test_both_sides_of_the_link_are_joined(h2: Dissection, h3: Dissection) -> None:
    for found, dropped in ((h2, 8), (h3, 6)):
        lost = rows(found.packets, fate="lost")
        assert [(one["packet_id"], one["side"], one["direction"]) for one in lost] == [(DOWN | dropped, "b", "down")]
        assert lost[0]["delay_ns"] is None
        others = [one for one in found.packets.to_pylist() if one["packet_id"] != DOWN | dropped]
        twice = {one["packet_id"] for one in others if one["side"] == ("b" if one["direction"] == "up" else "a")}
        for one in others:
            assert one["fate"] == ("delivered" if one["packet_id"] in twice else "under_way")
            assert (one["delay_ns"] is not None) == (one["packet_id"] in twice)
            assert one["delay_ns"] is None or 10_000_000 <= one["delay_ns"] < 60_000_000
        assert len(twice) > 15
        assert {(one["side"], one["direction"]) for one in others} == set(itertools.product("ab", ("up", "down")))
        for column in ("info", "sequence", "packet_number", "frames", "retransmission"):
            by_id: dict[int, set[Any]] = {}
            for one in others:
                by_id.setdefault(one["packet_id"], set()).add(one[column])
            assert all(len(values) == 1 for values in by_id.values()), column


@needs_tshark
def test_a_kept_capture_says_by_itself_what_the_log_says(h2: Dissection, tmp_path: Path) -> None:
    log, kept = CAPTURES / "h2.link.parquet", tmp_path / "kept.pcapng"
    assemble(CAPTURES / "h2.pcapng", kept, log=log)
    found = dissect([kept], CAPTURES / "h2.keys")
    said = {(one["packet_id"], one["side"]): one["fate"] for one in h2.packets.to_pylist()}
    assert {(one["packet_id"], one["side"]): one["fate"] for one in found.packets.to_pylist()} == said
    late = [identity for (identity, _), fate in said.items() if fate == "under_way"]
    assert late
    # What the log names as delivered had left, though the capture does not have it.
    table = pq.read_table(log)
    more = [
        dict.fromkeys(table.column_names) | {"direction": identity >> 63, "ordinal": identity & DOWN - 1}
        | {"fate": "delivered", "arrived_ns": 0, "bytes": 60, "flow_hash": 0}
        for identity in late
    ]  # fmt: skip
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist(more, table.schema)]), tmp_path / "log.parquet")
    capture = CAPTURES / "h2.pcapng"
    found = dissect([capture], CAPTURES / "h2.keys", link_logs={capture: tmp_path / "log.parquet"})
    assert {one["fate"] for one in found.packets.to_pylist() if one["packet_id"] in late} == {"delivered"}


@needs_tshark
def test_what_the_link_dropped_is_sent_again(h2: Dissection, h3: Dissection) -> None:
    again = rows(h2.packets, retransmission=True, side="b")
    (lost,) = rows(h2.packets, fate="lost")
    assert [(one["sequence"], one["payload_bytes"]) for one in again] == [(lost["sequence"], lost["payload_bytes"])]
    # QUIC: the lost packet's frames are known, for its sender's side was captured; their octets come again.
    (lost,) = rows(h3.packets, fate="lost")
    streams = rows(h3.frames, number=lost["number"], layer="quic", type="STREAM")
    assert streams
    for one in streams:
        octets = set(range(one["offset"], one["offset"] + one["length"]))
        for other in rows(h3.frames, layer="quic", type="STREAM", stream=one["stream"], direction="down"):
            if other["number"] > lost["number"]:
                octets -= set(range(other["offset"], other["offset"] + other["length"]))
        assert not octets


@needs_tshark
def test_http2_frames_lie_in_records_and_these_in_tcp(h2: Dissection) -> None:
    for direction, preface in (("up", 24), ("down", 0)):
        frames = rows(h2.frames, layer="h2", direction=direction)
        records = rows(h2.frames, layer="tls", direction=direction)
        assert frames[0]["offset"] == preface
        for one, following in itertools.pairwise(frames):
            assert following["offset"] == one["offset"] + one["wire_length"]
        # RFC 8446 5.2: a tag of 16 octets and one for the type.
        plain = [one for one in records if one["type"] == "application_data"]
        assert frames[-1]["offset"] + frames[-1]["wire_length"] == sum(one["length"] - 17 for one in plain)
        assert records[0]["tcp_start"] == 1
        for one, following in itertools.pairwise(records):
            assert following["tcp_start"] == one["tcp_end"]
        edges = {one["tcp_start"] for one in plain}, {one["tcp_end"] for one in plain}
        packets = {one["number"]: one for one in h2.packets.to_pylist()}
        for one in frames:
            assert one["tcp_start"] in edges[0]
            assert one["tcp_end"] in edges[1]
            packet = packets[one["number"]]
            assert packet["sequence"] < one["tcp_end"] <= packet["sequence"] + packet["payload_bytes"]
    data = rows(h2.frames, layer="h2", type="DATA")
    assert sum(one["length"] for one in data) == 4 * 4000
    assert sum(one["fin"] for one in data) == 4


@needs_tshark
def test_quic_packets_and_frames_are_told_apart(h3: Dissection) -> None:
    packets = h3.packets.to_pylist()
    coalesced = next(one for one in packets if "," in (one["packet_type"] or "") and one["direction"] == "down")
    assert coalesced["packet_type"] == "Initial,Handshake,1-RTT"
    assert coalesced["packet_number"] == "0,0,0"
    assert coalesced["header_form"] == "long,short"
    spaces = [one["packet_space"] for one in rows(h3.frames, number=coalesced["number"], layer="quic")]
    assert spaces[:2] == ["initial", "initial"]
    assert spaces == sorted(spaces, key=["initial", "handshake", "application"].index)
    assert coalesced["frames"].count(";") == 2
    # Every octet of a datagram is a header, a frame, or a tag (RFC 9001 5.3).
    sums: dict[int, int] = {}
    for one in rows(h3.frames, layer="quic"):
        sums[one["number"]] = sums.get(one["number"], 0) + one["wire_length"]
    for one in packets:
        if one["number"] in sums:
            tags = 16 * len(one["packet_type"].split(","))
            assert one["payload_bytes"] == one["quic_header_bytes"] + tags + sums[one["number"]]
    acknowledgement = next(one for one in reversed(packets) if one["acknowledged_ranges"] and one["direction"] == "up")
    for first, last in json.loads(acknowledgement["acknowledged_ranges"]):
        assert 0 <= first <= last
    frames = rows(h3.frames, layer="h3", type="DATA")
    assert sum(one["length"] for one in frames) == 4 * 4000
    delays = [one["ack_delay_ns"] for one in rows(h3.frames, layer="quic", type="ACK")]
    assert all(delay is not None and 0 <= delay < 100_000_000 for delay in delays)


@needs_tshark
def test_http1_messages_tile_the_plaintext(h1: Dissection) -> None:
    for connection in (0, 1):
        down = rows(h1.frames, layer="h1", direction="down", connection=connection)
        assert [(one["type"], one["length"]) for one in down][1] == ("DATA", 3000)
        assert down[0]["offset"] == 0
        assert down[1]["offset"] == down[0]["length"]
    assert h1.connections["connection"].to_pylist() == [0, 1]


@needs_tshark
@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_without_keys_only_headers_tell(protocol: str) -> None:
    found = dissect([CAPTURES / f"{protocol}.pcapng"])
    assert found.messages.num_rows == 0
    assert not rows(found.frames, layer="h2") + rows(found.frames, layer="h3") + rows(found.frames, layer="h1")
    assert "no TLS keys were given" in " ".join(found.notes)
    for one in found.connections.to_pylist():
        assert one["decrypted"] is False
        assert one["truncated"] == "keys"
    if protocol == "h3":
        kinds = {one["packet_type"] for one in found.packets.to_pylist()}
        assert "Initial" in kinds
        # The number of a protected packet cannot be seen (RFC 9001 5.4), that of an Initial packet can.
        for one in found.packets.to_pylist():
            numbers = (one["packet_number"] or "").split(",")
            if one["packet_type"] == "1-RTT":
                assert one["packet_number"] is None
            elif one["packet_type"] == "Initial,Handshake,1-RTT":
                assert [bool(number) for number in numbers] == [True, False, False]


@needs_tshark
def test_wrong_keys_are_said_to_be_wrong() -> None:
    found = dissect([CAPTURES / "h2.pcapng"], CAPTURES / "h1.keys")
    assert found.messages.num_rows == 0
    assert "the TLS keys are not theirs" in " ".join(found.notes)


@needs_tshark
def test_several_captures_make_one_set_of_tables(tmp_path: Path) -> None:
    files = [CAPTURES / "h1.pcapng", CAPTURES / "h2.pcapng"]
    keys = tmp_path / "keys"
    keys.write_bytes(b"".join((CAPTURES / f"{one}.keys").read_bytes() for one in ("h1", "h2")))
    found = dissect(files, keys, tmp_path / "out", csv=True)
    assert found.connections["connection"].to_pylist() == [0, 1, 2]
    assert set(found.frames["connection"].to_pylist()) == {0, 1, 2}
    assert found.packets["capture"].unique().to_pylist() == ["h1", "h2"]
    for name in TABLES:
        assert pq.read_table(tmp_path / "out" / f"{name}.parquet").equals(getattr(found, name))
        assert (tmp_path / "out" / f"{name}.csv").read_text().count("\n") >= getattr(found, name).num_rows + 1


def cut(file: Path, octets: int) -> bytes:
    return file.read_bytes()[:octets]


@needs_tshark
def test_a_capture_cut_in_the_middle_gives_what_is_there(tmp_path: Path) -> None:
    whole = (CAPTURES / "h2.pcapng").read_bytes()
    file = tmp_path / "cut.pcapng"
    file.write_bytes(whole[: len(whole) // 2])
    found = dissect([file], CAPTURES / "h2.keys")
    assert "the file is cut in packet" in " ".join(found.notes)
    assert 0 < found.packets.num_rows < 59
    (connection,) = found.connections.to_pylist()
    assert connection["truncated"] == "end"
    unfinished = [one for one in found.messages.to_pylist() if not one["complete"]]
    assert unfinished
    assert all(one["response_end_ns"] is None for one in unfinished)


@needs_tshark
def test_a_hole_in_the_octets_ends_what_is_known(tmp_path: Path) -> None:
    """One packet from the server is taken out on both sides, as a capture that missed it would have it."""
    data, kept, at = (CAPTURES / "h2.pcapng").read_bytes(), b"", 0
    taken = 0
    while at < len(data):
        kind, total = struct.unpack_from("<II", data, at)
        block = data[at : at + total]
        at += total
        if kind == 6:
            (length,) = struct.unpack_from("<I", block, 20)
            (identity,) = struct.unpack_from("<Q", block, 28 + -(-length // 4) * 4 + 12)
            if identity == DOWN | 7:
                taken += 1
                continue
        kept += block
    assert taken == 2
    file = tmp_path / "hole.pcapng"
    file.write_bytes(kept)
    found = dissect([file], CAPTURES / "h2.keys")
    assert "are missing down" in " ".join(found.notes)
    assert found.connections["truncated"].to_pylist() == ["octets,packets"]
    assert not all(found.messages["complete"].to_pylist())


@needs_tshark
def test_what_is_no_capture_is_named(tmp_path: Path) -> None:
    garbage, empty = tmp_path / "garbage.pcap", tmp_path / "empty.pcap"
    garbage.write_bytes(np.random.default_rng(1).bytes(5000))
    empty.touch()
    for path, word in ((garbage, "neither pcap nor pcapng"), (empty, "is empty"), (tmp_path, "folder")):
        with pytest.raises(UserError, match=word):
            dissect([path])
    with pytest.raises(UserError, match="No such file"):
        dissect([tmp_path / "none.pcap"])
    with pytest.raises(UserError, match="is not a TLS key log"):
        dissect([CAPTURES / "h2.pcapng"], garbage)


def test_a_missing_tshark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CannotError, match="apt-get install tshark"):
        dissect([CAPTURES / "h2.pcapng"])

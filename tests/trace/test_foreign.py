"""Captures that somebody else made, in all the ways in which tools write them: the same packets, the same tables."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.trace import rewrite
from tests.trace.rewrite import (
    COOKED,
    COOKED_2,
    ETHERNET,
    IEEE_802_11,
    LOOPBACK,
    PPP,
    PPP_ETHER,
    PPP_SERIAL,
    RADIOTAP,
    RAW,
    Packet,
)
from tests.trace.talk import DOWN, UP, Secure, Talk, secured
from trifecta.design.errors import UserError
from trifecta.lab.certificates import make_certificates
from trifecta.trace.capture_file import read_capture
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection
from trifecta.trace.headers import parse_headers

CAPTURES = Path(__file__).parent / "captures"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

# name: link type, what it does to a packet, and the octets that it adds to each
FORMS: dict[str, tuple[int, Callable[[bytes], bytes], int]] = {
    "ethernet": (ETHERNET, bytes, 0),
    "loopback": (LOOPBACK, rewrite.loopback, -10),
    "raw": (RAW, rewrite.raw, -14),
    "cooked": (COOKED, rewrite.cooked, 2),
    "cooked_2": (COOKED_2, rewrite.cooked_2, 6),
    "vlan": (ETHERNET, rewrite.tagged, 4),
    "vlan in vlan": (ETHERNET, rewrite.tagged_twice, 8),
    "ipv6": (ETHERNET, rewrite.as_ipv6, 20),
    "ipv6 with extensions": (COOKED, lambda octets: rewrite.cooked(rewrite.as_ipv6(octets, bytes(16))), 38),
    "raw ipv6": (RAW, lambda octets: rewrite.as_ipv6(octets)[14:], 6),
    "loopback ipv6": (LOOPBACK, lambda octets: rewrite.loopback(rewrite.as_ipv6(octets)), 10),
    "ipv4 with options": (ETHERNET, rewrite.with_ipv4_options, 8),
    "ppp": (PPP, rewrite.ppp, -10),
    "ppp ipv6, compressed": (PPP, lambda octets: rewrite.ppp_short(rewrite.as_ipv6(octets)), 7),
    "ppp serial": (PPP_SERIAL, rewrite.ppp, -10),
    "ppp over ethernet": (PPP_ETHER, rewrite.ppp_over_ethernet, -6),
    "pppoe session": (ETHERNET, rewrite.session_in_ethernet, 8),
    "mpls": (ETHERNET, rewrite.labelled, 8),
    "wireless": (IEEE_802_11, rewrite.wireless, 20),
    "radiotap": (RADIOTAP, rewrite.radiotap, 47),
}
_CHANGED = {"capture", "number", "connection", "side", "packet_id", "client", "server", "client_port"}
_CHANGED |= {"source", "destination", "source_port", "destination_port", "wire_bytes", "captured_bytes"}
_CHANGED |= {"ip_header_bytes", "largest_wire_bytes", "info", "fate", "delay_ns"}


def without(table: Any, connection: int) -> list[dict[str, Any]]:
    """The rows of a connection, without what depends on where it was captured."""
    mine = table.filter(pc.equal(table["connection"], connection)).to_pylist()
    return [{name: value for name, value in row.items() if name not in _CHANGED} for row in mine]


def every_form(protocol: str, names: list[str]) -> list[Packet]:
    """One connection in many forms, each from a client of its own, packet by packet in turn."""
    packets = rewrite.read(CAPTURES / f"{protocol}.pcapng")
    found = []
    for number, name in enumerate(names):
        _, change, _ = FORMS[name]
        client = bytes([192, 0, 2, number + 1])
        moved = rewrite.again(packets, lambda octets, client=client: rewrite.with_client(octets, client))  # type: ignore[misc]
        found += rewrite.again(moved, change, side=number)
    return sorted(found, key=lambda one: one.time_ns)


@needs_tshark
def test_the_same_packets_say_the_same_whatever_carries_them(tmp_path: Path) -> None:
    """HTTP/2 on every link type, interleaved in one file: as many connections at the same time."""
    names = list(FORMS)
    file = tmp_path / "forms.pcapng"
    file.write_bytes(rewrite.pcapng(every_form("h2", names), tuple(FORMS[name][0] for name in names)))
    found = dissect([file], CAPTURES / "h2.keys")
    assert found.connections.num_rows == len(names)
    plain = {name: without(getattr(found, name), 0) for name in ("packets", "frames", "messages")}
    assert [(one["status"], one["response_body_bytes"], one["complete"]) for one in plain["messages"]] == [
        (200, 4000, True)
    ] * 4
    by_client = {one["client"]: one for one in found.connections.to_pylist()}
    assert len(by_client) == len(names)
    for number, name in enumerate(names):
        six = f"fd88::{0xC000:x}:{0x200 + number + 1:x}"
        (client,) = (one for one in by_client if one in (f"192.0.2.{number + 1}", six))
        row = by_client[client]
        assert (":" in client) == ("ipv6" in name)
        for table, rows in plain.items():
            assert without(getattr(found, table), row["connection"]) == rows, (name, table)
        assert row["wire_bytes"] == by_client["192.0.2.1"]["wire_bytes"] + FORMS[name][2] * row["packets"], name
        assert (row["truncated"], row["decrypted"]) == (None, True)
    # With an extension header a packet is longer than Ethernet's.
    assert [note[:30] for note in found.notes] == ["frames are not wire packets he"]


@needs_tshark
@pytest.mark.parametrize("name", ["cooked_2", "vlan", "raw ipv6"])
def test_quic_says_the_same_whatever_carries_it(tmp_path: Path, name: str) -> None:
    """Connection IDs distinguish connections, so each form is a capture of its own."""
    files = []
    for form in ("ethernet", name):
        files.append(tmp_path / f"{form}.pcapng")
        files[-1].write_bytes(rewrite.pcapng(every_form("h3", [form]), (FORMS[form][0],)))
    found = dissect(files, CAPTURES / "h3.keys")
    assert found.messages["response_body_bytes"].to_pylist() == [4000] * 8
    for table in ("packets", "frames", "messages"):
        assert without(getattr(found, table), 0) == without(getattr(found, table), 1), table
    first, second = found.connections["wire_bytes"].to_pylist()
    assert second == first + FORMS[name][2] * found.connections["packets"][0].as_py()


@needs_tshark
@pytest.mark.parametrize("port", [34962, 34980, 37008, 44818, 47808, 4342])
def test_quic_is_quic_from_a_port_of_another_protocol(tmp_path: Path, port: int) -> None:
    """PROFINET, EtherCAT, TZSP, EtherNet/IP, BACnet, LISP: the kernel gives a client any of these."""
    packets = rewrite.again(rewrite.read(CAPTURES / "h3.pcapng"), lambda octets: rewrite.with_client(octets, port=port))
    file = tmp_path / "port.pcap"
    file.write_bytes(rewrite.pcap(packets))
    found = dissect([file], CAPTURES / "h3.keys")
    assert found.messages["response_body_bytes"].to_pylist() == [4000] * 4


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("unit_ns", [1, 1000])
def test_all_kinds_of_pcap(tmp_path: Path, order: str, unit_ns: int) -> None:
    packets = rewrite.read(CAPTURES / "h1.pcapng")
    file = tmp_path / "x.pcap"
    file.write_bytes(rewrite.pcap(packets, order=order, unit_ns=unit_ns))
    capture = read_capture(file)
    assert capture.time_ns.tolist() == [one.time_ns // unit_ns * unit_ns for one in packets]
    assert capture.wire.tolist() == [one.wire for one in packets]
    assert capture.packet_id is None
    assert parse_headers(capture).payload.sum() > 6000


@needs_tshark
@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_packets_cut_by_the_snapshot_length(tmp_path: Path, protocol: str) -> None:
    """Headers tell the truth still; nothing is said of what is inside."""
    packets, file = rewrite.read(CAPTURES / f"{protocol}.pcapng"), tmp_path / "cut.pcap"
    file.write_bytes(rewrite.pcap(packets))
    whole = dissect([file])
    file.write_bytes(rewrite.pcap(rewrite.cut(packets, 96)))
    found = dissect([file], CAPTURES / f"{protocol}.keys")
    for name in ("time_ns", "wire_bytes", "payload_bytes", "sequence", "acknowledged", "window", "retransmission"):
        assert found.packets[name].equals(whole.packets[name]), name
    assert pc.max(found.packets["captured_bytes"]).as_py() == 96
    (row,) = found.connections.to_pylist()
    assert "octets" in row["truncated"]
    assert any("snapshot length" in note for note in found.notes)
    assert not any(one["complete"] or one["response_end_ns"] for one in found.messages.to_pylist())
    known = [one for one in found.frames.to_pylist() if one["layer"] in ("h2", "h3") and one["type"] == "DATA"]
    assert not known


@needs_tshark
def test_two_connections_with_the_keys_of_one(tmp_path: Path) -> None:
    """One of them is opened; of the other only its headers tell."""
    certificates, packets, keys = make_certificates(tmp_path / "pki", ["origin.lab"], []), [], []
    for number in range(2):
        talk, key_log = Talk(ports=(40000 + number, 443)).open(), tmp_path / f"keys-{number}"
        secure = Secure(talk, certificates, key_log, protocol="http/1.1")
        for path in ("/1", "/2"):
            secure.send(UP, f"GET {path} HTTP/1.1\r\nHost: a{number}.test\r\n\r\n".encode())
            secure.send(DOWN, b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + bytes(3000))
        secure.close()
        packets += talk.packets
        keys.append(key_log)
    file = tmp_path / "two.pcap"
    file.write_bytes(rewrite.pcap(sorted(packets, key=lambda one: one.time_ns)))
    found = dissect([file], keys[1])
    first, second = found.connections.to_pylist()
    assert (first["truncated"], first["decrypted"], first["alpn"], first["protocol"]) == ("keys", False, None, None)
    assert (second["truncated"], second["decrypted"], second["protocol"]) == (None, True, "h1")
    rows = found.messages.to_pylist()
    assert [(one["connection"], one["authority"], one["path"]) for one in rows] == [
        (1, "a1.test", "/1"),
        (1, "a1.test", "/2"),
    ]
    assert [one["response_body_bytes"] for one in rows] == [3000, 3000]
    assert found.notes == [
        "1 encrypted connection could not be opened (the TLS keys are not theirs): only headers tell of them"
    ]
    both = tmp_path / "both"
    both.write_bytes(keys[0].read_bytes() + keys[1].read_bytes())
    assert dissect([file], both).messages["authority"].to_pylist() == ["a0.test"] * 2 + ["a1.test"] * 2


@needs_tshark
def test_a_session_of_tls_1_2_taken_up_again(tmp_path: Path) -> None:
    talk, secure, keys = secured(tmp_path, version="1.2", protocol="http/1.1")
    secure.send(UP, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    second = Talk(ports=(40001, 443), time_ns=talk.time_ns).open()
    secure.begin(second, secure.ends[UP].session)
    secure.send(UP, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n")
    file = tmp_path / "resumed.pcap"
    file.write_bytes(rewrite.pcap(talk.packets + second.packets))
    found = dissect([file], keys)
    assert found.connections["resumed"].to_pylist() == [False, True]
    assert found.messages["authority"].to_pylist() == ["a", "b"]


@pytest.fixture(scope="module")
def moved() -> Dissection:
    return dissect([CAPTURES / "aioquic-moved.pcap"], CAPTURES / "aioquic-moved.keys")


@needs_tshark
def test_a_connection_that_moves_is_one(moved: Dissection) -> None:
    """Its port changes, then address, port and connection ID, and then the keys (tests/trace/make_quic.py)."""
    (row,) = moved.connections.to_pylist()
    assert (row["client"], row["client_port"], row["server_port"]) == ("192.0.2.1", 41000, 4433)
    assert (row["protocol"], row["migrated"], row["truncated"], row["zero_rtt"]) == ("h3", True, None, False)
    told = [
        (one["path"], one["status"], one["response_body_bytes"], one["complete"]) for one in moved.messages.to_pylist()
    ]
    assert told == [(f"/{name}", 200, 2000, True) for name in ("first", "second", "third", "fourth")]
    ends = {(one["direction"], one["source"], one["source_port"]) for one in moved.packets.to_pylist()}
    assert ends == {
        ("up", "192.0.2.1", 41000),
        ("up", "192.0.2.1", 41001),
        ("up", "192.0.2.9", 1024),
        ("down", "198.51.100.1", 4433),
    }
    assert set(moved.packets["connection"].to_pylist()) == {0}
    assert row["packets"] == moved.packets.num_rows
    assert {"PATH_CHALLENGE", "PATH_RESPONSE", "RETIRE_CONNECTION_ID"} <= set(moved.frames["type"].to_pylist())
    assert not moved.notes


@needs_tshark
def test_without_keys_a_move_is_seen_as_far_as_it_can_be() -> None:
    """A new port under the old connection ID is the same connection; new IDs were agreed on under encryption."""
    found = dissect([CAPTURES / "aioquic-moved.pcap"])
    first, *others = found.connections.to_pylist()
    assert first["truncated"] == "keys"
    assert first["decrypted"] is False
    assert first["migrated"] is True
    assert all("start" in one["truncated"] for one in others)
    assert found.messages.num_rows == 0
    # Who is the server is known of all: nobody else is asked at this address and port.
    assert {one["server_port"] for one in (first, *others)} == {4433}


@pytest.fixture(scope="module")
def early() -> Dissection:
    return dissect([CAPTURES / "aioquic-early.pcap"], CAPTURES / "aioquic-early.keys")


@needs_tshark
def test_early_data_and_a_connection_beside_it(early: Dissection) -> None:
    first, second, third = early.connections.to_pylist()
    assert [(one["resumed"], one["zero_rtt"]) for one in (first, second, third)] == [
        (False, False),
        (True, True),
        (False, False),
    ]
    assert [one["truncated"] for one in (first, second, third)] == [None] * 3
    (request,) = (one for one in early.messages.to_pylist() if one["connection"] == second["connection"])
    assert (request["path"], request["status"], request["response_body_bytes"]) == ("/early", 200, 1000)
    assert request["request_start_ns"] == second["start_ns"]
    kinds = [one["packet_type"] for one in early.packets.to_pylist() if one["connection"] == second["connection"]]
    assert "0-RTT" in kinds[0] + kinds[1]


@needs_tshark
def test_shapes_of_http3(early: Dissection) -> None:
    rows = [one for one in early.messages.to_pylist() if one["connection"] == 2]
    told = [(one["authority"], one["path"], one["status"], one["response_body_bytes"]) for one in rows]
    assert told == [
        ("other.lab", "/shape/0", 200, 1000),
        ("origin.lab", "/shape/1", 404, 0),
        ("origin.lab", "/shape/2", None, None),  # 103 is not final
    ]
    assert [one["complete"] for one in rows] == [True, True, False]
    kinds = [one["type"] for one in early.frames.to_pylist() if one["connection"] == 2 and one["stream"] == 0]
    assert [kind for kind in kinds if kind in ("HEADERS", "DATA")] == [
        "HEADERS",
        "HEADERS",
        "HEADERS",
        "DATA",
        "HEADERS",
    ]
    assert early.notes == [
        "connection 2: responses were pushed: they are not in the table of messages",
        "1 of 5 requests is not whole in the capture: what is not known of them is null",
    ]


@needs_tshark
def test_what_cannot_be_understood_is_counted(tmp_path: Path) -> None:
    """A foreign link type beside a known one; ARP, ICMP and fragments among the packets."""
    packets = rewrite.read(CAPTURES / "h2.pcapng")
    icmp = bytearray(packets[0].octets)
    icmp[23] = 1
    fragment = bytearray(packets[0].octets)
    struct.pack_into(">H", fragment, 20, 0x2000)
    arp = packets[0].octets[:12] + b"\x08\x06" + bytes(28)
    others = [Packet(packets[0].time_ns, bytes(one), len(one)) for one in (icmp, fragment, arp)]
    others.append(replace(packets[0], side=1))
    file = tmp_path / "x.pcapng"
    file.write_bytes(rewrite.pcapng([*others, *packets], (ETHERNET, 147)))
    found = dissect([file], CAPTURES / "h2.keys")
    assert found.messages["complete"].to_pylist() == [True] * 4
    assert found.packets["number"].to_pylist() == list(range(5, 5 + len(packets)))
    notes = " ".join(found.notes)
    assert "1 packets have link type 147 (USER0), which is not understood here" in notes
    assert "1 packets are IP fragments" in notes
    assert "2 packets are neither TCP nor UDP" in notes


@needs_tshark
@pytest.mark.parametrize(
    ("packets", "link_type", "why"),
    [
        (None, 147, "20 packets have link type 147 (USER0), which is not understood here"),
        (None, 8, "20 packets are neither TCP nor UDP"),
        ([], ETHERNET, "there is no packet in it"),
    ],
)
def test_a_capture_of_which_nothing_can_be_read(
    tmp_path: Path, packets: list[Packet] | None, link_type: int, why: str
) -> None:
    """One line, exit code 2, and nothing written; a run of ours may have such."""
    file, out = tmp_path / "x.pcap", tmp_path / "out"
    file.write_bytes(rewrite.pcap(rewrite.read(CAPTURES / "h2.pcapng")[:20] if packets is None else packets, link_type))
    with pytest.raises(UserError) as caught:
        dissect([CAPTURES / "h2.pcapng", file], None, out)
    assert str(caught.value).startswith(f"{file}: nothing in it can be read: {why}") and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2 and not out.exists()
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "captures").mkdir()
    assert dissect([file.rename(tmp_path / "captures" / "x.pcap")]).packets.num_rows == 0


@needs_tshark
def test_encrypted_wireless_frames_are_named(tmp_path: Path) -> None:
    packets = rewrite.read(CAPTURES / "h2.pcapng")
    hidden = rewrite.again(packets[:3], lambda octets: rewrite.wireless(octets, protected=True))
    file = tmp_path / "x.pcap"
    file.write_bytes(rewrite.pcap([*hidden, *rewrite.again(packets, rewrite.wireless)], IEEE_802_11))
    found = dissect([file], CAPTURES / "h2.keys")
    assert found.messages["complete"].to_pylist() == [True] * 4
    assert "3 packets are encrypted frames of IEEE 802.11: decrypt them first (airdecap-ng)" in found.notes

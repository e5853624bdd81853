"""Every octet has one place, and all places together are the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.transport.scene import IP, LINK, TCP, UDP, Scene
from trifecta.analysis.transport.overhead import PARTS, Overhead, overhead

HEAD = LINK + IP + TCP
UDP_HEAD = LINK + IP + UDP


def _wire(scene: Scene, direction: str) -> int:
    side = "a" if direction == "up" else "b"
    rows = scene.rows["packets"]
    return sum(row["wire_bytes"] for row in rows if row["direction"] == direction and row["side"] in (side, None))


def _check(scene: Scene) -> Overhead:
    found = overhead(scene.connection())
    assert sum(found.up.values()) == _wire(scene, "up") and sum(found.down.values()) == _wire(scene, "down")
    assert set(found.parts) == set(PARTS) and min(found.parts.values()) >= 0
    assert found.wire_bytes == sum(found.parts.values())
    return found


def _h2() -> Scene:
    """A hello of 500 octets, and one record down: HEADERS of 30 octets, DATA of 1000, in two segments."""
    scene = Scene()
    scene.packet(0, True, flags="SYN", sequence=0)
    hello = scene.tcp(50, True, 1, 500)
    scene.frame(hello, "tls", "handshake", 495, 5, tcp_start=1, tcp_end=501)
    whole = 9 + 30 + 9 + 1000 + 22
    scene.tcp(100, False, 1, 600)
    last = scene.tcp(100, False, 601, whole - 600)
    scene.frame(last, "tls", "application_data", whole - 5, 5, tcp_start=1, tcp_end=1 + whole)
    scene.frame(last, "h2", "HEADERS", 30, 9, offset=0, tcp_start=1, tcp_end=1 + whole)
    scene.frame(last, "h2", "DATA", 1000, 9, offset=39, tcp_start=1, tcp_end=1 + whole)
    scene.tcp(125, True, 501, 0, 1 + whole)
    return scene


def test_http2_over_tcp_to_the_octet() -> None:
    found = _check(_h2())
    down = {name: octets for name, octets in found.down.items() if octets}
    assert down == {
        "link": 28, "ip": 40, "transport": 64, "protection": 22, "http_framing": 18, "fields": 30, "content": 1000,
    }  # fmt: skip
    assert found.up["acknowledgements"] == HEAD and found.up["handshake"] == 500
    assert found.content_bytes == 1000 and found.ratio == found.wire_bytes / 1000 and not found.notes


def test_octets_sent_again_are_retransmissions_with_their_headers_and_of_a_mixed_packet_alone() -> None:
    scene = _h2()
    scene.packet(10, True, flags="SYN", sequence=0)
    scene.tcp(300, False, 1, 600, retransmission=True)
    found = _check(scene)
    assert found.down["retransmissions"] == HEAD + 600 and found.up["retransmissions"] == HEAD
    scene.tcp(400, False, 1000, 80 + 71, retransmission=True)  # the first 71 octets are old, the others in no record
    found = _check(scene)
    assert found.down["retransmissions"] == HEAD + 600 + 71 and found.down["unknown"] == 80
    assert found.down["transport"] == 64 + TCP


def test_the_preface_of_http2_is_framing() -> None:
    scene = Scene()
    record = scene.tcp(0, True, 1, 24 + 9 + 22)
    scene.frame(record, "tls", "application_data", 50, 5, tcp_start=1, tcp_end=56)
    scene.frame(record, "h2", "SETTINGS", 0, 9, offset=24, tcp_start=1, tcp_end=56)
    found = _check(scene)
    assert (found.up["http_framing"], found.up["protection"]) == (33, 22)


def test_http1_in_the_clear_and_a_response_that_was_cut_off() -> None:
    scene = Scene(protocol="h1", about={"tls_version": None, "truncated": "end"})
    scene.frame(scene.tcp(0, True, 1, 80), "h1", "HEADERS", 80, offset=0, tcp_start=1, tcp_end=81)
    scene.frame(scene.tcp(50, False, 1, 160), "h1", "HEADERS", 60, offset=0, tcp_start=1, tcp_end=61)
    found = _check(scene)
    assert (found.up["fields"], found.down["fields"], found.down["unknown"]) == (80, 60, 100)


def test_the_sizes_of_chunks_are_framing() -> None:
    scene = Scene(protocol="h1", about={"tls_version": None})
    scene.frame(scene.tcp(0, True, 1, 80), "h1", "HEADERS", 80, offset=0, tcp_start=1, tcp_end=81)
    answer = scene.tcp(50, False, 1, 160)
    scene.frame(answer, "h1", "HEADERS", 60, offset=0, tcp_start=1, tcp_end=61)
    scene.frame(answer, "h1", "DATA", 100, offset=60, tcp_start=61, tcp_end=161)
    scene.message(0, 0, 50, 50, request_body_bytes=0, response_body_bytes=90)
    found = _check(scene)
    assert (found.down["fields"], found.down["http_framing"], found.content_bytes) == (60, 10, 90)


def test_a_frame_that_was_cut_off_does_not_count_as_protection() -> None:
    scene = _h2()
    scene.about = {"truncated": "end"}
    del scene.rows["frames"][-1]
    found = _check(scene)
    assert (found.down["protection"], found.down["unknown"], found.down["content"]) == (22, 1009, 0)


def test_without_keys_the_payload_is_unknown_but_for_the_clear_handshake() -> None:
    scene = _h2()
    scene.about = {"decrypted": False, "truncated": "keys"}
    scene.rows["frames"] = scene.rows["frames"][:2]
    found = _check(scene)
    assert found.down["unknown"] == 1070 and found.up["handshake"] == 500
    assert found.content_bytes is None and found.ratio is None and "decrypted" in found.notes[0]


def _h3() -> Scene:
    """An Initial, then a response in two packets: HEADERS of 25, DATA of 1500 octets, and a setting of 9."""
    scene = Scene("udp", "h3")
    quic = {"packet_space": "application"}
    first = scene.packet(
        0, True, 1200, packet_type="Initial", frames="CRYPTO,PADDING", quic_header_bytes=40, packet_number="0"
    )
    scene.frame(first, "quic", "CRYPTO", 300, 4, offset=0, packet_number=0, packet_space="initial")
    one = {"packet_type": "1-RTT", "quic_header_bytes": 12}
    a = scene.packet(50, False, 12 + 16 + 6 + 4 + 9 + 5 + 727, frames="ACK,STREAM,STREAM", **one)
    scene.frame(a, "quic", "ACK", 0, 6, value=0, packet_number=1, **quic)
    scene.frame(a, "quic", "STREAM", 9, 4, stream=3, offset=0, packet_number=1, **quic)
    scene.frame(a, "quic", "STREAM", 727, 5, stream=0, offset=0, packet_number=1, **quic)
    b = scene.packet(50, False, 12 + 16 + 7 + 803, frames="STREAM", **one)
    scene.frame(b, "quic", "STREAM", 803, 7, stream=0, offset=727, fin=True, packet_number=2, **quic)
    scene.frame(a, "h3", "HEADERS", 25, 2, stream=0, offset=0)
    scene.frame(b, "h3", "DATA", 1500, 3, stream=0, offset=27)
    ack = scene.packet(75, True, 12 + 16 + 6, frames="ACK", **one)
    scene.frame(ack, "quic", "ACK", 0, 6, value=2, packet_number=0, **quic)
    return scene


def test_http3_to_the_octet() -> None:
    found = _check(_h3())
    down = {name: octets for name, octets in found.down.items() if octets}
    assert down == {
        "link": 28, "ip": 40, "transport": 16, "protection": 56, "transport_frames": 22, "http_framing": 9 + 5,
        "fields": 25, "content": 1500,
    }  # fmt: skip
    up = {name: octets for name, octets in found.up.items() if octets}
    assert up == {
        "link": 14, "ip": 20, "transport": 8, "protection": 56, "padding": 1200 - 56 - 304, "handshake": 304,
        "acknowledgements": UDP_HEAD + 34,
    }  # fmt: skip


def test_a_quic_packet_without_new_octets_is_a_retransmission_also_cut_differently() -> None:
    scene = _h3()
    one = {"packet_type": "1-RTT", "quic_header_bytes": 12, "frames": "STREAM"}
    again = scene.packet(300, False, 12 + 16 + 7 + 400, **one)
    scene.frame(again, "quic", "STREAM", 400, 7, stream=0, offset=700, packet_number=3, packet_space="application")
    found = _check(scene)
    assert found.down["retransmissions"] == UDP_HEAD + 12 + 16 + 7 + 400 and found.down["content"] == 1500
    mixed = scene.packet(350, False, 12 + 16 + 7 + 100, **one)
    scene.frame(mixed, "quic", "STREAM", 100, 7, stream=0, offset=1500, packet_number=4, packet_space="application")
    found = _check(scene)
    assert found.down["retransmissions"] == UDP_HEAD + 435 + 30 and found.down["unknown"] == 70


def test_the_same_offsets_of_other_streams_and_spaces_are_no_retransmission() -> None:
    scene = Scene("udp", "h3")
    for number, (kind, space) in enumerate((("CRYPTO", "initial"), ("CRYPTO", "handshake"), ("STREAM", "application"))):
        packet = scene.packet(0, True, 12 + 16 + 104, packet_type="1-RTT", quic_header_bytes=12, frames=kind)
        stream = 0 if kind == "STREAM" else None
        scene.frame(packet, "quic", kind, 100, 4, stream=stream, offset=0, packet_number=number, packet_space=space)
    found = _check(scene)
    assert (found.up["retransmissions"], found.up["handshake"], found.up["unknown"]) == (0, 208, 100)


def test_frames_of_unknown_size_take_what_a_packet_has_left() -> None:
    scene = Scene("udp", "h3")
    number = scene.packet(0, True, 12 + 16 + 50, packet_type="1-RTT", quic_header_bytes=12, frames="CONNECTION_CLOSE")
    scene.frame(number, "quic", "CONNECTION_CLOSE", 0, packet_space="application")
    scene.rows["frames"][-1].update(length=None, wire_length=None)
    assert _check(scene).up["transport_frames"] == 50


def test_a_quic_packet_that_was_not_decrypted_is_unknown_and_a_retry_is_protection() -> None:
    scene = Scene("udp", None, about={"decrypted": False})
    scene.packet(0, True, 1200, packet_type="Initial")
    scene.packet(25, False, 90, packet_type="Retry")
    found = _check(scene)
    assert found.up["unknown"] == 1200 and found.down["protection"] == 90


def test_frames_that_cannot_be_are_not_believed() -> None:
    scene = _h2()
    scene.frame(scene.rows["packets"][0]["number"], "h2", "DATA", 99_999, 9, offset=0, tcp_start=1, tcp_end=501)
    found = _check(scene)
    assert found.up["unknown"] == 500 and "more octets" in found.notes[0]


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3000), st.integers(0, 1500), st.booleans(), st.integers(0, 2000)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([("tcp", "h2"), ("tcp", "h1"), ("udp", "h3")]),
    st.sampled_from([None, "end", "keys,octets"]),
)
def test_the_parts_add_up_whatever_was_dissected(
    packets: list[tuple[bool, int, int, bool, int]], kind: tuple[str, str], truncated: str | None
) -> None:
    transport, protocol = kind
    scene = Scene(transport, protocol, about={"truncated": truncated})
    for at, (up, offset, size, framed, length) in enumerate(packets):
        if transport == "tcp":
            number = scene.tcp(at, up, 1 + offset, size)
            if framed:
                where = {"tcp_start": 1 + offset, "tcp_end": 1 + offset + size, "offset": offset}
                scene.frame(number, "tls", "application_data", size, 5, **where)
                scene.frame(number, protocol, "DATA", length, 9, **where)
        else:
            number = scene.packet(
                at, up, size, packet_type="1-RTT", frames="STREAM" if framed else None, quic_header_bytes=12
            )
            scene.frame(number, "quic", "STREAM", length, 5, stream=0, offset=offset, packet_space="application")
            if framed:
                scene.frame(number, "h3", "DATA", length, 3, stream=0, offset=offset)
    _check(scene)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_connection_without_packets_has_no_octets(transport: str) -> None:
    found = _check(Scene(transport))
    assert found.wire_bytes == 0 and found.ratio is None

"""Set-up on links whose truth is written down: 25 ms each way."""

import pytest

from tests.analysis.transport.scene import MS, Scene
from trifecta.analysis.transport.setup import Setup, setup


def _tls13(both: bool = True) -> Scene:
    """SYN at 0, the request at 100 ms, its response at 150 ms; the server thinks for nothing."""
    scene = Scene(both=both)
    scene.packet(0, True, flags="SYN", sequence=0)
    scene.packet(25, False, flags="SYN,ACK", sequence=0, acknowledged=1)
    scene.tcp(50, True, 1, 0)
    scene.frame(scene.tcp(50, True, 1, 500), "tls", "handshake", 495, 5)
    first = scene.tcp(75, False, 1, 1448, 501)
    scene.frame(first, "tls", "handshake", 122, 5)
    scene.tcp(75, False, 1449, 800, 501)
    scene.tcp(100, True, 501, 64, 2249)
    scene.tcp(100, True, 565, 120, 2249)
    scene.tcp(125, False, 2249, 300, 685)
    scene.message(100, 100, 150, 150)
    return scene


def _quic(*, both: bool = True) -> Scene:
    scene = Scene("udp", "h3", both=both)
    scene.packet(0, True, 1200, packet_type="Initial", frames="CRYPTO,PADDING")
    scene.packet(25, False, 1200, packet_type="Initial,Handshake", frames="CRYPTO;CRYPTO")
    return scene


def _costs(found: Setup) -> dict[str, int]:
    return {cost.name: cost.times for cost in found.costs}


def test_tcp_with_tls_13_takes_three_round_trips_and_counts_what_passed() -> None:
    found = setup(_tls13().connection())
    assert found.bound == 3 and found.rtt_ns == 50 * MS
    assert found.to_request is not None and found.to_response is not None
    assert (found.to_request.time_ns, found.to_request.round_trips) == (100 * MS, 2)
    assert (found.to_response.time_ns, found.to_response.round_trips) == (150 * MS, 3)
    assert (found.to_request.packets_up, found.to_request.packets_down) == (5, 3)
    assert found.to_request.wire_bytes_up == 5 * 66 + 500 + 64 + 120
    assert found.to_response.wire_bytes_down == 4 * 66 + 1448 + 800 + 300
    assert found.ratio == 1.0 and not found.costs and not found.notes


def test_one_side_takes_the_round_trip_of_the_handshake_and_says_so() -> None:
    scene = _tls13(both=False)
    found = setup(scene.connection())
    assert "handshake" in found.notes[-1]
    assert found.to_response is not None and found.to_response.round_trips == 3


@pytest.mark.parametrize(
    ("about", "bound"),
    [
        ({"tls_version": "1.3"}, 3),
        ({"tls_version": "1.2"}, 4),
        ({"tls_version": "1.2", "resumed": True}, 3),
        ({"tls_version": "1.3", "resumed": True}, 3),
        ({"tls_version": "1.3", "resumed": True, "zero_rtt": True}, 2),
    ],
)
def test_the_least_of_tcp_goes_by_the_version_of_tls(about: dict[str, object], bound: int) -> None:
    scene = _tls13()
    scene.about = about
    assert setup(scene.connection()).bound == bound


def test_without_tls_two_round_trips_and_of_unknown_tls_none_is_said() -> None:
    scene = _tls13()
    scene.about = {"tls_version": None}
    found = setup(scene.connection())
    assert found.bound is None and found.ratio is None and "unknown" in found.notes[0]
    scene.rows["frames"].clear()
    assert setup(scene.connection()).bound == 2


def test_quic_takes_two_round_trips_and_one_with_0rtt() -> None:
    scene = _quic()
    scene.packet(50, True, 1200, packet_type="Initial,Handshake,1-RTT", frames="ACK;ACK,CRYPTO;STREAM")
    scene.packet(75, False, 600, packet_type="1-RTT", frames="ACK,STREAM")
    scene.message(50, 50, 100, 100)
    found = setup(scene.connection())
    assert found.bound == 2 and found.to_response is not None and found.to_response.round_trips == 2
    assert found.ratio == 1.0
    early = Scene("udp", "h3", about={"zero_rtt": True, "resumed": True})
    early.packet(0, True, 1200, packet_type="Initial,0-RTT", frames="CRYPTO;STREAM")
    early.packet(25, False, 1200, packet_type="Initial,Handshake,1-RTT", frames="CRYPTO;CRYPTO;STREAM")
    early.message(0, 0, 50, 50)
    found = setup(early.connection())
    assert found.bound == 1 and found.to_response is not None and found.to_response.round_trips == 1
    assert found.ratio == 1.0


@pytest.mark.parametrize("both", [True, False])
def test_a_server_held_by_the_amplification_limit_costs_a_round_trip(both: bool) -> None:
    scene = _quic(both=both)
    scene.packet(25, False, 1200, packet_type="Handshake", frames="CRYPTO")
    scene.packet(25, False, 1200, packet_type="Handshake", frames="CRYPTO")
    # Only an acknowledgement, but it releases the rest.
    scene.packet(50, True, 1200, packet_type="Initial", frames="ACK,PADDING")
    scene.packet(75, False, 900, packet_type="Handshake", frames="CRYPTO")
    scene.packet(100, True, 300, packet_type="Handshake,1-RTT", frames="ACK,CRYPTO;STREAM")
    scene.packet(125, False, 600, packet_type="1-RTT", frames="STREAM")
    scene.message(100, 100, 150, 150)
    found = setup(scene.connection())
    assert _costs(found) == {"amplification_limit": 1}
    assert found.to_response is not None and found.to_response.round_trips == 3


def test_an_acknowledgement_on_the_way_is_no_round_trip() -> None:
    scene = _quic()
    scene.packet(50, True, 1200, packet_type="Initial", frames="ACK,PADDING")
    scene.packet(26, False, 900, packet_type="Handshake", frames="CRYPTO")
    scene.packet(51, True, 300, packet_type="Handshake,1-RTT", frames="ACK,CRYPTO;STREAM")
    scene.packet(76, False, 600, packet_type="1-RTT", frames="STREAM")
    scene.message(51, 51, 101, 101)
    found = setup(scene.connection())
    assert found.to_response is not None and found.to_response.round_trips == 2 and not found.costs


def test_a_retry_and_a_version_negotiation_each_cost_a_round_trip() -> None:
    scene = Scene("udp", "h3")
    for at, kind in ((0, "Version Negotiation"), (50, "Retry")):
        scene.packet(at, True, 1200, packet_type="Initial", frames="CRYPTO,PADDING")
        scene.packet(at + 25, False, 60, packet_type=kind)
    scene.packet(100, True, 1200, packet_type="Initial", frames="CRYPTO,PADDING")
    scene.packet(125, False, 1200, packet_type="Initial,Handshake", frames="CRYPTO;CRYPTO")
    scene.packet(150, True, 400, packet_type="Handshake,1-RTT", frames="CRYPTO;STREAM")
    scene.packet(175, False, 400, packet_type="1-RTT", frames="STREAM")
    scene.message(150, 150, 200, 200)
    found = setup(scene.connection())
    assert _costs(found) == {"retry": 1, "version_negotiation": 1}
    assert found.to_response is not None and found.to_response.round_trips == 4


def test_a_second_hello_is_named_and_one_that_was_lost_is_not_taken_for_it() -> None:
    scene = Scene("udp", "h3")
    crypto = {"layer": "quic", "kind": "CRYPTO", "packet_space": "initial"}
    first = scene.packet(0, True, 1200, lost=True, packet_type="Initial", frames="CRYPTO,PADDING")
    scene.frame(first, length=300, offset=0, packet_number=0, **crypto)
    again = scene.packet(200, True, 1200, packet_type="Initial", frames="CRYPTO,PADDING")
    scene.frame(again, length=300, offset=0, packet_number=1, **crypto)
    answer = scene.packet(225, False, 1200, packet_type="Initial", frames="CRYPTO,PADDING")
    scene.frame(answer, length=90, offset=0, packet_number=0, **crypto)
    assert _costs(setup(scene.connection())) == {"lost_handshake_packets": 1}
    second = scene.packet(250, True, 1200, packet_type="Initial", frames="CRYPTO,PADDING")
    scene.frame(second, length=330, offset=300, packet_number=2, **crypto)
    assert _costs(setup(scene.connection())) == {"lost_handshake_packets": 1, "hello_retry_request": 1}


def test_a_second_hello_over_tcp_is_named() -> None:
    scene = _tls13()
    scene.frame(scene.tcp(99, True, 501, 64, 2249), "tls", "handshake", 59, 5)  # the client's Finished, as decrypted
    scene.tcp(50, True, 1, 500, info="Client Hello")
    scene.tcp(50, True, 1, 500, info="Client Hello", retransmission=True)
    assert "hello_retry_request" not in _costs(setup(scene.connection()))
    scene.tcp(75, False, 1, 100, info="Hello Retry Request, Change Cipher Spec")
    assert _costs(setup(scene.connection()))["hello_retry_request"] == 1
    scene.rows["packets"][-1]["info"] = scene.rows["packets"][-2]["info"] = ""
    assert "hello_retry_request" not in _costs(setup(scene.connection()))
    scene.tcp(100, True, 565, 500, info="Change Cipher Spec, Client Hello")
    assert _costs(setup(scene.connection()))["hello_retry_request"] == 1


def test_a_capture_without_the_start_or_without_keys_says_what_is_unknown() -> None:
    scene = _tls13()
    scene.about = {"truncated": "start,keys"}
    found = setup(scene.connection())
    assert found.to_request is None and found.bound is None and "start" in found.notes[0]
    quic = Scene("udp", "h3")
    quic.packet(0, True, 1200, packet_type="Initial", frames="CRYPTO")
    quic.packet(25, False, 1200, packet_type="Initial,Handshake")
    quic.packet(50, True, 1200, packet_type="Handshake")
    found = setup(quic.connection())
    assert found.to_request is None and found.to_response is None and found.ratio is None
    assert any("without keys" in note for note in found.notes)

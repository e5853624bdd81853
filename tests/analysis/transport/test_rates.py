"""Rate, gaps, acknowledgements, slow start and pauses, on flows that are written down."""

import pytest

from tests.analysis.transport.flows import SEGMENT, bursts
from tests.analysis.transport.scene import MS, Scene
from trifecta.analysis.transport.acknowledgements import acknowledgements
from trifecta.analysis.transport.rate import gaps, nice, peak_bits_per_s
from trifecta.analysis.transport.slow_start import restarts, slow_start

BOTH = pytest.mark.parametrize("transport", ["tcp", "udp"])


def _scene(transport: str) -> Scene:
    return Scene(transport, "h2" if transport == "tcp" else "h3")


def test_the_peak_is_of_the_fullest_bin_of_what_arrived() -> None:
    scene = _scene("tcp")
    for at, size in ((0, 100), (9, 200), (10, 400), (35, 800)):
        scene.tcp(at, False, 1, size)
    scene.tcp(36, False, 1, 1000, lost=True)
    # 62 ms from the first packet on side b to the last on side a: bins of 500 us, each packet in one of its own.
    assert peak_bits_per_s(scene.connection(), up=False) == (800 + 66) * 8 / 0.0005
    assert peak_bits_per_s(scene.connection(), up=True) == 0


def test_bins_have_a_round_length_and_are_no_more_than_a_picture_shows() -> None:
    assert [nice(length * MS) for length in (0, 100, 2_000, 3_166, 4_001)] == [
        1_000,
        500_000,
        10 * MS,
        20 * MS,
        50 * MS,
    ]
    scene = _scene("tcp")
    scene.tcp(0, False, 1, 100)
    scene.tcp(3141, False, 1, 100)
    scene.tcp(3142, False, 101, 1000)
    assert peak_bits_per_s(scene.connection(), up=False) == (1100 + 2 * 66) * 8 / 0.02


def test_gaps_are_between_packets_of_one_direction() -> None:
    scene = _scene("tcp")
    for at in (0, 1, 3, 103):
        scene.tcp(at, False, 1, 10)
    scene.tcp(2, True, 1, 0)
    found = gaps(scene.connection(), up=False)
    assert found.spread_ns is not None and found.spread_ns.count == 3
    assert (found.spread_ns.least, found.spread_ns.p50, found.spread_ns.most) == (1 * MS, 2 * MS, 100 * MS)
    assert gaps(scene.connection(), up=True).spread_ns is None
    scene.about = {"largest_wire_bytes": 65_539}
    assert "offloading" in gaps(scene.connection(), up=False).notes[0]


@BOTH
def test_slow_start_doubles_until_the_pipe_is_full(transport: str) -> None:
    scene = _scene(transport)
    bursts(scene, [10, 20, 40, 80, 80, 80, 80])
    found = slow_start(scene.connection(), up=False)
    assert found is not None and found.windows == [10_000, 20_000, 40_000, 80_000]
    assert (found.initial_window, found.exit_window, found.rounds) == (10_000, 80_000, 3)
    assert found.growth == pytest.approx(2) and found.exit == "full" and not found.notes
    assert found.duration_ns == pytest.approx(4 * 50 * MS, rel=0.02)


@BOTH
def test_slow_start_ends_with_a_loss_or_with_the_data(transport: str) -> None:
    scene = _scene(transport)
    at, position = bursts(scene, [10, 20, 40])
    assert slow_start(scene.connection(), up=False).exit == "end"  # type: ignore[union-attr]
    if transport == "tcp":
        scene.tcp(at, False, 1 + 15 * SEGMENT, SEGMENT, retransmission=True)
    else:
        number = scene.packet(at, False, SEGMENT + 34, frames="STREAM", packet_type="1-RTT", quic_header_bytes=12)
        again = {"stream": 0, "offset": 15 * SEGMENT, "packet_number": position, "packet_space": "application"}
        scene.frame(number, "quic", "STREAM", SEGMENT, 6, **again)
    found = slow_start(scene.connection(), up=False)
    assert found is not None and found.exit == "loss" and found.exit_window == 40_000


@BOTH
@pytest.mark.parametrize(("after", "kept"), [([10, 20, 40], False), ([40, 40], True), ([8], None)])
def test_a_pause_shows_whether_the_window_is_kept(transport: str, after: list[int], kept: bool | None) -> None:
    scene = _scene(transport)
    at, position = bursts(scene, [10, 20, 40])
    bursts(scene, after, at + 450, position=position)
    connection = scene.connection()
    (found,) = restarts(connection, up=False)
    assert found.kept is kept
    start = slow_start(connection, up=False)
    assert start is not None and start.windows == [10_000, 20_000, 40_000] and start.exit == "pause"


def test_a_wait_with_octets_under_way_is_no_pause() -> None:
    scene = _scene("tcp")
    at, position = bursts(scene, [10])
    at, position = bursts(scene, [10], at, position=position, acknowledged=False)  # nothing is acknowledged
    bursts(scene, [10], at + 500, position=position)
    assert restarts(scene.connection(), up=False) == []


@BOTH
def test_nothing_is_said_of_windows_without_acknowledgements(transport: str) -> None:
    scene = _scene(transport)
    bursts(scene, [10], acknowledged=False)
    assert slow_start(scene.connection(), up=False) is None and restarts(scene.connection(), up=False) == []


def test_tcp_acknowledgements_are_counted_sized_and_timed() -> None:
    scene = _scene("tcp")
    for index in range(4):
        scene.tcp(index, False, 1 + index * 1000, 1000)
    scene.tcp(26, True, 1, 0, 1001)  # its octets came at 25: after 1 ms
    scene.tcp(31, True, 1, 0, 4001)  # the last came at 28: after 3 ms
    scene.tcp(32, True, 1, 0, 4001, sack="[[5001, 6001]]")
    scene.tcp(33, True, 1, 0, 4001, window=5)  # only the window changes: no duplicate
    scene.tcp(34, True, 1, 200, 4001)
    found = acknowledgements(scene.connection(), up=True)
    assert (found.count, found.packets, found.packets_wire_bytes, found.data_packets) == (4, 4, 4 * 66, 4)
    assert (found.mean_packet_bytes, found.data_packets_per_acknowledgement) == (66, 1)
    assert (found.with_holes, found.duplicates, found.eliciting_share) == (1, 1, None)
    assert found.delay_ns is not None
    assert (found.delay_ns.count, found.delay_ns.least, found.delay_ns.most) == (2, 1 * MS, 3 * MS)


def test_a_tcp_acknowledgement_waits_for_the_hole_not_for_the_last_octet() -> None:
    scene = _scene("tcp")
    scene.tcp(0, False, 1, 1000, late_ms=50)  # arrives at 75, after the next two
    scene.tcp(1, False, 1001, 1000)
    scene.tcp(2, False, 2001, 1000)
    scene.tcp(77, True, 1, 0, 3001)
    found = acknowledgements(scene.connection(), up=True)
    assert found.delay_ns is not None and found.delay_ns.p50 == 2 * MS


def test_quic_acknowledgements_are_counted_sized_and_timed() -> None:
    scene = _scene("udp")
    bursts(scene, [10, 20])
    one = {"packet_type": "1-RTT", "quic_header_bytes": 12}
    number = scene.packet(200, True, 40, frames="ACK", acknowledged_ranges="[[25, 29], [0, 20]]", **one)
    scene.frame(number, "quic", "ACK", 0, 9, value=29, packet_space="application", packet_number=999)
    scene.packet(210, False, 40, frames="ACK", **one)
    found = acknowledgements(scene.connection(), up=True)
    assert (found.count, found.packets, found.data_packets, found.with_holes) == (3, 3, 30, 1)
    assert found.packets_wire_bytes == 2 * (42 + 35) + 42 + 40
    assert found.eliciting_share == 30 / 31 and found.data_packets_per_acknowledgement == 10
    assert found.said_delay_ns is not None and (found.said_delay_ns.count, found.said_delay_ns.p50) == (2, 2000)
    # The window is acknowledged when its last packet arrives; the third acknowledges nothing new.
    assert found.delay_ns is not None and (found.delay_ns.count, found.delay_ns.most) == (2, 0)


def test_what_cannot_be_known_of_acknowledgements_is_said() -> None:
    scene = Scene("udp", None, about={"decrypted": False}, both=False)
    scene.packet(0, True, 1200, packet_type="Initial")
    found = acknowledgements(scene.connection(), up=True)
    assert found.count is None and found.delay_ns is None and len(found.notes) == 2


def test_an_answer_that_stands_just_before_its_reason_came_at_once() -> None:
    scene = _scene("tcp")
    scene.tcp(0, False, 1, 1000)
    scene.tcp(24.99, True, 1, 0, 1001)  # the link noted the data's leaving 10 us after it had handed it over
    found = acknowledgements(scene.connection(), up=True)
    assert found.delay_ns is not None and (found.delay_ns.count, found.delay_ns.most) == (1, 0)


@BOTH
def test_sends_that_stand_just_before_their_acknowledgement_belong_to_the_next_round_trip(transport: str) -> None:
    scene = _scene(transport)
    at, position = bursts(scene, [10])
    at, position = bursts(scene, [20], at - 0.05, position=position)
    bursts(scene, [40, 40, 40, 40], at - 0.05, position=position)
    found = slow_start(scene.connection(), up=False)
    assert found is not None and found.windows == [10_000, 20_000, 40_000]

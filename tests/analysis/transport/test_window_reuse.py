"""Later requests of a connection: does the server go on with the window it had?"""

import pytest

from tests.analysis.transport.scene import MS, Scene
from trifecta.analysis.transport.window_reuse import WindowReuse, window_reuses

BOTH = pytest.mark.parametrize("transport", ["tcp", "udp"])
SEGMENT = 1000


def _scene(transport: str) -> Scene:
    return Scene(transport, "h2" if transport == "tcp" else "h3")


def response(
    scene: Scene, number: int, windows: list[int], at_ms: float, position: int = 0, *, acknowledged: bool = True
) -> tuple[float, int]:
    """A response in windows (segments), a round trip of 50 ms each; when the last was acknowledged, and where."""
    for window in windows:
        for index in range(window):
            _data(scene, number, at_ms + index * 0.01, position, first=position if index == 0 else -1)
            position += 1
        if acknowledged:
            _ack(scene, at_ms + (window - 1) * 0.01 + 25, position)
        at_ms += (window - 1) * 0.01 + 50
    return at_ms, position


def _data(scene: Scene, stream: int, at_ms: float, position: int, first: int) -> None:
    offset = position * SEGMENT
    if scene.transport == "tcp":
        number = scene.tcp(at_ms, False, 1 + offset, SEGMENT)
        ends = {"tcp_start": 1 + offset, "tcp_end": 1 + offset + SEGMENT, "offset": offset}
        scene.frame(number, "h2", "HEADERS" if position == first else "DATA", SEGMENT - 9, 9, stream=stream, **ends)
        return
    head = {"packet_type": "1-RTT", "quic_header_bytes": 12}
    number = scene.packet(at_ms, False, SEGMENT + 34, frames="STREAM", packet_number=str(position), **head)
    about = {"packet_space": "application", "packet_number": position}
    scene.frame(number, "quic", "STREAM", SEGMENT, 6, stream=4 * stream, offset=offset, **about)


def _ack(scene: Scene, at_ms: float, position: int) -> None:
    if scene.transport == "tcp":
        scene.tcp(at_ms, True, 1, 0, 1 + position * SEGMENT)
        return
    ranges = f"[[0, {position - 1}]]"
    head = {"packet_type": "1-RTT", "quic_header_bytes": 12}
    number = scene.packet(at_ms, True, 35, frames="ACK", acknowledged_ranges=ranges, **head)
    about = {"packet_space": "application", "packet_number": len(scene.rows["frames"])}
    scene.frame(number, "quic", "ACK", 0, 7, value=position - 1, **about)


def two(transport: str, first: list[int], second: list[int], pause_ms: float = 50) -> list[WindowReuse]:
    scene = _scene(transport)
    at, position = response(scene, 1, first, 0)
    response(scene, 2, second, at + pause_ms, position)
    return window_reuses(scene.connection())


@BOTH
def test_a_sender_that_goes_on_keeps_its_window(transport: str) -> None:
    (found,) = two(transport, [10, 20, 40, 12], [40, 40])
    assert (found.window_before, found.window_first, found.kept) == (40_000, 40_000, 1.0)
    assert (found.ramp_ns, found.regained) == (0, True)


@BOTH
def test_a_sender_that_starts_again_takes_round_trips_to_be_back(transport: str) -> None:
    (found,) = two(transport, [10, 20, 40], [10, 20, 40, 5])
    assert (found.window_first, found.kept) == (10_000, 0.25)
    # 30 of 40 segments are enough: the third round trip.
    assert found.regained
    assert found.ramp_ns == pytest.approx(100 * MS, rel=0.01)


@BOTH
def test_one_that_never_gets_there_took_the_whole_response(transport: str) -> None:
    (found,) = two(transport, [10, 20, 40], [10, 10, 12])
    assert found.regained is False
    assert found.ramp_ns == pytest.approx(100 * MS, rel=0.01)


@BOTH
def test_too_little_tells_nothing(transport: str) -> None:
    (found,) = two(transport, [10, 20, 40], [10, 5])
    assert (found.kept, found.ramp_ns, found.regained) == (None, None, None)
    assert two(transport, [8], [8]) == []  # each fits into one window: nobody knows how large that was


def test_what_the_window_was_is_taken_from_the_last_response_that_showed_it() -> None:
    scene = _scene("tcp")
    at, position = response(scene, 1, [10, 20, 40], 0)
    at, position = response(scene, 2, [3], at + 50, position)
    response(scene, 3, [40, 40], at + 50, position)
    small, large = window_reuses(scene.connection())
    assert small.kept is None
    assert (large.window_before, large.kept, large.stream) == (40_000, 1.0, 3)


def test_responses_at_the_same_time_are_no_later_ones() -> None:
    scene = _scene("tcp")
    for index, number in enumerate((1, 2) * 20):
        _data(scene, number, index * 0.01, index, first=-1)
    _ack(scene, 26, 40)
    for index, number in enumerate((1, 2) * 20):
        _data(scene, number, 51 + index * 0.01, 40 + index, first=-1)
    _ack(scene, 77, 80)
    assert window_reuses(scene.connection()) == []


@BOTH
def test_nothing_is_said_without_acknowledgements(transport: str) -> None:
    scene = _scene(transport)
    _, position = response(scene, 1, [10, 20], 0, acknowledged=False)
    response(scene, 2, [10], 500, position, acknowledged=False)
    assert window_reuses(scene.connection()) == []


@BOTH
def test_octets_without_messages_say_nothing(transport: str) -> None:
    scene = _scene(transport)
    at, position = response(scene, 1, [10, 20], 0)
    response(scene, 2, [10], at, position)
    scene.rows["frames"] = [row for row in scene.rows["frames"] if row["type"] == "ACK"]  # as without keys
    assert window_reuses(scene.connection()) == []

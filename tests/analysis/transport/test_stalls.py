"""Who waited for whom, exact to the nanosecond, on senders whose reasons are written down. 25 ms each way."""

import numpy as np
import pytest

from tests.analysis.transport.flows import SEGMENT, bursts
from tests.analysis.transport.scene import MS, Scene
from trifecta.analysis.transport.flow_control import spans_at_limit
from trifecta.analysis.transport.idle_periods import CAUSES, Window
from trifecta.analysis.transport.stalls import Stalls, stalls

QUIC = {"packet_type": "1-RTT", "quic_header_bytes": 12}
APPLICATION = {"packet_space": "application"}


def _causes(scene: Scene, *, up: bool = False, window: Window | None = None) -> tuple[Stalls, dict[str, float]]:
    found = stalls(scene.connection(), up=up, window=window)
    assert sum(found.causes.values()) == found.total_ns and set(found.causes) == set(CAUSES)
    return found, {name: ns / MS for name, ns in found.causes.items() if ns}


class H2:
    """A server that answers stream 1 (and 3) with DATA frames, a segment each; requests arrive at 0."""

    def __init__(self, streams: tuple[int, ...] = (1,)) -> None:
        self.scene = Scene()
        self.up = self.down = 1
        for stream in streams:
            self.client(-25, "HEADERS", 40, stream=stream)

    def client(self, ms: float, kind: str, length: int, **more: object) -> None:
        number = self.scene.tcp(ms, True, self.up, length + 9, self.down)
        where = {"offset": self.up, "tcp_start": self.up, "tcp_end": self.up + length + 9}
        self.scene.frame(number, "h2", kind, length, 9, **where, **more)
        self.up += length + 9

    def data(self, ms: float, length: int, stream: int = 1) -> None:
        number = self.scene.tcp(ms, False, self.down, length + 9, self.up)
        where = {"offset": self.down, "tcp_start": self.down, "tcp_end": self.down + length + 9}
        self.scene.frame(number, "h2", "DATA", length, 9, stream=stream, **where)
        self.down += length + 9


def test_a_sender_with_nothing_to_send_is_the_application() -> None:
    server = H2()
    server.data(30, 1000)  # it thought for 30 ms
    server.scene.tcp(55, True, server.up, 0, server.down)  # arrives at 80
    server.data(200, 1000)
    found, causes = _causes(server.scene)
    # 50 ms under way: neither a window nor an acknowledgement explains them.
    assert causes == {"application": 30 + 120, "unknown": 50} and found.total_ns == 200 * MS
    assert (found.stream_held_ns, found.connection_held_ns, found.zero_windows) == ({}, 0, 0)


def test_the_window_of_a_stream_holds_its_sender_until_an_update_arrives() -> None:
    server = H2()
    server.client(-20, "SETTINGS", 6, stream=0, value=2000)  # arrives at 5
    server.data(10, 1000)
    server.data(10, 1000)
    server.client(40, "WINDOW_UPDATE", 4, stream=1, value=1000)  # arrives at 65
    server.data(70, 1000)
    found, causes = _causes(server.scene)
    assert found.flow_control == [(10 * MS, 65 * MS)]
    assert causes["stream_window"] == 55 and found.stream_held_ns == {1: 55 * MS} and found.connection_held_ns == 0
    assert causes["application"] == 10 + 5  # before the first octet, and from the update (which acknowledges all) on


def test_a_stream_that_is_held_does_not_hold_others() -> None:
    server = H2((1, 3))
    server.client(-20, "SETTINGS", 6, stream=0, value=1000)
    server.data(10, 1000, stream=1)
    server.client(-19, "WINDOW_UPDATE", 4, stream=3, value=9000)
    for at in (20, 30, 40):
        server.data(at, 500, stream=3)
    server.client(40, "WINDOW_UPDATE", 4, stream=1, value=1000)  # arrives at 65
    server.data(65, 1000, stream=1)
    found, causes = _causes(server.scene)
    assert found.stream_held_ns == {1: 55 * MS}
    # While stream 3 sent it was not the stream's window; from its end on it was.
    assert causes["stream_window"] == (20 - 10) + (65 - 40)


def test_the_window_of_the_connection_holds_all() -> None:
    server = H2()
    server.client(-20, "SETTINGS", 6, stream=0, value=1 << 20)
    for index in range(4):
        server.data(10 + index, 16_384 if index < 3 else 65_535 - 3 * 16_384)
    server.client(50, "WINDOW_UPDATE", 4, stream=0, value=65_535)  # arrives at 75
    server.data(75, 1000)
    found, causes = _causes(server.scene)
    assert causes["connection_window"] == 62 and found.connection_held_ns == 62 * MS and found.stream_held_ns == {}


def test_a_limit_that_is_reached_at_the_very_end_held_nobody() -> None:
    server = H2()
    server.client(-20, "SETTINGS", 6, stream=0, value=2000)
    server.data(10, 1000)
    server.data(40, 1000)
    server.client(80, "WINDOW_UPDATE", 4, stream=1, value=1000)
    found, _ = _causes(server.scene)
    assert found.stream_held_ns == {}
    one = np.array([10, 20], dtype=np.int64)
    assert spans_at_limit(one, np.array([100, 200]), np.array([0, 50]), np.array([200, 500])) == []


def test_a_changed_setting_moves_the_window_of_an_open_stream() -> None:
    server = H2()
    server.client(-20, "SETTINGS", 6, stream=0, value=1000)
    server.data(10, 1000)
    server.client(30, "SETTINGS", 6, stream=0, value=3000)  # arrives at 55: 2000 octets more
    server.data(60, 2000)
    server.client(80, "WINDOW_UPDATE", 4, stream=1, value=500)  # arrives at 105
    server.data(110, 500)
    found, causes = _causes(server.scene)
    assert found.stream_held_ns == {1: (45 + 45) * MS} and causes["stream_window"] == 90


def test_a_lost_update_counts_from_its_repair() -> None:
    server = H2()
    server.client(-20, "SETTINGS", 6, stream=0, value=1000)
    server.data(10, 1000)
    server.client(40, "WINDOW_UPDATE", 4, stream=1, value=1000)
    rows = server.scene.rows["packets"]
    assert rows.pop()["side"] == "b"  # lost
    server.scene.tcp(240, True, server.up - 13, 13, server.down, retransmission=True)  # arrives at 265
    server.data(265, 1000)
    found, causes = _causes(server.scene)
    assert found.stream_held_ns == {1: 255 * MS} and causes["stream_window"] == 255


def test_a_closed_window_of_tcp_is_the_receiver() -> None:
    server = H2()
    server.data(10, 1000)
    server.scene.tcp(40, True, server.up, 0, server.down, window=0)  # arrives at 65
    # Before that a megabyte was allowed; what was announced is not taken back here.
    server.scene.rows["packets"][0]["window"] = server.scene.rows["packets"][1]["window"] = 1009
    server.scene.tcp(100, True, server.up, 0, server.down, window=5000)  # arrives at 125
    server.data(125, 1000)
    found, causes = _causes(server.scene)
    assert causes == {"application": 10, "receiver_window": 115} and found.zero_windows == 1


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_sender_that_waits_for_acknowledgements_is_inferred_to_wait_for_its_congestion_window(transport: str) -> None:
    scene = Scene(transport, "h2" if transport == "tcp" else "h3")
    scene.about = {
        "transport_parameters": '{"up": {"initial_max_data": 9999999, "initial_max_stream_data_bidi_local": 9999999}}'
    }
    _, position = bursts(scene, [10, 20])
    if transport == "tcp":
        scene.rows["frames"][0].update(type="DATA", length=position * SEGMENT, tcp_end=1 + position * SEGMENT)
    found, causes = _causes(scene)
    # The first burst takes 0.09 ms, the second 0.19 ms; between them a round trip.
    assert causes == {"congestion_window": pytest.approx(50), "unknown": pytest.approx(0.28)}
    assert found.inferred == {"congestion_window"} and "inferred" in found.notes[-1]


def test_with_the_window_known_what_is_not_its_doing_is_the_senders() -> None:
    scene = Scene()
    bursts(scene, [10, 10])
    scene.rows["frames"][0].update(type="DATA", length=20 * SEGMENT, tcp_end=1 + 20 * SEGMENT)
    full = Window(np.array([0], dtype=np.int64), np.array([10_000], dtype=np.int64))
    found, causes = _causes(scene, window=full)
    # Bursts: each send but those that leave less than a segment of the window is at the sender's pace.
    assert causes["congestion_window"] == pytest.approx(50 + 0.01 * 2, abs=0.03) and not found.inferred
    wide = Window(np.array([0], dtype=np.int64), np.array([1_000_000], dtype=np.int64))
    assert _causes(scene, window=wide)[1] == {"sender": pytest.approx(50.18)}


def _quic(parameters: str) -> Scene:
    scene = Scene("udp", "h3", about={"transport_parameters": parameters})
    number = scene.packet(-25, True, 100, frames="STREAM", **QUIC)
    scene.frame(number, "quic", "STREAM", 40, 6, stream=0, offset=0, fin=True, packet_number=0, **APPLICATION)
    return scene


def _stream(scene: Scene, ms: float, offset: int, length: int, pn: int) -> None:
    number = scene.packet(ms, False, length + 34, frames="STREAM", **QUIC)
    scene.frame(number, "quic", "STREAM", length, 6, stream=0, offset=offset, packet_number=pn, **APPLICATION)


@pytest.mark.parametrize(
    ("parameters", "kind", "stream", "cause"),
    [
        (
            '{"up": {"initial_max_data": 2000, "initial_max_stream_data_bidi_local": 9000}}',
            "MAX_DATA",
            None,
            "connection",
        ),
        (
            '{"up": {"initial_max_data": 9000, "initial_max_stream_data_bidi_local": 2000}}',
            "MAX_STREAM_DATA",
            0,
            "stream",
        ),
    ],
)
def test_the_limits_of_quic_hold_until_a_higher_one_arrives(
    parameters: str, kind: str, stream: int | None, cause: str
) -> None:
    scene = _quic(parameters)
    _stream(scene, 10, 0, 1000, 0)
    _stream(scene, 10, 1000, 1000, 1)
    _stream(scene, 50, 0, 1000, 2)  # sent again: uses nothing
    lower = scene.packet(30, True, 40, frames=kind, **QUIC)
    scene.frame(lower, "quic", kind, 0, 4, stream=stream, value=1500, packet_number=1, **APPLICATION)
    lost = scene.packet(35, True, 40, lost=True, frames=kind, **QUIC)
    scene.frame(lost, "quic", kind, 0, 4, stream=stream, value=4000, packet_number=2, **APPLICATION)
    again = scene.packet(135, True, 40, frames=kind, **QUIC)  # arrives at 160
    scene.frame(again, "quic", kind, 0, 4, stream=stream, value=4000, packet_number=3, **APPLICATION)
    _stream(scene, 160, 2000, 1000, 3)
    found, causes = _causes(scene)
    assert causes[f"{cause}_window"] == 150
    assert found.connection_held_ns == (150 * MS if cause == "connection" else 0)
    assert found.stream_held_ns == ({0: 150 * MS} if cause == "stream" else {})
    assert found.blocked_frames == 0


def test_octets_that_are_sent_again_use_nothing_of_a_limit() -> None:
    scene = _quic('{"up": {"initial_max_data": 2000, "initial_max_stream_data_bidi_local": 9000}}')
    for number, (at, offset) in enumerate(((10, 0), (12, 0), (20, 1000), (160, 2000))):
        _stream(scene, at, offset, 1000, number)
    raised = scene.packet(135, True, 40, frames="MAX_DATA", **QUIC)
    scene.frame(raised, "quic", "MAX_DATA", 0, 4, value=9000, packet_number=1, **APPLICATION)
    found, causes = _causes(scene)
    assert found.connection_held_ns == 140 * MS and causes["connection_window"] == 140


def test_what_is_not_known_of_flow_control_stays_unknown() -> None:
    scene = _quic("{}")
    _stream(scene, 10, 0, 1000, 0)
    found, _ = _causes(scene)
    assert (
        found.stream_held_ns is None
        and found.connection_held_ns is None
        and "flow control is unknown" in found.notes[0]
    )


def test_one_side_knows_nothing_of_waiting() -> None:
    scene = Scene(both=False)
    bursts(scene, [10, 20])
    scene.rows["frames"][0].update(type="DATA", length=30 * SEGMENT, tcp_end=1 + 30 * SEGMENT)
    found, causes = _causes(scene)
    assert set(causes) == {"unknown"} and found.stream_held_ns is None and "one side" in found.notes[-1]


def test_http1_counts_each_response_alone() -> None:
    scene = Scene(protocol="h1", about={"tls_version": None})
    for index, at in enumerate((0, 200)):
        up, down = 1 + 50 * index, 1 + 100 * index
        scene.frame(
            scene.tcp(at - 25, True, up, 50, down), "h1", "HEADERS", 50, offset=up, tcp_start=up, tcp_end=up + 50
        )
        answer = scene.tcp(at + 10, False, down, 100, up + 50)
        scene.frame(answer, "h1", "HEADERS", 100, offset=down, tcp_start=down, tcp_end=down + 100)
    found, causes = _causes(scene)
    assert causes == {"application": 20} and found.total_ns == 20 * MS


def test_limits_that_are_passed_without_being_raised_are_not_believed() -> None:
    one = np.array([10, 20, 30], dtype=np.int64)
    assert spans_at_limit(one, np.array([100, 200, 300]), np.array([0]), np.array([150])) == []
    assert spans_at_limit(one, np.array([100, 200, 300]), np.array([0, 25]), np.array([200, 500])) == [(20, 25)]
    assert spans_at_limit(one[:0], one[:0], np.array([0]), np.array([0])) == []

"""Senders whose windows are written down: a burst a round trip, acknowledged as a whole."""

from tests.analysis.transport.scene import Scene

SEGMENT = 1000
ACK_HEAD = {"packet_type": "1-RTT", "quic_header_bytes": 12}


def bursts(
    scene: Scene, windows: list[int], at_ms: float = 0, *, position: int = 0, acknowledged: bool = True
) -> tuple[float, int]:
    """The server sends each window (in segments) when the one before is acknowledged: round trips of 50 ms.

    Gives the time at which the last acknowledgement arrives, and the octets (segments, for QUIC) so far.
    """
    for window in windows:
        for index in range(window):
            _data(scene, at_ms + index * 0.01, position)
            position += 1
        last = at_ms + (window - 1) * 0.01
        if acknowledged:
            _ack(scene, last + 25, position)
        at_ms = last + 50
    return at_ms, position


def _data(scene: Scene, at_ms: float, position: int) -> None:
    offset = position * SEGMENT
    if scene.transport == "tcp":
        number = scene.tcp(at_ms, False, 1 + offset, SEGMENT)
        if position == 0:
            where = {"tcp_start": 1, "tcp_end": 1 + SEGMENT, "offset": 0}
            scene.frame(number, "h2", "HEADERS", 30, 9, stream=1, **where)
        return
    number = scene.packet(at_ms, False, SEGMENT + 34, frames="STREAM", packet_number=str(position), **ACK_HEAD)
    about = {"packet_space": "application", "packet_number": position}
    scene.frame(number, "quic", "STREAM", SEGMENT, 6, stream=0, offset=offset, **about)
    if position == 0:
        scene.frame(number, "h3", "HEADERS", 30, 2, stream=0, offset=0)


def _ack(scene: Scene, at_ms: float, position: int) -> None:
    if scene.transport == "tcp":
        scene.tcp(at_ms, True, 1, 0, 1 + position * SEGMENT)
        return
    ranges = f"[[0, {position - 1}]]"
    number = scene.packet(at_ms, True, 35, frames="ACK", acknowledged_ranges=ranges, **ACK_HEAD)
    about = {"packet_space": "application", "packet_number": len(scene.rows["frames"]), "ack_delay_ns": 2000}
    scene.frame(number, "quic", "ACK", 0, 7, value=position - 1, **about)

import numpy as np

from tests.analysis.transport.scene import MS, Scene


def test_a_packet_arrives_with_its_first_copy_or_never() -> None:
    scene = Scene()
    first = scene.tcp(0, True, 1, 10, late_ms=30)
    lost = scene.tcp(1, True, 11, 10, lost=True)
    copy = dict(scene.rows["packets"][1])  # the link made a copy, and it came first
    copy.update(packet_id=copy["packet_id"] | 1 << 48, time_ns=40 * MS, number=99)
    scene.rows["packets"].append(copy)
    connection = scene.connection()
    assert connection.arrivals(np.array([first, lost, 12345]), up=True).tolist() == [40 * MS, -1, -1]
    assert connection.arrivals(np.array([first]), up=False).tolist() == [-1]
    assert len(connection.sent(up=True)) == 2 and len(connection.arrived(up=True)) == 2


def test_a_capture_of_one_side_is_its_own_far_side() -> None:
    scene = Scene(both=False)
    number = scene.tcp(0, False, 1, 10)
    connection = scene.connection()
    assert not connection.both_sides and connection.arrivals(np.array([number]), up=False).tolist() == [25 * MS]
    assert len(connection.at_server()) == len(connection.at_client()) == 1

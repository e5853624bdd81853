import numpy as np
import pytest

from tests.analysis.transport.scene import MS, Scene
from trifecta.analysis.transport.rows import Group, Rows


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


def test_a_choice_for_all_connections_is_the_choice_of_each() -> None:
    rows = Rows({"of": np.array([0, 0, 2, 2, 2, 5]), "value": np.array([3, 8, 8, 1, 9, 7])}, {})
    numbers = np.array([2, 0, 4, 5])
    group = Group(rows, rows["of"].searchsorted(numbers), rows["of"].searchsorted(numbers, side="right"))
    for at, values in enumerate([[8, 9], [8], [], [7]]):
        mine = group.of(at).pick("large", lambda of: of["value"] > 3)
        assert mine["value"].tolist() == values and len(mine) == len(values)
        again = mine.pick("odd", lambda of: of["value"] % 2 == 1)
        assert again["value"].tolist() == [one for one in values if one % 2]
        assert mine.where(mine["value"] > 7).pick("odd", lambda of: of["value"] % 2 == 1)["value"].tolist() == [
            one for one in values if one > 7 and one % 2
        ]
        assert mine.derived("twice", lambda of: of["value"] * 2).tolist() == [2 * one for one in values]
    asked: list[int] = []
    for at in range(4):
        group.of(at).derived("once", lambda of: asked.append(len(of)) or of["value"])  # type: ignore[func-returns-value]
    assert asked == [6], "worked out once, of all rows"
    for at, values in enumerate([[8, 1, 9], [3, 8], [], [7]]):
        mine = group.of(at)
        for rows in (mine, mine.where(np.arange(len(values)))):  # among the others, and alone
            assert rows.sums("sums", lambda of: {"all": of["value"], "odd": of["value"] % 2 == 1}) == {
                "all": sum(values),
                "odd": sum(one % 2 for one in values),
            }
            assert rows.least("value") == min(values, default=None)
            assert rows.each("rows", lambda _, starts, ends: (ends - starts).tolist()) == len(values)
    with pytest.raises(KeyError):
        group.of(0)["none"]

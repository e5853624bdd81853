"""What one capture says in numbers, of a world whose truth is known."""

import pytest

from tests.report.synthetic_packets import MS, World, tables
from trifecta.analysis.transport.trial import Capture, look_at
from trifecta.store.trace_schema import TABLES


def looked(world: World) -> Capture:
    made = tables(world)
    return look_at({name: getattr(made, name) for name in TABLES})


@pytest.mark.parametrize(("arm", "packets", "trips"), [("h2", 8, 3), ("h3", 5, 2)])
def test_set_up_is_counted_up_to_the_packet_with_the_request(arm: str, packets: int, trips: int) -> None:
    values = looked(World(arm=arm, size=30_000, lose=())).values
    assert (values["request_packets"], values["setup_round_trips"]) == (packets, trips)
    assert values["setup_ratio"] is not None and 1 <= values["setup_ratio"] < 1.2
    assert (values["spurious"], values["timeouts"], values["repair_ns"]) == (0, 0, None)
    assert values["by_others_ns"] == 0


def test_a_loss_is_repaired_and_keeps_other_streams_waiting() -> None:
    found = looked(World(arm="h2", size=60_000, lose=(20,)))
    assert found.values["repair_ns"] == 80 * MS
    mean = sum(one.by_others_ns for one in found.blocking) / 3
    assert found.values["by_others_ns"] == pytest.approx(mean) and mean > 0
    assert sum(found.parts.values()) > 0


def test_without_keys_and_with_one_side_what_cannot_be_known_is_null() -> None:
    values = looked(World(arm="h3", size=30_000, lose=(), keys=False)).values
    assert (values["request_packets"], values["by_others_ns"], values["packets_per_ack"]) == (None, None, None)
    values = looked(World(arm="h2", size=30_000, lose=(), sides=False)).values
    assert (values["flow_control_ns"], values["spurious"]) == (None, None)
    assert looked(World(arm="h2", size=30_000, lose=(), sides=False)).parts == {}

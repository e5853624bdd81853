"""Loss recovery of connections written by hand, where every loss and every needless packet is known."""

from __future__ import annotations

from typing import Any

from tests.analysis.transport.scenes import MS, Scene
from trifecta.analysis.transport.recovery import ONE_SIDE, Recovery, recovery
from trifecta.analysis.transport.triggers import ACKNOWLEDGEMENT, TIMEOUT


def measured(scene: Scene, direction: str = "down") -> Recovery:
    tables = scene.tables()
    found, _ = recovery(tables)
    return next(one for one in found if one.direction == direction)


def acknowledge(scene: Scene, sent_ms: float, upto: int, *sack: tuple[int, int]) -> None:
    text = str([list(one) for one in sack]) if sack else None
    scene.tcp("up", sent_ms, sent_ms + 10, 1, 1, acknowledged=upto, sack=text)


def four(lost: set[int], **more: Any) -> Scene:
    """Four segments of 1000 octets, 1 ms apart; they take 10 ms."""
    scene = Scene()
    for at in range(4):
        start = 1 + 1000 * at
        scene.tcp("down", at, None if at in lost else at + 10, start, start + 1000, **more)
    return scene


def test_nothing_lost_is_nothing_repaired() -> None:
    scene = four(set())
    acknowledge(scene, 14, 4001)
    found = measured(scene)
    assert (found.packets, found.carrying, found.lost, found.retransmissions, found.spurious) == (4, 4, 0, 0, 0)
    assert (found.reordered, found.timeouts, found.probes, found.repairs) == (0, 0, 0, [])


def test_a_loss_that_sack_tells_of() -> None:
    scene = four({1})
    for at, right in ((12, 3001), (13, 4001)):
        acknowledge(scene, at, 1001, (2001, right))
    number = scene.tcp("down", 24, 34, 1001, 2001)
    found = measured(scene)
    assert (found.lost, found.lost_carrying, found.lost_by_fate) == (1, 1, {"lost": 1})
    assert (found.retransmissions, found.retransmitted_octets, found.spurious) == (1, 1000, 0)
    assert (found.by_acknowledgement, found.by_probe, found.by_timeout) == (1, 0, 0)
    (repair,) = found.repairs
    assert (repair.sent_ns, repair.repaired_ns, repair.took_ns) == (1 * MS, 34 * MS, 33 * MS)
    assert (repair.repaired_by, repair.cause, repair.transmissions) == (number, ACKNOWLEDGEMENT, 2)


def test_the_tail_is_probed_and_then_the_timer_expires() -> None:
    scene = four({3})
    acknowledge(scene, 12, 3001)
    scene.tcp("down", 62, None, 3001, 4001)  # tail loss probe, lost too
    scene.tcp("down", 300, 310, 3001, 4001)
    found = measured(scene)
    assert (found.by_probe, found.probes, found.by_timeout, found.timeouts) == (1, 1, 1, 1)
    assert (found.retransmissions, found.spurious, found.lost_carrying) == (2, 0, 2)
    first, second = found.repairs
    assert (first.took_ns, first.transmissions, first.cause) == (307 * MS, 3, TIMEOUT)
    assert second.took_ns == 248 * MS


def test_after_a_timeout_acknowledgements_clock_out_the_rest() -> None:
    scene = four({0, 1, 2, 3})
    acknowledge(scene, 0, 1)
    scene.tcp("down", 250, 260, 1, 1001)
    acknowledge(scene, 260, 1001)
    for at in (1, 2):
        scene.tcp("down", 270 + at, 280 + at, 1 + 1000 * at, 1001 + 1000 * at)
    found = measured(scene)
    assert (found.by_timeout, found.timeouts, found.by_acknowledgement) == (3, 1, 0)
    assert [one.cause for one in found.repairs] == [TIMEOUT, TIMEOUT, TIMEOUT, None]
    assert found.repairs[3].repaired_ns is None


def test_what_arrived_and_was_sent_again_is_spurious() -> None:
    scene = four(set())
    scene.tcp("down", 24, 34, 1001, 2001)
    found = measured(scene)
    assert (found.retransmissions, found.spurious, found.repairs) == (1, 1, [])


def test_a_retransmission_of_octets_that_arrived_and_octets_that_did_not_is_needed() -> None:
    scene = four({1})
    scene.tcp("down", 24, 34, 1, 2001)
    found = measured(scene)
    assert (found.retransmissions, found.spurious, found.retransmitted_octets) == (1, 0, 2000)


def test_a_lost_copy_of_what_had_arrived_needs_no_repair() -> None:
    scene = four(set())
    scene.tcp("down", 24, None, 1001, 2001)
    found = measured(scene)
    assert (found.lost, found.spurious, found.repairs) == (1, 1, [])


def test_reordering_that_the_sender_took_for_a_loss() -> None:
    scene = Scene()
    for at, arrived in enumerate((10, 30, 12, 13)):
        scene.tcp("down", at, arrived, 1 + 1000 * at, 1001 + 1000 * at)
    found = measured(scene)
    assert (found.reordered, found.reordered_taken_for_lost) == (1, 0)
    scene.tcp("down", 24, 34, 1001, 2001)
    found = measured(scene)
    assert (found.reordered, found.reordered_taken_for_lost, found.spurious, found.lost) == (1, 1, 1, 0)


def test_a_queue_that_was_full_is_told_from_random_loss() -> None:
    scene = four({1, 2})
    for row, fate in zip(
        (row for row in scene.rows["packets"] if row["fate"] == "lost"), ("lost", "queue_dropped"), strict=True
    ):
        row["fate"] = fate
    assert measured(scene).lost_by_fate == {"lost": 1, "queue_dropped": 1}


def test_without_the_links_word_what_is_missing_on_the_far_side_is_lost() -> None:
    scene = four({1, 3})
    for row in scene.rows["packets"]:
        row["fate"] = None
    found = measured(scene)
    assert (found.lost, found.lost_by_fate) == (1, {"lost": 1})  # the last one may still be under way


def test_what_was_under_way_when_the_link_ended_is_not_lost_though_it_was_overtaken() -> None:
    scene = four({1})
    for row in scene.rows["packets"]:
        if row["fate"] == "lost":
            row["fate"] = "under_way"
    found = measured(scene)
    assert (found.lost, found.lost_by_fate, found.repairs) == (0, {}, [])


def test_quic_octets_sent_again_in_another_packet() -> None:
    scene = Scene()
    scene.quic("down", 0, None, (0, 0, 1000))
    scene.quic("down", 1, 11, (0, 1000, 1000))
    answer = scene.quic("up", 11, 21)
    ack = {"connection": 0, "direction": "up", "layer": "quic", "type": "ACK", "packet_space": "application"}
    scene.rows["frames"].append(ack | {"number": answer, "value": 1})
    number = scene.quic("down", 21, 31, (0, 0, 1000), (4, 0, 100))
    found = measured(scene)
    assert (found.carrying, found.lost, found.retransmissions, found.retransmitted_octets) == (3, 1, 1, 1000)
    assert (found.spurious, found.by_acknowledgement, found.by_probe, found.by_timeout) == (0, 1, 0, 0)
    (repair,) = found.repairs
    assert (repair.took_ns, repair.repaired_by, repair.transmissions) == (31 * MS, number, 2)


def test_quic_without_an_acknowledgement_of_a_later_packet_is_a_probe() -> None:
    scene = Scene()
    scene.quic("down", 0, 10, (0, 0, 1000))
    scene.quic("down", 100, 110, (0, 0, 1000))
    scene.quic("down", 100.1, 110, (0, 0, 1000))
    answer = scene.quic("up", 10, 20)
    ack = {"connection": 0, "direction": "up", "layer": "quic", "type": "ACK", "packet_space": "application"}
    scene.rows["frames"].append(ack | {"number": answer, "value": 0})  # nothing later than what is sent again
    found = measured(scene)
    assert (found.retransmissions, found.spurious, found.by_probe, found.probes) == (2, 2, 2, 1)
    assert found.by_acknowledgement == 0


def test_handshake_octets_of_different_spaces_are_not_the_same() -> None:
    scene = Scene()
    for at, space in enumerate(("initial", "handshake")):
        number = scene.quic("down", at, 10 + at, packet_number="0")
        row = {"number": number, "connection": 0, "direction": "down", "layer": "quic", "type": "CRYPTO"}
        scene.rows["frames"].append(row | {"offset": 0, "length": 90, "packet_space": space, "packet_number": 0})
    assert measured(scene).retransmissions == 0


def test_quic_without_keys_has_losses_but_no_repairs() -> None:
    scene = Scene()
    scene.quic("down", 0, None)
    scene.quic("down", 1, 11)
    tables = scene.tables()
    (found,), notes = recovery(tables)
    assert (found.lost, found.retransmissions, found.spurious, found.timeouts) == (1, None, None, None)
    assert any("without keys" in note for note in notes)


def test_one_side_says_what_it_cannot_know() -> None:
    scene = Scene(both_sides=False)
    scene.tcp("down", 0, 0, 1, 1001)
    scene.tcp("down", 1, 0, 2001, 3001)
    scene.tcp("down", 30, 0, 1001, 2001)
    scene.tcp("down", 31, 0, 2001, 3001)
    tables = scene.tables()
    (found,), notes = recovery(tables)
    assert (found.retransmissions, found.late, found.retransmitted_octets) == (1, 1, 1000)
    assert (found.lost, found.spurious, found.reordered, found.by_probe) == (None, None, None, None)
    assert notes == [ONE_SIDE]

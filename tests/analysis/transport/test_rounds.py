"""The congestion window, the rate of the link and the path in the time of a request: links and senders by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tests.analysis.transport.scenes import MS, Scene
from trifecta.analysis.transport.attribution import RequestTime, attribute
from trifecta.analysis.transport.bottleneck import Path, path_of
from trifecta.analysis.transport.directions import DOWN, directions
from trifecta.analysis.transport.parts import (
    CONGESTION,
    CPU,
    LOSS,
    PARTS,
    PROPAGATION,
    QUEUEING,
    REST,
    SERVER,
    TRANSMISSION,
)

ONE_WAY, STEP = 25.0, 0.01  # ms: of the path, from one packet of a flight to the next
WIRE = 1000  # octets of a packet on the wire; 950 of them are of the stream


class Link:
    """The server's side of a path: a least delay, and perhaps a rate in octets a ms."""

    def __init__(self, protocol: str = "h3", rate: float = 0) -> None:
        self.scene, self.rate, self.protocol = Scene(), rate, protocol
        self.scene.connect(0, protocol, start_ns=0)
        self.free, self.sent, self.stream = 0.0, 0, 0 if protocol == "h3" else 1
        self.up(100, 100 + ONE_WAY, asks=True)

    def up(self, sent: float, arrived: float, *, asks: bool = False) -> None:
        """A packet of the client."""
        if self.protocol == "h3":
            self.scene.quic("up", sent, arrived, *([(0, 0, 100)] if asks else []), wire_bytes=80)
        elif asks:
            end = self.scene.records("up", 1, (1, "HEADERS", 100))
            self.scene.tcp("up", sent, arrived, 1, end, wire_bytes=80)
        else:
            self.scene.tcp("up", sent, arrived, 123, 123, wire_bytes=66)

    def down(self, at: float, late: float = 0, *, lost: bool = False) -> float:
        """A packet of the server; when it arrives."""
        service = WIRE / self.rate if self.rate else 0.0
        self.free = max(at + ONE_WAY, self.free) + service
        arrived = None if lost else self.free + late
        if self.protocol == "h3":
            self.scene.quic("down", at, arrived, (0, 950 * self.sent, 950), wire_bytes=WIRE)
        else:
            start = 1 + 950 * self.sent
            end = self.scene.records("down", start, (1, "DATA", 950 - 22))
            self.scene.tcp("down", at, arrived, start, end, wire_bytes=WIRE)
        self.sent += 1
        return self.free + late

    def flights(self, windows: Sequence[int], at: float = 100 + ONE_WAY) -> float:
        """A flight when that before it is acknowledged as a whole; when the last packet arrives."""
        arrived = at
        for window in windows:
            for number in range(window):
                arrived = self.down(at + number * STEP)
            self.up(arrived + 0.001, arrived + 0.001 + ONE_WAY)
            at = arrived + 0.001 + ONE_WAY
        return arrived

    def split(self, end: float) -> RequestTime:
        """Where the time went; checked to be without gaps, and to add up."""
        self.scene.request(self.stream, 0, 100, end)
        ((one,), _) = attribute(self.scene.tables(), setup=False)
        assert sum(one.parts.values()) == one.whole_ns == sum(each.end_ns - each.start_ns for each in one.intervals)
        for before, after in zip(one.intervals, one.intervals[1:], strict=False):
            assert before.end_ns == after.start_ns
        assert min(one.parts.values()) >= 0
        return one


def ms(one: RequestTime) -> dict[str, float]:
    rounded = {part: round(ns / MS, 3) for part, ns in one.parts.items()}
    return {part: value for part, value in rounded.items() if value}


@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_each_round_trip_of_slow_start_is_waiting_for_the_congestion_window(protocol: str) -> None:
    link = Link(protocol)
    windows = [10, 20, 40, 80, 160, 320]
    found = ms(link.split(link.flights(windows)))
    # Five times a round trip: what the sender did in between, packet after packet, is rest.
    assert found == {
        PROPAGATION: 2 * ONE_WAY,
        CONGESTION: 5 * 2 * ONE_WAY,
        CPU: 0.005,
        REST: round(sum(window - 1 for window in windows) * STEP, 3),
    }


def test_a_small_response_is_all_propagation() -> None:
    link = Link()
    assert ms(link.split(link.flights([1]))) == {PROPAGATION: 2 * ONE_WAY}


def test_at_the_rate_of_the_link_all_is_transmission() -> None:
    link = Link(rate=WIRE)  # a packet a ms
    found = ms(link.split(link.flights([60, 60, 30])))
    # The first flight keeps the link busy until the first of the second one, which waits for 60 acknowledged packets.
    gap = 2 * ONE_WAY + 0.001
    assert found == {
        PROPAGATION: 2 * ONE_WAY, TRANSMISSION: 150, CONGESTION: pytest.approx(2 * gap, abs=0.01),
    } | ({CPU: found[CPU]} if CPU in found else {})  # fmt: skip


def test_a_full_pipe_leaves_no_waiting() -> None:
    link = Link(rate=WIRE)
    arrivals = [link.down(100 + ONE_WAY + number * STEP) for number in range(120)]
    for number in range(300):  # each packet that arrives lets go of one
        acknowledged = arrivals[number] + 0.001
        link.up(acknowledged, acknowledged + ONE_WAY)
        arrivals.append(link.down(acknowledged + ONE_WAY))
    found = ms(link.split(arrivals[-1]))
    assert found == {PROPAGATION: 2 * ONE_WAY, TRANSMISSION: 420}


def test_what_others_put_into_the_queue_is_queueing() -> None:
    link = Link(rate=WIRE)
    arrivals = [link.down(100 + ONE_WAY + number * STEP) for number in range(40)]
    last = link.down(100 + ONE_WAY + 0.5, late=70)
    found = ms(link.split(last))
    assert found.pop(QUEUEING) == pytest.approx(70, abs=0.05) and len(arrivals) == 40
    assert found.pop(TRANSMISSION) == pytest.approx(41, abs=0.05)
    assert found.pop(PROPAGATION) == pytest.approx(2 * ONE_WAY, abs=0.05) and not found


def test_a_window_that_stays_as_it_is_is_said_to_be_a_buffer() -> None:
    for windows, said in (([10, 20] + [40] * 9, True), ([10, 20] + [40 + number for number in range(9)], False)):
        link = Link()
        end = link.flights(windows)
        assert ms(link.split(end))[CONGESTION] == 10 * 2 * ONE_WAY
        notes = attribute(link.scene.tables(), setup=False)[1]
        assert any("octets were under way" in note for note in notes) is said, notes
        assert any("39600 octets were under way" in note for note in notes) is said, notes


def test_an_upload_waits_for_the_clients_window() -> None:
    scene = Scene()
    scene.connect(0, "h3", start_ns=0)
    at, offset = 100.0, 0
    for window in (10, 20, 5):
        for number in range(window):
            arrived = at + number * STEP + ONE_WAY
            scene.quic("up", at + number * STEP, arrived, (0, 950 * offset, 950), wire_bytes=WIRE)
            offset += 1
        scene.quic("down", arrived + 0.001, arrived + 0.001 + ONE_WAY, wire_bytes=80)
        at = arrived + 0.001 + ONE_WAY
    scene.quic("down", arrived + 3, arrived + 3 + ONE_WAY, (0, 0, 100), wire_bytes=200)
    scene.request(0, 0, 100, arrived + 3 + ONE_WAY)
    ((one,), _) = attribute(scene.tables(), setup=False)
    rest = round((9 + 19 + 4) * STEP, 3)
    assert ms(one) == {PROPAGATION: 2 * ONE_WAY, SERVER: 3, CONGESTION: 2 * 2 * ONE_WAY, CPU: 0.002, REST: rest}


def test_the_server_is_the_server_on_a_slow_link_too() -> None:
    link = Link(rate=WIRE)
    found = ms(link.split(link.flights([20], at=100 + ONE_WAY + 9)))
    assert found == {PROPAGATION: 2 * ONE_WAY, SERVER: 9, TRANSMISSION: 20}


def test_a_pace_is_the_congestion_windows() -> None:
    link = Link()
    begin = 100 + ONE_WAY
    for burst in range(4):  # 40 packets in a round trip, ten at once
        for number in range(10):
            end = link.down(begin + burst * 12 + number * STEP)
    found = ms(link.split(end))
    assert found == {PROPAGATION: 2 * ONE_WAY, CONGESTION: round(3 * (12 - 9 * STEP), 3), REST: round(36 * STEP, 3)}


def test_a_pause_longer_than_any_pace_is_the_hosts() -> None:
    link = Link()
    begin = 100 + ONE_WAY
    for number in range(40):
        end = link.down(begin + number * STEP + (11 if number == 39 else 0))
        if number == 30:
            begin += 2  # 31 packets at once allow a pause, the eight behind it not one of 11 ms
    found = ms(link.split(end))
    assert found[CONGESTION] == pytest.approx(2 + STEP) and found[CPU] == pytest.approx(11 + STEP)


def test_a_pause_before_a_window_was_sent_is_no_pace() -> None:
    link = Link()
    link.down(100 + ONE_WAY)
    end = link.down(100 + ONE_WAY + 5)
    assert ms(link.split(end)) == {PROPAGATION: 2 * ONE_WAY, CPU: 5}


def test_a_timer_is_loss_recovery_and_no_pace() -> None:
    link = Link()
    begin = 100 + ONE_WAY
    for number in range(40):
        link.down(begin + number * STEP, lost=number == 39)
    link.sent -= 1
    end = link.down(begin + 200)
    assert ms(link.split(end))[LOSS] == pytest.approx(200 - 39 * STEP)


def test_silence_after_a_lost_acknowledgement_is_loss_recovery() -> None:
    link = Link()
    for number in range(4):
        last = link.down(100 + ONE_WAY + number * STEP)
    link.scene.quic("up", last + 0.001, None, wire_bytes=80)
    end = link.down(100 + ONE_WAY + 3 * STEP + 90)  # a probe with new data (RFC 8985, 7)
    assert ms(link.split(end)) == {PROPAGATION: 2 * ONE_WAY, REST: 3 * STEP, LOSS: 90}


def seen(link: Link) -> Path:
    return path_of(directions(link.scene.tables()["packets"])[0, DOWN])


def test_the_rate_is_read_from_packets_that_waited_behind_others() -> None:
    link = Link(rate=2500)
    link.flights([10, 20, 40])
    found = seen(link)
    assert found.ns_per_octet == pytest.approx(MS / 2500, rel=0.001)
    assert found.least_ns == pytest.approx(ONE_WAY * MS, abs=1000)
    assert sum(ends - begins for begins, ends in zip(*found.busy, strict=True)) == pytest.approx(
        70 * 0.4 * MS, rel=0.001
    )
    assert int(found.late_ns.max()) < 1000


def test_without_a_queue_or_with_jitter_no_rate_is_made_up() -> None:
    link = Link()
    link.flights([10, 20, 40])
    assert seen(link).ns_per_octet == 0 and seen(link).busy == ([], [])
    draw, link, last = random.Random(1), Link(), 0.0
    for number in range(400):  # jitter that keeps the order
        last = max(last, 125 + number * STEP + ONE_WAY + draw.expovariate(1 / 5))
        link.scene.quic("down", 125 + number * STEP, last, (0, 950 * number, 950), wire_bytes=WIRE)
    assert seen(link).ns_per_octet == 0


def test_packets_that_wait_behind_others_at_no_steady_rate_show_none() -> None:
    draw, link, free = random.Random(1), Link(), 0.0
    for number in range(60):
        sent = 125 + number * STEP
        free = max(sent + ONE_WAY, free) + draw.choice([0.1, 0.3, 3, 9])
        link.scene.quic("down", sent, free, (0, 950 * number, 950), wire_bytes=WIRE)
    assert seen(link).ns_per_octet == 0
    assert int(seen(link).late_ns.max()) > 50 * MS


def test_parts_are_in_one_order_and_no_packet_came_early() -> None:
    assert len(set(PARTS)) == len(PARTS) == 11
    link = Link(rate=400)
    link.flights([10, 5])
    assert np.all(seen(link).late_ns >= 0)

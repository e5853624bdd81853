"""The time of a request split by cause, on connections written by hand."""

from __future__ import annotations

import json

import pytest

from tests.analysis.transport.scenes import MS, Scene
from trifecta.analysis.transport.attribution import ONE_SIDE, RequestTime, attribute
from trifecta.analysis.transport.differences import by_block, difference, mean_of, mean_parts
from trifecta.analysis.transport.parts import (
    BLOCKING,
    CONGESTION,
    CPU,
    FLOW,
    HANDSHAKE,
    LOSS,
    PARTS,
    PROPAGATION,
    QUEUEING,
    REST,
    SERVER,
    Stall,
)
from trifecta.report.packets.differences import sentence


def split(scene: Scene, *stalls: Stall, setup: bool | None = None) -> list[RequestTime]:
    """All requests; each is checked to be without gaps and to add up."""
    found, _ = attribute(scene.tables(), stalls or None, setup=setup)
    for one in found:
        assert sum(one.parts.values()) == one.whole_ns
        for before, after in zip(one.intervals, one.intervals[1:], strict=False):
            assert before.end_ns == after.start_ns
            assert before.cause != after.cause
    return found


def ms(one: RequestTime) -> dict[str, float]:
    return {part: ns / MS for part, ns in one.parts.items() if ns}


def asked(protocol: str = "h2", stream: int = 1) -> Scene:
    """A request at 100 ms that the client sent at 101, arrived at 111."""
    scene = Scene()
    scene.connect(0, protocol, start_ns=60 * MS)
    if protocol == "h3":
        scene.quic("up", 101, 111, (stream, 0, 100))
    else:
        end = scene.records("up", 1, (stream, "HEADERS", 100))
        scene.tcp("up", 101, 111, 1, end)
    return scene


def reply(scene: Scene, sent: float, arrived: float | None, index: int = 0, stream: int = 1) -> None:
    """A record of 1022 octets of a response."""
    at = 1 + 1022 * index
    end = scene.records("down", at, (stream, "DATA", 1000))
    scene.tcp("down", sent, arrived, at, end)


def test_a_request_of_one_packet_is_path_server_and_cpu() -> None:
    scene = asked()
    reply(scene, 118, 128)
    scene.request(1, 0, 100, 128)
    (one,) = split(scene, setup=False)
    assert ms(one) == {CPU: 1, PROPAGATION: 20, SERVER: 7}
    assert [each.cause for each in one.intervals] == [CPU, PROPAGATION, SERVER, PROPAGATION]


def test_the_handshake_counts_where_the_connection_was_opened_for_the_request() -> None:
    scene = asked()
    reply(scene, 118, 128)
    scene.request(1, 0, 100, 128)
    assert ms(split(scene)[0]) == {HANDSHAKE: 40, CPU: 1, PROPAGATION: 20, SERVER: 7}
    assert ms(split(scene, setup=False)[0])[SERVER] == 7
    scene.request(3, 1, 100, 128)  # a second one on it: it stood already
    assert HANDSHAKE not in ms(split(scene)[0])


def test_what_a_packet_takes_longer_than_the_fastest_is_queueing() -> None:
    scene = asked()
    reply(scene, 111, 121, 0)
    reply(scene, 111, 133, 1)
    scene.request(1, 0, 100, 133)
    assert ms(split(scene, setup=False)[0]) == {CPU: 1, PROPAGATION: 20, QUEUEING: 12}


def test_a_loss_of_its_last_octets_costs_from_first_to_last_sending() -> None:
    scene = asked()
    reply(scene, 111, 121, 0)
    reply(scene, 111.5, None, 1)
    scene.tcp("down", 161.5, 171.5, 1023, 2045)
    scene.request(1, 0, 100, 171.5)
    # 111.5 to 161.5; what is from 111 to 111.5 is the time to send the first flight.
    assert ms(split(scene, setup=False)[0]) == {CPU: 1, PROPAGATION: 20, REST: 0.5, LOSS: 50}


def test_what_another_stream_holds_up_is_head_of_line_blocking() -> None:
    scene = asked()
    end = scene.records("up", 123, (3, "HEADERS", 100))
    scene.tcp("up", 101, 111, 123, end)
    reply(scene, 111, None, 0, stream=3)
    reply(scene, 112, 122, 1, stream=1)
    scene.tcp("down", 140, 150, 1, 1023)
    scene.request(1, 0, 100, 150)
    scene.request(3, 1, 100, 150)
    one, three = split(scene)
    assert ms(one)[BLOCKING] == 28
    assert LOSS not in ms(one)
    assert ms(three) == {CPU: 1, PROPAGATION: 20, LOSS: 29}
    assert three.whole_ns == one.whole_ns == 50 * MS


def test_acknowledgements_clock_a_second_round() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("down", 111, 121, (0, 1000, 1000))
    scene.quic("up", 122, 132)  # the acknowledgement waits a ms
    scene.quic("down", 134, 144, (0, 2000, 1000))  # the server takes two
    scene.request(0, 0, 100, 144)
    (one,) = split(scene, setup=False)
    assert ms(one) == {CPU: 3, PROPAGATION: 20, CONGESTION: 21}


def test_a_reply_behind_another_response_waits_for_the_window_not_the_server() -> None:
    scene = Scene()
    scene.connect(0, "h3", start_ns=60 * MS)
    scene.quic("up", 101, 111, (0, 0, 100), (4, 0, 100))
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("down", 111, 121, (0, 1000, 1000))
    scene.quic("up", 121, 131)
    scene.quic("down", 131, 141, (4, 0, 1000))
    scene.request(0, 0, 100, 121)
    scene.request(4, 1, 100, 141)
    _, four = split(scene, setup=False)
    assert ms(four) == {CPU: 1, PROPAGATION: 20, CONGESTION: 20}


def test_a_packet_that_arrived_before_it_was_sent_ends_the_walk() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("up", 150, 131)
    scene.quic("down", 131, 141, (0, 1000, 1000))
    scene.request(0, 0, 100, 141)
    (one,) = split(scene, setup=False)
    assert ms(one) == {CPU: 1, QUEUEING: 10, PROPAGATION: 10, REST: 20}


def test_less_than_two_segments_under_way_are_no_congestion_window() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("up", 121.5, 131.5)
    scene.quic("down", 132, 142, (0, 1000, 1000))
    scene.request(0, 0, 100, 142)
    (one,) = split(scene, setup=False)
    assert ms(one) == {CPU: 2, PROPAGATION: 20, REST: 20}


def test_what_is_late_in_a_round_is_queueing() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("down", 111, 124, (0, 1000, 1000))  # 3 ms late
    scene.quic("up", 124, 136)  # 2 ms late
    scene.quic("down", 136, 147, (0, 2000, 1000))  # 1 ms late
    scene.request(0, 0, 100, 147)
    (one,) = split(scene, setup=False)
    assert ms(one) == {CPU: 1, PROPAGATION: 20, CONGESTION: 20, QUEUEING: 6}


def test_a_sender_that_waits_for_its_timer_recovers_from_a_loss() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, None, (0, 0, 1000))
    scene.quic("down", 111.5, 121.5, (0, 1000, 1000))
    scene.quic("up", 121.6, 131.6)
    scene.quic("down", 191.6, 201.6, (0, 0, 1000))
    scene.request(0, 0, 100, 201.6)
    (one,) = split(scene, setup=False)
    assert ms(one) == {CPU: 1, PROPAGATION: 20, LOSS: 80.6}


def test_a_timer_in_the_middle_of_a_response_is_loss_recovery_too() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, None, (0, 0, 1000))
    scene.quic("down", 111.5, 121.5, (0, 1000, 1000))
    scene.quic("up", 121.5, 131.5)
    scene.quic("down", 191.5, 201.5, (0, 0, 1000))
    scene.quic("up", 201.5, 211.5)
    scene.quic("down", 211.5, 221.5, (0, 2000, 1000))
    scene.request(0, 0, 100, 221.5)
    (one,) = split(scene, setup=False)
    # After a loss a window of one packet is possible (RFC 9002, 7.6.2).
    assert ms(one) == {CPU: 1, PROPAGATION: 20, REST: 0.5, LOSS: 60, CONGESTION: 40}


def test_a_window_that_was_closed_is_flow_control() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("up", 151, 161)
    scene.quic("down", 161.5, 171.5, (0, 1000, 1000))
    scene.request(0, 0, 100, 171.5)
    (one,) = split(scene, Stall(0, "down", 111 * MS, 161 * MS), setup=False)
    assert ms(one) == {CPU: 1, PROPAGATION: 20, FLOW: 50.5}


def test_another_streams_window_is_none_of_its_business() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 111, 121, (0, 0, 1000))
    scene.quic("up", 151, 161)
    scene.quic("down", 161.5, 171.5, (0, 1000, 1000))
    scene.request(0, 0, 100, 171.5)
    (one,) = split(scene, Stall(0, "down", 111 * MS, 161 * MS, stream=4), setup=False)
    assert one.parts[FLOW] == 0


def test_windows_are_read_from_the_frames() -> None:
    scene = asked("h3", 0)
    said = {"initial_max_data": 10**6, "initial_max_stream_data_bidi_local": 1000, "initial_max_stream_data_uni": 10**6}
    said["initial_max_stream_data_bidi_remote"] = 10**6
    scene.rows["connections"][0] |= {"transport_parameters": json.dumps({"up": said, "down": said}), "decrypted": True}
    scene.quic("down", 111, 121, (0, 0, 1000))
    number = scene.quic("up", 151, 161)
    update = {"number": number, "connection": 0, "direction": "up", "layer": "quic", "type": "MAX_STREAM_DATA"}
    scene.rows["frames"].append(update | {"stream": 0, "value": 5000, "time_ns": 151 * MS, "packet_number": 1})
    for row in scene.rows["frames"]:
        times = {each["number"]: each["time_ns"] for each in scene.rows["packets"]}
        row.setdefault("time_ns", times.get(row.get("number")))
    scene.quic("down", 161.5, 171.5, (0, 1000, 1000))
    scene.rows["frames"][-1]["time_ns"] = round(161.5 * MS)
    scene.request(0, 0, 100, 171.5)
    (one,) = split(scene, setup=False)
    assert one.parts[FLOW] == round(50.5 * MS)


def test_a_stall_from_before_the_request_counts_from_its_arrival_on() -> None:
    scene = asked("h3", 0)
    scene.quic("down", 114, 124, (0, 0, 1000))
    scene.request(0, 0, 100, 124)
    (one,) = split(scene, Stall(0, "down", 50 * MS, 114 * MS), setup=False)
    assert ms(one) == {CPU: 1, PROPAGATION: 20, FLOW: 3}
    assert one.start_ns == 100 * MS


def test_the_first_flight_is_the_servers_whatever_arrives_meanwhile() -> None:
    scene = asked("h3", 0)
    scene.quic("up", 102, 112)  # an acknowledgement of something else
    scene.quic("down", 115, 125, (0, 0, 1000))
    scene.quic("down", 115.5, 125.5, (0, 1000, 1000))
    scene.request(0, 0, 100, 125.5)
    assert ms(split(scene, setup=False)[0]) == {CPU: 1, SERVER: 4, REST: 0.5, PROPAGATION: 20}


def test_a_response_that_never_came_whole_is_named_and_not_split() -> None:
    scene = asked()
    reply(scene, 111, None, 0)
    reply(scene, 112, 122, 1)
    scene.request(1, 0, 100, 122)
    found, notes = attribute(scene.tables())
    assert found == []
    assert any("not seen whole" in note for note in notes)


def test_one_side_is_not_split() -> None:
    scene = Scene(both_sides=False)
    scene.connect(0, "h2")
    end = scene.records("up", 1, (1, "HEADERS", 100))
    scene.tcp("up", 101, 0, 1, end)
    reply(scene, 121, 0)
    scene.request(1, 0, 100, 121)
    assert attribute(scene.tables()) == ([], [ONE_SIDE])


def test_differences_of_parts_add_up_to_the_whole() -> None:
    slow, quick = asked(), asked()
    reply(slow, 118, 148)
    reply(quick, 118, 128)
    slow.request(1, 0, 100, 148)
    quick.request(1, 0, 100, 128)
    pair = (mean_parts(split(quick, setup=False)), mean_parts(split(slow, setup=False)))
    found = difference([pair, pair])
    assert found is not None
    assert found.whole.difference_ns == pytest.approx(-20 * MS)
    assert sum(one.difference_ns for one in found.parts) == pytest.approx(found.whole.difference_ns)
    assert [one.part for one in found.parts] == list(PARTS)
    assert (found.whole.low_ns, found.whole.high_ns) == (pytest.approx(-20 * MS), pytest.approx(-20 * MS))
    said = sentence(found, "HTTP/3", "HTTP/2")
    assert (
        said == "A request took 20.0 ms less over HTTP/3 than over HTTP/2 [−20.0, −20.0]: propagation −20.0 ms "
        "[−20.0, −20.0]."
    )
    assert difference([]) is None
    one = difference([pair])
    assert one is not None
    assert one.whole.low_ns is None
    assert (
        sentence(one, "HTTP/3", "HTTP/2")
        == "A request took 20.0 ms less over HTTP/3 than over HTTP/2: propagation −20.0 ms."
    )


def test_a_difference_whose_interval_has_zero_in_it_is_none() -> None:
    zero = dict.fromkeys(PARTS, 0.0)
    blocks = [(zero | {CPU: 500.0 + change}, zero | {CPU: 500.0}) for change in (-100e3, 150e3)]
    found = difference(blocks)
    assert found is not None
    # t(0.975, 1) = 12.706: 25 +- 12.706 * 125 us
    assert sentence(found, "HTTP/3", "HTTP/2").startswith(
        "A request over HTTP/3 cannot be told from one over HTTP/2: +25.0 µs [−1563.3, +1613.3]: CPU +25.0 µs"
    )
    same = difference([(zero | {CPU: 500e6}, zero | {CPU: 500e6})])
    assert same is not None
    assert sentence(same, "A", "B") == "A request took the same time over A and B, 500.0 ms."


def test_blocks_that_lack_an_arm_are_left_out_and_the_baselines_two_runs_are_one() -> None:
    zero = dict.fromkeys(PARTS, 0.0)
    trials = [
        (0, "h2", zero | {CPU: 1.0}), (0, "h2", zero | {CPU: 3.0}), (0, "h3", zero | {CPU: 5.0}),
        (1, "h2", zero | {CPU: 10.0}), (1, "h3", {}), (2, "h2", zero | {CPU: 4.0}), (2, "h3", zero | {CPU: 7.0}),
    ]  # fmt: skip
    found = by_block(trials, ["h1", "h2", "h3"])
    assert {arm: [one[CPU] for one in blocks] for arm, blocks in found.items()} == {"h2": [2, 4], "h3": [5, 7]}
    assert mean_of(found["h2"])[CPU] == 3
    assert by_block([(0, "h2", zero), (1, "h3", zero)], ["h2", "h3"]) == {}
    assert by_block([], ["h2"]) == {}


def test_the_interval_is_students() -> None:
    zero = dict.fromkeys(PARTS, 0.0)
    blocks = [(zero | {CPU: value}, zero) for value in (1.0, 2.0, 3.0)]
    found = difference(blocks)
    assert found is not None
    # t(0.975, 2) = 4.3027, standard error 1 / sqrt(3)
    assert found.whole.low_ns == pytest.approx(2 - 4.302653 / 3**0.5)
    assert found.whole.high_ns == pytest.approx(2 + 4.302653 / 3**0.5)

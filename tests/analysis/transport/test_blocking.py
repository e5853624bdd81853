"""Head-of-line blocking of connections written by hand, where every wait is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.transport.scenes import MS, Scene
from trifecta.analysis.transport.blocking import ONE_SIDE, Blocking, blocking
from trifecta.analysis.transport.ranges import NEVER, covered, running_max, tile


def measured(scene: Scene) -> Blocking:
    return blocking(scene.tables())


def two_streams(**lost: float | None) -> Scene:
    """Records of 1022 octets of the streams 1 and 3 in turn, each in a packet of its own; they take 10 ms."""
    scene = Scene()
    scene.connect(0, "h2")
    at = 1
    for turn in range(4):
        end = scene.records("down", at, (1 if turn % 2 == 0 else 3, "DATA", 1000))
        sent = float(turn)
        scene.tcp("down", sent, None if f"p{turn}" in lost else sent + 10, at, end)
        at = end
    return scene


def test_nothing_waits_where_nothing_is_lost() -> None:
    scene = two_streams()
    scene.request(1, 0, 0, 100)
    found = measured(scene)
    assert [(one.stream, one.blocked_ns, one.octets) for one in found.requests] == [(1, 0, 2000), (3, 0, 2000)]
    assert found.holes == []
    assert found.requests[0].load_ns == 100 * MS
    assert found.requests[0].share == 0


def test_a_hole_of_one_stream_holds_up_the_other_on_tcp() -> None:
    scene = two_streams(p0=None)  # octets of stream 1
    scene.tcp("down", 40, 50, 1, 1023)
    scene.request(3, 1, 0, 60)
    found = measured(scene)
    one, three = found.requests
    # Stream 1 itself: what arrived at 12 waits for its own octets until 50. Nothing of another stream is missing.
    assert (one.by_own_ns, one.by_others_ns, one.by_records_ns) == (38 * MS, 0, 0)
    # Stream 3 arrived at 11 and 13 and waits until 50 for octets that are none of its own.
    assert (three.by_own_ns, three.by_others_ns, three.by_records_ns) == (0, 39 * MS, 0)
    assert (three.blocked_ns, three.end_by_others_ns) == (39 * MS, 37 * MS)
    assert three.octet_wait_others_ns == pytest.approx((39 + 37) / 2 * MS)
    assert three.share == pytest.approx(39 / 60)
    (hole,) = found.holes
    assert (hole.start, hole.end, hole.streams, hole.waited) == (1, 1023, (1,), (1, 3))
    assert (hole.opened_ns, hole.filled_ns, hole.fate) == (11 * MS, 50 * MS, "lost")
    assert hole.waiting_octets == 3 * 1022
    packets = scene.rows["packets"]
    sizes = {row["number"]: (row["sequence"], row["time_ns"]) for row in packets}
    assert sizes[hole.number] == (1, 0)
    assert sizes[hole.filled_by] == (1, 40 * MS)


def test_a_ticket_between_the_records_of_a_frame_holds_octets_of_no_stream() -> None:
    scene = Scene()
    scene.connect(0, "h2")
    common = {"connection": 0, "direction": "down"}
    for start, end, kind in (
        (1, 1023, "application_data"),
        (1023, 1223, "handshake"),
        (1223, 2245, "application_data"),
    ):
        where = {"tcp_start": start, "tcp_end": end, "offset": start - 1, "wire_length": end - start}
        scene.rows["frames"].append(common | where | {"layer": "tls", "type": kind})
    frame = {"layer": "h2", "type": "DATA", "stream": 1, "offset": 0, "wire_length": 2000, "length": 1991}
    scene.rows["frames"].append(common | frame | {"tcp_start": 1, "tcp_end": 2245})
    scene.tcp("down", 0, 10, 1, 1023)
    scene.tcp("down", 1, None, 1023, 1223)
    scene.tcp("down", 2, 12, 1223, 2245)
    scene.tcp("down", 40, 50, 1023, 1223)
    found = measured(scene)
    (one,) = found.requests
    assert found.notes == []
    assert (one.octets, one.by_own_ns, one.by_records_ns, one.by_others_ns) == (2000, 0, 0, 38 * MS)
    assert [hole.streams for hole in found.holes] == [()]


def test_two_holes_are_told_apart() -> None:
    scene = two_streams(p0=None, p1=None)  # of the streams 1 and 3
    scene.tcp("down", 20, 30, 1, 1023)
    scene.tcp("down", 40, 50, 1023, 2045)
    one, three = measured(scene).requests
    # Second record of stream 1: at 12 there, own octets at 30, then until 50 only those of stream 3 are missing.
    assert (one.by_own_ns, one.by_others_ns) == (18 * MS, 20 * MS)
    # Of stream 3, what is there at 13 waits for its own octets until 50: no other stream makes it longer.
    assert (three.by_own_ns, three.by_others_ns) == (37 * MS, 0)
    assert [(hole.streams, hole.filled_ns) for hole in measured(scene).holes] == [((1,), 30 * MS), ((3,), 50 * MS)]


def test_a_record_that_spans_packets_makes_its_own_octets_wait() -> None:
    scene = Scene()
    scene.connect(0, "h2")
    end = scene.records("down", 1, (1, "DATA", 2000))
    scene.tcp("down", 0, 10, 1, 1001)
    scene.tcp("down", 1, 17, 1001, end)
    (one,) = measured(scene).requests
    assert (one.by_own_ns, one.by_records_ns, one.by_others_ns) == (0, 7 * MS, 0)


def test_two_frames_in_a_record_wait_for_the_rest_of_it() -> None:
    scene = Scene()
    scene.connect(0, "h2")
    end = scene.records("down", 1, (1, "DATA", 1000), (3, "DATA", 1000))
    cut = 1 + 5 + 1000  # behind the first frame
    scene.tcp("down", 0, 10, 1, cut)
    scene.tcp("down", 1, None, cut, end)
    scene.tcp("down", 30, 40, cut, end)
    one, three = measured(scene).requests
    assert (one.stream, one.by_records_ns, one.by_own_ns, one.octets) == (1, 30 * MS, 0, 1000)
    assert (three.blocked_ns, three.octets) == (0, 1000)


def test_a_control_frame_that_is_lost_holds_up_all() -> None:
    scene = Scene()
    scene.connect(0, "h2")
    first = scene.records("down", 1, (0, "SETTINGS", 9))
    end = scene.records("down", first, (1, "DATA", 500))
    scene.tcp("down", 0, None, 1, first)
    scene.tcp("down", 1, 11, first, end)
    scene.tcp("down", 30, 40, 1, first)
    found = measured(scene)
    assert [(one.stream, one.by_others_ns) for one in found.requests] == [(1, 29 * MS)]
    assert found.holes[0].streams == (0,)


def test_quic_streams_wait_for_their_own_octets_only() -> None:
    scene = Scene()
    scene.connect(0, "h3")
    scene.quic("down", 0, None, (0, 0, 1000))
    scene.quic("down", 1, 11, (4, 0, 600), (0, 1000, 400))  # one packet of both
    scene.quic("down", 2, 12, (4, 600, 1000))
    scene.quic("down", 40, 50, (0, 0, 1000))
    found = measured(scene)
    zero, four = found.requests
    assert (zero.stream, zero.by_own_ns, zero.by_others_ns, zero.blocked_ns) == (0, 39 * MS, 0, 39 * MS)
    assert (four.stream, four.blocked_ns, four.octets) == (4, 0, 1600)
    (hole,) = found.holes
    assert (hole.start, hole.end, hole.streams, hole.waited) == (0, 1000, (0,), (0,))
    assert (hole.waiting_octets, hole.opened_ns, hole.filled_ns) == (400, 11 * MS, 50 * MS)


def test_offsets_of_a_hole_are_those_of_its_stream() -> None:
    scene = Scene()
    scene.connect(0, "h3")
    scene.quic("down", 0, 10, (0, 0, 900), (8, 0, 100))
    scene.quic("down", 1, None, (8, 100, 50))
    scene.quic("down", 2, 12, (8, 150, 50))
    scene.quic("down", 40, 50, (8, 100, 50))
    (hole,) = measured(scene).holes
    assert (hole.streams, hole.start, hole.end) == ((8,), 100, 150)


def test_http_1_waits_for_its_own_octets_only() -> None:
    scene = Scene()
    scene.connect(0, "h1")
    end = 1 + 2000 + 22
    common = {"connection": 0, "direction": "down", "tcp_start": 1, "tcp_end": end}
    scene.rows["frames"] += [
        common | {"layer": "tls", "type": "application_data", "offset": 1, "wire_length": end - 1},
        common | {"layer": "h1", "type": "HEADERS", "offset": 0, "length": 100, "wire_length": 100},
        common | {"layer": "h1", "type": "DATA", "offset": 100, "length": 1900, "wire_length": 1900},
    ]
    scene.tcp("down", 0, None, 1, 1001)
    scene.tcp("down", 1, 11, 1001, end)
    scene.tcp("down", 40, 50, 1, 1001)
    scene.request(None, 0, 0, 60)
    (one,) = measured(scene).requests
    assert (one.request, one.by_own_ns, one.by_others_ns, one.octets) == (0, 39 * MS, 0, 2000)
    assert one.load_ns == 60 * MS


def test_a_duplicate_counts_by_the_copy_that_came_first_and_a_corrupted_packet_not_at_all() -> None:
    scene = two_streams(p0=None)
    copy = dict(scene.rows["packets"][0]) | {"side": "a", "time_ns": 20 * MS, "number": 900, "fate": "duplicate"}
    copy["packet_id"] |= 1 << 48
    scene.rows["packets"].append(copy)
    assert measured(scene).requests[1].by_others_ns == 9 * MS
    copy["fate"] = "corrupted"
    scene.tcp("down", 40, 50, 1, 1023)
    assert measured(scene).requests[1].by_others_ns == 39 * MS


def test_what_is_never_filled_is_said() -> None:
    found = measured(two_streams(p0=None))
    assert [one.complete for one in found.requests] == [False, False]
    assert found.requests[1].by_others_ns == 2 * MS  # from 11 to 13, when the capture ends
    assert found.holes[0].filled_ns is None
    assert any("not filled" in note for note in found.notes)


def test_one_side_has_the_waits_seen_there_and_says_so() -> None:
    scene = Scene(both_sides=False)
    scene.connect(0, "h2")
    end = scene.records("down", 1, (1, "DATA", 1000))
    last = scene.records("down", end, (3, "DATA", 1000))
    scene.tcp("down", 11, 0, end, last)
    scene.tcp("down", 50, 0, 1, end)
    found = measured(scene)
    assert [one.by_others_ns for one in found.requests] == [0, 39 * MS]
    assert ONE_SIDE in found.notes


def test_without_frames_there_is_a_note_and_no_number() -> None:
    scene = Scene()
    scene.connect(0, "h2", tls_version=None, cipher=None)
    scene.tcp("down", 0, 10, 1, 1000)
    found = measured(scene)
    assert (found.requests, found.holes) == ([], [])
    assert any("frames are not known" in note for note in found.notes)


def test_records_of_an_unknown_cipher_wait_as_a_whole() -> None:
    scene = two_streams(p0=None)
    scene.rows["connections"][0]["cipher"] = None
    scene.rows["connections"][0]["tls_version"] = "1.2"
    scene.tcp("down", 40, 50, 1, 1023)
    found = measured(scene)
    assert [one.by_others_ns for one in found.requests] == [0, 39 * MS]
    assert any("with its records" in note for note in found.notes)


ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=30)


@given(ranges)
def test_tiles_have_the_earliest_time_of_each_octet(some: list[tuple[int, int, int]]) -> None:
    starts, lengths, times = (np.array(column, dtype=np.int64) for column in zip(*some, strict=True))
    tiles = tile(starts, starts + lengths, times)
    for octet in range(80):
        over = [(time, at) for at, (start, length, time) in enumerate(some) if start <= octet < start + length]
        at = int(tiles.index(np.array([octet]))[0])
        got = (NEVER, -1)
        if 0 <= at < len(tiles.times):
            got = (int(tiles.times[at]), int(tiles.which[at]))
        assert got == (min(over) if over else (NEVER, -1))


@given(ranges)
def test_unions_and_running_maxima_are_those_of_a_simple_loop(some: list[tuple[int, int, int]]) -> None:
    starts, lengths, groups = (np.array(column, dtype=np.int64) for column in zip(*some, strict=True))
    expected = [len({x for s, n, g in some if g == group for x in range(s, s + n)}) for group in range(10)]
    assert covered(starts, starts + lengths, groups, 10).tolist() == expected
    ordered = np.sort(groups)
    best: dict[int, int] = {}
    loop = []
    for group, start in zip(ordered.tolist(), starts.tolist(), strict=True):
        best[group] = max(best.get(group, 0), start)
        loop.append(best[group])
    assert running_max(starts, ordered).tolist() == loop

"""The start of a video: each of its instants has one cause, on starts that are written down."""

import pytest

from trifecta.analysis.startup_delay import (
    BETWEEN,
    CONNECTING,
    DNS,
    PLAYER,
    PLAYLISTS,
    SEGMENT,
    START_PARTS,
    start_parts,
)

MS = 1_000_000
NOTHING = dict.fromkeys(("dns_start_ns", "dns_end_ns", "connect_start_ns", "secured_ns", "segment", "error"))


def fetch(name, started, done, **rest):
    mime = "application/vnd.apple.mpegurl" if name.endswith("m3u8") else "video/mp4"
    times = {key: value * MS for key, value in rest.items() if key.endswith("_ns")}
    others = {key: value for key, value in rest.items() if not key.endswith("_ns")}
    row = NOTHING | {"url": f"https://video.lab/{name}", "mime": mime}
    return row | {"started_ns": started * MS, "done_ns": done * MS} | times | others


MASTER = fetch("master.m3u8", 2, 30, dns_start_ns=5, dns_end_ns=8, connect_start_ns=8, secured_ns=20)
INDEX = fetch("index.m3u8", 40, 50)
INIT, FIRST = fetch("init.mp4", 60, 75), fetch("0.m4s", 65, 90, segment=0)
START = [MASTER, INDEX, INIT, FIRST]


def parts(fetches, frame=400, play=0):
    found = start_parts(play * MS, frame * MS, fetches)
    return None if found is None else {part: value / MS for part, value in found.items() if value}


def test_every_instant_has_one_cause():
    found = parts(START)
    assert found == {DNS: 3, CONNECTING: 12, PLAYLISTS: 3 + 10 + 10, SEGMENT: 30, BETWEEN: 2 + 10 + 10, PLAYER: 310}
    assert sum(found.values()) == 400
    assert list(start_parts(0, 400 * MS, START)) == list(START_PARTS)


def test_what_the_first_frame_does_not_need_does_not_count():
    page = fetch("player.js", -80, 35)  # of the player itself, before play
    later = [fetch("2/index.m3u8", 120, 130), fetch("2/init.mp4", 131, 140), fetch("1.m4s", 88, 200, segment=1)]
    assert parts([page, *later, *START]) == parts(START)


def test_a_second_connection_counts_as_connecting_while_the_segment_waits_for_it():
    second = FIRST | {"connect_start_ns": 66 * MS, "secured_ns": 72 * MS}
    found = parts([MASTER, INDEX, INIT, second])
    assert found[CONNECTING] == 18 and found[SEGMENT] == 24


def test_an_initialisation_segment_that_comes_last_is_waited_for():
    found = parts([MASTER, INDEX, fetch("init.mp4", 80, 110), FIRST])
    assert found[SEGMENT] == 45 and found[PLAYER] == 290


@pytest.mark.parametrize(
    "fetches",
    [
        [],
        [MASTER, INDEX],
        [MASTER, INDEX, FIRST | {"error": "reset"}],
        [MASTER, INDEX, FIRST | {"done_ns": None}],
        [MASTER, INDEX, FIRST | {"done_ns": 500 * MS}],  # the frame cannot be of it
    ],
)
def test_without_a_first_segment_nothing_is_said(fetches):
    assert parts(fetches) is None


def test_a_segment_that_failed_is_followed_by_the_one_that_came():
    again = fetch("0.m4s", 95, 120, segment=0)
    found = parts([MASTER, INDEX, INIT, FIRST | {"error": "reset"}, again])
    assert found[SEGMENT] == 30 + 25 and found[PLAYER] == 280

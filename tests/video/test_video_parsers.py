"""What foreign programs and pages say: playlists, boxes of MP4, the player's report. Nothing of it ends a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta.design.errors import UserError
from trifecta.implementations.browsers.player_report import Clock, dropped_floor, read_report
from trifecta.implementations.browsers.records import PlaybackRow
from trifecta.implementations.server import Unsupported
from trifecta.video.encoding import codecs_of
from trifecta.video.playlists import read_media_playlist

MS = 1_000_000
CLOCK = Clock(offset_ns=1_000 * MS, error_ns=0)
LIVE = """#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:3
#EXT-X-MEDIA-SEQUENCE:17
#EXT-X-MAP:URI="init.mp4"
#EXTINF:3.000000,
#EXT-X-PROGRAM-DATE-TIME:2026-11-22T07:48:35.742+0000
00017.m4s
#EXTINF:2.5,a title
00018.m4s
"""


def test_a_media_playlist_is_read():
    read = read_media_playlist(LIVE, "index.m3u8")
    assert read.segments == (("00017.m4s", 3_000 * MS), ("00018.m4s", 2_500 * MS))
    assert (read.sequence, read.target_ns, read.initialization) == (17, 3_000 * MS, "init.mp4")
    assert read.dated
    assert not read.ended


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ":1: is not a playlist"),
        ("#EXTM3U\nx.ts\n", ":2: a segment without EXTINF"),
        ("#EXTM3U\n#EXTINF:three,\nx.ts\n", ":2: '#EXTINF:three,' is not the length"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:-3\n", ":2: '-3' is not a whole number"),
        ("#EXTM3U\n#EXT-X-MAP:BYTERANGE=1\n", ":2: EXT-X-MAP has no URI"),
    ],
)
def test_a_bad_playlist_is_refused_with_its_line(text, words):
    with pytest.raises(UserError, match=words):
        read_media_playlist(text, "p")


_LINES = st.sampled_from([*LIVE.splitlines(), "#EXTINF:", "#EXT-X-MAP:", "#EXT-X-ENDLIST", "\0", "x"])


@given(st.one_of(st.text(), st.lists(st.one_of(_LINES, st.text(max_size=20))).map("\n".join)))
@settings(max_examples=200, deadline=None)
def test_no_playlist_ends_the_program(text):
    for prefix in ("", "#EXTM3U\n"):
        try:
            read_media_playlist(prefix + text, "p")
        except UserError as error:
            assert "\n" not in str(error)


def _box(kind: bytes, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4, "big") + kind + content


def test_codecs_are_those_of_the_moov_box_and_not_of_what_looks_like_it():
    media = _box(b"mdat", b"avcC\x01\x64\x00\x28 Opus")
    avc = _box(b"moov", b"..avcC\x01\x4d\x40\x1f..mp4a..")
    assert codecs_of(_box(b"ftyp", b"isom") + media + avc) == "avc1.4d401f,mp4a.40.2"
    vp9 = _box(b"moov", b"..vpcC\x01\0\0\0\x00\x1f\x82\x02..Opus..")
    assert codecs_of(media + vp9) == "vp09.00.31.08,opus"
    with pytest.raises(Unsupported):
        codecs_of(media)


@given(st.binary(max_size=200), st.sampled_from([b"", b"avcC", b"vpcC"]))
@settings(max_examples=200, deadline=None)
def test_no_file_ends_the_program(content, word):
    for file in (content, _box(b"moov", word + content), content + _box(b"moov", word)):
        try:
            assert codecs_of(file)
        except Unsupported:
            continue


def _event(time: float, event: str, **more: Any) -> dict[str, Any]:
    return {"time": time, "event": event, "position": time, "buffer": 0, "rung": 0, "bitrate": 100, **more}


def _report(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"began": 0, "firstFrame": 500, "ended": 10_000, "failure": None, "events": list(events), **more}


def test_times_are_those_of_the_monotonic_clock():
    read = read_report(_report(_event(250, "sample")), CLOCK)
    assert read.started_ns == 1_000 * MS
    assert read.visit["startup_ns"] == 500 * MS
    assert read.visit["watched_ns"] == 10_000 * MS
    assert read.rows[0].time_ns == 1_250 * MS


def test_a_stall_that_is_open_at_the_end_counts():
    read = read_report(_report(_event(2_000, "stall"), _event(3_000, "resume"), _event(9_000, "stall")), CLOCK)
    assert read.visit["rebuffers"] == 2
    assert read.visit["rebuffer_ns"] == 2_000 * MS


def test_the_bitrate_is_weighted_by_what_was_shown():
    events = [_event(0, "sample", bitrate=100), _event(1_000, "switch", bitrate=400), _event(4_000, "sample")]
    assert read_report(_report(*events), CLOCK).visit["bitrate_bits_per_s"] == pytest.approx((100 + 3 * 400) / 4)
    # What a live player skips was not shown.
    events[2]["position"] = 60_000
    assert read_report(_report(*events), CLOCK).visit["bitrate_bits_per_s"] == pytest.approx((100 + 3 * 400) / 4)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (_report(failure={"kind": "codec", "details": "avc1"}), "browser:codec"),
        (_report(failure={"kind": "network", "details": "x", "url": "https://video.lab/a"}), "video:network"),
        (_report(failure={"kind": "what", "details": "x"}), "video:player"),
        (_report(firstFrame=None), "video:not-started"),
        (_report(began=None), "video:not-started"),
        (None, "video:not-started"),
        (_report(), None),
    ],
)
def test_a_watch_without_a_picture_has_an_error(said, error):
    assert read_report(said, CLOCK).error == error


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
_FIELDS = ("began", "firstFrame", "ended", "failure", "events", "segments", "played", "shown", "dropped")
_IN_EVENT = ("time", "event", "position", "buffer", "rung", "bitrate", "shown", "dropped", "latency", "url", "start")
_EVENT = st.fixed_dictionaries({}, optional={name: _JSON | st.sampled_from(["stall", "play"]) for name in _IN_EVENT})


@given(st.fixed_dictionaries({}, optional={name: _JSON | st.lists(_EVENT, max_size=3) for name in _FIELDS}) | _JSON)
@settings(max_examples=150, deadline=None)
def test_whatever_a_page_says_becomes_rows_that_can_be_written(said):
    read = read_report(said, CLOCK)
    for value in (*read.visit.values(), *(each for row in read.rows for each in vars(row).values())):
        assert value is None or isinstance(value, int | float | str)
    json.dumps(read.visit, allow_nan=False)


def test_the_floor_is_taken_at_the_rungs_that_were_shown():
    rows = [
        PlaybackRow(0, "play", frames_shown=0, frames_dropped=0),
        PlaybackRow(1, "sample", rung=0, frames_shown=100, frames_dropped=0),
        PlaybackRow(2, "sample", rung=2, frames_shown=190, frames_dropped=10),
        PlaybackRow(3, "sample", rung=7, frames_shown=290, frames_dropped=10),
    ]
    assert dropped_floor(rows, (0.01, 0.05, 0.1)) == 11
    assert dropped_floor(rows, ()) == 0

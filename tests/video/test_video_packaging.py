"""Encoding and packing of a video: every rung cut alike, at its rate, as an archive that reads back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import VideoWorkload
from trifecta.implementations.server import Unsupported
from trifecta.pages.archive import body_file, read_page
from trifecta.video import archive, encoding, ffmpeg
from trifecta.video.clips import find_clip
from trifecta.video.playlists import MediaPlaylist, folder_of, read_media_playlist
from trifecta.video.recipes import HLS_JS

SECOND = 1_000_000_000
WORKLOAD = VideoWorkload(ladder=((144, 150_000), (240, 400_000)), watch_ns=4 * SECOND, segment_ns=2 * SECOND)
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is missing; apt-get install ffmpeg")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with a stand-in for hls.js: what is packed does not depend on what it says."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("TRIFECTA_CACHE", str(folder))
        library = folder / "library.js"
        library.write_text("/* hls.js */")
        patch.setattr(HLS_JS, "file", lambda _path: library)
        patch.setattr(archive, "AHEAD_NS", 2 * SECOND)
        patch.setattr(archive, "FLOOR_STEP_NS", SECOND)
        yield folder


@pytest.fixture(scope="module")
def video(cache):
    return archive.prepare(WORKLOAD, lambda _text: None, unit_ns=2 * SECOND)


@needs_ffmpeg
def test_an_archive_holds_the_player_and_every_segment_of_every_rung(video):
    page = read_page(video.archive)
    assert page.hosts == (archive.PLAYER_HOST, archive.VIDEO_HOST)
    assert video.places == {archive.PLAYER_HOST: "web", archive.VIDEO_HOST: "video"}
    assert page.source["licence"] == "none needed"
    texts = {
        each.url: (body_file(video.archive, each) or Path()).read_text()
        for each in page.responses
        if each.url.endswith(".m3u8")
    }
    there = {each.url for each in page.responses}
    master = archive.source_url(live=False)
    base = master.rsplit("/", 1)[0]
    names = [line for line in texts[master].splitlines() if not line.startswith("#")]
    assert names == [f"{folder_of(rung, each)}/index.m3u8" for rung, each in enumerate(video.ladder.renditions)]
    for name in names:
        playlist = read_media_playlist(texts[f"{base}/{name}"], name)
        # 4 s of watch and 2 s more, in segments of 2 s; frames of sound do not end where pictures do.
        assert [round(length / SECOND, 1) for _, length in playlist.segments] == [2.0, 2.0, 2.0]
        assert playlist.ended
        assert playlist.target_ns == 2 * SECOND
        for uri in [playlist.initialization, *(uri for uri, _ in playlist.segments)]:
            assert f"{base}/{name.split('/')[0]}/{uri}" in there
    assert all(
        ("access-control-allow-origin", "*") in each.headers for each in page.responses if each.host == "video.lab"
    )


@needs_ffmpeg
def test_rungs_have_the_rates_and_codecs_that_the_master_playlist_says(video):
    rungs = video.ladder.renditions
    assert [(each.height, each.asked_bits_per_s) for each in rungs] == list(WORKLOAD.ladder)
    for each in rungs:
        assert each.codecs.startswith("avc1.4d40")
        assert each.codecs.endswith(",mp4a.40.2")
        # The picture's rate and the sound's, in a clip of 2 s: the encoder has not much to even out.
        assert 0.5 * each.asked_bits_per_s < each.average_bits_per_s - 64_000 < 1.5 * each.asked_bits_per_s
        assert each.peak_bits_per_s >= each.average_bits_per_s


@needs_ffmpeg
def test_what_is_in_the_cache_is_not_made_again(video, monkeypatch):
    monkeypatch.setattr(ffmpeg, "run", lambda *_arguments, what: pytest.fail(f"made again: {what}"))
    said: list[str] = []
    assert archive.prepare(WORKLOAD, said.append, unit_ns=2 * SECOND) == video
    assert said == []


@needs_ffmpeg
def test_a_clip_of_the_users_may_be_silent(cache, tmp_path):
    clip = tmp_path / "mine.mkv"
    ffmpeg.run("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-t", "1", "-c:v", "libx264", clip, what="test")
    workload = VideoWorkload(clip=str(clip), ladder=((144, 150_000),), watch_ns=2 * SECOND, segment_ns=2 * SECOND)
    ladder = encoding.prepare_ladder(workload, lambda _text: None, least_ns=2 * SECOND)
    assert ladder.renditions[0].codecs.startswith("avc1.4d40")
    assert "," not in ladder.renditions[0].codecs
    assert ladder.kind == "folder"


@needs_ffmpeg
def test_what_is_no_video_is_refused_in_one_line(tmp_path):
    text = tmp_path / "a.mp4"
    text.write_text("no film")
    with pytest.raises(UserError, match="cannot read it as video") as raised:
        find_clip(str(text))
    assert "\n" not in str(raised.value)
    with pytest.raises(UserError, match="no such clip"):
        find_clip(str(tmp_path / "b.mp4"))


@needs_ffmpeg
def test_a_playlist_in_disguise_opens_no_connection(tmp_path):
    evil = tmp_path / "evil.mp4"
    evil.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:1/x.ts\n#EXT-X-ENDLIST\n")
    with pytest.raises(UserError) as raised:
        find_clip(str(evil))
    assert "Connection refused" not in str(raised.value)


def test_without_ffmpeg_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unsupported, match="apt-get install ffmpeg"):
        ffmpeg.program()


def test_ffmpegs_failure_is_one_line(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "first\nsecond")
    monkeypatch.setattr(ffmpeg, "program", lambda _name="ffmpeg": "ffmpeg")
    monkeypatch.setattr(ffmpeg, "_run", lambda _arguments: failed)
    with pytest.raises(CannotError, match="cannot cut it: first second"):
        ffmpeg.run("-i", "x", what="cut it")


def test_rungs_that_are_cut_differently_are_not_served():
    def playlist(*lengths: int) -> MediaPlaylist:
        return MediaPlaylist(3 * SECOND, 0, tuple(("x", each) for each in lengths), None, False, True)

    archive.check_alike([playlist(3 * SECOND, 3 * SECOND), playlist(3 * SECOND + 78_000, 3 * SECOND)])
    for other in (playlist(3 * SECOND), playlist(2 * SECOND, 4 * SECOND)):
        with pytest.raises(CannotError, match="differently"):
            archive.check_alike([playlist(3 * SECOND, 3 * SECOND), other])


@pytest.mark.parametrize(("segment_s", "unit_s"), [(3, 24), (2, 16), (4, 16), (6, 24), (5, 40), (7, 56), (1, 16)])
def test_the_repeated_part_is_of_whole_segments_and_frames_of_sound(segment_s, unit_s):
    assert encoding.unit_ns(segment_s * SECOND) == unit_s * SECOND
    assert (unit_s * 48_000) % 1_024 == 0


def test_the_players_url_says_what_to_play():
    url = archive.player_url(live=True, step_ns=2 * SECOND, epoch_ns=1_500_000, period_ns=3 * SECOND)
    assert url == (
        "https://player.lab/#source=https%3A%2F%2Fvideo.lab%2Flive%2Fmaster.m3u8"
        "&live=1&step=2000.000&epoch=1.500&period=3000.000"
    )

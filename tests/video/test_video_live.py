"""A live video in a host of the lab: it comes at the pace of the clock, slides, and ends with what started it."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.lab.inside import run_inside
from trifecta.design.model import VideoWorkload
from trifecta.implementations.server import Unsupported
from trifecta.video.rtmp import RtmpSource

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is missing; apt-get install ffmpeg"),
]

_CODE = """
    import json, os, time
    from pathlib import Path
    from trifecta.design.model import VideoWorkload
    from trifecta.lab import linux
    from trifecta.lab.host import Host
    from trifecta.video import encoding, live, rtmp
    SECOND = 1_000_000_000
    live.WINDOW_NS = rtmp.WINDOW_NS = 4 * SECOND
    live._KEPT = 1
    workload = VideoWorkload(ladder=((144, 150_000), (240, 300_000)), segment_ns=SECOND)
    ladder = encoding.prepare_ladder(workload, lambda _text: None, least_ns=2 * SECOND)
    host = Host("video", os.open("/proc/thread-self/ns/net", os.O_RDONLY))
    with host.inside():
        linux.bring_up("lo")
    source = {source}(ladder, Path({folder!r}), host, Path({folder!r} + ".log"))
    with source:
        waited = source.wait_ready(lambda: False)
        first, began = source.playlists(), time.monotonic()
        time.sleep(3)
        later, took = source.playlists(), time.monotonic() - began
        url, dated = source.player_url(), [each.dated for each in later]
        files = sorted(path.name for path in (source.folder / "0-144p").iterdir())
        master = (source.folder / "master.m3u8").read_text()
        running = source.running()
    print(json.dumps(dict(
        waited=waited, took=took, running=running, after=source.running(), url=url, dated=dated, files=files,
        master=master,
        first=[len(each.segments) for each in first], later=[len(each.segments) for each in later],
        moved=[b.sequence - a.sequence for a, b in zip(first, later)],
        there=all((source.folder / "0-144p" / uri).exists() for uri, _ in later[0].segments),
    )))
"""


def _lives(source: str, tmp_path, monkeypatch) -> dict:
    done = run_inside(_CODE.format(source=source, folder=str(tmp_path / "live")))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_live_video_comes_as_it_plays_and_slides(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    said = _lives("live.LiveSource", tmp_path, monkeypatch)
    assert said["running"]
    assert not said["after"]
    assert 2.5 < said["waited"] < 15  # four segments of a second, and the machine may be busy
    assert said["first"] == [4, 4]
    assert said["later"] == [4, 4]
    assert all(abs(moved - said["took"]) <= 2 for moved in said["moved"])  # a segment of a second each
    assert said["there"]
    assert said["dated"] == [True, True]
    assert "live=1&epoch=" in said["url"]
    assert "period=1000.000" in said["url"]
    assert [line for line in said["master"].splitlines() if not line.startswith("#")] == [
        "0-144p/index.m3u8",
        "1-240p/index.m3u8",
    ]
    # What left the playlist is removed, but for the last ones, and nothing half written is shown.
    assert "00000.m4s" not in said["files"]
    assert len(said["files"]) <= 4 + 1 + 1 + 3


def _why_no_rtmp() -> str | None:
    try:
        RtmpSource.find()
    except Unsupported as error:
        return str(error)
    return None


@pytest.mark.skipif(_why_no_rtmp() is not None, reason=str(_why_no_rtmp()))
def test_a_live_video_through_rtmp_has_the_same_shape(tmp_path):
    said = _lives("rtmp.RtmpSource", tmp_path, None)
    assert said["running"]
    assert not said["after"]
    assert min(said["later"]) >= 3
    assert said["dated"] == [False, False]
    assert any(name.endswith(".ts") for name in said["files"])


def test_vp9_by_rtmp_is_refused_with_the_remedy():
    RtmpSource.check_workload(VideoWorkload(mode="live-rtmp"))
    with pytest.raises(Unsupported, match="mode: live"):
        RtmpSource.check_workload(VideoWorkload(mode="live-rtmp", codec="vp9"))

"""The player in Chromium, through the driver: a short watch from the same host, and what its rows say."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trifecta.design.model import VideoWorkload
from trifecta.implementations.browsers.chromium import Chromium
from trifecta.implementations.server import Unsupported
from trifecta.lab.certificates import make_certificates
from trifecta.video import archive, ffmpeg
from trifecta.video.floor import shares_of
from trifecta.video.local import LocalServer
from trifecta.video.recipes import HLS_FILE, HLS_JS

SECOND = 1_000_000_000


def _why_not() -> str | None:
    try:
        Chromium().find()
        ffmpeg.program()
        HLS_JS.file(HLS_FILE)
    except Unsupported as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        library = HLS_JS.file(HLS_FILE)
        patch.setattr(HLS_JS, "file", lambda _path: library)
        patch.setenv("TRIFECTA_CACHE", str(tmp_path_factory.mktemp("cache")))
        workload = VideoWorkload(ladder=((144, 150_000), (240, 400_000)), segment_ns=SECOND, watch_ns=6 * SECOND)
        patch.setattr(archive, "AHEAD_NS", 4 * SECOND)
        return archive.prepare(workload, lambda _text: None, unit_ns=2 * SECOND)


@pytest.fixture
def state():
    """A folder with a short name: Chromium's own socket has to fit into 108 characters (unix(7))."""
    with tempfile.TemporaryDirectory(prefix="tv-") as folder:
        yield Path(folder)


def _watch(tmp_path: Path, url: str, watch_ns: int) -> dict[str, list]:
    certificates = make_certificates(tmp_path / "pki", ["player.lab"], [])
    tables = {name: tmp_path / f"{name}.parquet" for name in ("samples", "visits", "fetches", "playback")}
    config = {
        "trial": "t00000", "protocol": "h1", "kind": "video", "url": archive.PLAYER_URL, "hosts": ["127.0.0.1"],
        "port": 443, "ca_file": str(certificates.authority), "visits": 1, "visit_timeout_ns": 20 * SECOND,
        "total_timeout_ns": 60 * SECOND, "settle_ns": 0, "work_dir": str(tmp_path),
        "video": {"player_url": url, "watch_ns": watch_ns, "live": False, "floor": [0.5, 0.5]},
        **{f"{name}_file": str(path) for name, path in tables.items()},
    }  # fmt: skip
    program = [sys.executable, "-P", "-m", "trifecta.implementations.browsers.driver", "chromium"]
    driver = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert driver.stdin is not None
    driver.stdin.write(json.dumps(config).encode() + b"\n")
    driver.stdin.flush()
    assert driver.wait(timeout=90) == 0
    driver.stdin.close()
    return {name: pq.read_table(path).to_pylist() for name, path in tables.items()}


def test_a_watch_tells_what_was_played_and_each_rung_is_seen(video, state):
    with LocalServer(video.local) as server:
        master = f"{server.url}{archive.ON_DEMAND}/{archive.MASTER}"
        url = archive.player_url(master, page=server.url, step_ns=3 * SECOND)
        rows = _watch(state, url, 6 * SECOND)
    (visit,), (sample,) = rows["visits"], rows["samples"]
    assert visit["error"] is None
    assert 0 < visit["startup_ns"] < 15 * SECOND
    assert sample["done_ns"] - sample["started_ns"] == visit["startup_ns"]
    assert 6 * SECOND <= visit["watched_ns"] < 12 * SECOND
    assert visit["played_ns"] <= visit["watched_ns"] - visit["startup_ns"] + SECOND // 4
    assert visit["played_ns"] > 2 * SECOND
    assert visit["frames_shown"] + visit["frames_dropped"] > 50
    assert visit["frames_dropped_floor"] == pytest.approx(
        (visit["frames_shown"] + visit["frames_dropped"]) / 2, rel=0.3
    )
    assert visit["switches"] == 1
    assert visit["load_ns"] is None  # of the player's page: durations count from play
    kinds = {each["url"].rsplit("/", 1)[1]: each for each in rows["fetches"]}
    media = [each for each in rows["fetches"] if each["segment"] is not None]
    assert {each["rung"] for each in media} == {0, 1}
    assert all(each["kind"] == "media" and each["media_ns"] > 0 and each["protocol"] == "h1" for each in media)
    # Chromium's clock of requests and the page's are brought together to some ms on a busy machine.
    assert kinds["master.m3u8"]["started_ns"] >= visit["started_ns"] - SECOND // 50
    events = [each["event"] for each in rows["playback"]]
    assert [event for event in events if event != "sample"] == ["play", "first_frame", "switch"]
    assert events.count("sample") >= 12
    assert shares_of(rows["playback"], 3) is None  # there is no third rung
    times = [each["time_ns"] for each in rows["playback"]]
    assert times == sorted(times)
    assert times[0] == visit["started_ns"]


def test_a_video_that_is_not_there_is_an_error_of_its_request(video, state):
    with LocalServer(video.local) as server:
        url = archive.player_url(f"{server.url}{archive.ON_DEMAND}/missing.m3u8", page=server.url)
        rows = _watch(state, url, 20 * SECOND)
    (visit,) = rows["visits"]
    assert visit["error"] in ("status", "video:network")
    assert visit["startup_ns"] is None
    assert visit["watched_ns"] < 15 * SECOND  # it is not waited for


def test_a_codec_that_the_browser_lacks_is_said_so(video, state):
    """Also where another rung could be played: a ladder without one of its rungs is another video."""
    lines = ["#EXTM3U"]
    for codecs in ("avc1.4d401f,mp4a.40.2", "dvh1.05.06,mp4a.40.2"):
        lines += [f'#EXT-X-STREAM-INF:BANDWIDTH=1000,RESOLUTION=64x64,CODECS="{codecs}"', "https://video.lab/a.m3u8"]
    master = base64.b64encode("\n".join(lines).encode()).decode()
    with LocalServer(video.local) as server:
        url = archive.player_url(f"data:application/vnd.apple.mpegurl;base64,{master}", page=server.url)
        rows = _watch(state, url, 20 * SECOND)
    assert rows["visits"][0]["error"] == "browser:codec"
    assert [each["event"] for each in rows["playback"] if each["event"] != "sample"] == ["play", "error"]

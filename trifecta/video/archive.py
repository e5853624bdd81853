"""A video as a page archive: the player on one origin, playlists and segments on another, as the study had it."""

from __future__ import annotations

import gzip
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from trifecta.design.errors import CannotError
from trifecta.design.model import VideoWorkload
from trifecta.pages.archive import Page, Response, write_page
from trifecta.pages.archive import digest_of as body_digest
from trifecta.store.cache import cache_folder, digest_of, is_whole, make_whole
from trifecta.video import ffmpeg
from trifecta.video.encoding import Ladder, prepare_ladder
from trifecta.video.playlists import MediaPlaylist, folder_of, master_text, read_media_playlist
from trifecta.video.recipes import HLS_FILE, HLS_JS, HLS_VERSION

PLAYER_HOST, VIDEO_HOST = "player.lab", "video.lab"
"""Two names: the player comes from the host ``web`` of the lab, the video from ``video``. From one address a browser
would use the player's HTTP/2 or HTTP/3 connection for the video as well (RFC 9113, section 9.1.1), and the startup time
would be without a connection."""
PLAYER_URL = f"https://{PLAYER_HOST}/"
ON_DEMAND, LIVE, MASTER = "on-demand", "live", "master.m3u8"
FLOOR_STEP_NS = 6_000_000_000
"""How long each rung is played for the floor of dropped frames."""
AHEAD_NS = 30_000_000_000
"""More than is watched: a player that keeps its 30 s of buffer (hls.js, maxBufferLength) never comes to the end."""

_PLAYER = Path(__file__).parent / "player"
_FORMAT = "1"
_TYPES = {".m3u8": "application/vnd.apple.mpegurl", ".mp4": "video/mp4", ".m4s": "video/mp4"}
# Another origin's script reads them, and may read how long they took and over which protocol (Resource Timing 2).
_OPEN = (("access-control-allow-origin", "*"), ("timing-allow-origin", "*"))
Say = Callable[[str], None]


@dataclass(frozen=True)
class Video:
    """What a trial of a video serves and plays."""

    archive: Path
    """A page archive of player and video; of a live video of the player alone."""
    local: Path
    """A page archive of player and video for a browser without a network (``trifecta.video.floor``)."""
    ladder: Ladder
    places: dict[str, str]
    """Where in the lab each host of the archive is served: on ``web`` or ``video``."""
    player_url: str
    """With what to play in its fragment, which the player reads and no server sees."""


def prepare(workload: VideoWorkload, say: Say, *, unit_ns: int | None = None) -> Video:
    """Encode, cut and pack what a workload needs, unless the cache has it. Unsupported when something is missing."""
    HLS_JS.file(HLS_FILE)
    ladder = prepare_ladder(workload, say, least_ns=unit_ns)
    live = workload.mode != "on-demand"
    least_ns = len(workload.ladder) * FLOOR_STEP_NS
    local_archive = _archive(ladder, math.ceil((max(workload.watch_ns, least_ns) + AHEAD_NS) / ladder.unit_ns), say)
    return Video(
        archive=_archive(ladder, 0, say) if live else local_archive,
        local=local_archive,
        ladder=ladder,
        places={PLAYER_HOST: "web", VIDEO_HOST: "video"},
        player_url=player_url(live=live),
    )


def source_url(*, live: bool) -> str:
    """The master playlist."""
    return f"https://{VIDEO_HOST}/{LIVE if live else ON_DEMAND}/{MASTER}"


def player_url(
    source: str | None = None,
    *,
    live: bool = False,
    page: str = PLAYER_URL,
    step_ns: int | None = None,
    epoch_ns: int | None = None,
    period_ns: int | None = None,
) -> str:
    """The player with what it is to play. ``step_ns``: so long each rung, the lowest first, whatever the bandwidth.

    ``epoch_ns`` (wall clock) and ``period_ns``: play is pressed a whole number of periods after the epoch, so that
    watches of a live video begin at the same place of a segment.
    """
    parameters = {"source": source or source_url(live=live)}
    if live:
        parameters["live"] = "1"
    if step_ns is not None:
        parameters["step"] = f"{step_ns / 1e6:.3f}"
    if epoch_ns is not None and period_ns is not None:
        parameters |= {"epoch": f"{epoch_ns / 1e6:.3f}", "period": f"{period_ns / 1e6:.3f}"}
    return f"{page}#{urlencode(parameters)}"


def _archive(ladder: Ladder, repeats: int, say: Say) -> Path:
    player = [path.read_bytes() for path in sorted(_PLAYER.iterdir()) if path.is_file()]
    digest = digest_of(
        [], _FORMAT, HLS_VERSION, *(body_digest(each) for each in player), ladder.folder.name, str(repeats)
    )
    kind = ON_DEMAND if repeats else LIVE
    folder = cache_folder() / "video" / f"{kind}-{ladder.clip}-{ladder.codec}-{digest[:16]}"
    if not is_whole(folder, digest):
        make_whole(folder, digest, lambda draft: _fill(draft / "page", ladder, repeats), say)
    return folder / "page"


def _fill(folder: Path, ladder: Ladder, repeats: int) -> None:
    bodies: dict[str, bytes] = {}
    responses = _player_responses(bodies)
    if repeats:
        with tempfile.TemporaryDirectory(prefix=".video-", dir=folder.parent) as scratch:
            playlists = package(ladder, repeats, Path(scratch))
            check_alike(playlists)
            responses += _video_responses(Path(scratch), bodies)
    title = f"HLS {'on demand' if repeats else 'live'}: {ladder.clip}"
    page = Page(
        name=f"video-{ladder.clip}",
        title=title,
        start=PLAYER_URL,
        source={
            "kind": ladder.kind,
            "clip": ladder.clip,
            "licence": ladder.licence,
            "player": f"hls.js {HLS_VERSION}, Apache-2.0",
            "ffmpeg": ladder.ffmpeg,
            "segment_ns": ladder.segment_ns,
            "length_ns": repeats * ladder.unit_ns,
            "ladder": [json.dumps(vars(each)) for each in ladder.renditions],
        },
        responses=tuple(responses),
    )
    write_page(folder, page, bodies)


def package(ladder: Ladder, repeats: int, folder: Path) -> list[MediaPlaylist]:
    """Cut the files of a ladder, repeated, into segments, with playlists; what the media playlists say.

    fMP4 (CMAF) and not MPEG-2 TS: what the player gets is what the decoder takes, so that the script does not copy
    every octet once more on a CPU that decodes already; and VP9 has no other way.
    """
    names = [folder_of(rung, rendition) for rung, rendition in enumerate(ladder.renditions)]
    playlists = []
    for name, file in zip(names, ladder.files(), strict=True):
        (folder / name).mkdir()
        ffmpeg.run(
            "-stream_loop", str(repeats - 1), *ffmpeg.LOCAL_ONLY, "-i", file, "-map", "0", "-c", "copy",
            *hls_options(ladder), "-hls_playlist_type", "vod",
            "-hls_segment_filename", folder / name / "%05d.m4s", folder / name / "index.m3u8",
            what="cut the clip into segments",
        )  # fmt: skip
        path = folder / name / "index.m3u8"
        playlists.append(read_media_playlist(path.read_text(encoding="utf-8"), str(path)))
    master = master_text(ladder.renditions, [f"{name}/index.m3u8" for name in names])
    (folder / MASTER).write_text(master, encoding="utf-8")
    return playlists


def hls_options(ladder: Ladder) -> list[str]:
    """How ffmpeg cuts: at the key frame that begins every segment (a little before, against rounding)."""
    seconds = f"{(ladder.segment_ns - 10_000_000) / 1e9:.3f}"
    return ["-f", "hls", "-hls_time", seconds, "-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", "init.mp4"]


def check_alike(playlists: list[MediaPlaylist]) -> None:
    """CannotError when the rungs are not cut alike: a switch would then show something twice, or not at all."""
    first = playlists[0]
    for other in playlists[1:]:
        lengths = [abs(own - its) for (_, own), (_, its) in zip(first.segments, other.segments, strict=False)]
        if len(other.segments) != len(first.segments) or max(lengths, default=0) > 1_000_000:
            raise CannotError("ffmpeg cut the rungs of the ladder differently; report this with ffmpeg -version")


def _player_responses(bodies: dict[str, bytes]) -> list[Response]:
    files = [
        ("", _PLAYER / "index.html", "text/html; charset=utf-8", "document"),
        ("player.js", _PLAYER / "player.js", "text/javascript; charset=utf-8", "script"),
        (HLS_FILE, HLS_JS.file(HLS_FILE), "text/javascript; charset=utf-8", "script"),
    ]
    responses = []
    for path, file, kind, purpose in files:
        content = gzip.compress(file.read_bytes(), 9, mtime=0)
        headers = [("content-type", kind), ("content-encoding", "gzip"), ("cache-control", "max-age=3600")]
        responses.append(_response(PLAYER_URL + path, headers, content, purpose, bodies))
    return responses


def _video_responses(folder: Path, bodies: dict[str, bytes]) -> list[Response]:
    responses = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        url = f"https://{VIDEO_HOST}/{ON_DEMAND}/{path.relative_to(folder).as_posix()}"
        cache = "no-cache" if path.suffix == ".m3u8" else "max-age=3600"
        headers = [("content-type", _TYPES[path.suffix]), ("cache-control", cache), *_OPEN]
        responses.append(_response(url, headers, path.read_bytes(), "media", bodies))
    return responses


def _response(
    url: str, headers: list[tuple[str, str]], content: bytes, kind: str, bodies: dict[str, bytes]
) -> Response:
    digest = body_digest(content)
    bodies[digest] = content
    return Response("GET", url, 200, tuple(headers), digest, len(content), kind)

"""A live video: renditions that were encoded before come as they play, into a folder that a server shows.

Encoding the rungs live beside a browser is too much for two cores, so ffmpeg repeats their files at the pace of the
clock (``-re``) without encoding, as many playlists in one process, which keeps the rungs in step. Each segment says
when its first frame came (EXT-X-PROGRAM-DATE-TIME, wall clock of this machine): how far behind that the browser shows
it is the live latency.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.design.model import VideoWorkload
from trifecta.lab.engine import Stopped
from trifecta.lab.host import Host
from trifecta.lab.place import LocalPlace, Program
from trifecta.video import ffmpeg
from trifecta.video.archive import MASTER, hls_options, player_url
from trifecta.video.encoding import Ladder
from trifecta.video.playlists import MediaPlaylist, folder_of, master_text, read_media_playlist

WINDOW_NS = 60_000_000_000
"""How much a playlist names, as in the study (playlist_s)."""
_READY_SEGMENTS = 4  # hls.js begins three segments before the end of the playlist (liveSyncDurationCount)
_READY_MORE_S = 15.0
_PAUSE_S = 0.1
_KEPT = 5  # segments that stay after they left the playlist: who read it last may still ask for them
_END_S = 2.0


class LiveSource:
    """A live video in a host of the lab. A context manager: ``start`` and ``close``, ended with its process."""

    mode = "live"
    dated = True
    """Whether segments say when they were made."""

    def __init__(self, ladder: Ladder, folder: Path, host: Host, log: Path) -> None:
        """``folder`` is emptied and filled; a server shows it under ``/live/``. What goes wrong is in ``log``."""
        self.ladder = ladder
        self.folder = folder
        self._host = host
        self._log = log
        self._place = LocalPlace(host)
        self._programs: list[Program] = []
        self.started_wall_ns: int | None = None
        """Wall clock at which a segment began; all others begin whole segments before or after."""

    @staticmethod
    def find() -> str:
        """Version of what makes it; Unsupported when it is missing."""
        return f"ffmpeg {ffmpeg.version()}"

    @staticmethod
    def check_workload(workload: VideoWorkload) -> None:
        """Raise Unsupported when such a video cannot be made this way."""

    def __enter__(self) -> LiveSource:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start it; it is ready only after some segments."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)
        self._launch()
        self._write_master()

    def _launch(self) -> None:
        self.started_wall_ns = time.time_ns()
        self._run(live_command(self.ladder, self.folder))

    def _run(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        self._programs.append(self._place.run(command, self._log, environment=environment))

    def _write_master(self) -> None:
        draft = self.folder / f".{MASTER}"
        draft.write_text(master_text(self.ladder.renditions, self.playlist_names()), encoding="utf-8")
        draft.replace(self.folder / MASTER)

    def playlist_names(self) -> list[str]:
        """The media playlist of each rung, below the folder."""
        return [f"{folder_of(rung, each)}/index.m3u8" for rung, each in enumerate(self.ladder.renditions)]

    def playlists(self) -> list[MediaPlaylist]:
        """The media playlists as they are now; UserError where one cannot be read, OSError where one is not there."""
        names = self.playlist_names()
        return [read_media_playlist((self.folder / name).read_text(encoding="utf-8"), name) for name in names]

    def wait_ready(self, stop: Callable[[], bool]) -> float:
        """Wait until every rung has as many segments as a player begins with; seconds waited.

        CannotError when it ends or takes too long, Stopped when ``stop`` says so.
        """
        began = time.monotonic()
        limit = _READY_SEGMENTS * self.ladder.segment_ns / 1e9 + _READY_MORE_S
        while True:
            if stop():
                raise Stopped
            if not self.running():
                raise CannotError(f"the live video ended before it was ready: {self._last_words()}")
            try:
                if all(len(each.segments) >= _READY_SEGMENTS for each in self.playlists()):
                    return time.monotonic() - began
            except OSError:
                pass  # not written yet
            if time.monotonic() - began > limit:
                raise CannotError(f"the live video is not ready within {limit:g} s: {self._last_words()}")
            time.sleep(_PAUSE_S)

    def running(self) -> bool:
        """Whether all of it runs."""
        return bool(self._programs) and all(program.running() for program in self._programs)

    def player_url(self) -> str:
        """The player, which presses play in the middle of a segment: near its end, chance says which is the newest."""
        epoch = None if self.started_wall_ns is None else self.started_wall_ns + self.ladder.segment_ns // 2
        return player_url(live=True, epoch_ns=epoch, period_ns=self.ladder.segment_ns)

    def problem(self) -> str | None:
        """How it ended; None while it runs."""
        return None if self.running() else f"the live video ended: {self._last_words()}"

    def close(self) -> None:
        """End it."""
        for program in reversed(self._programs):
            program.stop(_END_S)
        self._programs.clear()

    def _last_words(self) -> str:
        with self._log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 400))
            return " ".join(file.read(400).decode(errors="replace").split()) or f"it said nothing (see {self._log})"


def live_command(ladder: Ladder, folder: Path) -> list[str]:
    """ffmpeg that plays all files of a ladder at the pace of the clock into playlists of one window."""
    inputs: list[str | Path] = []
    maps: list[str] = []
    streams = []
    has_sound = "," in ladder.renditions[0].codecs
    for rung, file in enumerate(ladder.files()):
        inputs += ["-re", "-stream_loop", "-1", *ffmpeg.LOCAL_ONLY, "-i", file]
        maps += ["-map", f"{rung}:v"] + (["-map", f"{rung}:a"] if has_sound else [])
        name = folder_of(rung, ladder.renditions[rung])
        (folder / name).mkdir()
        streams.append(f"v:{rung}" + (f",a:{rung}" if has_sound else "") + f",name:{name}")
    return ffmpeg.command(
        *inputs, *maps, "-c", "copy", *hls_options(ladder), "-var_stream_map", " ".join(streams),
        "-hls_list_size", str(math.ceil(WINDOW_NS / ladder.segment_ns)), "-hls_delete_threshold", str(_KEPT),
        "-hls_flags", "delete_segments+program_date_time+independent_segments+temp_file",
        "-hls_segment_filename", folder / "%v" / "%05d.m4s", folder / "%v" / "index.m3u8",
    )  # fmt: skip

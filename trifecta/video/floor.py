"""How many frames a machine drops by itself: the same video, the same browser, and no network between them.

A machine without a graphics card decodes in software, and drops what it does not manage. What is dropped of a video
from the same host is that floor; what is dropped beyond it in a trial may be the network's. It is measured once a run
and browser, each rung for ``archive.FLOOR_STEP_NS``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from trifecta.design.errors import CannotError
from trifecta.lab.place import OpenPlace, Program
from trifecta.video.archive import FLOOR_STEP_NS, MASTER, ON_DEMAND, Video, player_url
from trifecta.video.local import ADDRESS

LEAST_FRAMES = 50
"""Of a rung, for a share of it: two seconds."""
_READY_S = 20.0
_PAUSE_S = 0.02
_END_S = 2.0


class FrameCounts(TypedDict):
    """What of a row of PLAYBACK tells of frames: so many so far, at this rung."""

    rung: int | None
    frames_shown: int | None
    frames_dropped: int | None


class LocalVideo:
    """A video served in a host of the lab to that host alone: a context manager."""

    def __init__(self, video: Video, place: OpenPlace, log: Path) -> None:
        """``log`` takes what goes wrong; beside it the program writes its URL."""
        self._video = video
        self._place = place
        self._log = log
        self._program: Program | None = None
        self.url = ""
        self.host = ADDRESS

    def __enter__(self) -> LocalVideo:
        url_file = self._log.with_suffix(".url")
        url_file.unlink(missing_ok=True)
        self._place.put(self._video.local)
        self._place.put(url_file.parent, writable=True)
        command: list[str | Path] = [sys.executable, "-P", "-m", "trifecta.video.local", self._video.local, url_file]
        self._program = self._place.run(command, self._log)
        try:
            self.url = self._wait_url(self._program, url_file)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_url(self, program: Program, url_file: Path) -> str:
        began = time.monotonic()
        while program.running() and time.monotonic() - began < _READY_S:
            program.get(url_file)
            if url_file.exists():
                return url_file.read_text(encoding="utf-8")
            time.sleep(_PAUSE_S)
        raise CannotError(f"the video cannot be served to its own host; see {self._log}")

    def __exit__(self, *_: object) -> None:
        if self._program is not None:
            self._program.stop(_END_S)
            self._log.with_suffix(".url").unlink(missing_ok=True)

    def player_url(self) -> str:
        """The player that goes through all rungs."""
        return player_url(f"{self.url}{ON_DEMAND}/{MASTER}", page=self.url, step_ns=FLOOR_STEP_NS)

    @property
    def watch_ns(self) -> int:
        """How long that takes."""
        return FLOOR_STEP_NS * len(self._video.ladder.renditions)


def shares_of(playback: Sequence[FrameCounts], rungs: int) -> list[float] | None:
    """The share of frames that were dropped at each rung, of rows of PLAYBACK in order; None when one was not seen."""
    total, dropped = [0] * rungs, [0] * rungs
    before: tuple[int, int] = (0, 0)
    for row in playback:
        if row["frames_shown"] is None or row["frames_dropped"] is None:
            continue
        now = (row["frames_shown"] + row["frames_dropped"], row["frames_dropped"])
        if row["rung"] is not None and row["rung"] < rungs:
            total[row["rung"]] += max(0, now[0] - before[0])
            dropped[row["rung"]] += max(0, now[1] - before[1])
        before = now
    if min(total, default=0) < LEAST_FRAMES:
        return None
    return [min(1.0, lost / of) for lost, of in zip(dropped, total, strict=True)]

"""What a browser is shown in a cell: a page archive, who serves which host of it, and what changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trifecta import pages
from trifecta.design.model import BrowserWorkload, PageWorkload, VideoWorkload
from trifecta.lab.access import THIRD_PARTY
from trifecta.lab.host import Host
from trifecta.pages.archive import Page, read_page
from trifecta.video.archive import VIDEO_HOST, Say, Video, prepare
from trifecta.video.live import LiveSource
from trifecta.video.rtmp import RtmpSource

Key = tuple[object, ...]
LIVE_SOURCES: Mapping[str, type[LiveSource]] = {"live": LiveSource, "live-rtmp": RtmpSource}
"""By the mode of a video."""
_LIVE_MASTER = "/live/master.m3u8"


@dataclass(frozen=True)
class ReadinessProbe:
    """A request that shows whether a server is there, and what is a right answer; None: any length."""

    name: str
    target: str
    status: int
    bytes: int | None


@dataclass(frozen=True)
class Material:
    """What is served in a cell."""

    folder: Path
    """The page archive."""
    page: Page
    url: str
    """Where a visit goes; of a live video that is known only when it runs."""
    main: str
    """The host of the lab whose server is measured: ``web`` or ``video``."""
    places: Mapping[str, str]
    """Each name of the page, and the host of the lab that serves it."""
    video: Video | None = None
    live: type[LiveSource] | None = None

    @property
    def serving(self) -> tuple[str, ...]:
        """The hosts of the lab with a server, the measured one first."""
        return (self.main, *(host for host in dict.fromkeys(self.places.values()) if host != self.main))

    def question(self, host: str) -> ReadinessProbe:
        """What a server on that host of the lab is asked first."""
        own = [each for each in self.page.responses if each.method == "GET" and self.places.get(each.host) == host]
        first = next((each for each in own if each.url == self.page.start), own[0] if own else None)
        if first is None:
            return ReadinessProbe(VIDEO_HOST, _LIVE_MASTER, 200, None)
        return ReadinessProbe(first.host, first.target, first.status, first.bytes)


def material_of(workload: BrowserWorkload, say: Say = lambda _: None) -> Material:
    """What a cell's workload shows; made now, or taken from the cache.

    UserError, CannotError or Unsupported where it is not there and cannot be made. ``say`` is told what takes long.
    """
    return MAKERS[workload.kind](workload, say)


def _of_a_page(workload: PageWorkload, _say: Say) -> Material:
    folder = pages.find(workload.page)
    page = read_page(folder)
    main = workload.serving_host
    places = {host: THIRD_PARTY if host in page.third_parties else main for host in page.hosts}
    return Material(folder, page, page.start, main, places)


def _of_a_video(workload: VideoWorkload, say: Say) -> Material:
    live = None
    if workload.live:
        live = LIVE_SOURCES[workload.mode]
        live.find()
        live.check_workload(workload)
    video = prepare(workload, say)
    return Material(
        folder=video.archive,
        page=read_page(video.archive),
        url=video.player_url,
        main=workload.serving_host,
        places=video.places,
        video=video,
        live=live,
    )


MAKERS: Mapping[str, Callable[[Any, Say], Material]] = {"page": _of_a_page, "video": _of_a_video}
"""By the kind of the workload."""


def start_live(material: Material, folder: Path, host: Host, log: Path) -> LiveSource | None:
    """What fills the folder that is served below ``/live/``; None for what does not change. It is not started yet."""
    if material.live is None or material.video is None:
        return None
    return material.live(material.video.ladder, folder, host, log)

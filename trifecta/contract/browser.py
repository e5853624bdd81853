"""A browser in the load's place: what its driver is asked. What it says is the load's summary."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from trifecta.contract.common import Ip, Protocol, StrictConfig

VIEWPORT = (1350, 940)
"""Width and height in CSS pixels, as Lighthouse's desktop configuration."""
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class VideoConfig(StrictConfig, frozen=True, kw_only=True, omit_defaults=True):
    """What of a video is watched; ``floor`` are the shares of frames that the machine drops by itself, by rung."""

    player_url: str
    watch_ns: int
    live: bool
    floor: tuple[Share, ...] | None = None


class RemotePageConfig(StrictConfig, frozen=True, kw_only=True):
    """Of a page whose servers are elsewhere: no host exists for the browser but those that have an address.

    ``least_gap_ns`` lies between the starts of two visits; ``agent`` follows the browser's own user agent.
    """

    least_gap_ns: int
    agent: str


class BrowserConfig(StrictConfig, frozen=True, kw_only=True):
    """Visits that a browser is asked to make."""

    trial: str
    protocol: Protocol
    kind: Literal["page", "video"]
    url: str
    hosts: tuple[str, ...]
    third_parties: tuple[str, ...] = ()
    addresses: dict[str, str] = msgspec.field(default_factory=dict)
    ip: Ip | None = None
    """Over which version its hosts are asked, as the name server has them; None: IPv4."""
    port: int
    ca_file: str | None
    """None: the roots that the browser brings, and no other."""
    discovery: Literal["forced", "alt-svc"] = "forced"
    view: Literal["cold", "warm", "repeat"] = "cold"
    visits: int
    warmup_visits: int = 0
    seed: int = 1
    visit_timeout_ns: int
    total_timeout_ns: int
    settle_ns: int = 500_000_000
    filmstrip: bool = False
    viewport: tuple[int, int] = VIEWPORT
    video: VideoConfig | None = None
    elsewhere: RemotePageConfig | None = None
    work_dir: str
    keylog_file: str | None = None
    netlog_file: str | None = None
    samples_file: str
    visits_file: str
    fetches_file: str
    playback_file: str | None = None
    frames_dir: str | None = None
    har_dir: str | None = None
    qlog_dir: str | None = None

"""What the workloads of browsers can name without a path, and where their packets go."""

from __future__ import annotations

from trifecta.design.model import BrowserWorkload, VideoWorkload

BUNDLED_PAGES = ("light", "heavy", "blocks")  # made or fetched by trifecta.pages (docs/pages.md)
BUNDLED_CLIPS = ("bbb", "synthetic")  # docs/video.md

SERVED_AT = {"page": "web", "video": "video"}  # workload -> the host of its servers
_BOTH = ("client-router", "router-switch")
WIRES = (*_BOTH, "switch-web", "switch-video")


def serving_host(workload: BrowserWorkload) -> str:
    """The host whose servers the browser talks to: ``web`` or ``video``."""
    return SERVED_AT["video" if isinstance(workload, VideoWorkload) else "page"]


def crossed_wires(workload: BrowserWorkload) -> tuple[str, ...]:
    """The wires between the client and its servers, from the client on."""
    return (*_BOTH, f"switch-{serving_host(workload)}")


def impaired_wires(workload: BrowserWorkload) -> tuple[str, ...]:
    """The wires on which the path lies, from the client on."""
    return crossed_wires(workload) if workload.impaired == "all" else (workload.impaired,)

"""A watch of a video in an open view (docs/video.md)."""

from __future__ import annotations

from trifecta.implementations.browsers.browser import Errand, View
from trifecta.implementations.browsers.records import Played
from trifecta.implementations.server import Unsupported


async def watch(view: View, errand: Errand) -> Played:
    """Play for ``errand.watch.watch_ns``; what the player told."""
    raise Unsupported(f"no player is here yet to watch {errand.url} in {view}")

"""What the workloads of browsers can name without a path."""

from __future__ import annotations

BUNDLED_PAGES = ("light", "light-fonts", "heavy", "blocks")  # made or fetched by trifecta.pages (docs/pages.md)
BUNDLED_CLIPS = ("bbb", "synthetic")  # docs/video.md

"""HLS video: clips, packaging into a page archive with its player, live sources."""

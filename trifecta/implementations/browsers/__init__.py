"""Browsers: what drives them, and what their visits leave (docs/browsers.md)."""

"""The origin of a URL as rows of fetches have it: host and port, that of the scheme where the URL names none."""

from __future__ import annotations


def origin_of(url: str) -> str:
    """``host:port`` of a URL; no host where it has none, and the scheme's port where its own is no number."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return f"{parts.hostname or ''}:{port or (80 if parts.scheme == 'http' else 443)}"

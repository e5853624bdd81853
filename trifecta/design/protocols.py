"""The versions of HTTP and its methods."""

from __future__ import annotations

from typing import Literal

Protocol = Literal["h1", "h2", "h3"]
PROTOCOLS: tuple[Protocol, ...] = ("h1", "h2", "h3")
PROTOCOL_NAMES: dict[str, str] = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAFE_METHODS = ("GET", "HEAD")  # those of ours that RFC 9110 section 9.2.1 calls safe
CONTENT_METHODS = ("POST", "PUT", "PATCH")  # whose requests carry content here (RFC 9110 section 9.3)

"""Records of a one-shot view: a URL, how it is asked for, and what came of each request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PHASES = ("dns", "tcp", "tls", "quic", "send", "wait", "transfer")
"""Of a request, in order: without a gap, from the look-up of the name to the last octet of content."""


@dataclass(frozen=True)
class Target:
    """A URL, taken apart and checked."""

    url: str
    host: str
    port: int
    path: str  # with query


@dataclass(frozen=True)
class Attempt:
    """One request. ``phases_ns`` has no entry for a phase that did not happen; ``spoken`` is what ALPN agreed on."""

    protocol: str
    spoken: str | None
    address: str | None
    phases_ns: dict[str, int]
    total_ns: int | None
    status: int | None
    bytes_in: int
    header_bytes_in: int
    tls_version: str | None
    cipher: str | None
    resumed: bool
    error: str | None

    @property
    def refused_here(self) -> bool:
        """Whether this machine refused the socket: the server never heard of it."""
        return (self.error or "").split(":")[0] in ("socket", "ports_exhausted")


@dataclass(frozen=True)
class RequestOptions:
    """How every request is made."""

    method: Literal["GET", "HEAD"] = "GET"
    tls_version: Literal["1.2", "1.3"] = "1.3"
    timeout_ns: int = 10_000_000_000
    address: str | None = None
    resume: bool = False

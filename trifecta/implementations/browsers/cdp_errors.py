"""Chromium's network errors (net/base/net_error_list.h) as error classes of docs/architecture.md, section 1.1."""

from __future__ import annotations

import re
from typing import Final

from trifecta.contract.errors import ErrorClass

NO_NAME: Final = "browser:name"
_CLASSES: tuple[tuple[str, ErrorClass], ...] = (
    (r"ERR_CONNECTION_REFUSED", "connect_refused"),
    (r"ERR_CONNECTION_TIMED_OUT", "connect_timeout"),
    (r"ERR_CONNECTION_RESET|ERR_SOCKET_NOT_CONNECTED|ERR_CONNECTION_ABORTED", "connect_reset"),
    (r"ERR_ADDRESS_UNREACHABLE|ERR_NETWORK_|ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_FAILED", "unreachable"),
    (r"ERR_NAME_NOT_RESOLVED|ERR_DNS_|ERR_NAME_RESOLUTION_FAILED", NO_NAME),
    (r"ERR_CERT|ERR_SSL_SERVER_CERT", "tls:certificate"),
    (r"ERR_SSL_VERSION", "tls:version"),
    (r"ERR_ALPN", "tls:alpn"),
    (r"ERR_SSL|ERR_EARLY_DATA|ERR_BAD_SSL|ERR_ECH", "tls"),
    (r"ERR_QUIC_HANDSHAKE_FAILED", "quic:transport"),
    (r"ERR_QUIC", "quic:transport"),
    (r"ERR_EMPTY_RESPONSE|ERR_CONNECTION_CLOSED", "closed"),
    (r"ERR_CONTENT_LENGTH_MISMATCH|ERR_INCOMPLETE_CHUNKED", "length"),
    (r"ERR_CONTENT_DECODING", "content"),
    (r"ERR_HTTP2_SERVER_REFUSED_STREAM", "reset"),
    (r"ERR_HTTP2|ERR_SPDY", "malformed:http2"),
    (r"ERR_INVALID_HTTP_RESPONSE|ERR_INVALID_CHUNKED|ERR_RESPONSE_HEADERS|ERR_UNEXPECTED|ERR_INVALID_RES", "malformed"),
    (r"ERR_HTTP_RESPONSE_CODE_FAILURE", "status"),  # of 400 or more, without content
    (r"ERR_TIMED_OUT", "timeout"),
    (r"ERR_ABORTED", "browser:cancelled"),
    (r"ERR_BLOCKED|ERR_FAILED|ERR_UNSAFE|ERR_DISALLOWED|ERR_ACCESS_DENIED", "browser:blocked"),
)
_NAME = re.compile(r"ERR_[A-Z0-9_]+")


def error_class(words: str) -> ErrorClass:
    """The class of ``net::ERR_...`` in what Chromium or its driver said; ``browser:other`` for what is not known."""
    match = _NAME.search(words)
    if match is None:
        return "browser:other"
    return next((named for pattern, named in _CLASSES if re.match(pattern, match[0])), "browser:other")

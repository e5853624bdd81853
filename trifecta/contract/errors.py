"""Why a request or a visit failed: the classes in the column ``error``. What each means: `trifecta.design.failures`."""

from __future__ import annotations

import re
from typing import Literal, NewType, TypeGuard, get_args

EngineErrorClass = Literal[
    "connect_refused",
    "connect_timeout",
    "connect_reset",
    "unreachable",
    "ports_exhausted",
    "socket",
    "socket:EPERM",
    "socket:ENOENT",
    "socket:EAGAIN",
    "socket:ENOMEM",
    "socket:EINVAL",
    "socket:ENFILE",
    "socket:EMFILE",
    "socket:EMSGSIZE",
    "socket:ENOPROTOOPT",
    "socket:EPROTONOSUPPORT",
    "socket:EOPNOTSUPP",
    "socket:EAFNOSUPPORT",
    "socket:EADDRINUSE",
    "socket:ENOBUFS",
    "socket:EPROTO",
    "tls",
    "tls:certificate",
    "tls:alpn",
    "tls:version",
    "tls:alert",
    "tls:malformed",
    "quic",
    "quic:transport",
    "quic:timeout",
    "quic:version",
    "reset",
    "closed",
    "timeout",
    "malformed:http1",
    "malformed:http2",
    "malformed:http1_over_http2",
    "malformed:http3",
    "status",
    "length",
    "content",
    "goaway",
    "interrupted",
]
"""Those of the engine, in the order of its enum (``engine/crates/wire/src/error_class.rs``)."""

ClientErrorClass = Literal["malformed", "client:missing", "client:crashed", "client:reused", "client:name"]
"""Those of clients other than the engine's: an answer that breaks rules, which the client does not tell; no word of a
request; a connection that was to be a new one; a name that was not looked up in time, or is not there.
"""

OwnErrorClass = NewType("OwnErrorClass", str)
"""``client:...``, what only one client has; made by `of_client`."""

BrowserErrorClass = Literal[
    "browser:crashed",
    "browser:hung",
    "browser:codec",
    "browser:clock",
    "browser:script",
    "browser:name",
    "browser:cancelled",
    "browser:blocked",
    "browser:other",
    "video:network",
    "video:media",
    "video:player",
    "video:not-started",
]
"""Those of visits and of what is fetched in them."""

ErrorClass = EngineErrorClass | ClientErrorClass | OwnErrorClass | BrowserErrorClass

ENGINE_CLASSES: tuple[str, ...] = get_args(EngineErrorClass)
CLASSES = frozenset((*ENGINE_CLASSES, *get_args(ClientErrorClass), *get_args(BrowserErrorClass)))
"""All but those that only one client has."""
_OWN = re.compile(r"client:[a-z0-9_]+")


def of_client(name: str) -> OwnErrorClass:
    """The class ``client:NAME``; ValueError unless the name is of small letters, digits and underscores."""
    error_class = f"client:{name}"
    if not _OWN.fullmatch(error_class):
        raise ValueError(f"{name!r} names no error class; use small letters, digits and underscores")
    return OwnErrorClass(error_class)


def is_error_class(text: str) -> TypeGuard[ErrorClass]:
    """Whether there is such a class."""
    return text in CLASSES or _OWN.fullmatch(text) is not None

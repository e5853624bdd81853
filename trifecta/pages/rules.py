"""What a page archive may hold: URLs, fields and limits, for those who write one and those who read one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

MAX_RESPONSES = 20_000
MAX_BODY_BYTES = 256 * 2**20
MAX_PAGE_BYTES = 2 * 2**30
MAX_HEAD_BYTES = 64 * 2**10
"""Names and values of the fields of one response."""
MAX_URL_CHARACTERS = 16_384

KINDS = ("document", "stylesheet", "script", "image", "font", "media", "xhr", "fetch", "manifest", "other")
"""What a response is for; the words of the table ``fetches``."""
SOURCES = ("generated", "package", "recorded", "har", "folder")

# Of one connection and not of the message (RFC 9110, section 7.6.1), or the server's own to say: the length it counts,
# the time it is, what it is called, where its other protocols are.
NOT_KEPT = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length", "date", "server"}
    | {"alt-svc", "proxy-connection", "http2-settings"}
)
WITHOUT_CONTENT = frozenset({204, 304})
"""Statuses whose responses never have content (RFC 9110, sections 15.3.5 and 15.4.5)."""

TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}")  # RFC 9110, section 5.6.2
METHOD = re.compile(r"[A-Z]{1,20}")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
DIGEST = re.compile(r"[0-9a-f]{64}")
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}")
_TARGET = re.compile(r"/[!-\"$-~]*")  # what stands in a request line: no spaces, no fragment, ASCII
_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")  # RFC 9110, section 5.5


def dropped(name: str) -> bool:
    """Whether a field (lower case) is none of the archive's."""
    return name in NOT_KEPT or name.startswith("proxy-")


def url_problem(url: str) -> str | None:
    """Why a lab cannot serve a URL; None when it can: ``https://host/path?query``, the port 443 not named."""
    if len(url) > MAX_URL_CHARACTERS:
        return f"is longer than {MAX_URL_CHARACTERS} characters"
    if not url.startswith("https://"):
        scheme = url.split(":", 1)[0][:20]
        return f"is not https ({scheme!r}); the lab serves https alone"
    host, slash, rest = url.removeprefix("https://").partition("/")
    problem = host_problem(host)
    if problem is not None:
        return problem
    if not slash or not _TARGET.fullmatch(slash + rest):
        return "has no path of printable ASCII without a fragment"
    return None


def host_problem(host: str) -> str | None:
    """Why a host cannot be one of the lab's; None when it can."""
    if ":" in host or "@" in host:
        return f"names a port or a user ({host[:80]!r}); the lab serves port 443"
    if len(host) > 253 or not _HOST.fullmatch(host):
        return f"has the host {host[:80]!r}; a lower case name with a dot is needed, as www.example.lab"
    if host.rsplit(".", 1)[-1].isdigit():
        return f"has the address {host!r} for a host; a name is needed"
    if host.endswith(".localhost"):
        return f"has the host {host!r}, which browsers never look up (RFC 6761); give it another name"
    return None


def field_problem(name: str, value: str) -> str | None:
    """Why a field cannot be in an archive; None when it can."""
    if not TOKEN.fullmatch(name) or name != name.lower():
        return f"has the name {name[:80]!r}; a lower case token is needed (RFC 9110, section 5.1)"
    if dropped(name):
        return f"{name!r} is the connection's or the server's and not kept in an archive"
    if not _VALUE.fullmatch(value):
        return f"{name!r} has a value with control characters, blanks at its ends, or beyond ISO 8859-1"
    return None


def head_bytes(headers: Sequence[tuple[str, str]]) -> int:
    """Octets of names and values."""
    return sum(len(name) + len(value) for name, value in headers)


def host_of(url: str) -> str:
    """The host of a URL without a problem."""
    return url.removeprefix("https://").partition("/")[0]


def target_of(url: str) -> str:
    """Path and query of a URL without a problem, as in a request."""
    return "/" + url.removeprefix("https://").partition("/")[2]


def tidy_url(url: str) -> str:
    """A URL as an archive writes it: no fragment, no default port, scheme and host lower case, a path."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if not host or "@" in parts.netloc:
        return url.partition("#")[0]
    if ":" in host:
        host = f"[{host}]"
    default = {"https": 443, "http": 80, "wss": 443, "ws": 80}.get(scheme)
    authority = host if port in (None, default) else f"{host}:{port}"
    # Cut out of the text and not put together again: an empty query ("?") is another resource than none.
    after = url.partition("#")[0].partition("://")[2]
    target = after[len(parts.netloc) :]
    return f"{scheme}://{authority}{target if target.startswith('/') else '/' + target}"

"""Who may ask: only a page that this server sent, opened with the token of this start.

A server on 127.0.0.1 can be asked by every page that a browser has open. So: the name in ``Host`` must be this
machine's (a foreign name that resolves to 127.0.0.1 is refused), what other sites send is refused, and nothing is
answered without the token. What changes something needs a second token too, which no cookie carries. Prometheus has one
of its own, which opens nothing else.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CHANGE_HEADER = "x-trifecta-token"
METRICS = "/metrics"
SAFE = ("GET", "HEAD")
# Observable Plot puts one constant style element into every picture (tests/ui/test_browser.py sees that it is let in).
PLOT_STYLE = "sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' '{PLOT_STYLE}'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Secrets:
    """The tokens of one start: of the address on the terminal, of what changes something, and of Prometheus; empty
    where it is not told anything.
    """

    entry: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    change: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    metrics: str = ""


class Guard:
    """Refuses with 403 and one line what does not come from a page of this server."""

    def __init__(self, app: ASGIApp, port: int, known: Secrets) -> None:
        """Before ``app``, which listens on ``port``."""
        self._app, self._known = app, known
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._cookie = f"trifecta-{port}"  # cookies do not distinguish ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on and put the headers on the answer."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} here")
        entering = self._enters(scope)
        refusal = self._refusal(scope, entering=entering)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if entering and not refusal:
                    cookie = f"{self._cookie}={self._known.entry}; Path=/; HttpOnly; SameSite=Strict"
                    headers.append("set-cookie", cookie)
            await send(message)

        response = PlainTextResponse(f"{refusal}\n", 403) if refusal else self._app
        await response(scope, receive, answer)

    def _enters(self, scope: Scope) -> bool:
        """Whether it is the address of the terminal that is opened."""
        given = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"))).get("token", "")
        return scope["path"] == "/" and scope["method"] in SAFE and _is_equal(given, self._known.entry)

    def _refusal(self, scope: Scope, *, entering: bool) -> str:
        """Why this request is refused; empty where it is not."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return f"refused: the host is not {' or '.join(self._hosts)}"
        origin = headers.get("origin")
        elsewhere = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if origin not in (None, f"http://{hosts[0]}") or (elsewhere and not entering):
            return "refused: another site asks"
        if scope["path"] == METRICS and scope["method"] in SAFE and self._known.metrics:
            may = _is_equal(_bearer(headers), self._known.metrics)
            return "" if may else "refused: no token of --metrics as Authorization: Bearer"
        if not entering and not _is_equal(_cookies(headers).get(self._cookie, ""), self._known.entry):
            return "refused: no token; open the address that `trifecta ui` printed"
        return "" if scope["method"] in SAFE else self._may_not_change(scope["method"], origin, headers)

    def _may_not_change(self, method: str, origin: str | None, headers: Headers) -> str:
        if method != "POST" or origin is None:
            return "refused: only this page may change something"
        if not _is_equal(headers.get(CHANGE_HEADER, ""), self._known.change):
            return f"refused: no token in the header {CHANGE_HEADER}"
        return ""


def _is_equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _bearer(headers: Headers) -> str:
    """RFC 6750 section 2.1."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        return {name: one.value for name, one in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}

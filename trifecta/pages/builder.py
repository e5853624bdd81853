"""Puts a page together response by response, and keeps account of what cannot be replayed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trifecta.design.errors import UserError
from trifecta.pages import rules
from trifecta.pages.archive import LeftOut, Page, Response, Scalar, digest_of, write_page

_KIND_BY_TYPE = (
    ("text/html", "document"), ("application/xhtml+xml", "document"), ("text/css", "stylesheet"),
    ("text/javascript", "script"), ("application/javascript", "script"), ("application/x-javascript", "script"),
    ("application/ecmascript", "script"), ("image/", "image"), ("font/", "font"), ("application/font-", "font"),
    ("application/x-font-", "font"), ("application/vnd.ms-fontobject", "font"), ("video/", "media"),
    ("audio/", "media"), ("application/vnd.apple.mpegurl", "media"), ("application/dash+xml", "media"),
    ("application/manifest+json", "manifest"), ("application/json", "fetch"), ("application/wasm", "fetch"),
)  # fmt: skip


def kind_of(headers: Iterable[tuple[str, str]]) -> str:
    """What a response is for, as far as its content type tells."""
    of_type = next((value for name, value in headers if name == "content-type"), "")
    media_type = of_type.partition(";")[0].strip().lower()
    return next((kind for beginning, kind in _KIND_BY_TYPE if media_type.startswith(beginning)), "other")


def tidy_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Fields as an archive keeps them: lower case, in order, without blanks around values and those not kept."""
    tidy = [(name.lower(), value.strip(" \t\r\n")) for name, value in headers]
    return [(name, value) for name, value in tidy if not name.startswith(":") and not rules.dropped(name)]


class Builder:
    """A page that grows. The first answer to a request counts; another one to the same request is left out and told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.left_out: dict[LeftOut, None] = {}
        self.responses: dict[tuple[str, str, str], Response] = {}
        self.bodies: dict[str, bytes] = {}
        self.bytes = 0

    def leave_out(self, method: str, url: str, reason: str) -> None:
        """Tell of a request that the archive does not answer."""
        self.left_out[
            LeftOut(_printable(method, 200), _printable(url, rules.MAX_URL_CHARACTERS), _printable(reason, 1000))
        ] = None

    def add(
        self, url: str, status: int, headers: Iterable[tuple[str, str]], body: bytes, *, method: str = "GET",
        kind: str | None = None,
    ) -> Response | None:  # fmt: skip
        """Take a response in as it was sent; None when it cannot be replayed, which is then in ``left_out``."""
        url, kept_headers = rules.tidy_url(url), tidy_headers(headers)
        problem = self._problem(method, url, status, kept_headers, body)
        if problem is not None:
            self.leave_out(method, url, problem)
            return None
        no_content = status in rules.WITHOUT_CONTENT or method == "HEAD" or not body
        digest = None if no_content else digest_of(body)
        kind = kind if kind in rules.KINDS else kind_of(kept_headers)
        size = 0 if no_content else len(body)
        response = Response(method, url, status, tuple(kept_headers), digest, size, kind)
        former = self.responses.get(response.key)
        if former is not None:
            if (former.status, former.body) != (response.status, response.body):
                self.leave_out(method, url, "was answered differently another time; the first answer is replayed")
            return former
        self.responses[response.key] = response
        if digest is not None:
            self.bodies[digest] = body
            self.bytes += size
        return response

    def _problem(
        self, method: str, url: str, status: int, headers: list[tuple[str, str]], body: bytes
    ) -> str | None:  # fmt: skip
        """Why a response cannot be replayed; None when it can."""
        problem = rules.url_problem(url)
        field = next(filter(None, (rules.field_problem(name, value) for name, value in headers)), None)
        full = self.bytes + len(body) > rules.MAX_PAGE_BYTES or len(self.responses) >= rules.MAX_RESPONSES
        reasons = {
            f"method {method[:40]!r} cannot be replayed": not rules.METHOD.fullmatch(method) or method == "CONNECT",
            str(problem): problem is not None,
            "status 101 is another protocol (WebSocket)": status == 101,
            f"status {status} is not a final answer": not 200 <= status <= 599,
            f"field {field}": field is not None,
            f"its fields are larger than {rules.MAX_HEAD_BYTES} octets": rules.head_bytes(headers)
            > rules.MAX_HEAD_BYTES,
            f"its content is larger than {rules.MAX_BODY_BYTES} octets": len(body) > rules.MAX_BODY_BYTES,
            f"the page has {rules.MAX_RESPONSES} responses or {rules.MAX_PAGE_BYTES} octets already": full,
        }
        return next((reason for reason, applies in reasons.items() if applies), None)

    def page(
        self, start: str, title: str, source: dict[str, Scalar | list[str]], third_parties: Iterable[str] = ()
    ) -> Page:
        """The page as it is now; UserError when nothing answers its start."""
        start = rules.tidy_url(start)
        if rules.url_problem(start) or ("GET", rules.host_of(start), rules.target_of(start)) not in self.responses:
            why = next((each.reason for each in self.left_out if each.url == start), None)
            raise UserError(f"{start}: nothing that can be replayed answers it{f': {why}' if why else ''}")
        title = _printable(title, 500)
        responses, left_out = tuple(self.responses.values()), tuple(self.left_out)
        return Page(self.name, title, start, source, responses, left_out, tuple(third_parties))

    def write(
        self,
        folder: Path,
        start: str,
        title: str,
        source: dict[str, Scalar | list[str]],
        third_parties: Iterable[str] = (),
    ) -> Page:
        """Write the archive whole or not at all."""
        page = self.page(start, title, source, third_parties)
        write_page(folder, page, self.bodies)
        return page


def _printable(text: str, most: int) -> str:
    """Printable and not too long, whatever it was."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)[:most]

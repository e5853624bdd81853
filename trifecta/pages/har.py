"""A page archive of a HAR file (HTTP Archive 1.2), as browsers and proxies write it.

A HAR holds content without its coding. Where the response had gzip, deflate or br, the content is coded again, so
that it has about the size that it had; the octets are not those of the site, and the archive says how many it were.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trifecta.design.errors import UserError
from trifecta.pages import coding, rules
from trifecta.pages.archive import Scalar
from trifecta.pages.builder import Builder

MAX_HAR_BYTES = 2 * 2**30
_LOST = "\N{REPLACEMENT CHARACTER}"
_KINDS = {"xhr": "xhr", "fetch": "fetch", "preflight": "other", "websocket": "other"}


@dataclass(frozen=True)
class HarPage:
    """What a HAR file came to."""

    page: Builder
    start: str
    title: str
    facts: dict[str, Scalar | list[str]]
    cookies: int
    """``set-cookie`` fields that were dropped, or kept when that was asked for."""


def read_har(file: Path, name: str, *, start: str | None = None, keep_cookies: bool = False) -> HarPage:
    """Read a HAR file; UserError naming file and field. ``start``: the page's URL, else the first document's."""
    log = _Log(file, name, keep_cookies)
    log.read()
    if start is None:
        start = log.start
    if start is None:
        raise UserError(f"{file}: log.entries: has no document that can be replayed; name the page's URL with --start")
    creator = f"{log.creator.get('name', '?')} {log.creator.get('version', '')}".strip()[:200]
    facts: dict[str, Scalar | list[str]] = {
        "kind": "har", "tool": creator, "entries": log.entries, "coded_again": log.coded_again,
        "coding_dropped": log.coding_dropped,
    }  # fmt: skip
    facts = {key: _printable(value) if isinstance(value, str) else value for key, value in facts.items()}
    return HarPage(log.page, start, log.title or start, facts, log.cookies)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else _LOST for each in text)


class _Log:
    def __init__(self, file: Path, name: str, keep_cookies: bool) -> None:
        self.file = file
        self.page = Builder(name)
        self.keep_cookies = keep_cookies
        self.start: str | None = None
        self.title = ""
        self.creator: Mapping[str, Any] = {}
        self.entries = self.coded_again = self.coding_dropped = self.cookies = 0

    def fail(self, place: str, problem: str) -> NoReturn:
        raise UserError(f"{self.file}: {place}: {problem}")

    def read(self) -> None:
        log = self._object(self._load(), "the document").get("log")
        log = self._object(log, "log")
        self.creator = log["creator"] if isinstance(log.get("creator"), dict) else {}
        pages = log.get("pages")
        if isinstance(pages, list) and pages and isinstance(pages[0], dict) and isinstance(pages[0].get("title"), str):
            self.title = pages[0]["title"]
        entries = log.get("entries")
        if not isinstance(entries, list):
            self.fail("log.entries", "must be a list; is this a HAR file (HTTP Archive 1.2)?")
        for index, entry in enumerate(entries):
            self._entry(self._object(entry, f"log.entries[{index}]"), f"log.entries[{index}]")
        self.entries = len(entries)

    def _load(self) -> Any:
        try:
            if self.file.stat().st_size > MAX_HAR_BYTES:
                self.fail("the document", f"is larger than {MAX_HAR_BYTES} octets")
            return json.loads(self.file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
        except OSError as error:
            raise UserError(f"{self.file}: cannot be read ({error.strerror}); name a HAR file") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self.file}: is no JSON ({error}); save the HAR anew") from error

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(place, "must be an object; is this a HAR file (HTTP Archive 1.2)?")
        return value

    def _text(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            self.fail(place, "must be a text")
        return value

    def _entry(self, entry: dict[str, Any], place: str) -> None:
        request = self._object(entry.get("request"), f"{place}.request")
        response = self._object(entry.get("response"), f"{place}.response")
        method = self._text(request.get("method"), f"{place}.request.method").upper()
        url = rules.tidy_url(self._text(request.get("url"), f"{place}.request.url"))
        status = response.get("status")
        if not isinstance(status, int) or isinstance(status, bool):
            self.fail(f"{place}.response.status", "must be a number")
        headers = self._headers(response.get("headers", []), f"{place}.response.headers")
        content = self._object(response.get("content", {}), f"{place}.response.content")
        if url.startswith(("data:", "blob:", "about:", "chrome-extension:", "moz-extension:")):
            return  # no request of the page
        if status == 304:
            self.page.leave_out(method, url, "was answered from the browser's cache (304); record with the cache off")
            return
        nothing = method == "HEAD" or status not in range(200, 600) or status in (204, 205, 301, 302, 303, 307, 308)
        body = b"" if nothing and not content.get("text") else self._content(response, content, headers, place)
        if isinstance(body, str):
            self.page.leave_out(method, url, body)
            return
        headers, body = self._coded(headers, body)
        kind = _KINDS.get(str(entry.get("_resourceType", "")).lower(), str(entry.get("_resourceType", "")).lower())
        added = self.page.add(url, status, headers, body, method=method, kind=kind or None)
        moved = added is not None and added.status in (301, 302, 303, 307, 308)
        if added is not None and self.start is None and method == "GET" and (moved or added.kind == "document"):
            self.start = url

    def _headers(self, value: Any, place: str) -> list[tuple[str, str]]:
        if not isinstance(value, list):
            self.fail(place, "must be a list")
        headers = []
        for index, each in enumerate(value):
            field = self._object(each, f"{place}[{index}]")
            name = self._text(field.get("name"), f"{place}[{index}].name").lower()
            # Chromium writes fields of one name as the lines of one value.
            for line in self._text(field.get("value"), f"{place}[{index}].value").split("\n"):
                if name in ("set-cookie", "set-cookie2"):
                    self.cookies += 1
                    if not self.keep_cookies:
                        continue
                headers.append((name, _as_octets(line)))
        return headers

    def _content(
        self, response: dict[str, Any], content: dict[str, Any], headers: list[tuple[str, str]], place: str
    ) -> bytes | str:
        """The content, or why it is not there."""
        text = content.get("text")
        if text is None or text == "":
            sizes = content.get("size"), response.get("bodySize")
            length = next((value for name, value in headers if name == "content-length"), None)
            empty = sizes[0] == 0 or length == "0" or all(size in (0, None) for size in sizes)
            return b"" if empty else "the HAR has no content of it; save the HAR with content"
        text = self._text(text, f"{place}.response.content.text")
        charset, lost = "base64", _LOST in text
        try:
            if content.get("encoding") == "base64":
                return base64.b64decode(text)
            charset = _charset(headers)
            return "its content was lost when the HAR was written" if lost else text.encode(charset)
        except (ValueError, LookupError):  # UnicodeError and binascii.Error are ValueErrors
            return f"its content is no {charset[:40]!r}"

    def _coded(self, headers: list[tuple[str, str]], body: bytes) -> tuple[list[tuple[str, str]], bytes]:
        """Fields and content as they may have been sent: the coding that the fields name is put on again."""
        codings = [value.strip().lower() for name, value in headers if name == "content-encoding"]
        if not body or not codings:
            return headers, body
        if len(codings) == 1 and coding.known(codings[0]):
            if coding.is_encoded(body, codings[0]):
                return headers, body
            self.coded_again += 1
            return headers, coding.encode(body, codings[0])
        self.coding_dropped += 1
        return [each for each in headers if each[0] != "content-encoding"], body


def _charset(headers: list[tuple[str, str]]) -> str:
    kind = next((value for name, value in headers if name == "content-type"), "")
    for parameter in kind.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or "utf-8"
    return "utf-8"


def _as_octets(value: str) -> str:
    """A field's value with each octet as a character (ISO 8859-1), as archives have it; HAR writers decode UTF-8."""
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode("latin-1")
    return value

"""A page archive of a HAR file (HTTP Archive 1.2), as browsers and proxies write it.

A HAR holds content without its coding. Where the response had gzip, deflate or br, the content is coded again, so
that it has about the size that it had; the octets are not those of the site, and the archive says how many it were.
Writers differ: fields that are missing, null or of another type are read where what they mean is plain.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trifecta.design.errors import UserError
from trifecta.pages import coding, har_start, rules
from trifecta.pages.archive import Scalar
from trifecta.pages.builder import Builder, kind_of
from trifecta.pages.har_file import HarFile

_LOST = "\N{REPLACEMENT CHARACTER}"
_KINDS = {"xhr": "xhr", "fetch": "fetch", "preflight": "other", "websocket": "other"}
_NOT_OF_PAGE = ("data:", "blob:", "about:", "chrome:", "chrome-extension:", "moz-extension:", "safari-web-extension:")
_WITH_URLS = ("location", "access-control-allow-origin", "link")


@dataclass(frozen=True)
class HarPage:
    """What a HAR file came to."""

    page: Builder
    start: str
    title: str
    facts: dict[str, Scalar | list[str]]
    cookies: int
    """``set-cookie`` fields that were dropped, or kept when that was asked for."""
    fields_dropped: int
    """Fields whose name is none (RFC 9110, 5.1)."""


def read_har(
    file: Path,
    name: str,
    *,
    start: str | None = None,
    keep_cookies: bool = False,
    origins: Mapping[str, str] | None = None,
) -> HarPage:
    """Read a HAR file; UserError naming file and field.

    ``start``: the page's URL, else the first document's. ``origins``: recorded origin -> origin stored.
    """
    log = _Log(file, name, keep_cookies, origins or {})
    log.read()
    if start is None:
        chosen, why = har_start.choose(log.seen)
        if chosen is None:
            raise UserError(f"{file}: {why}")
        start = chosen
    else:
        start = log.renamed(rules.tidy_url(start))
    creator = f"{log.creator.get('name', '?')} {log.creator.get('version', '')}".strip()[:200]
    facts: dict[str, Scalar | list[str]] = {
        "kind": "har", "tool": creator, "entries": log.entries, "coded_again": log.recompressed,
        "coding_dropped": log.coding_dropped,
    }  # fmt: skip
    facts = {key: _printable(value) if isinstance(value, str) else value for key, value in facts.items()}
    return HarPage(log.page, start, log.title or start, facts, log.cookies, log.fields_dropped)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else _LOST for each in text)


class _Log:
    def __init__(self, file: Path, name: str, keep_cookies: bool, origins: Mapping[str, str]) -> None:
        self.file, self.har, self.origins = file, HarFile(file), origins
        self.page = Builder(name)
        self.keep_cookies = keep_cookies
        self.seen: list[har_start.Entry] = []
        self.title = ""
        self.creator: Mapping[str, Any] = {}
        self.entries = self.recompressed = self.coding_dropped = self.cookies = self.fields_dropped = 0

    def fail(self, place: str, problem: str) -> NoReturn:
        raise UserError(f"{self.file}: {place}: {problem}")

    def read(self) -> None:
        log = self._object(self.har.document(), "the document").get("log")
        log = self._object(log, "log")
        self.creator = log["creator"] if isinstance(log.get("creator"), dict) else {}
        pages = log.get("pages")
        if isinstance(pages, list) and pages and isinstance(pages[0], dict) and isinstance(pages[0].get("title"), str):
            self.title = pages[0]["title"]
        entries = log.get("entries")
        if not isinstance(entries, list):
            self.fail("log.entries", "must be a list; is this a HAR file (HTTP Archive 1.2)?")
        for index, entry in enumerate(entries):
            self._entry(self._object(entry, f"log.entries[{index}]"), index)
        self.entries = len(entries)

    def renamed(self, url: str) -> str:
        """A URL with the origin that it is stored under."""
        former = next((each for each in self.origins if url.startswith(each + "/")), None)
        return url if former is None else self.origins[former] + url[len(former) :]

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(place, "must be an object; is this a HAR file (HTTP Archive 1.2)?")
        return value

    def _text(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            self.fail(place, "must be a text")
        return value

    def _entry(self, entry: dict[str, Any], index: int) -> None:
        place = f"log.entries[{index}]"
        request = self._object(entry.get("request"), f"{place}.request")
        method = self._text(request.get("method") or "GET", f"{place}.request.method").upper()
        url = rules.tidy_url(self._text(request.get("url"), f"{place}.request.url"))
        if url.startswith(_NOT_OF_PAGE):
            return  # no request of the page
        url = self.renamed(url)
        kind = str(entry.get("_resourceType", "")).lower()
        kind = _KINDS.get(kind, kind)
        if entry.get("response") is None:
            self.page.leave_out(method, url, reason := "the HAR has no response to it")
            self.seen.append(har_start.Entry(index, method, url, 0, None, kind == "document", reason))
            return
        response = self._object(entry["response"], f"{place}.response")
        status = self._status(response.get("status"), f"{place}.response.status")
        headers = self._headers(response.get("headers") or [], f"{place}.response.headers")
        content = self._object(response.get("content") or {}, f"{place}.response.content")
        mime = content.get("mimeType")
        if isinstance(mime, str) and mime and not any(name == "content-type" for name, _ in headers):
            headers.append(("content-type", _as_octets(mime)))
        kind = kind if kind in rules.KINDS else kind_of(headers)
        location = next((value for name, value in headers if name == "location"), None)
        sent = self._sent(method, url, status, (response, content, headers, place))
        why: str | None = None
        if isinstance(sent, str):
            self.page.leave_out(method, url, why := sent)
        else:
            headers, body = self._coded(headers, sent)
            kind = "document" if kind == "other" and _looks_like_html(headers, sent) else kind
            if self.page.add(url, status, headers, body, method=method, kind=kind) is None:
                why = next(reversed(self.page.left_out)).reason
        self.seen.append(har_start.Entry(index, method, url, status, location, kind == "document", why))

    def _sent(
        self, method: str, url: str, status: int,
        parts: tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]], str],
    ) -> bytes | str:  # fmt: skip
        """The content of a response, or the first reason why it cannot be replayed."""
        response, content, headers, place = parts
        if status == 304:
            return "was answered from the browser's cache (304); record with the cache off"
        if (problem := rules.url_problem(url)) is not None:
            return problem + ("; --rename stores its origin as another" if url.startswith("http://") else "")
        nothing = method == "HEAD" or status not in range(200, 600) or status in (204, 205, *har_start.MOVED)
        has = content.get("text") or content.get("_file")
        return b"" if nothing and not has else self._content(response, content, headers, place)

    def _status(self, value: Any, place: str) -> int:
        """A number, or one as a text; null: there was no answer."""
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            return int(value.strip()[:9])
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(place, "must be a number")
        return value

    def _headers(self, value: Any, place: str) -> list[tuple[str, str]]:
        if not isinstance(value, list):
            self.fail(place, "must be a list")
        headers = []
        for index, each in enumerate(value):
            field = self._object(each, f"{place}[{index}]")
            name = self._text(field.get("name"), f"{place}[{index}].name").lower()
            if not rules.TOKEN.fullmatch(name.removeprefix(":")):
                self.fields_dropped += 1  # some writers cut values with line ends into fields
                continue
            text = field.get("value")
            text = "" if text is None else str(text) if isinstance(text, int | float) else text
            # Chromium writes fields of one name as the lines of one value.
            for line in self._text(text, f"{place}[{index}].value").split("\n"):
                if name in ("set-cookie", "set-cookie2"):
                    self.cookies += 1
                    if not self.keep_cookies:
                        continue
                headers.append((name, _as_octets(self._rewritten(line) if name in _WITH_URLS else line)))
        return headers

    def _rewritten(self, value: str) -> str:
        for former, later in self.origins.items():
            value = value.replace(former, later)
        return value

    def _content(
        self, response: dict[str, Any], content: dict[str, Any], headers: list[tuple[str, str]], place: str
    ) -> bytes | str:
        """The content, or why it is not there."""
        text, file = content.get("text"), content.get("_file")
        if not text and isinstance(file, str):
            attached = self.har.attached(file)
            return (
                f"its content is in the file {file[:80]!r}, which is not beside the HAR"
                if attached is None
                else attached
            )
        if text is None or text == "":
            sizes = content.get("size"), response.get("bodySize")
            length = next((value for name, value in headers if name == "content-length"), None)
            empty = sizes[0] == 0 or length == "0" or all(size in (0, None) for size in sizes)
            return b"" if empty else har_start.SAVE_WITH_CONTENT
        text = self._text(text, f"{place}.response.content.text")
        charset, lost = "base64", _LOST in text
        try:
            if str(content.get("encoding")).lower() == "base64":
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
        if len(codings) == 1 and coding.is_known_coding(codings[0]):
            if coding.is_encoded(body, codings[0]):
                return headers, body
            self.recompressed += 1
            return headers, coding.encode(body, codings[0])
        self.coding_dropped += 1
        return [each for each in headers if each[0] != "content-encoding"], body


def _looks_like_html(headers: list[tuple[str, str]], body: bytes) -> bool:
    """Without a type browsers look at the first octets; so does this, for documents."""
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return not any(name == "content-type" for name, _ in headers) and start.startswith((b"<!doctype html", b"<html"))


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

"""A page archive of a folder of files, as a static server would answer: every file a response of one origin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from trifecta.design.errors import UserError
from trifecta.pages import references, rules
from trifecta.pages.builder import Builder

INDEX = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8", "json": "application/json",
    "map": "application/json", "webmanifest": "application/manifest+json", "txt": "text/plain; charset=utf-8",
    "xml": "application/xml", "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp", "avif": "image/avif", "ico": "image/x-icon", "woff": "font/woff",
    "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf", "eot": "application/vnd.ms-fontobject",
    "mp4": "video/mp4", "webm": "video/webm", "mp3": "audio/mpeg", "wasm": "application/wasm", "pdf": "application/pdf",
    "vtt": "text/vtt",
}  # fmt: skip


def name_from(text: str) -> str:
    """A page's name out of any text."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "page"


def content_type(path: Path) -> str:
    """By the extension; what is not known is octets."""
    return _TYPES.get(path.suffix.lower().lstrip("."), "application/octet-stream")


def read_folder(folder: Path, name: str, origin: str | None = None) -> tuple[Builder, str, str]:
    """A folder with ``index.html`` as a page: builder, start and title.

    ``index.html`` answers for its folder's URL. Hidden files and links are left out, and what the files ask for
    elsewhere is told.
    """
    origin = origin or f"https://www.{name}.lab"
    problem = rules.url_problem(origin + "/")
    if problem is not None:
        raise UserError(f"origin {origin!r} {problem}")
    if not (folder / INDEX).is_file():
        raise UserError(f"{folder} has no {INDEX}; name the folder that a server would serve")
    page, title = Builder(name), ""
    for path in _files(folder, page, origin):
        url = origin + _target(folder, path)
        content = _read(path)
        response = page.add(url, 200, [("content-type", content_type(path))], content)
        if response is not None and response.kind == "document":
            its_title, urls = references.in_html(content.decode("utf-8", "replace"))
            title = title or its_title
        elif response is not None and response.kind == "stylesheet":
            urls = references.in_css(content.decode("utf-8", "replace"))
        else:
            continue
        for referenced in references.absolute(url, urls):
            if not referenced.startswith(origin + "/"):
                page.leave_out("GET", referenced, "is on another origin; record the URL of the site to have it")
    for left in [each for each in page.left_out if "another origin" in each.reason]:
        if left.url.partition("//")[2] in {response.host + response.target for response in page.responses.values()}:
            del page.left_out[left]
    return page, f"{origin}/", title or name


def _files(folder: Path, page: Builder, origin: str) -> Iterator[Path]:
    """Plain files, the index first, then by path; the order never depends on the disk."""
    yield folder / INDEX
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for each in sorted(files):
            path = Path(here) / each
            if path == folder / INDEX or each.startswith("."):
                continue
            if path.is_symlink() or not path.is_file():
                page.leave_out("GET", origin + _target(folder, path), "is not a regular file")
            elif path.stat().st_size > rules.MAX_BODY_BYTES:
                page.leave_out("GET", origin + _target(folder, path), f"is larger than {rules.MAX_BODY_BYTES} octets")
            else:
                yield path


def _target(folder: Path, path: Path) -> str:
    """As browsers write paths (URL Standard, path percent-encode set)."""
    inside = os.fsencode(path.relative_to(folder))
    target = "/" + quote(inside, safe="/!$&'()*+,;=:@-._~|[]\\")
    return target.removesuffix(INDEX) if path.name == INDEX else target


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); fix that or leave the file out") from error

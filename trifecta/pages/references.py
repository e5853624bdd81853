"""What HTML and CSS ask for, as far as the text tells: to name what an archive made of files does not hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

# Attributes whose URL a browser fetches by itself to show the page; a link to another page (<a href>) is not.
_FETCHED = {
    ("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("video", "poster"),
    ("audio", "src"), ("track", "src"), ("embed", "src"), ("object", "data"), ("input", "src"), ("image", "href"),
}  # fmt: skip
_SETS = {("img", "srcset"), ("source", "srcset"), ("link", "imagesrcset")}
_LINKS = {"stylesheet", "icon", "shortcut", "preload", "modulepreload", "manifest", "apple-touch-icon", "prefetch"}
_IN_CSS = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"'\s]*))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""")
_COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.title = ""
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag if tag in ("title", "style") else None
        fields = {name: value or "" for name, value in attrs}
        for name, value in fields.items():
            if (tag, name) in _FETCHED:
                self.found.append(value)
            elif (tag, name) in _SETS:
                self.found += [each.split()[0] for each in value.split(",") if each.strip()]
            elif name == "style":
                self.found += in_css(value)
        if tag == "link" and _LINKS & set(fields.get("rel", "").lower().split()):
            self.found.append(fields.get("href", ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.found += in_css(data)
        elif self._inside == "title":
            self.title += data


def in_html(text: str) -> tuple[str, list[str]]:
    """The title of a document and the references that are fetched to show it."""
    parser = _Html()
    parser.feed(text)
    parser.close()
    return " ".join(parser.title.split()), parser.found


def in_css(text: str) -> list[str]:
    """The references of a style sheet."""
    return [next(filter(None, each), "") for each in _IN_CSS.findall(_COMMENTS.sub("", text))]


def absolute(base: str, references: list[str]) -> list[str]:
    """The URLs of references in the resource ``base``, each once, without those that are no request (``data:``)."""
    urls = []
    for each in references:
        try:
            url = urljoin(base, each.strip())
            if urlsplit(url).scheme in ("http", "https") and each.strip():
                urls.append(url.partition("#")[0])
        except ValueError:  # as http://[ is
            continue
    return list(dict.fromkeys(urls))

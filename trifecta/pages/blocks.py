"""The page ``blocks``: blocks of Froala Design Blocks, the library of the study baccichet2021, one below the other.

Froala Design Blocks (https://github.com/froala/design-blocks), Froala Open Web Design License 1.0; its photographs are
of Pexels, its illustrations of unDraw, its icons Feather Icons (MIT). Bootstrap, jQuery, Popper.js: MIT. Font Awesome
Free: MIT, OFL 1.1, CC BY 4.0. Lato: OFL 1.1. The library's own pages take the last five from public networks of caches;
here they come from the page's own origin, as the rest.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path

from trifecta.pages import references
from trifecta.pages.archive import Page, Scalar
from trifecta.pages.builder import Builder
from trifecta.pages.folder import content_type

VERSION = 1
ORIGIN = "https://www.blocks.lab"
TITLE = "Blocks: a page of Froala Design Blocks"
LICENCES = "Froala Open Web Design License 1.0; MIT; OFL 1.1; CC BY 4.0"
# How many blocks of each of the library's pages, from top to bottom: those with the most pictures not shown yet, then
# the longest.
_CHOICE = (
    ("headers", 1), ("features", 5), ("contents", 5), ("call-to-action", 2), ("teams", 3), ("testimonials", 3),
    ("pricings", 1), ("contacts", 1), ("footers", 1),
)  # fmt: skip
_BLOCK = re.compile(r"<(header|section|footer)\b[^>]*>.*?</\1>", re.DOTALL)
_STYLES = ("bootstrap/bootstrap.min.css", "lato/lato.css", "awesome/css/all.min.css", "css/froala_blocks.min.css")
_SCRIPTS = ("jquery/jquery.slim.min.js", "popper/popper.min.js", "bootstrap/bootstrap.min.js")
_LATO = "".join(
    f'@font-face{{font-family:"Lato";font-weight:{weight};font-display:swap;src:url(lato-latin-{weight}-normal.woff2)}}\n'
    for weight in (400, 700)
)
# Font -> class of what is set in it.
_AWESOME = {"fa-brands": "fab", "fa-solid": "fas", "fa-regular": "far"}
_KEPT = ("cache-control", "public, max-age=31536000, immutable")


def make(library: Path, folder: Path, versions: Mapping[str, str]) -> Page:
    """Write the page into ``folder``.

    ``library`` holds ``imgs/``, ``css/`` and the HTML of the library, and the folders ``bootstrap``, ``jquery``,
    ``popper``, ``awesome`` and ``lato``. ``versions``: of each npm package.
    """
    blocks = [block for name, count in _CHOICE for block in _chosen(library / f"{name}.html", count)]
    page = Builder("blocks")
    html = _html([text for text, _ in blocks])
    page.add(f"{ORIGIN}/", 200, [("content-type", "text/html; charset=utf-8"), ("cache-control", "no-cache")], html)
    (library / "lato" / "lato.css").write_text(_LATO, encoding="utf-8")
    pictures = [picture for _, block_pictures in blocks for picture in block_pictures]
    for path in dict.fromkeys([*_STYLES, *_SCRIPTS, *pictures]):
        content = (library / path).read_bytes()
        _add(page, path, content)
        if path.endswith(".css"):
            for url in references.absolute(f"{ORIGIN}/{path}", references.in_css(content.decode())):
                _add_of_style(page, library, url, html)
    packages = [f"{name} {each}" for name, each in versions.items()]
    facts: dict[str, Scalar | list[str]] = {"kind": "package", "version": VERSION, "licence": LICENCES}
    return page.write(folder, f"{ORIGIN}/", TITLE, {**facts, "packages": packages})


def _add(page: Builder, path: str, content: bytes) -> None:
    head = [("content-type", content_type(Path(path)))]
    if Path(path).suffix in (".css", ".js", ".svg"):
        content = gzip.compress(content, 6, mtime=0)
        head += [("content-encoding", "gzip"), ("vary", "accept-encoding")]
    page.add(f"{ORIGIN}/{path}", 200, [*head, _KEPT], content)


def _add_of_style(page: Builder, library: Path, url: str, html: bytes) -> None:
    """A font of a style sheet, if browsers choose it: as WOFF2, and one whose class the page uses; others are told."""
    path = url.removeprefix(f"{ORIGIN}/").partition("?")[0]
    file = library / path
    name = next((name for name in _AWESOME if name in path), None)
    if not url.startswith(f"{ORIGIN}/") or ".." in path or file.suffix != ".woff2" or not file.is_file():
        page.leave_out("GET", url, "is another form of a font that is there as WOFF2, which browsers choose")
    elif name is not None and f'class="{_AWESOME[name]} '.encode() not in html:
        page.leave_out("GET", url, "is a font that nothing on the page is set in")
    else:
        _add(page, path, file.read_bytes())


def _chosen(file: Path, count: int) -> list[tuple[str, list[str]]]:
    """Blocks of a page of the library with their pictures, in its order."""
    text = file.read_text(encoding="utf-8")
    # The first is the navigation of the library's own pages. Maps of others' sites are not for a lab.
    texts = [
        match[0] for match in _BLOCK.finditer(text) if "<iframe" not in match[0] and 'id="navigator"' not in match[0]
    ]
    blocks = [(_local(text), _pictures(text)) for text in texts]
    pictures_taken: set[str] = set()
    taken: list[int] = []
    for _ in range(min(count, len(blocks))):
        rest = [index for index in range(len(blocks)) if index not in taken]
        best = max(rest, key=lambda index: (len(set(blocks[index][1]) - pictures_taken), len(blocks[index][0]), -index))
        taken.append(best)
        pictures_taken |= set(blocks[best][1])
    return [blocks[index] for index in sorted(taken)]


def _pictures(block: str) -> list[str]:
    urls = references.absolute(f"{ORIGIN}/", references.in_html(block)[1])
    return [url.removeprefix(f"{ORIGIN}/") for url in urls if url.startswith(f"{ORIGIN}/")]


def _local(block: str) -> str:
    """Links to the library's site lead nowhere."""
    return re.sub(r'href="https?://[^"]*"', 'href="#"', block).replace("./imgs/", "/imgs/")


def _html(blocks: list[str]) -> bytes:
    styles = "\n".join(f'<link rel="stylesheet" href="/{path}">' for path in _STYLES)
    scripts = "\n".join(f'<script src="/{path}" defer></script>' for path in _SCRIPTS)
    head = f'<meta charset="utf-8">\n<title>{TITLE}</title>\n'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    icon = '<link rel="icon" href="data:,">'
    top = f"<head>\n{head}\n{icon}\n{styles}\n{scripts}\n</head>"
    body = "\n".join(blocks)
    return f"<!doctype html>\n<html>\n{top}\n<body>\n{body}\n</body>\n</html>\n".encode()

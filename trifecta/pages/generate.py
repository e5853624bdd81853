"""Pages from a seed: ``light`` and ``heavy``, of the size of those in the study baccichet2021.

Page weight and number of requests are exact. Both have one origin: HTTP/1.1 then has its six
connections and HTTP/2 and HTTP/3 one. ``light-fonts`` is the light page with the style sheet that declares its fonts at
a third party's, as the study had one of Google Fonts. Nothing is random when a page is shown, there are no timers, and
everything is fetched before the load event.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from trifecta.design import extras
from trifecta.pages.archive import Page, Scalar
from trifecta.pages.builder import Builder

VERSION = 1
"""Goes up when another page comes out of the same seed; part of the folder's name in the cache."""
SEED = 2021
INDEX_BYTES = 106_200  # index.html of the study
_TEMPLATES = Path(__file__).resolve().parent / "templates"
_MOVES = "@@FILL@@"
_KEPT = ("cache-control", "public, max-age=31536000, immutable")
_FOR_ALL = [("access-control-allow-origin", "*"), ("timing-allow-origin", "*")]  # as Google Fonts says
_REGIONS = ("North", "South", "Coast", "Highlands", "Lakes", "Islands", "Border", "Delta")


@dataclass(frozen=True)
class Recipe:
    """What a generated page is made of; its images fill what the rest leaves of ``total_bytes``."""

    name: str
    title: str
    total_bytes: int
    fonts: tuple[str, ...]
    tours: int
    """Entries of the catalogue that the scripts show and index."""
    shards: int
    """Scripts that the catalogue is divided into."""
    utilities: int
    """Style sheets of utility classes, as frameworks have them."""
    badges: int
    cards: int
    gallery: int
    people: int
    scale: float = 1.0
    """Of the pictures' width and height."""
    site: str = ""
    """In its host's name; empty: its own name."""
    third_party: str = ""
    """The host of base.css, which declares the fonts; empty: the page's own."""

    @property
    def origin(self) -> str:
        """Where the page is."""
        return f"https://www.{self.site or self.name}.lab"

    @property
    def requests(self) -> int:
        """The page itself, base.css, components.css, app.js, nav.js, logo and hero, and what is counted above."""
        counted = self.shards + self.utilities + self.badges + self.cards + self.gallery + self.people
        return 7 + len(self.fonts) + counted


LIGHT = Recipe(
    "light", "Light: a page of 3.5 MB in 30 requests", 3_500_000, ("sans", "sans-bold", "serif", "serif-bold"),
    tours=400, shards=1, utilities=1, badges=2, cards=9, gallery=0, people=6,
)  # fmt: skip
LIGHT_FONTS = replace(
    LIGHT, name="light-fonts", title="Light, with its fonts' style sheet from a third party", site="light",
    third_party="fonts.third-party.lab",
)  # fmt: skip
HEAVY = Recipe(
    "heavy", "Heavy: a page of 7.3 MB in 120 requests", 7_300_000,
    ("sans", "sans-bold", "serif", "serif-bold", "mono", "sans-italic"),
    tours=1596, shards=12, utilities=4, badges=7, cards=18, gallery=54, people=12,
)  # fmt: skip
RECIPES = {each.name: each for each in (LIGHT, LIGHT_FONTS, HEAVY)}


def make(recipe: Recipe, folder: Path, seed: int = SEED) -> Page:
    """Write a generated page into ``folder``, which is not there yet."""
    page = Builder(recipe.name)
    for path, content_type, coding, body in _files(recipe, seed):
        encoded = [("content-encoding", coding), ("vary", "accept-encoding")] if coding else []
        caching = ("cache-control", "no-cache") if path == "/" else _KEPT
        # Fonts are fetched in CORS mode from wherever they are (CSS Fonts 4, section 4.8); real servers say so.
        shared = _FOR_ALL[:1] if path.endswith(".woff2") else []
        if path.startswith("/"):
            url = recipe.origin + path
        else:
            url, shared = path, _FOR_ALL
        page.add(url, 200, [("content-type", content_type), *encoded, caching, *shared], body)
    others = [recipe.third_party] if recipe.third_party else []
    return page.write(folder, f"{recipe.origin}/", recipe.title, source(seed), others)


def source(seed: int) -> dict[str, Scalar | list[str]]:
    """What a generated page says of itself."""
    made_with = [f"{name} {metadata.version(name)}" for name in ("pillow", "brotli", "fonttools", "numpy")]
    return {"kind": "generated", "version": VERSION, "seed": seed, "made_with": made_with}


def _files(recipe: Recipe, seed: int) -> Iterator[tuple[str, str, str | None, bytes]]:
    """Path (or URL, of a third party's), content type, content coding and content of every resource, the page first."""
    brotli = extras.load("brotli")
    from trifecta.pages.fonts import web_font
    from trifecta.pages.prose import Prose

    prose = Prose(seed)
    pictures = list(_pictures(recipe, seed, prose))
    texts: list[tuple[str, str, str, bytes]] = []  # path, type, coding, content as sent

    def add(path: str, content_type: str, coding: str, text: str) -> None:
        content = text.encode()
        sent = brotli.compress(content, quality=9) if coding == "br" else gzip.compress(content, 6, mtime=0)
        texts.append((path, content_type, coding, sent))

    # Of a third party's style sheet a path would be the third party's, too; the fonts are the page's own.
    sheets, fonts_at = (f"https://{recipe.third_party}", recipe.origin) if recipe.third_party else ("", "")
    base = _rendered("base.css", faces=_faces(recipe), origin=fonts_at)
    add(f"{sheets}/css/base.css", "text/css", "br", base)
    add("/css/components.css", "text/css", "br", _rendered("components.css"))
    for number in range(recipe.utilities):
        add(f"/css/utilities-{number}.css", "text/css", "br", _utilities(number))
    for shard in range(recipe.shards):
        add(f"/js/tours-{shard}.js", "text/javascript", "gzip", _catalogue(prose, recipe.tours // recipe.shards))
    for name in ("app.js", "nav.js"):
        add(f"/js/{name}", "text/javascript", "gzip", (_TEMPLATES / name).read_text(encoding="utf-8"))
    for number in range(recipe.badges):
        add(f"/img/badge-{number}.svg", "image/svg+xml", "gzip", _drawing(number + 1, prose))
    add("/img/logo.svg", "image/svg+xml", "gzip", _drawing(0, prose))
    fonts = [(f"/fonts/{face}.woff2", web_font(face)) for face in recipe.fonts]
    index = _index(recipe, seed, prose, pictures, [path for path, *_ in texts])

    yield "/", "text/html; charset=utf-8", None, index
    for path, content_type, coding, sent in texts:
        kind = content_type if content_type.startswith("image") else f"{content_type}; charset=utf-8"
        yield path, kind, coding, sent
    for path, content in fonts:
        yield path, "font/woff2", None, content
    rest = recipe.total_bytes - len(index) - sum(len(each[-1]) for each in texts) - sum(len(each) for _, each in fonts)
    for picture, size in zip(pictures, _shares([each["weight"] for each in pictures], rest), strict=True):
        yield picture["url"], f"image/{picture['form']}", None, _picture(picture, size)


def _shares(weights: list[float], total: int) -> list[int]:
    """``total`` in parts by weight, each even but the first, which takes what rounding leaves."""
    parts = [int(total * weight / sum(weights)) // 2 * 2 for weight in weights]
    parts[0] += total - sum(parts)
    return parts


def _pictures(recipe: Recipe, seed: int, prose: Any) -> Iterator[dict[str, Any]]:
    """The hero first: a JPEG, which can have any size; then cards, gallery and people."""
    counts = {"hero": 1, "card": recipe.cards, "gallery": recipe.gallery, "person": recipe.people}
    sizes = {"hero": (1600, 800), "card": (960, 640), "gallery": (440, 440), "person": (360, 360)}
    weights = {"hero": 2.4, "card": 1.0, "gallery": 0.32, "person": 0.22}
    forms = {"hero": ["jpeg"], "card": ["jpeg", "webp"], "gallery": ["jpeg", "webp", "jpeg"], "person": ["jpeg", "png"]}
    for place, count in counts.items():
        for number in range(count):
            form = forms[place][number % len(forms[place])]
            width, height = sizes[place]
            if form == "png":
                width, height = 200, 200  # as many octets show far less
            width, height = int(width * recipe.scale), int(height * recipe.scale)
            yield {
                "url": f"/img/{place}-{number}.{'jpg' if form == 'jpeg' else form}", "form": form, "place": place,
                "width": width, "height": height, "seed": seed * 1000 + sum(map(ord, place)) * 100 + number,
                "weight": weights[place] * (0.8 + 0.4 * prose.number(0, 100) / 100),
                "title": prose.title(), "alt": f"A {prose.title().lower()}", "text": prose.paragraph(2),
                "tag": _REGIONS[number % len(_REGIONS)], "days": prose.number(2, 14),
            }  # fmt: skip


def _picture(picture: dict[str, Any], size: int) -> bytes:
    from trifecta.pages import photos

    draw = photos.portrait if picture["place"] == "person" else photos.landscape
    return photos.encoded(draw(picture["seed"], picture["width"], picture["height"]), picture["form"], size)


def _index(recipe: Recipe, seed: int, prose: Any, pictures: list[dict[str, Any]], paths: list[str]) -> bytes:
    """The page, of exactly ``INDEX_BYTES`` octets: the journal goes on until it is full."""
    places: dict[str, list[dict[str, Any]]] = {"hero": [], "card": [], "gallery": [], "person": []}
    for each in pictures:
        places[each["place"]].append(each)
    people = [{**each, "text": prose.sentence()} for each in places["person"]]
    ids = ["places", *(["gallery"] if recipe.gallery else []), "figures", "people", "journal"]
    html = _rendered(
        "page.html", title=recipe.title, seed=seed, hero=places["hero"][0], cards=places["card"],
        gallery=places["gallery"], people=people, headline=f"{prose.title()}, {prose.title().lower()}",
        lead=prose.paragraph(2), places_lead=prose.paragraph(3),
        sections=[{"id": each, "title": each.capitalize()} for each in ids],
        styles=[path for path in paths if path.endswith(".css")],
        scripts=[path for path in paths if path.endswith(".js")],
        badges=[path for path in paths if "badge" in path],
        links=[[prose.title() for _ in range(8)] for _ in range(6)],
        entries=[{"title": prose.title(), "texts": [prose.paragraph(5) for _ in range(3)]} for _ in range(8)],
    )  # fmt: skip
    before, after = html.split(_MOVES)
    room = INDEX_BYTES - len((before + after).encode())
    journal: list[str] = []
    while True:
        entry = (
            f"<article><h3>{prose.title()}</h3>\n<p>{prose.paragraph(5)}</p>\n<p>{prose.paragraph(4)}</p></article>\n"
        )
        if len(entry) + len("<!---->\n") > room:
            break
        journal.append(entry)
        room -= len(entry)
    fill = f"<!--{'.' * (room - len('<!---->') - 1)}-->\n"
    return f"{before}{''.join(journal)}{fill}{after}".encode()


def _faces(recipe: Recipe) -> list[tuple[str, int, str, str]]:
    family = {"sans": "Lab Sans", "serif": "Lab Serif", "mono": "Lab Mono"}
    return [
        (
            family[face.split("-")[0]],
            700 if face.endswith("bold") else 400,
            "italic" if "italic" in face else "normal",
            face,
        )
        for face in recipe.fonts
    ]


def _utilities(number: int) -> str:
    """Classes for margins, paddings, widths and colours, most of them unused: as frameworks ship them."""
    sides = {"t": "-top", "r": "-right", "b": "-bottom", "l": "-left", "": ""}
    names = {"m": "margin", "p": "padding", "bw": "border-width", "o": "outline-offset"}
    rules = [
        f".{short}{side}-{number}-{step}{{{name}{end if short != 'o' else ''}:{step * 2 + number}px}}"
        for short, name in names.items() for side, end in sides.items() for step in range(40)
    ]  # fmt: skip
    hues = [
        f".{kind}-{number}-{hue}-{tone}{{{name}:hsl({hue * 10 + number} 60% {tone}%)}}"
        for kind, name in (("c", "color"), ("bg", "background-color"))
        for hue in range(36) for tone in range(10, 100, 10)
    ]  # fmt: skip
    return "\n".join([*rules, *hues]) + "\n"


def _catalogue(prose: Any, count: int) -> str:
    tours = [
        {
            "name": prose.title(), "region": _REGIONS[prose.number(0, 7)], "days": prose.number(1, 21),
            "ascent": prose.number(2, 240) * 10, "price": prose.number(10, 110) + prose.number(0, 2280),
            "text": prose.paragraph(2),
        }
        for _ in range(count)
    ]  # fmt: skip
    return f"(window.catalogue = window.catalogue || []).push({json.dumps(tours, indent=1)});\n"


def _drawing(number: int, prose: Any) -> str:
    """A badge: a ring and ridges."""
    points = " ".join(f"{x},{prose.number(18, 46)}" for x in range(8, 57, 4))
    hue = number * 47 % 360
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">'
        f'<circle cx="32" cy="32" r="30" fill="hsl({hue + 190} 50% 30%)"/>'
        f'<polygon points="8,50 {points} 56,50" fill="hsl({hue + 20} 60% 60%)"/>'
        f'<circle cx="44" cy="16" r="6" fill="#ffe9c4"/></svg>\n'
    )


def _rendered(name: str, **values: Any) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(_TEMPLATES)
    rendering = jinja2.Environment(loader=loader, autoescape=name.endswith(".html"), undefined=jinja2.StrictUndefined)
    return rendering.get_template(name).render(**values)

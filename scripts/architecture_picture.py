"""Draws docs/images/architecture.svg from the contract of the layers in pyproject.toml and the engine's Cargo files.

`python scripts/architecture_picture.py`; `--check` only compares. What the picture shows is what `make lint` holds.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/architecture.svg"
WIDTH, PYTHON, BETWEEN, GAP, ROW, HEAD = 1240, 680, 160, 16, 66, 58
INK, FAINT, BLUE, RUST, FILE = "#1f2933", "#64707d", "#e4ecf7", "#f7e6dc", "#f3f1e7"
_WORDS = {
    "load": "clients: HTTP/1.1, 2 and 3",
    "origin": "servers, services of a chain",
    "link": "the path: delay, loss, rate",
    "probe": "what the path delivers",
    "session": "one client's connections",
    "record": "rows and Parquet files",
    "wire": "sockets, TLS, QUIC, codecs",
}


def layers() -> list[list[str]]:
    """The packages from the top down, those of a layer side by side."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [each for each in tool["contracts"] if each["type"] == "layers"]
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"] if layer != "__main__"]


def crates() -> list[list[str]]:
    """The engine's crates from the top down: each stands above all that it needs; testpki is for tests alone."""
    needs: dict[str, set[str]] = {}
    for manifest in sorted((ROOT / "engine/crates").glob("*/Cargo.toml")):
        asked = tomllib.loads(manifest.read_text(encoding="utf-8")).get("dependencies", {})
        needs[manifest.parent.name] = {n.removeprefix("trifecta-") for n in asked if n.startswith("trifecta-")}
    needs.pop("testpki", None)
    floors: dict[str, int] = {}
    while len(floors) < len(needs):
        for name, below in needs.items():
            if name not in floors and below <= set(floors):
                floors[name] = 1 + max((floors[one] for one in below), default=-1)
    return [sorted(name for name in floors if floors[name] == floor) for floor in range(max(floors.values()), -1, -1)]


def said_of(package: str) -> str:
    """The first line of a package's docstring."""
    path = ROOT / "trifecta" / package / "__init__.py"
    path = path if path.is_file() else path.parent.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.split(r"\.(?:\s|$)", " ".join(docstring.split("\n\n")[0].split()).replace("``", ""))[0]


def _text(
    x: float, y: float, words: str, *, size: int = 12, fill: str = INK, weight: str = "", middle: bool = False
) -> str:
    extra = f' font-weight="{weight}"' if weight else ""
    extra += ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}"{extra}>{escape(words)}</text>'


def _folded(words: str, room: float) -> list[str]:
    """Lines that fit into so many pixels of 11 px letters."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) * 5.9 <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _box(x: float, y: float, width: float, name: str, words: str, fill: str) -> list[str]:
    made = [f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{ROW}" rx="6" fill="{fill}" stroke="{FAINT}"/>']
    made.append(_text(x + 10, y + 19, name, size=13, weight="600"))
    shorter = (words, words.partition(":")[0], words.partition(",")[0])  # shown whole where there is room
    lines = next(lines for one in shorter if len(lines := _folded(one, width - 16)) <= 3)
    return made + [_text(x + 10, y + 35 + 13 * n, line, size=11, fill=FAINT) for n, line in enumerate(lines)]


def _rows(
    x: float, y: float, width: float, rows: Sequence[Sequence[str]], words: Mapping[str, str], fill: str
) -> list[str]:
    made: list[str] = []
    for row in rows:
        each = (width - GAP * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            made += _box(x + place * (each + GAP), y, each, name, words[name], fill)
        y += ROW + GAP
    return made


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="{INK}" stroke-width="1.4" marker-end="url(#tip)"/>'


def _row(rows: Sequence[Sequence[str]], name: str) -> int:
    return next(place for place, row in enumerate(rows) if name in row)


def picture() -> str:
    """The picture, as SVG."""
    python, rust = layers(), crates()
    words = {name: said_of(name) for layer in python for name in layer}
    height = HEAD + len(python) * (ROW + GAP)
    left, right = 46, PYTHON + BETWEEN
    room = WIDTH - right - 16
    bottom = HEAD + len(python) * (ROW + GAP) - GAP
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif">',
        "<title>The packages of Trifecta in their layers, and the crates of its engine</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(left, 26, "Python: trifecta/", size=16, weight="600"),
        _text(left, 44, "a package imports what stands below it, and nothing beside it", fill=FAINT),
        _arrow(24, HEAD, 24, bottom),
        _text(right, 26, "Rust: engine/", size=16, weight="600"),
        _text(right, 44, "every measured octet", fill=FAINT),
        *_rows(left, HEAD, PYTHON - left, python, words, BLUE),
    ]
    lab = HEAD + _row(python, "lab") * (ROW + GAP)
    store = HEAD + _row(python, "store") * (ROW + GAP)
    made += _rows(right, lab - (len(rust) - 1) * (ROW + GAP), room, rust, _WORDS, RUST)
    made += _box(right, store, room, "the run directory", "samples, links, trials: Parquet and JSON, read by SQL", FILE)
    made += [
        _arrow(PYTHON + 4, lab + 22, right - 4, lab + 22),
        _text(PYTHON + BETWEEN / 2, lab + 14, "one JSON document", size=11, middle=True),
        _arrow(right - 4, lab + 42, PYTHON + 4, lab + 42),
        _text(PYTHON + BETWEEN / 2, lab + 56, "ready, summary", size=11, middle=True),
        _arrow(right + room / 2, lab + ROW + 2, right + room / 2, store - 2),
        _arrow(right - 4, store + 22, PYTHON + 4, store + 22),
        _arrow(PYTHON + 4, store + 42, right - 4, store + 42),
    ]
    return "\n".join(made) + "\n</svg>\n"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where the picture is not what the code says and is only compared."""
    text = picture()
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print(f"{PICTURE.relative_to(ROOT)} is not what the code says; run: python scripts/architecture_picture.py")
        return 1
    PICTURE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A figure as files of its own: SVG that needs no page around it, and PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text

from trifecta.report.figures import style, svg
from trifecta.report.figures.panels import DescribedFigure

_CSS = Path(__file__).parents[1] / "templates" / "report.css"
_BLOCK = re.compile(r"(?<![\w)\]]):root \{([^}]*)\}")
_DARK = re.compile(r":root\[data-theme=\"dark\"\] \{([^}]*)\}")
_VARIABLE = re.compile(r"(--[\w-]+):\s*([^;]+);")
_PIXELS = 2.0  # of the PNG, to a CSS pixel
_EDGE, _SWATCH, _LINE = 12.0, 11.0, 18.0  # of a legend, in CSS pixels
_HATCH = {"quic": "xx", "tcp": "//", "tls": "\\\\"}  # as report.css draws these textures
Legend = Sequence[tuple[str, str, str]]
"""What marks mean: words, CSS variable, texture."""


@lru_cache(maxsize=2)
def _variables(dark: bool) -> Mapping[str, str]:
    """The page's colours: one place says what a protocol looks like."""
    text = _CSS.read_text(encoding="utf-8")
    match = (_DARK if dark else _BLOCK).search(text)
    if match is None:
        raise ValueError("report.css has lost its variables")
    return dict(_VARIABLE.findall(match[1]))


def with_legend(drawn: DescribedFigure, legend: Legend) -> DescribedFigure:
    """The figure with its legend above it: a page has that in HTML, a file needs it in the picture."""
    if not legend:
        return drawn
    figure = drawn.figure
    width, height = figure.get_size_inches() * svg.POINTS
    placed, x, row = [], _EDGE, 0
    for words, variable, texture in legend:
        needs = _SWATCH + 6 + 6.6 * len(words) + 16
        if x + needs > width and x > _EDGE:
            x, row = _EDGE, row + 1
        placed.append((x, row, words, variable, texture))
        x += needs
    taller = height + (row + 1) * _LINE + 8
    for axes in figure.axes:
        box = axes.get_position()
        axes.set_position((box.x0, box.y0 * height / taller, box.width, box.height * height / taller))
    figure.set_size_inches(width / svg.POINTS, taller / svg.POINTS)
    stand_ins = {variable: stand_in for stand_in, variable in style.CSS_VARIABLES.items()}
    for left, line, words, variable, texture in placed:
        middle = 1 - (6 + _LINE * (line + 0.5)) / taller
        figure.add_artist(
            Rectangle(
                (left / width, middle - _SWATCH / 2 / taller), _SWATCH / width, _SWATCH / taller,
                transform=figure.transFigure, facecolor=stand_ins[variable], edgecolor=style.PAPER, linewidth=0.6,
                hatch=_HATCH.get(texture),
            )
        )  # fmt: skip
        figure.text(
            (left + _SWATCH + 6) / width, middle, words, ha="left", va="center", color=style.INK, fontsize=svg.FONT
        )
    return drawn


def svg_file(drawn: DescribedFigure, identity: str) -> str:
    """The figure as an SVG document, light or dark as its reader's system is."""
    return document(drawn.svg(identity))


def document(text: str) -> str:
    """The same of an ``<svg>`` element of a page."""
    light, dark = ("".join(f"{name}: {value}; " for name, value in _variables(one).items()) for one in (False, True))
    rules = f"svg {{ {light}background: var(--paper); }} @media (prefers-color-scheme: dark) {{ svg {{ {dark}}} }}"
    head, rest = text.split(">", 1)
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)[0]
    return f'{head} width="{width}" height="{height}">\n<style>{rules}</style>{rest}\n'


def png_file(drawn: DescribedFigure) -> bytes:
    """The figure as a picture, light, two pixels a CSS pixel. It cannot be drawn as SVG afterwards."""
    figure = drawn.figure
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # so that every tick exists before it is coloured
    colour(figure)
    buffer = io.BytesIO()
    canvas.print_png(buffer, metadata={"Description": drawn.label})
    return buffer.getvalue()


def pdf_file(drawn: DescribedFigure) -> bytes:
    """The figure as a vector document for papers, light. It cannot be drawn as SVG afterwards."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    figure = drawn.figure
    with rc_context({"pdf.fonttype": 42}):  # TrueType: publishers refuse Type 3
        canvas: Any = FigureCanvasPdf(figure)
        raster: Any = FigureCanvasAgg(figure)
        raster.draw()  # so that every tick exists before it is coloured
        colour(figure)
        buffer = io.BytesIO()
        figure.set_canvas(canvas)
        # Without its date the same figure is the same file.
        canvas.print_pdf(buffer, metadata={"Title": drawn.label[:200], "CreationDate": None})
    return buffer.getvalue()


def write(drawn: DescribedFigure, folder: Path, name: str, legend: Legend = ()) -> list[Path]:
    """Write ``name.svg`` and ``name.png`` into the folder, with the legend in them."""
    from trifecta.store import files

    drawn = with_legend(drawn, legend)
    vector, picture = folder / f"{name}.svg", folder / f"{name}.png"
    with files.disk_errors(vector):
        folder.mkdir(parents=True, exist_ok=True)
        files.write_text(vector, svg_file(drawn, name))
    files.write_bytes(picture, png_file(drawn))
    return [vector, picture]


def colour(figure: Figure) -> None:
    """Put the light page's colours where the stand-ins are, two pixels to a CSS pixel; its ticks were drawn before."""
    values = _variables(False)
    real = {stand_in: values[variable] for stand_in, variable in style.CSS_VARIABLES.items()}

    def new(old: Any) -> Any:
        if isinstance(old, str) and old.lower() in ("none", "auto"):
            return old
        alpha = tuple(old)[3] if not isinstance(old, str) and len(tuple(old)) == 4 else 1.0
        return "none" if alpha == 0 else real.get(to_hex(old), old)

    figure.set_dpi(figure.get_dpi() * _PIXELS)
    figure.set_facecolor(values["--paper"])
    for artist in figure.findobj():
        _paint(artist, new)


def _paint(artist: Artist, new: Any) -> None:
    if isinstance(artist, Line2D):
        artist.set_color(new(artist.get_color()))
        artist.set_markerfacecolor(new(artist.get_markerfacecolor()))
        artist.set_markeredgecolor(new(artist.get_markeredgecolor()))
    elif isinstance(artist, Text):
        artist.set_color(new(artist.get_color()))
        for inner in (artist.get_bbox_patch(), getattr(artist, "arrow_patch", None)):  # not found by findobj
            if inner is not None:
                _paint(inner, new)
    elif isinstance(artist, Patch):
        artist.set_facecolor(new(artist.get_facecolor()))
        artist.set_edgecolor(new(artist.get_edgecolor()))
    elif isinstance(artist, Collection):
        artist.set_facecolor([new(one) for one in artist.get_facecolor()])
        artist.set_edgecolor([new(one) for one in artist.get_edgecolor()])

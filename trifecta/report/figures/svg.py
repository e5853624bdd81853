"""From a matplotlib figure to SVG that lives inside the page: themed, small, with text as text.

matplotlib writes a document of its own: global style rules, ids that repeat from figure to figure, fonts by name. All
of that is taken out, because inside an HTML page it would leak into everything else.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from trifecta.report.figures import style

POINTS = 72.0  # one SVG user unit is one CSS pixel at the panel's natural width
WIDTH = 380.0
FONT = 11.0
SMALL = 10.0

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trifecta",
    "font.family": "DejaVu Sans",
    "font.size": FONT,
    "text.parse_math": False,
    "path.simplify": True,
    "axes.unicode_minus": False,
}
_DROP = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<style type=\"text/css\">.*?</style>", re.S
)
_EMPTY_DEFS = re.compile(r"<defs>\s*</defs>")
_REFERENCE = re.compile(r"(?:url\(#|xlink:href=\"#)([^)\"]+)")
_ID = re.compile(r" id=\"([^\"]+)\"")
_HEAD = re.compile(r"<svg [^>]*?viewBox=\"([^\"]+)\"[^>]*>")
_FONT = re.compile(r"font: ([0-9.]+)px [^;\"]*")
_FAMILY = re.compile(r"font-family: [^;\"]*;?")
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_GEOMETRY = re.compile(r" (?:d|x|y|width|height|points|transform)=\"[^\"]*\"")  # never the text of a label
_SPACE = re.compile(r"\s*\n\s*")


def _tenths(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}"


@contextmanager
def drawing() -> Iterator[None]:
    """The settings every figure is drawn under; nothing outside is changed."""
    with mpl.rc_context(_SETTINGS):
        yield


class Displayed(Figure):
    """A figure that a notebook shows by itself: those of pyplot, which notebooks watch for, are none of ours."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """As any figure, in the resolution that it has: by itself matplotlib takes that which it was made with."""
        if mpl.rcParams["savefig.dpi"] == "figure":
            options.setdefault("dpi", self.dpi)
        super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with drawing():
            self.savefig(buffer, format="png")
        return buffer.getvalue()


def figure(height: float, width: float = WIDTH) -> Figure:
    """Make an empty figure of so many CSS pixels."""
    displayed = Displayed(figsize=(width / POINTS, height / POINTS), dpi=POINTS, facecolor="none")
    FigureCanvasSVG(displayed)
    return displayed


def axes(figure: Figure, left: float, top: float, right: float, bottom: float) -> Axes:
    """Add axes with these margins in CSS pixels, drawn the house way: no box, a light grid behind the data."""
    width, height = figure.get_size_inches() * POINTS
    area = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    added = figure.add_axes(area, facecolor="none")
    for side in ("top", "right", "left"):
        added.spines[side].set_visible(False)
    added.spines["bottom"].set_color(style.MUTED)
    added.tick_params(colors=style.MUTED, labelcolor=style.INK, labelsize=SMALL, length=3, width=0.8, pad=3)
    added.set_axisbelow(True)
    return added


def ticks(target: Axes, which: str, positions: list[float], labels: list[str], *, grid: bool = True) -> None:
    """Put exactly these ticks on axis ``x`` or ``y``; matplotlib's own choice is slow and repeats units badly."""
    axis = target.xaxis if which == "x" else target.yaxis
    axis.set_major_locator(FixedLocator(positions))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())
    if grid:
        target.grid(visible=True, axis="x" if which == "x" else "y", color=style.GRID, linewidth=0.8)


def head(target: Axes, text: str, x: float = -0.12) -> None:
    """Say above the vertical axis what it shows."""
    target.text(x, 1.03, text, transform=target.transAxes, ha="left", va="bottom", color=style.INK, fontsize=FONT)


def absent(target: Axes, text: str, y: float = 0.5, size: float = SMALL) -> None:
    """Say in the middle of empty axes why they are."""
    target.text(0.5, y, text, transform=target.transAxes, ha="center", va="center", color=style.MUTED, fontsize=size)


def render(figure: Figure, identity: str, label: str) -> str:
    """Write the figure as an ``<svg>`` element with the accessible name ``label``; ``identity`` prefixes its ids."""
    buffer = io.StringIO()
    figure.canvas.print_svg(buffer, metadata={"Date": None})  # type: ignore[attr-defined]
    text = _DROP.sub("", buffer.getvalue())
    used = set(_REFERENCE.findall(text))
    text = _ID.sub(lambda match: f' id="{identity}-{match[1]}"' if match[1] in used else "", text)
    text = _REFERENCE.sub(lambda match: match[0].replace("#" + match[1], f"#{identity}-{match[1]}"), text)
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    named = f'role="img" aria-label="{escape(label, quote=True)}"'
    text = _HEAD.sub(lambda match: f'<svg {spaces} viewBox="{match[1]}" {named}>', text, count=1)
    text = _FONT.sub(r"font: \1px var(--sans)", text)
    text = _FAMILY.sub("font-family: var(--sans);", text)
    text = _GEOMETRY.sub(lambda match: _NUMBER.sub(_tenths, match[0]), text)
    for colour, variable in style.CSS_VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return _SPACE.sub("\n", _EMPTY_DEFS.sub("", text)).strip()

"""A figure as a notebook shows it: in the light page's colours, with the legend that a page has in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from trifecta.report.figures import picture_files, style, svg
from trifecta.report.figures.panels import DescribedFigure

Where = Literal["best", "lower right"]
"""Of a legend, as matplotlib names it."""


def displayed(drawn: DescribedFigure, arms: Sequence[str] = (), where: Where = "best") -> Figure:
    """The figure, finished: whoever has it may change and save it. It cannot be part of a page afterwards.

    ``arms`` are named in a legend at ``where``, with colour, mark and dashes.
    """
    figure = drawn.figure
    if arms:
        figure.axes[0].legend(
            handles=[_mark(arm) for arm in arms], loc=where, frameon=False, fontsize=svg.SMALL, labelcolor=style.INK,
            handlelength=3.0,
        )  # fmt: skip
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # so that every tick exists before it is coloured
    picture_files.colour(figure)
    figure.set_label(drawn.label)
    return figure


def _mark(arm: str) -> Line2D:
    look = style.arm_style(arm)
    lines: Any = look.line  # matplotlib names the patterns that it knows, one by one
    return Line2D(
        [], [], linestyle=lines, color=look.colour, linewidth=1.7, marker=look.marker, markersize=4.2,
        label=style.name(arm),
    )  # fmt: skip

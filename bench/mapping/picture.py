"""The comparison as a picture: the grid's blocks, the reference, the search; and the error of each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from bench.mapping.compare import Blocks, Comparison
from trifecta.analysis.mapping.result import MapResult
from trifecta.report.figures import panels, style, svg
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.map.picture import SHADES, STEPS, tick, ticks

_HEIGHT = 380.0
_NAMES = {"grid": "grid", "search": "search", "grid_smoothed": "grid,\nsmoothed"}


def draw(made: MapResult, blocks: Blocks, comparison: Comparison) -> DescribedFigure:
    """Four panels; crosses lie where a side is wrong, dots where the search measured."""
    counted = int(np.isfinite(blocks.grid).sum())
    titles = [
        f"Grid: {counted} blocks, one a place",
        "Reference: grid, smoothed",
        f"Search: {made.blocks} blocks",
        "Error of the log ratio",
    ]
    figure, (grid, reference, search, errors) = panels.panels(titles, _HEIGHT, gap=46.0, bottom=80.0)
    sure = (comparison.reference.low > 0) | (comparison.reference.high < 0)
    _plane(grid, made, blocks.grid, None, comparison.wrong["grid"])
    _plane(reference, made, comparison.reference.mean, sure, None)
    _plane(search, made, comparison.sides.mean, ~comparison.sides.is_open(), comparison.wrong["search"])
    _dots(search, made)
    _errors(errors, comparison.figures)
    figure.text(
        0.06, 10 / _HEIGHT,
        f"Colour deepens with the ratio, at {', '.join(map(str, STEPS))}. Hatched: not known who is faster. "
        "Crosses: the wrong side where the reference is sure.\nDots: measured. Bars: 95 %, by blocks held out.",
        ha="left", va="bottom", color=style.MUTED, fontsize=svg.SMALL, linespacing=1.3,
    )  # fmt: skip
    return DescribedFigure(
        figure, f"A full grid and the search of a map over {made.plan.x.name} and {made.plan.y.name}"
    )


def legend(made: MapResult) -> list[tuple[str, str, str]]:
    """Which colour is whose."""
    arms = (made.plan.arm, made.plan.reference)
    return [(f"{style.name(arm)} faster", style.CSS_VARIABLES[style.arm_style(arm).colour], "") for arm in arms]


def _plane(target: Axes, made: MapResult, values: Any, known: Any, wrong: Any) -> None:
    across, up = len(made.plan.x.values), len(made.plan.y.values)
    for number, value in enumerate(values):
        i, j = divmod(number, up)
        if np.isfinite(value):
            shade = next((SHADES[n] for n, step in reversed(list(enumerate(STEPS))) if abs(value) >= math.log(step)), 0)
            colour = style.arm_style(made.plan.arm if value > 0 else made.plan.reference).colour
            target.add_patch(Rectangle((i, j), 1, 1, facecolor=colour, edgecolor="none", alpha=shade))
        if not np.isfinite(value) or (known is not None and not known[number]):
            target.add_patch(
                Rectangle((i, j), 1, 1, facecolor="none", edgecolor=style.MUTED, linewidth=0, hatch="////", alpha=0.6)
            )
        if wrong is not None and wrong[number]:
            target.plot([i + 0.5], [j + 0.5], "x", markersize=5, color=style.INK, markeredgewidth=1.4)
    target.set_xlim(0, across)
    target.set_ylim(0, up)
    x, y = made.plan.x, made.plan.y
    svg.ticks(
        target, "x", [0.5 + x.share(value) * (across - 1) for value in ticks(x)[::2]],
        [tick(x, value) for value in ticks(x)[::2]], grid=False,
    )  # fmt: skip
    svg.ticks(
        target, "y", [0.5 + y.share(value) * (up - 1) for value in ticks(y)], [tick(y, value) for value in ticks(y)],
        grid=False,
    )  # fmt: skip


def _dots(target: Axes, made: MapResult) -> None:
    for spot in made.spots:
        i, j = made.plan.places()[spot.place]
        mark = "o" if spot.values else "x"
        target.plot(
            [i + 0.5], [j + 0.5], mark, markersize=2 + math.sqrt(len(spot.values)), markerfacecolor=style.PAPER,
            markeredgecolor=style.INK, markeredgewidth=0.8,
        )  # fmt: skip


def _errors(target: Axes, figures: dict[str, Any]) -> None:
    found = figures.get("rmse", {})
    for place, name in enumerate(_NAMES):
        value, low, high = found.get(name, (0.0, 0.0, 0.0))
        target.add_patch(Rectangle((place - 0.3, 0), 0.6, value, facecolor=style.BAND, edgecolor=style.MUTED))
        target.plot([place, place], [low, high], "-", color=style.INK, linewidth=1.6)
    most = max([one[2] for one in found.values()], default=1.0) or 1.0
    target.set_xlim(-0.5, len(_NAMES) - 0.5)
    target.set_ylim(0, most * 1.08)
    svg.ticks(target, "x", list(map(float, range(len(_NAMES)))), list(_NAMES.values()), grid=False)
    steps = [round(one, 3) for one in np.linspace(0, most, 5).tolist()]
    svg.ticks(target, "y", steps, [f"{one:g}" for one in steps])

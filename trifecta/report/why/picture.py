"""The picture of a search for causes: the effect as it is, and what remains of it without each cause."""

from __future__ import annotations

import re
import textwrap

from matplotlib.axes import Axes

from trifecta.contract.ladder import RatioInterval
from trifecta.contract.why import CauseDocument, WhyDocument
from trifecta.report.figures import ratios, scales, style, svg
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.ladder.picture import FURTHEST, ROW, WIDTH, row_end, row_label
from trifecta.report.ladder.words import ratio
from trifecta.report.why import words

_LABEL_CHARACTERS, _LABEL_LINE = 100, 18
"""How many characters of the axis's label fit in the width, and the height of a line of it in px."""


def draw(document: WhyDocument) -> DescribedFigure:
    """Rows from the top: as it is, each cause from there to what remains without it, the same on the nearest stack,
    and without all that are named.

    Whiskers are intervals of what remains; a bar is faint where the cause is not named.
    """
    causes, both, nearest = document["causes"], document["together"], document["nearest"]
    bases: list[RatioInterval] = [document["effect"], *([nearest] if nearest is not None else [])]
    rows = len(bases) + len(causes) + (both is not None)
    label = textwrap.wrap(re.sub(r",(?=\S)", ", ", f"{words.quantity(document)} (log)"), _LABEL_CHARACTERS)
    further = _LABEL_LINE * (len(label) - 1)
    figure = svg.figure(62 + further + ROW * rows, WIDTH)
    target = svg.axes(figure, 12, 24, 14, 40 + further)
    ends: list[RatioInterval] = [*bases, *causes, *([both["remains"]] if both else [])]
    shown = [end for one in ends for end in (one["ratio"], one["low"], one["high"]) if end]
    low, high = scales.ratio_limits([min(max(one, 1 / FURTHEST), FURTHEST) for one in shown], document["margin"])
    limits = (low, high)
    target.set_ylim(rows - 0.02, -0.02)
    ratios.ratio_frame(target, low, high, document["margin"], "x")
    svg.ticks(target, "y", [], [])
    row_end(target, 0, f"unchanged: {ratio(document['effect'])}", document["effect"], limits)
    if nearest is not None:
        row_end(target, 1 + words.first_nearest(document), f"{words.AS_NEAREST}: {ratio(nearest)}", nearest, limits)
    for place, one in enumerate(causes):
        base = bases[-1] if one["nearest"] else bases[0]
        _cause(target, 1 + place + (one["nearest"] and nearest is not None), one, base, limits)
    if both is not None:
        row_end(target, rows - 1, f"without all that are named: {ratio(both['remains'])}", both["remains"], limits)
    target.set_xlabel("\n".join(label), color=style.INK, fontsize=svg.FONT)
    return DescribedFigure(figure, words.answer(document))


def _cause(target: Axes, row: int, cause: CauseDocument, base: RatioInterval, limits: tuple[float, float]) -> None:
    """A row: from what is there before to what remains."""
    state = words.STATES[cause["state"]]
    row_label(target, row, f"without {cause['title']}: {ratio(cause)}, {state}{' (nearest stack)' * cause['nearest']}")
    if cause["ratio"] is None or base["ratio"] is None:
        return
    colour = style.INK if cause["state"] in ("explains", "hides") else style.MUTED
    left, right = (scales.clamp(end, *limits) for end in (base["ratio"], cause["ratio"]))
    target.plot([left, right], [row + 0.72] * 2, color=colour, linewidth=9, alpha=0.35, solid_capstyle="butt")
    if cause["low"] and cause["high"]:
        ratios.interval_bar(target, (cause["low"], cause["high"]), limits, row + 0.72, colour)
    target.plot([right], [row + 0.72], "|", markersize=11, color=colour, markeredgewidth=2)

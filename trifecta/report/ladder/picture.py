"""The picture of a ladder: the published value, a bar for each step, and today's value, on one axis of ratios."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from trifecta.contract.ladder import LadderDocument, RatioInterval
from trifecta.report.figures import ratios, scales, style, svg
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.ladder import words

WIDTH = 640.0
ROW = 34.0
FURTHEST = 1000.0


def draw(document: LadderDocument) -> DescribedFigure:
    """Rows from the top: published, the rung with the published conditions, each step from its rung to the next, and
    today's rung. Whiskers are intervals: of the ends of their value, of a step of its change.
    """
    steps, rungs = document["steps"], document["rungs"]
    rows = len(steps) + 3
    figure = svg.figure(62 + ROW * rows, WIDTH)
    target = svg.axes(figure, 12, 24, 14, 40)
    shown = [end for one in (*rungs, document["then"], document["now"]) for end in _ends(one)]
    shown += list(document["published_range"] or ())
    low, high = scales.ratio_limits([min(max(one, 1 / FURTHEST), FURTHEST) for one in shown], document["margin"])
    target.set_ylim(rows - 0.02, -0.02)
    ratios.ratio_frame(target, low, high, document["margin"], "x")
    svg.ticks(target, "y", [], [])
    limits = (low, high)
    row_label(target, 0, f"published: {document['published'] or words.published(document)}")
    for end in dict.fromkeys(document["published_range"] or ()):
        target.plot([scales.clamp(end, *limits)], [0.72], "D", markersize=6.0, markerfacecolor="none",
                    markeredgecolor=style.INK, markeredgewidth=1.2)  # fmt: skip
    row_end(target, 1, f"published conditions, here: {words.ratio(document['then'])}", document["then"], limits)
    for row, step in enumerate(steps, 2):
        before, after = rungs[row - 2]["ratio"], rungs[row - 1]["ratio"]
        row_label(target, row, f"{step['title']}: × {words.ratio(step)}")
        if before is None or after is None:
            continue
        left, right = (scales.clamp(one, *limits) for one in (before, after))
        colour = style.INK if step["counts"] else style.MUTED
        target.plot([left, right], [row + 0.72] * 2, color=colour, linewidth=9, alpha=0.35, solid_capstyle="butt")
        if step["low"] and step["high"]:
            ratios.interval_bar(target, (before * step["low"], before * step["high"]), limits, row + 0.72, colour)
        target.plot([right], [row + 0.72], "|", markersize=11, color=colour, markeredgewidth=2)
    row_end(target, rows - 1, f"today: {words.ratio(document['now'])}, {document['answer']}", document["now"], limits)
    target.set_xlabel(f"{words.quantity(document)} (log)", color=style.INK, fontsize=svg.FONT)
    sentence = "; ".join(f"{step['title']}: × {words.ratio(step)}" for step in steps)
    then, now = words.ratio(document["then"]), words.ratio(document["now"])
    description = f"{document['title']}. Published conditions {then}; {sentence}; today {now}"
    return DescribedFigure(figure, description)


def row_label(target: Axes, row: int, text: str) -> None:
    """The words of a row, above what is drawn in it."""
    target.text(
        0.0, row + 0.08, text, transform=blended_transform_factory(target.transAxes, target.transData), ha="left",
        va="top", color=style.INK, fontsize=svg.SMALL, bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5},
    )  # fmt: skip


def row_end(target: Axes, row: int, text: str, interval: RatioInterval, limits: tuple[float, float]) -> None:
    """A row with a value and its interval."""
    row_label(target, row, text)
    if interval["ratio"] is None:
        return
    if interval["low"] and interval["high"]:
        ratios.interval_bar(target, (interval["low"], interval["high"]), limits, row + 0.72, style.INK)
    target.plot([scales.clamp(interval["ratio"], *limits)], [row + 0.72], "o", markersize=6.5,
                markerfacecolor=style.INK, markeredgecolor=style.INK)  # fmt: skip


def _ends(interval: RatioInterval) -> list[float]:
    return [end for name in ("ratio", "low", "high") if (end := interval[name])]

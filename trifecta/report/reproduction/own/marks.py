"""What the pictures of studies share: a legend of lines and markers, and what stands where nothing was measured."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from trifecta.conclude.reproduction.own_cells import own_cells
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.report.figures import style, svg
from trifecta.report.figures.style import ArmStyle

NOT_RUN = "not run"
"""What an empty place says where there are no trials."""
NO_VALID = "no trial counts"
"""The same where there are some, and none counts."""
LINE = 18.0
"""Height of a line of a legend, in CSS pixels."""
_EDGE, _SAMPLE = 12.0, 26.0


def legend(figure: Figure, entries: Sequence[tuple[ArmStyle, str]]) -> None:
    """Name what is drawn, a line each, at the top of a figure; leave `LINE` pixels an entry free there."""
    width, height = figure.get_size_inches() * svg.POINTS
    for row, (look, words) in enumerate(entries):
        y = 1 - (4 + LINE * (row + 0.5)) / height
        left, right = _EDGE / width, (_EDGE + _SAMPLE) / width
        sample = Line2D(
            [left, (left + right) / 2, right], [y, y, y], transform=figure.transFigure, color=look.colour,
            linewidth=1.7, marker=look.marker, markersize=5, markevery=[1],
        )  # fmt: skip
        if look.dashes:
            sample.set_dashes(look.dashes)
        figure.add_artist(sample)
        figure.text(right + 8 / width, y, words, ha="left", va="center", color=style.INK, fontsize=svg.SMALL)


def heading(target: Axes, text: str, above: float = 8.0) -> None:
    """Say above axes what their y axis counts, so many pixels above them."""
    height = target.get_window_extent().height
    target.text(
        0.0, 1.0 + above / height, text, transform=target.transAxes, ha="left", va="bottom", color=style.INK,
        fontsize=svg.SMALL,
    )  # fmt: skip


def why_empty(study: StudyResult, **levels: str) -> str:
    """What the place of something that was not measured says, by the levels of its cells."""
    return NO_VALID if own_cells(study, **levels) else NOT_RUN

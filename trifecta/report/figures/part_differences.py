"""The difference between protocols, part by part, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trifecta.analysis.transport.differences import Difference, PartDifference
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import WIDE, DescribedFigure
from trifecta.report.figures.part_bars import PartLook

_LINE = 13.0


def part_differences(shown: Mapping[str, Difference], looks: Mapping[str, PartLook], reference: str) -> DescribedFigure:
    """Draw a line a part and arm, the whole first; parts that no arm has are left out."""
    rows = [("all of it", {arm: one.whole for arm, one in shown.items()})]
    for name, look in looks.items():
        here = {arm: part for arm, one in shown.items() for part in one.parts if part.part == name}
        if any(part.arm_ns or part.reference_ns for part in here.values()):
            rows.append((look.words, here))
    step = 10.0 + _LINE * len(shown)
    figure = svg.figure(52 + step * len(rows), WIDE)
    target = svg.axes(figure, 150, 6, 36, 40)
    ends = [end for _, parts in rows for part in parts.values() for end in _ends(part)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    edge = 0.06 * (high - low) or 1e6
    target.set_xlim(low - edge, high + edge)
    target.set_ylim(len(rows) * step, 0)
    step_ns = scales.linear_ticks(high - low + 2 * edge, 6)[1]
    both = [step_ns * at for at in range(math.ceil((low - edge) / step_ns), math.floor((high + edge) / step_ns) + 1)]
    svg.ticks(target, "x", both, [_signed(tick) for tick in both])
    svg.ticks(target, "y", [], [])
    target.axvline(0, color=style.MUTED, linewidth=1.0)
    target.set_xlabel(f"longer than over {reference}", color=style.INK, fontsize=svg.SMALL)
    sentences = []
    for place, (label, parts) in enumerate(rows):
        middle = place * step + step / 2
        target.text(
            -0.01, middle, label, transform=target.get_yaxis_transform(), ha="right", va="center", color=style.INK,
            fontsize=svg.SMALL, fontweight="bold" if place == 0 else "normal",
        )  # fmt: skip
        for line, (arm, part) in enumerate(parts.items()):
            mark, at = style.arm_style(arm), middle + _LINE * (line - (len(parts) - 1) / 2)
            clear = part.low_ns is not None and part.high_ns is not None and not part.low_ns <= 0 <= part.high_ns
            if part.low_ns is not None and part.high_ns is not None:
                target.plot([part.low_ns, part.high_ns], [at] * 2, color=mark.colour, linewidth=2.0)
            target.plot(
                [part.difference_ns], [at], mark.marker, markersize=6.0, markeredgecolor=mark.colour,
                markerfacecolor=mark.colour if clear else style.PAPER, markeredgewidth=1.3,
            )  # fmt: skip
            sentences.append(f"{label}, {style.name(arm)}: {_signed(part.difference_ns)}")
    return DescribedFigure(
        figure, f"Time of a request less that over {reference}, part by part. {'; '.join(sentences)}"
    )


def _ends(part: PartDifference) -> list[float]:
    return [end for end in (part.difference_ns, part.low_ns, part.high_ns) if end is not None]


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else ''}{numbers.duration(ns)}".replace("-", "\N{MINUS SIGN}") if ns else "0"

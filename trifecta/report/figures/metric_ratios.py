"""Several metrics of one cell: the ratio of every protocol to the baseline, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.ratios import estimate, ratio_frame, say_sides

_MOST = 20.0  # a ratio beyond this, or its inverse, lies on the edge


@dataclass(frozen=True)
class MetricRow:
    """A metric and, by arm, its ratio with the ends of its interval."""

    label: str
    ratios: Mapping[str, tuple[float, float | None, float | None]]


def metric_ratios(rows: Sequence[MetricRow], baseline: str, margin: float, identity: str) -> str:
    """Draw a line a metric; an interval that leaves 1 out has a filled mark."""
    arms = list(dict.fromkeys(arm for row in rows for arm in row.ratios))
    step = 18.0 + 11.0 * len(arms)
    figure = svg.figure(52 + step * len(rows))
    target = svg.axes(figure, 12, 22, 12, 24)
    ends = [end for row in rows for ratio in row.ratios.values() for end in ratio if end]
    low, high = scales.ratio_limits([min(max(end, 1 / _MOST), _MOST) for end in ends], margin)
    target.set_ylim(len(rows) * step, 0)
    ratio_frame(target, low, high, margin, "x")
    svg.ticks(target, "y", [], [])
    for place, row in enumerate(rows):
        target.text(
            0.0, place * step + 2, row.label, transform=target.get_yaxis_transform(), ha="left", va="top",
            color=style.INK, fontsize=svg.SMALL,
        )  # fmt: skip
        for line, arm in enumerate(arms):
            if arm not in row.ratios:
                continue
            ratio, left, right = row.ratios[arm]
            look, at = style.arm_style(arm), place * step + 21 + 11.0 * line
            if left is not None or right is not None:
                ends_here = [max(left or low, low), min(right or high, high)]
                target.plot(ends_here, [at] * 2, color=look.colour, linewidth=2.0, solid_capstyle="butt")
            clear = (left is not None and left > 1) or (right is not None and right < 1)
            estimate(target, scales.clamp(ratio, low, high), at, look, filled=clear, size=6.0)
    say_sides(target, ("← less", "more →"), low, high)
    sentence = "; ".join(
        f"{row.label}: {', '.join(f'{style.name(arm)} {_ratio_words(ratio)}' for arm, ratio in row.ratios.items())}"
        for row in rows
    )
    return svg.render(figure, identity, f"Ratios to {style.name(baseline)}, metric by metric. {sentence}")


def _ratio_words(ratio: tuple[float, float | None, float | None]) -> str:
    return f"{numbers.ratio(ratio[0])} {numbers.interval(ratio[1:])}"

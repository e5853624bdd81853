"""What every trial of a cell measured, block by block: drift, weather, and what a single bad block did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure


@dataclass(frozen=True)
class TrialValue:
    """A trial: its block, the metric in the metric's unit (None: it has none), and whether it counts."""

    block: int
    value: float | None
    counts: bool


def by_block(arms: Mapping[str, Sequence[TrialValue]], label: str, unit: str) -> DescribedFigure:
    """A line an arm through its trials that count; those that do not are hollow and apart from it."""
    figure = svg.figure(252)
    target = svg.axes(figure, 58, 20, 14, 40)
    known = [one.value for trials in arms.values() for one in trials if _has_place(one.value)]
    last = max((one.block for trials in arms.values() for one in trials), default=0)
    target.set_xlim(-0.4, last + 0.4)
    positions = [value for value in scales.linear_ticks(last, 6) if value == int(value)]
    svg.ticks(target, "x", positions, [scales.tick_label(value) for value in positions], grid=False)
    low, high = (min(known) * 0.92, max(known) * 1.08) if known else (1e6, 1e9)
    target.set_yscale("log")
    target.set_ylim(low, high)
    write = {"ns": scales.time_label, "1/s": scales.rate_label}.get(unit, scales.tick_label)
    svg.ticks(target, "y", *scales.labelled(scales.log_ticks(low, high, 5), write))
    sentences = []
    for arm, trials in arms.items():
        look = style.arm_style(arm)
        here = [(one.block, one.value, one.counts) for one in trials if _has_place(one.value)]
        counted = [(block, value) for block, value, counts in here if counts]
        apart = [(block, value) for block, value, counts in here if not counts]
        xs, ys = [block for block, _ in counted], [value for _, value in counted]
        target.plot(xs, ys, **look.marked, linewidth=1.4, markersize=4.2)
        target.plot(
            [block for block, _ in apart], [value for _, value in apart], look.marker, color=look.colour,
            markerfacecolor=style.PAPER, markersize=5.0, linestyle="none",
        )  # fmt: skip
        lacking = len(trials) - len(here)
        sentences.append(
            f"{style.name(arm)}: {len(counted)} trials count, {len(apart)} do not"
            + (f", {lacking} without a value" if lacking else "")
        )
    target.set_xlabel("block", color=style.INK, fontsize=svg.FONT)
    svg.head(target, f"{label} (log)")
    return DescribedFigure(figure, f"{label} block by block. {'; '.join(sentences)}")


def _has_place(value: float | None) -> TypeGuard[float]:
    """Whether a logarithmic axis has a place for it."""
    return value is not None and math.isfinite(value) and value > 0

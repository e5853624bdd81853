"""The pictures of the reconciliation: the places of both sides on one axis, and how often procedures are wrong."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from trifecta.analysis.conditions import Test
from trifecta.conclude.reconcile.procedures import Procedure
from trifecta.conclude.reconcile.read import PairResult
from trifecta.contract.reproduction import Judged
from trifecta.design import numbers
from trifecta.report.figures import ratios, scales, style, svg
from trifecta.report.figures.panels import DescribedFigure
from trifecta.report.reconcile import conditions, words

WIDTH = 780.0
_LEFT, _RIGHT, _LINE, _AIR, _HEAD = 330.0, 150.0, 12.5, 9.0, 26.0
_COLUMNS = 52  # characters of a label's line
MOST = 14  # places of a side
_FURTHEST = 30.0
_MARGIN = 0.05
_KNOWN = ("confirmed", "contradicted")


@dataclass(frozen=True)
class Row:
    """A line of the figure: a head, or a place with its interval; ``bold`` are heads."""

    lines: tuple[str, ...]
    description: str
    bold: bool = False
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    filled: bool = False
    published: float | None = None
    test: Test | None = None

    @property
    def height(self) -> float:
        """In CSS pixels."""
        return _HEAD if self.bold and len(self.lines) == 1 else _LINE * len(self.lines) + _AIR


def pair(one: PairResult, claims: Mapping[str, Judged]) -> DescribedFigure | None:
    """Both sides, one above the other, then the experiments; None where no place has a ratio."""
    rows = [row for side in range(2) for row in _side(one, side, claims)] + _experiments(one)
    evidence = one.evidence
    if not any(row.ratio is not None for row in rows):
        return None
    height = sum(row.height for row in rows)
    figure = svg.figure(68 + height, WIDTH)
    target = svg.axes(figure, _LEFT, 24, _RIGHT, 44)
    ends = [end for row in rows for end in (row.ratio, row.low, row.high, row.published) if end]
    low, high = scales.ratio_limits([min(max(end, 1 / _FURTHEST), _FURTHEST) for end in ends], _MARGIN)
    target.set_ylim(height, 0)
    ratios.ratio_frame(target, low, high, _MARGIN, "x")
    svg.ticks(target, "y", [], [])
    first, second = style.name(evidence.pair.arm), style.name(evidence.pair.to)
    _sides(target, first, low, high)
    at = 0.0
    for row in rows:
        _row(target, row, at, (low, high), evidence.pair.arm)
        at += row.height
    target.set_xlabel(f"{first} ÷ {second} (logarithmic)", color=style.INK, fontsize=svg.FONT)
    sentence = "; ".join(f"{' '.join(row.lines)}: {row.description}" for row in rows if not row.bold)
    return DescribedFigure(figure, f"{evidence.pair.question} {sentence}")


def _sides(target: Axes, first: str, low: float, high: float) -> None:
    """Which side of 1 is which, just above the axes, however tall they are."""
    ends = ((f"← {first} less", "right", -math.log(low)), (f"{first} more →", "left", math.log(high)))
    for words_, align, room in ends:
        if room / math.log(high / low) > 0.18:
            target.annotate(
                words_, (1.0, 1.0), xytext=(-5 if align == "right" else 5, 4), textcoords="offset points",
                xycoords=blended_transform_factory(target.transData, target.transAxes), ha=align, va="bottom",
                color=style.MUTED, fontsize=svg.SMALL, annotation_clip=False,
            )  # fmt: skip


def _side(pair: PairResult, side: int, claims: Mapping[str, Judged]) -> list[Row]:
    """The head of a side and its places."""
    side_claim, places = (
        pair.evidence.pair.sides[side],
        [place for place in pair.evidence.places[side] if place.ratio is not None],
    )
    rows = (claims.get(claim, Judged()) for claim in side_claim.claims)
    states = listed_states(words.answered(row, str(row.get("state", "not run"))) for row in rows)
    drawn = [Row((f"“{side_claim.says}”",), states, bold=True)]
    for place in places[:MOST]:
        published = _published(claims.get(place.claim, Judged()))
        lines = tuple(textwrap.wrap(words.label(place), _COLUMNS))
        drawn.append(Row(lines, words.interval(place), ratio=place.ratio, low=place.low, high=place.high,
                        filled=place.state in _KNOWN, published=published, test=side_claim.test))  # fmt: skip
    if len(places) > MOST:
        drawn.append(Row((f"… and {len(places) - MOST} more cells, in the table as CSV",), ""))
    return drawn


def listed_states(states: Any) -> str:
    """``confirmed, open``: each once, in order of the alphabet."""
    return ", ".join(sorted(set(states)))


def _experiments(pair: PairResult) -> list[Row]:
    """The head of each experiment and its cells."""
    rows: list[Row] = []
    for name in dict.fromkeys(cell.experiment for cell in pair.cells):
        rows.append(Row((f"Experiment {name}",), "", bold=True))
        here = [cell for cell in pair.cells if cell.experiment == name]
        changed = pair.changed(name)
        for cell in here:
            if cell.ratio is None:
                continue
            label = conditions.label(cell, changed)
            filled = any(truth not in (None, "open") for truth in cell.truths)
            rows.append(Row(tuple(textwrap.wrap(label, _COLUMNS)), conditions.ratio(cell), ratio=cell.ratio,
                            low=cell.low, high=cell.high, filled=filled))  # fmt: skip
    return rows


def _published(claim: Judged) -> float | None:
    """The published ratio, as places have theirs: of a rate the inverse."""
    value = claim.get("published")
    if value is None or claim.get("form") == "difference" or not float(value) > 0:
        return None
    return 1 / float(value) if str(claim.get("metric", "")).endswith("_per_s") else float(value)


def _row(target: Axes, row: Row, top: float, limits: tuple[float, float], arm: str) -> None:
    """A head, or a place with its interval, what was published, and between which ratios the sentence is true."""
    at, weight = top + row.height / 2, "bold" if row.bold else "normal"
    for number, line in enumerate(row.lines):
        middle = at + (number - (len(row.lines) - 1) / 2) * _LINE
        _text(target, middle, line, -_LEFT + (0 if row.bold else 8), weight=weight)
    _text(target, at, row.description, 0, right=True, weight=weight)
    look, (low, high) = style.arm_style(arm), limits
    if row.test is not None and row.test.ratio is not None:
        first, last = (scales.clamp(end or 1.0, low, high) for end in row.test.band(_MARGIN))
        target.fill_betweenx([top, top + row.height], first, last, facecolor=style.BAND, edgecolor="none", zorder=0.5)
    if row.ratio is None:
        return
    left, right = max(row.low or low, low), min(row.high or high, high)
    if left < right:
        target.plot([left, right], [at, at], color=look.colour, linewidth=2.0, solid_capstyle="butt")
    middle = scales.clamp(row.ratio, low, high)
    target.plot([middle], [at], look.marker, markersize=6.5, markeredgecolor=look.colour, markeredgewidth=1.4,
                markerfacecolor=look.colour if row.filled else style.PAPER)  # fmt: skip
    if row.published is not None:
        target.plot([scales.clamp(row.published, low, high)], [at], "D", markersize=5.5, markerfacecolor="none",
                    markeredgecolor=style.INK, markeredgewidth=1.1)  # fmt: skip


def _text(target: Axes, at: float, text: str, offset: float, *, right: bool = False, weight: str = "normal") -> None:
    """Words beside a row: from the left edge, or right of the axes."""
    mixed = blended_transform_factory(target.transAxes, target.transData)
    target.annotate(
        text, (1.0 if right else 0.0, at), xytext=(8 if right else offset, 0), xycoords=mixed,
        textcoords="offset points", ha="left", va="center", color=style.INK, fontsize=svg.SMALL, fontweight=weight,
        annotation_clip=False,
    )  # fmt: skip


def procedures(tests: Sequence[Procedure]) -> DescribedFigure | None:
    """How often each study's procedure named the wrong protocol, with the range over cells; None without any."""
    if not tests:
        return None
    figure = svg.figure(66 + _HEAD * len(tests), WIDTH)
    target = svg.axes(figure, _LEFT, 18, _RIGHT, 44)
    target.set_ylim(_HEAD * len(tests), 0)
    target.set_xlim(-0.02, 1.02)
    svg.ticks(target, "x", [0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    svg.ticks(target, "y", [], [])
    for number, one in enumerate(tests):
        at = _HEAD * (number + 0.5)
        _text(target, at, f"{one.study}: {one.name}", -_LEFT + 8)
        sentence = (
            "no cell decided"
            if one.rate is None
            else f"{numbers.percent(one.rate)} ({one.decided} of {one.cells} cells)"
        )
        _text(target, at, sentence, 0, right=True)
        if one.contradict is not None:
            target.plot([one.contradict], [at], "D", markersize=5.5, markerfacecolor="none", markeredgecolor=style.INK,
                        markeredgewidth=1.1, zorder=2.5)  # fmt: skip
        if one.rate is None:
            continue
        least, most, low, high, rate = (v or 0.0 for v in (one.least, one.most, one.low, one.high, one.rate))
        target.plot([least, most], [at, at], color=style.GRID, linewidth=7.0, solid_capstyle="butt", zorder=1)
        target.plot([low, high], [at, at], color=style.INK, linewidth=2.0, solid_capstyle="butt", zorder=2)
        target.plot([rate], [at], "o", color=style.INK, markersize=6.0, zorder=3)
    target.set_xlabel("share of conclusions", color=style.INK, fontsize=svg.FONT)
    description = "; ".join(words.procedure(one) for one in tests)
    return DescribedFigure(
        figure, f"How often a published procedure names the wrong protocol on our data. {description}"
    )

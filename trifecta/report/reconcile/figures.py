"""The pictures of the reconciliation: the places of both sides on one axis, and how often procedures are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from trifecta.analysis.reconciling import Found, Place
from trifecta.report import numbers
from trifecta.report.figures import ratios, scales, style, svg
from trifecta.report.figures.panels import Drawn, fitted
from trifecta.report.reconcile import words
from trifecta.report.reconcile.read import Procedure

WIDTH = 760.0
_LEFT, _RIGHT, _ROW, _HEAD = 330.0, 130.0, 20.0, 26.0
MOST = 14  # places of a side
_FURTHEST = 30.0
_MARGIN = 0.05


def pair(found: Found, claims: Mapping[str, Mapping[str, Any]]) -> Drawn | None:
    """Both sides, one above the other; None where no place has a ratio."""
    sides = [[one for one in places if one.ratio is not None][:MOST] for places in found.places]
    if not any(sides):
        return None
    rows = sum(len(side) for side in sides)
    made = svg.figure(70 + _ROW * rows + _HEAD * 2, WIDTH)
    target = svg.axes(made, _LEFT, 24, _RIGHT, 42)
    said = [_published(claims.get(claim, {})) for side in found.pair.sides for claim in side.claims]
    ends = [end for side in sides for one in side for end in (one.ratio, one.low, one.high) if end]
    ends += [value for value in said if value]
    low, high = scales.ratio_limits([min(max(end, 1 / _FURTHEST), _FURTHEST) for end in ends], _MARGIN)
    height = _ROW * rows + _HEAD * 2
    target.set_ylim(height, 0)
    ratios.ratio_frame(target, low, high, _MARGIN, "x")
    svg.ticks(target, "y", [], [])
    first, second = style.name(found.pair.arm), style.name(found.pair.to)
    ratios.say_sides(target, (f"← {first} less", f"{first} more →"), low, high)
    at = 0.0
    for side, places in zip(found.pair.sides, sides, strict=True):
        _text(target, at + _HEAD / 2, f"“{side.says}”", -_LEFT, weight="bold")
        states = ", ".join(sorted({str(claims.get(claim, {}).get("state", "not run")) for claim in side.claims}))
        _text(target, at + _HEAD / 2, states, 0, right=True, weight="bold")
        at += _HEAD
        for place in places:
            _row(target, (place, _published(claims.get(place.claim, {}))), at + _ROW / 2, (low, high), found.pair.arm)
            at += _ROW
    target.set_xlabel(f"{first} ÷ {second} (log); diamond: published", color=style.INK, fontsize=svg.FONT)
    told = "; ".join(f"{words.label(one)}: {words.interval(one)}, {one.state}" for side in sides for one in side)
    return Drawn(made, f"{found.pair.question} {told}")


def _published(claim: Mapping[str, Any]) -> float | None:
    """The published ratio, as places have theirs: of a rate the inverse."""
    value = claim.get("published")
    if value is None or claim.get("form") == "difference" or not float(value) > 0:
        return None
    return 1 / float(value) if str(claim.get("metric", "")).endswith("_per_s") else float(value)


def _row(target: Axes, shown: tuple[Place, float | None], at: float, limits: tuple[float, float], arm: str) -> None:
    """A place with its interval, and what was published."""
    place, published = shown
    look, (low, high) = style.look(arm), limits
    _text(target, at, fitted(words.label(place), _LEFT - 8), -_LEFT + 8)
    _text(target, at, words.interval(place), 0, right=True)
    left, right = max(place.low or low, low), min(place.high or high, high)
    if left < right:
        target.plot([left, right], [at, at], color=look.colour, linewidth=2.0, solid_capstyle="butt")
    fill = look.colour if place.state != "open" else style.PAPER
    middle = float(np.clip(place.ratio or 1.0, low, high))
    target.plot([middle], [at], look.marker, markersize=6.5, markerfacecolor=fill, markeredgecolor=look.colour,
                markeredgewidth=1.4)  # fmt: skip
    if published is not None:
        target.plot([float(np.clip(published, low, high))], [at], "D", markersize=5.5, markerfacecolor="none",
                    markeredgecolor=style.INK, markeredgewidth=1.1)  # fmt: skip


def _text(target: Axes, at: float, said: str, offset: float, *, right: bool = False, weight: str = "normal") -> None:
    """Words beside a row: from the left edge, or right of the axes."""
    mixed = blended_transform_factory(target.transAxes, target.transData)
    target.annotate(
        said, (1.0 if right else 0.0, at), xytext=(8 if right else offset, 0), xycoords=mixed,
        textcoords="offset points", ha="left", va="center", color=style.INK, fontsize=svg.SMALL, fontweight=weight,
        annotation_clip=False,
    )  # fmt: skip


def procedures(found: Sequence[Procedure]) -> Drawn | None:
    """How often each study's procedure named the wrong protocol, with the range over cells; None without any."""
    if not found:
        return None
    made = svg.figure(66 + _HEAD * len(found), WIDTH)
    target = svg.axes(made, _LEFT, 18, _RIGHT, 42)
    target.set_ylim(_HEAD * len(found), 0)
    target.set_xlim(-0.02, 1.02)
    svg.ticks(target, "x", [0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    svg.ticks(target, "y", [], [])
    for number, one in enumerate(found):
        at = _HEAD * (number + 0.5)
        _text(target, at, f"{one.study}: {one.name}", -_LEFT + 8)
        _text(target, at, numbers.percent(one.rate), 0, right=True)
        least, most, low, high, rate = (v or 0.0 for v in (one.least, one.most, one.low, one.high, one.rate))
        target.plot([least, most], [at, at], color=style.GRID, linewidth=7.0, solid_capstyle="butt", zorder=1)
        target.plot([low, high], [at, at], color=style.INK, linewidth=2.0, solid_capstyle="butt", zorder=2)
        target.plot([rate], [at], "o", color=style.INK, markersize=6.0, zorder=3)
    target.set_xlabel("wrong conclusions (wide: from cell to cell)", color=style.INK, fontsize=svg.FONT)
    told = "; ".join(f"{one.study}, {one.name}: {numbers.percent(one.rate)}" for one in found)
    return Drawn(made, f"How often a published procedure names the wrong protocol on our data. {told}")

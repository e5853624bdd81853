"""Published ratios and ours on one axis: what a study said, and the interval of what runs here say to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.transforms import blended_transform_factory

from trifecta.analysis.answers import HELD_THEN, NOT_TODAY, Answer
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OPEN, OTHER_SIZE
from trifecta.analysis.published import Evaluation
from trifecta.conclude.reproduction.result import Result
from trifecta.contract.reproduction import StatementDocument
from trifecta.design import numbers
from trifecta.report.figures import ratios, scales, style, svg

_LEGEND = (
    "Filled circle: confirmed, triangle: the same direction and another size, triangle on its tip: held then, filled "
    "square: contradicted, hollow square: not today, hollow circle: open; diamond: published; cross: as published, "
    "here; shaded: too small to matter; arrowhead: the interval goes on."
)
# Colour never stands alone: a marker each.
_LOOKS: Mapping[Answer, tuple[str, str]] = {
    CONFIRMED: (style.GOOD, "o"),
    OTHER_SIZE: (style.INK, "^"),
    HELD_THEN: (style.INK, "v"),
    NOT_TODAY: (style.BAD, "s"),
    CONTRADICTED: (style.BAD, "s"),
    OPEN: (style.MUTED, "o"),
}
_WIDTH = 620.0
_ROW = 31.0
_FURTHEST = 1000.0


def study_pictures(result: Result) -> Mapping[str, list[tuple[str, str]]]:
    """By study its pictures as (caption, SVG): the claims, then the figures with a published ratio."""
    by_study: dict[str, list[tuple[str, str]]] = {}
    with svg.drawing():
        for study in result.studies:
            name = study.published.id
            parts = (("claims", study.claims), ("figures", [o for o in study.figures if o.statement.published]))
            by_study[name] = [
                (f"{what.capitalize()} and what was measured here. {_LEGEND}", _forest(shown, f"{name}-{what}", result))
                for what, every in parts
                if (shown := [one for one in every if _is_drawn(one)])
            ]
    return by_study


def _is_drawn(evaluation: Evaluation) -> bool:
    assertion = evaluation.statement.says
    compared = (
        evaluation.state != "not compared"
        and assertion is not None
        and not assertion.by_difference
        and assertion.relation != "whole"
    )
    return compared and evaluation.value is not None


def _label(evaluation: Evaluation) -> str:
    """What is said; of a figure of a table with its protocol, which its text does not have."""
    assertion = evaluation.statement.says
    if evaluation.statement.kind == "claim" or assertion is None or not assertion.to:
        return evaluation.statement.text
    return f"{evaluation.statement.text} ({evaluation.change()})"


def _as_published(evaluation: Evaluation, result: Result) -> StatementDocument | None:
    """What it was as published, where that is a ratio."""
    then = result.then.get(evaluation.statement.id)
    return then if then is not None and then["form"] == "ratio" and then["value"] else None


def _forest(shown: Sequence[Evaluation], identity: str, result: Result) -> str:
    figure = svg.figure(58 + _ROW * len(shown), _WIDTH)
    target = svg.axes(figure, 12, 20, 12, 40)
    thens = [then["value"] if (then := _as_published(one, result)) is not None else None for one in shown]
    ends = [end for one in shown for end in (one.value, one.low, one.high, one.statement.published) if end]
    ends += [value for value in thens if value]
    low, high = scales.ratio_limits([min(max(end, 1 / _FURTHEST), _FURTHEST) for end in ends], 0.05)
    target.set_ylim(len(shown) - 0.02, -0.02)
    ratios.ratio_frame(target, low, high, 0.05, "x")
    svg.ticks(target, "y", [], [])
    mixed = blended_transform_factory(target.transAxes, target.transData)
    for row, one in enumerate(shown):
        published = one.statement.published
        answer, _ = result.answer(one)
        colour, marker = _LOOKS[answer]
        target.text(
            0.0,
            row + 0.08,
            _label(one),
            transform=mixed,
            ha="left",
            va="top",
            color=style.INK,
            fontsize=svg.SMALL,
            bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5},
        )
        ratios.interval_bar(target, (one.low, one.high), (low, high), row + 0.74, colour)
        fill = colour if answer not in (OPEN, NOT_TODAY) else style.PAPER
        target.plot([scales.clamp(one.value or 1.0, low, high)], [row + 0.74], marker, markersize=6.5,
                    markerfacecolor=fill, markeredgecolor=colour, markeredgewidth=1.4)  # fmt: skip
        if value := thens[row]:
            target.plot([scales.clamp(value, low, high)], [row + 0.74], "x", markersize=6.0,
                        markeredgecolor=style.INK, markeredgewidth=1.4)  # fmt: skip
        if published:
            target.plot([scales.clamp(published, low, high)], [row + 0.74], "D", markersize=6.0,
                        markerfacecolor="none", markeredgecolor=style.INK, markeredgewidth=1.2)  # fmt: skip
    target.set_xlabel("ratio (log)", color=style.INK, fontsize=svg.FONT)
    levels = ((one, numbers.ratio(one.value), numbers.interval((one.low, one.high))) for one in shown)
    words = "; ".join(f"{one.statement.text}: {ratio} {ends}, {result.answer(one)[0]}" for one, ratio, ends in levels)
    return svg.render(figure, identity, f"Ratios measured here and those published. {words}")

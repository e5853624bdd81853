"""Film strips of page loads: pictures of every protocol below each other, at the same times."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.page_waterfall import MARKS, WIDE, Marks, mark

PICTURES = 8
_HEAD, _ROW_GAP, _AXIS, _AIR = 22.0, 4.0, 40.0, 3.0


@dataclass(frozen=True)
class Picture:
    """A JPEG as it is embedded."""

    at_ns: float
    jpeg: bytes


@dataclass(frozen=True)
class Strip:
    """The pictures of one visit in the order of time, its marks (columns of MARKS), and which visit it is."""

    pictures: Sequence[Picture]
    marks: Marks
    shape: tuple[int, int]  # width and height of a picture


def times(high: float) -> list[float]:
    """The times at which the pages are shown, in ns."""
    return [(place + 0.5) * high / PICTURES for place in range(PICTURES)]


def shown_at(pictures: Sequence[Picture], at: float) -> Picture | None:
    """The last picture taken until then."""
    return next((picture for picture in reversed(pictures) if picture.at_ns <= at), None)


def filmstrip(strips: Mapping[str, Strip], high: float, identity: str) -> str:
    """Draw the strips of all arms on one axis of time that ends at ``high`` ns."""
    slot = WIDE / PICTURES
    wide = slot - 2 * _AIR
    tall = max(wide * strip.shape[1] / strip.shape[0] for strip in strips.values())
    row = _HEAD + tall + _ROW_GAP
    total = row * len(strips) + _AXIS
    figure = svg.figure(total, WIDE)
    target = svg.axes(figure, 0, 0, 0, _AXIS)
    target.set_xlim(0, high)
    target.set_ylim(row * len(strips), 0)
    svg.ticks(target, "y", [], [])
    svg.ticks(target, "x", *scales.labelled(times(high), lambda ns: numbers.duration(round(ns, -6))), grid=False)
    target.set_xlabel("time since the navigation began", color=style.INK, fontsize=svg.FONT)
    images, descriptions = _Images(identity), []
    for place, (arm, strip) in enumerate(strips.items()):
        top = place * row + _HEAD
        marks = ", ".join(
            f"{word} {numbers.duration(at)}" for name, word, _ in MARKS if (at := mark(strip.marks, name)) is not None
        )
        target.text(
            0, top - 6, f"{style.name(arm)}: {marks}", ha="left", va="bottom", color=style.INK, fontsize=svg.SMALL
        )
        for step, at in enumerate(times(high)):
            images.add(shown_at(strip.pictures, at), (step * slot + _AIR, top, wide, tall))
        descriptions.append(f"{style.name(arm)}: {marks}")
    drawn = svg.render(figure, identity, f"Film strips of page loads. {'; '.join(descriptions)}")
    return drawn.removesuffix("</svg>") + images.text() + "</svg>"


class _Images:
    """Pictures as elements of an SVG; one that comes again is embedded once."""

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._known: dict[bytes, tuple[str, float, float]] = {}  # name and place of the first
        self._text: list[str] = []

    def add(self, picture: Picture | None, box: tuple[float, float, float, float]) -> None:
        left, top, wide, tall = box
        frame = f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
        if picture is None:
            self._text.append(f'{frame} style="fill: var(--soft); stroke: var(--rule); stroke-width: 0.8"/>')
            return
        known = self._known.get(picture.jpeg)
        if known is None:
            name = f"{self._identity}-p{len(self._known)}"
            self._known[picture.jpeg] = (name, left, top)
            data = base64.b64encode(picture.jpeg).decode("ascii")
            self._text.append(
                f'<image id="{name}" x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
                f'href="data:image/jpeg;base64,{data}"/>'
            )
        else:
            name, first_left, first_top = known
            moved = f"translate({left - first_left:.1f} {top - first_top:.1f})"
            self._text.append(f'<use xlink:href="#{name}" transform="{moved}"/>')
        self._text.append(f'{frame} style="fill: none; stroke: var(--rule); stroke-width: 0.8"/>')

    def text(self) -> str:
        return "\n".join(self._text)

"""Intervals on a ratio axis: what does not end on it says so."""

from __future__ import annotations

import pytest

from trifecta.report.figures import ratios, style, svg


@pytest.mark.parametrize(
    ("ends", "heads", "drawn"),
    [
        ((0.8, 1.2), [], (0.8, 1.2)),
        ((None, 1.2), ["<"], (0.5, 1.2)),
        ((0.8, None), [">"], (0.8, 2.0)),
        ((None, None), ["<", ">"], (0.5, 2.0)),
        ((0.1, 9.0), ["<", ">"], (0.5, 2.0)),
        ((0.5, 2.0), [], (0.5, 2.0)),
    ],
)
def test_an_arrowhead_stands_where_an_interval_goes_on(ends, heads, drawn):
    with svg.drawing():
        target = svg.axes(svg.figure(100), 12, 20, 12, 22)
        ratios.ratio_frame(target, 0.5, 2.0, 0.05, "x")
        there = len(target.lines)
        ratios.interval_bar(target, ends, (0.5, 2.0), 0.5, style.GOOD)
        bar, *marks = target.lines[there:]
    assert tuple(bar.get_xdata()) == drawn
    assert [mark.get_marker() for mark in marks] == heads
    assert [mark.get_xdata()[0] for mark in marks] == [{"<": 0.5, ">": 2.0}[head] for head in heads]

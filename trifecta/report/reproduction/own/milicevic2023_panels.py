"""Pictures of milicevic2023: a histogram of R_i with what the study gave above it, and T_i over i with it beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from trifecta.conclude.reproduction.own_milicevic2023 import (
    ARMS,
    PAYLOADS,
    PUBLISHED_RATES,
    PUBLISHED_ROUND_TRIPS,
    Progression,
    RoundTrips,
)
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.reproduction.own.marks import LINE, heading, legend

_WIDTH = 760.0
_LEFT, _RIGHT, _BOTTOM = 58.0, 16.0, 42.0
_STRIP = 40.0  # what the study gave, above the histogram
_BESIDE = 0.13  # the same of a progression, right of it, as a share of the axis


def payload_words(payload: int) -> str:
    """``600 B``, ``1 kB``."""
    return numbers.without_zeros(numbers.size(payload))


def histogram(round_trips: RoundTrips, absent: str, identity: str) -> str:
    """R_i of both protocols in the same bins, as many requests as there were in each, over what the study gave.

    A protocol without any says ``absent``.
    """
    figure = svg.figure(390, _WIDTH)
    shown = round_trips.histogram
    published = {arm: PUBLISHED_ROUND_TRIPS[round_trips.place, arm] for arm in ARMS}
    top_of_strip = 8 + LINE * len(ARMS) + 18
    strip = svg.axes(figure, _LEFT, top_of_strip, _RIGHT, 390 - top_of_strip - _STRIP)
    target = svg.axes(figure, _LEFT, top_of_strip + _STRIP + 26, _RIGHT, _BOTTOM)
    ends = [float(shown.edges[0]), float(shown.edges[-1])]
    ends += [float(end) for one in published.values() for end in (one.smallest_ns, one.largest_ns)]
    air = 0.02 * (max(ends) - min(ends))
    low, high = max(0.0, min(ends) - air), max(ends) + air
    entries, words, most = [], [], 1.0
    for place, arm in enumerate(ARMS):
        look, spread = style.arm_style(arm), round_trips.spreads.get(arm)
        one = published[arm]
        strip.plot([one.smallest_ns, one.largest_ns], [place, place], color=look.colour, linewidth=1.4, marker="|",
                   markersize=8)  # fmt: skip
        strip.plot([one.mode_low_ns, one.mode_high_ns], [place, place], color=look.colour, linewidth=6)
        if spread is None:
            entries.append((look, f"{style.name(arm)}: {absent}"))
            words.append(f"{style.name(arm)}: {absent}")
            continue
        bars = shown.arms[arm]
        most = max(most, float(bars.counts.max(initial=0)))
        target.stairs(bars.counts, shown.edges, fill=True, facecolor=look.colour, alpha=0.18, linewidth=0)
        target.stairs(bars.counts, shown.edges, edgecolor=look.colour, linewidth=1.4, linestyle=look.line)
        middle = (shown.edges[bars.fullest] + shown.edges[bars.fullest + 1]) / 2
        target.plot([middle], [bars.counts[bars.fullest]], look.marker, color=look.colour, markersize=6, clip_on=False)
        sentence = (
            f"{style.name(arm)}: {numbers.count(spread.requests)} requests, {numbers.duration(spread.smallest_ns)} to "
            f"{numbers.duration(spread.largest_ns)}, most {numbers.duration(spread.mode_low_ns)} to "
            f"{numbers.duration(spread.mode_high_ns)}"
        )
        entries.append((look, sentence))
        words.append(f"{sentence}; published {_span(one.smallest_ns, one.largest_ns)}, most "
                     f"{_span(one.mode_low_ns, one.mode_high_ns)}")  # fmt: skip
    _times(strip, low, high, labelled=False)
    strip.spines["bottom"].set_visible(False)
    strip.set_ylim(len(ARMS) - 0.4, -0.6)
    svg.ticks(strip, "y", [], [])
    heading(strip, "published: smallest to largest; thick: where the majority lay", 2)
    _times(target, low, high, labelled=True)
    target.set_ylim(0, most * 1.1)
    svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(most * 1.1, 4), numbers.count))
    target.set_xlabel("R, from the request of a connection to the response", color=style.INK, fontsize=svg.FONT)
    heading(target, "here: requests in each bin", 4)
    legend(figure, entries)
    return svg.render(figure, identity, f"Histogram of round trips. {'; '.join(words)}")


def _span(low_ns: float, high_ns: float) -> str:
    return f"{numbers.without_zeros(numbers.duration(low_ns))} to {numbers.without_zeros(numbers.duration(high_ns))}"


def _times(target: Axes, low: float, high: float, *, labelled: bool) -> None:
    target.set_xlim(low, high)
    span = [one for one in scales.linear_ticks(high, 8) if one >= low]
    if len(span) < 4:  # far from 0
        span = scales.log_ticks(low, high, 8)
    svg.ticks(target, "x", *scales.labelled(span, scales.time_label if labelled else _no_label))
    if not labelled:
        target.tick_params(axis="x", length=0)


def _no_label(_: float) -> str:
    return ""


def progression(arm: str, progressions: Mapping[int, Progression], absent: Mapping[int, str], identity: str) -> str:
    """T_i over i, a line a payload: the mean over trials in the span of all of them; beside it what the study gave.

    A payload without any says ``absent``.
    """
    figure = svg.figure(378, _WIDTH)
    target = svg.axes(figure, _LEFT, 8 + LINE * len(PAYLOADS) + 24, _RIGHT, _BOTTOM)
    most = max((one.requests for one in progressions.values()), default=1)
    edge = most * (1 + _BESIDE)
    tops = [point.largest for one in progressions.values() for point in one.points if point.place >= min(10, most)]
    published = {payload: PUBLISHED_RATES[arm, payload] for payload in PAYLOADS}
    tops += [end for one in published.values() if (end := one.largest or one.settled)]
    top = max(tops) * 1.08
    target.set_xlim(0, edge)
    target.set_ylim(0, top)
    entries, words = [], []
    for number, payload in enumerate(PAYLOADS):
        look, one, theirs = style.level(number), progressions.get(payload), published[payload]
        at = most * (1 + _BESIDE * (number + 1) / (len(PAYLOADS) + 1))
        _published(target, at, (theirs.smallest, theirs.mean or theirs.settled, theirs.largest), look)
        name = f"{payload_words(payload)}, {style.name(arm)}"
        if one is None:
            entries.append((look, f"{name}: {absent[payload]}"))
            words.append(entries[-1][1])
            continue
        xs = [point.place for point in one.points]
        target.fill_between(
            xs, [min(point.smallest, top) for point in one.points], [min(point.largest, top) for point in one.points],
            color=look.colour, alpha=0.14, linewidth=0,
        )  # fmt: skip
        step = max(1, len(xs) // 6)
        target.plot(
            xs, [point.value for point in one.points], color=look.colour, linestyle=look.line, linewidth=1.7,
            marker=look.marker, markersize=4.5, markevery=(step * (number + 1) // 4, step),
        )  # fmt: skip
        sentence = (
            f"{name}: mean {numbers.per_second(one.mean)}, from {numbers.per_second(one.smallest)} to "
            f"{numbers.per_second(one.largest)}"
        )
        entries.append((look, sentence))
        words.append(sentence)
    target.axvline(most, color=style.MUTED, linewidth=0.8)
    target.text(
        most * (1 + _BESIDE / 2), top * 1.01, "published", ha="center", va="bottom", color=style.INK, fontsize=svg.SMALL
    )
    ticks = scales.linear_ticks(most, 6)
    svg.ticks(target, "x", ticks, [numbers.count(one) for one in ticks])
    svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(top, 5), scales.rate_label))
    target.set_xlabel("i, requests answered on the connection", color=style.INK, fontsize=svg.FONT)
    heading(target, "T, requests per second", 4)
    legend(figure, entries)
    return svg.render(
        figure, identity, f"Progression of requests per second over {style.name(arm)}. {'; '.join(words)}"
    )


def _published(target: Axes, at: float, ends: Sequence[float | None], look: style.ArmStyle) -> None:
    """What the study gave: from the smallest to the largest, hollow the mean or where it settled."""
    smallest, middle, largest = ends
    if smallest is not None and largest is not None:
        target.plot([at, at], [smallest, largest], color=look.colour, linewidth=1.6, marker="_", markersize=8)
    if middle is not None:
        target.plot([at], [middle], look.marker, markersize=6.5, markerfacecolor=style.PAPER,
                    markeredgecolor=look.colour, markeredgewidth=1.4)  # fmt: skip

"""Pictures of ding2022: the time of its tests in bars, and packets over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from trifecta.conclude.reproduction.own_ding2022 import ARMS, NO_PACKETS, TESTS, Duration, Test, Trace
from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.packet_sizes import packet_sizes
from trifecta.report.figures.panels import DescribedFigure, panels
from trifecta.report.figures.picture_files import with_legend

WORDS = {"up": "client to server", "down": "server to client"}
_BAR = 0.42
_NOTHING = (NO_PACKETS, NO_PACKETS)
HATCHES = {"h3": "", "h2": "//"}  # colour never stands alone
_TEXTURES = {"h3": "", "h2": "tcp"}


def durations(every: Sequence[Duration], absent: Mapping[str, str], identity: str) -> str:
    """Figure 1: the tests with a bar a protocol, ours left, the study's right, each on its own axis.

    The place of a bar that is not there says ``absent``, by the id of its test.
    """
    titles = ["here: median of the trials, line: smallest to largest", "published: one trial a test"]
    figure, targets = panels(titles, 300, gap=72)
    descriptions = []
    for target, ours in zip(targets, (True, False), strict=True):
        tops = [end for one in every if (end := one.largest_ns if ours else one.published_ns)]
        top = max(tops, default=1) * 1.16
        target.set_xlim(-0.6, len(TESTS) - 0.4)
        target.set_ylim(0, top)
        svg.ticks(target, "x", [float(at) for at in range(len(TESTS))], [test.words for test in TESTS], grid=False)
        svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(top, 5)))
        for at, test in enumerate(TESTS):
            by_arm = {one.arm: one for one in every if one.test is test}
            base = _value(by_arm["h2"], ours)
            for place, arm in enumerate(ARMS):
                value = _value(by_arm[arm], ours)
                x = at + (place - 0.5) * _BAR
                if value is None:
                    _absent(target, x, absent[test.id])
                    continue
                _bar(target, x, by_arm[arm], ours, value)
                words = numbers.duration(value)
                if arm != "h2" and base:
                    words += f"\n{numbers.percent(value / base)}"
                highest = by_arm[arm].largest_ns if ours else value
                target.text(x, (highest or value) + top * 0.012, words, ha="center", va="bottom", color=style.INK,
                            fontsize=svg.SMALL - 1)  # fmt: skip
        descriptions.append(_durations_in_words(every, ours))
    entries = [(style.name(arm), style.CSS_VARIABLES[style.arm_style(arm).colour], _TEXTURES[arm]) for arm in ARMS]
    drawn = DescribedFigure(figure, f"Time of the tests. {'. '.join(descriptions)}")
    return with_legend(drawn, entries).svg(identity)


def _value(duration: Duration, ours: bool) -> int | None:
    return duration.median_ns if ours else duration.published_ns


def _bar(target: Axes, x: float, duration: Duration, ours: bool, value: int) -> None:
    target.bar(
        [x], [value], width=_BAR * 0.94, color=style.arm_style(duration.arm).colour, edgecolor=style.PAPER,
        linewidth=0.6,
        hatch=HATCHES[duration.arm] or None,
    )  # fmt: skip
    if ours and duration.smallest_ns is not None and duration.largest_ns is not None:
        target.plot(
            [x, x],
            [duration.smallest_ns, duration.largest_ns],
            color=style.INK,
            linewidth=1.2,
            marker="_",
            markersize=6,
        )


def _absent(target: Axes, x: float, words: str) -> None:
    low, high = target.get_ylim()
    target.text(x, low + (high - low) * 0.02, words, rotation=90, ha="center", va="bottom", color=style.MUTED,
                fontsize=svg.SMALL)  # fmt: skip


def _durations_in_words(every: Sequence[Duration], ours: bool) -> str:
    words = [
        f"{one.test.words}, {style.name(one.arm)} {numbers.duration(value) if (value := _value(one, ours)) else 'none'}"
        for one in every
    ]
    return f"{'Here' if ours else 'Published'}: {'; '.join(words)}"


def sizes(test: Test, traces: Mapping[str, Trace], absent: str, identity: str) -> str:
    """Figures 2 to 9: every packet of a test over time, the protocols side by side on one pair of axes."""
    shown = [
        (
            f"{style.name(arm)} (figure {test.sizes[arm]})",
            arm,
            *((one.sizes("down"), one.sizes("up")) if (one := traces.get(arm)) else _NOTHING),
        )
        for arm in ARMS
    ]
    return packet_sizes(shown, absent).svg(identity)

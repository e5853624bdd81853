"""Head-of-line blocking, request by request: how long octets lay received and could not be delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.panels import DescribedFigure, dots, panels, points


@dataclass(frozen=True)
class BlockedRequest:
    """A request: how long its octets lay undeliverable, in ns: for a hole of another stream, and for one of its own."""

    name: str
    other_ns: float
    own_ns: float

    @property
    def longest_ns(self) -> float:
        """The longer of both, which may overlap and are not added."""
        return max(self.other_ns, self.own_ns)


_MOST_BARS = 120


def blocking(shown: Sequence[tuple[str, str, Sequence[BlockedRequest]]]) -> DescribedFigure:
    """Draw captures, each (title, arm, requests in order), on one axis."""
    figure, targets = panels([f"{title}: {_sum(blocked)}" for title, _, blocked in shown], 230)
    high = max((one.longest_ns for _, _, blocked in shown for one in blocked), default=0.0) * 1.1 or 1e6
    sentences = []
    for place, (target, (title, _, blocked)) in enumerate(zip(targets, shown, strict=True)):
        target.set_xlim(-0.6, max(len(blocked), 1) - 0.4)
        target.set_ylim(0, high)
        ticks, labels = scales.labelled(scales.linear_ticks(high, 4))
        svg.ticks(target, "y", ticks, labels if place == 0 else ["" for _ in labels])
        steps = [tick for tick in scales.linear_ticks(max(len(blocked) - 1, 1), 4) if tick == int(tick)]
        svg.ticks(target, "x", steps, [f"{int(tick) + 1}" for tick in steps], grid=False)
        other, own, rows = [one.other_ns for one in blocked], [one.own_ns for one in blocked], range(len(blocked))
        if len(blocked) <= _MOST_BARS:
            target.bar([row - 0.2 for row in rows], other, width=0.4, color=style.PART_CROSSED, linewidth=0)
            target.bar(
                [row + 0.2 for row in rows], own, width=0.4, color=style.LATE, edgecolor=style.PAPER, hatch="//",
                linewidth=0.2,
            )  # fmt: skip
        else:
            dots(target, points(rows, other), style.PART_CROSSED)
            dots(target, points(rows, own), style.LATE)
        if blocked and not any(one.longest_ns for one in blocked):
            svg.absent(target, "nothing waited")
        target.set_xlabel("request", color=style.INK, fontsize=svg.SMALL)
        sentences.append(f"{title}: {_sum(blocked)}")
    return DescribedFigure(
        figure, f"How long octets of each response lay received and undeliverable. {'; '.join(sentences)}"
    )


def _sum(blocked: Sequence[BlockedRequest]) -> str:
    if not blocked:
        return "not known"
    mean = sum(one.other_ns for one in blocked) / len(blocked)
    waited = sum(one.other_ns > 0 for one in blocked)
    return f"for others {numbers.duration(mean)}, {waited} of {len(blocked)}"

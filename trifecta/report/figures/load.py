"""What the arms sustained and what it cost: requests a second over a trial, CPU a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg


def throughput(lines: Mapping[str, Sequence[tuple[float, float]]], warmup_ns: float, identity: str) -> str:
    """Completed requests a second over the time of a trial, mean over trials; the warm-up is shaded.

    ``lines`` holds (middle of the bucket in ns, requests per second).
    """
    figure = svg.figure(252)
    target = svg.axes(figure, 46, 20, 14, 40)
    right = max((point[0] for line in lines.values() for point in line), default=1e9) * 1.02
    top = max((point[1] for line in lines.values() for point in line), default=1.0) * 1.08
    target.set_xlim(0, right)
    target.set_ylim(0, top)
    if 0 < warmup_ns < right:
        target.axvspan(0, warmup_ns, color=style.BAND, linewidth=0, zorder=0)
        target.text(0, top, " warm-up", ha="left", va="top", color=style.MUTED, fontsize=svg.SMALL)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(right)), grid=False)
    svg.ticks(target, "y", *scales.labelled(scales.linear_ticks(top, 4), scales.rate_label))
    for arm, line in lines.items():
        look = style.arm_style(arm)
        xs, ys = [point[0] for point in line], [point[1] for point in line]
        target.plot(xs, ys, **look.marked, linewidth=1.6, markersize=3.4, markevery=4)
    target.set_xlabel("time since the trial began", color=style.INK, fontsize=svg.FONT)
    svg.head(target, "requests per second")
    means = {arm: sum(y for _, y in line) / max(1, len(line)) for arm, line in lines.items()}
    sentence = "; ".join(f"{style.name(arm)}: {numbers.per_second(mean)} on average" for arm, mean in means.items())
    return svg.render(figure, identity, f"Throughput over time. {sentence}")


def cpu(rows: Mapping[str, Mapping[str, float | None]], identity: str) -> str:
    """CPU time a request of client and server, median over trials with quartiles."""
    figure = svg.figure(252)
    target = svg.axes(figure, 12, 20, 14, 40)
    ends = [
        row[name] or 0.0
        for row in rows.values()
        for name in ("client_high_ns", "server_high_ns", "client_cpu_ns", "server_cpu_ns")
    ]
    high = max([*ends, 1.0]) * 1.04
    target.set_xlim(0, high)
    target.set_ylim(max(3, len(rows)) - 0.05, 0.0)
    svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(high)))
    svg.ticks(target, "y", [], [])
    sentences = []
    for place, (arm, row) in enumerate(rows.items()):
        target.text(0, place + 0.08, style.name(arm), ha="left", va="top", color=style.INK, fontsize=svg.SMALL)
        for offset, side, colour, hatch in ((0.48, "client", style.CLIENT, ""), (0.74, "server", style.SERVER, "//")):
            middle = row[f"{side}_cpu_ns"]
            if middle is None:
                continue
            target.barh(
                place + offset,
                middle,
                height=0.22,
                color=colour,
                edgecolor=style.PAPER,
                linewidth=0.6,
                hatch=hatch or None,
            )
            ends = [row[f"{side}_low_ns"] or middle, row[f"{side}_high_ns"] or middle]
            target.plot(ends, [place + offset] * 2, color=style.INK, linewidth=1.0)
        client, server = numbers.duration(row["client_cpu_ns"]), numbers.duration(row["server_cpu_ns"])
        sentences.append(f"{style.name(arm)}: client {client}, server {server}")
    target.set_xlabel("CPU time per request", color=style.INK, fontsize=svg.FONT)
    return svg.render(figure, identity, f"CPU cost. {'; '.join(sentences)}")

"""What a run of browsers says, in words: the metrics of a pair, and the claims that other studies published."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OTHER_SIZE
from trifecta.conclude.comparisons import levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.visits.derive import Visits
from trifecta.conclude.visits.metrics import MetricOfArm, metrics_of
from trifecta.conclude.visits.published import Claim
from trifecta.design import numbers
from trifecta.design.phrases import counted
from trifecta.report.figures import style
from trifecta.report.verdict_words import place_words

# Metrics that a sentence names.
_TOLD = {"ttfb_ns", "fcp_ns", "lcp_ns", "speed_index_ns", "startup_ns", "live_latency_ns", "bitrate_bits_per_s"}


def cell_words(cell: str) -> str:
    """A cell, its path first; what all runs of browsers have in common is left out."""
    there = {name: value for name, value in levels(cell).items() if name != "connection"}
    rest = ",".join(f"{name}={value}" for name, value in there.items() if name != "path")
    return ", ".join(part for part in (there.get("path", ""), place_words(rest) if rest else "") if part)


def metric_lines(about: RunFacts, rows: Sequence[MetricOfArm], cell: str) -> list[str]:
    """A line a protocol: ``HTTP/3 ÷ HTTP/2: TTFB 0.93 [0.91, 0.95], ...``; the verdicts have the load."""
    lines = []
    names = {one.name: one.ratio.partition(" (")[0] for one in metrics_of(about) if one.name in _TOLD}
    for arm in reversed(about.arms):
        parts = []
        for row in rows:
            if row["cell"] != cell or row["arm"] != arm or row["metric"] not in names:
                continue
            if row["ratio"] is not None:
                ends = numbers.interval((row["ratio_low"], row["ratio_high"]))
                parts.append(f"{names[row['metric']]} {numbers.ratio(row['ratio'])} {ends}")
        if parts:
            lines.append(f"{style.name(arm)} ÷ {style.name(about.baseline)}: {', '.join(parts)}.")
    return lines


def claim_summary(claims: Sequence[Claim]) -> str:
    """How many of the published claims this run confirms."""
    if not claims:
        return ""
    agree, size, against = (
        sum(one.relation == kind for one in claims) for kind in (CONFIRMED, OTHER_SIZE, CONTRADICTED)
    )
    open_ = len(claims) - agree - size - against
    other = f", finds {size} in the same direction with another size" if size else ""
    studies = " and ".join(dict.fromkeys(one.study for one in claims))
    return (
        f"Of {counted(len(claims), 'claim')} published in {studies}, looked at cell by cell, this run confirms "
        f"{agree}{other}, contradicts {against} and leaves {open_} open."
    )


def brief(about: RunFacts, derived: Visits) -> list[str]:
    """The sentences for a terminal: a cell's metrics, then the claims."""
    lines = []
    for cell in derived.cells:
        cell_lines = metric_lines(about, derived.metrics, cell)
        lines += [f"{cell_words(cell)}: {' '.join(cell_lines)}"] if cell_lines else []
    return [*lines, *([claim_summary(derived.claims)] if derived.claims else [])]

"""Threats without traffic of their own, in words: what the published procedure would have said of our samples."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from trifecta.analysis.resampling import SAME
from trifecta.conclude.reproduction.resampled import OfRun, outcome
from trifecta.contract.threats import ThreatDocument
from trifecta.design import numbers
from trifecta.design.phrases import counted, listed


def with_resampling(threat: ThreatDocument, resampled: Sequence[OfRun]) -> ThreatDocument:
    """A threat as the experiments of others leave it, with what was concluded."""
    return {
        **threat,
        "outcome": outcome(resampled),
        "reason": resampling_words(resampled),
        "resampled": [one.as_data() for one in resampled],
    }


def resampling_words(resampled: Sequence[OfRun]) -> str:
    """How often it would have named the wrong protocol, where our verdict says which is the right one."""
    drawn = [one for one in resampled if one.draws]
    if not drawn:
        return "it could not be carried out on the samples of these runs"
    head = f"carried out {drawn[0].draws} times on each of {counted(len(drawn), 'comparison')} of our runs"
    named = [(one.rate, one) for one in drawn if one.rate is not None and one.winner != SAME]
    same = sum(one.winner == SAME for one in drawn)
    rest = [
        f"in {number} {what}"
        for number, what in (
            (same, "there is no difference beyond the margin, and it names one all the same"),
            (len(drawn) - len(named) - same, "our verdict is open, and nothing counts as wrong"),
        )
        if number
    ]
    if not named:
        return f"{head}: {listed(rest)}"
    rates = sorted(float(rate) for rate, _ in named)
    _, worst = max(named, key=lambda one: float(one[0]))
    ends = f"[{numbers.percent(worst.low)}, {numbers.percent(worst.high)}]"
    where = f"where our verdict names the faster protocol ({len(named)} of {len(drawn)})"
    return (
        f"{head}; {where}, it names another in {numbers.percent(median(rates))} of its conclusions at the median, in "
        f"{numbers.percent(rates[-1])} {ends} where it is worst ({worst.run}, "
        f"{numbers.protocol(str(worst.arm))} against {numbers.protocol(str(worst.reference))})"
        + (f"; {listed(rest)}" if rest else "")
    )

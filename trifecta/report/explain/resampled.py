"""What published procedures would have concluded of the samples of a run, in words."""

from __future__ import annotations

from trifecta.analysis.resampling import NO_NOISE_FLOOR, SAME, SINGLE_LOAD, Concluded
from trifecta.design import numbers
from trifecta.report.figures.style import name

WORDS = {
    SINGLE_LOAD.name: "one load of each protocol, the shorter wins",
    NO_NOISE_FLOOR.name: "the mean of one trial of each, the smaller wins, no interval",
    "retries-hidden": "the mean of one trial of each, failures retried within the time",
    "different-work": "one load of each, of pages of 120, 123 or 134 requests",
}


def summary(conclusion: Concluded) -> str:
    """``single-load (...): wrong in 23 % of 200 draws [17 %, 29 %]; ...``; what is wrong needs a verdict."""
    head = f"{conclusion.procedure} ({WORDS.get(conclusion.procedure, '')})"
    if not conclusion.draws:
        return f"{head}: no block has the times of both."
    spread = f"it would have published a ratio {numbers.between(conclusion.ratio_low, conclusion.ratio_high, 'of')}"
    if conclusion.rate is None:
        named = f"it named {name(conclusion.arm)} in {numbers.percent(conclusion.named)} of {conclusion.draws} draws"
        return f"{head}: our verdict is open, so nothing is right or wrong; {named}; {spread}."
    wrong = f"wrong in {numbers.percent(conclusion.rate)} of {conclusion.draws} draws"
    ends = f"[{numbers.percent(conclusion.low)}, {numbers.percent(conclusion.high)}]"
    why = ", for it always names one, and our verdict is that they are the same" if conclusion.winner == SAME else ""
    if conclusion.opposite:
        why = f", naming {name(conclusion.reference if conclusion.winner == conclusion.arm else conclusion.arm)}"
    return f"{head}: {wrong} {ends}{why}; {spread}."

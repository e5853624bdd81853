"""One question asked of two runs: how far its ratios lie apart, and what became of its verdict.

The *ratio of ratios* is the second run's median ratio to the first's. Its interval is made of both runs' confidence
sequences: the squares of their reaches towards each other add up (MOVER: Zou & Donner 2008), so it holds whenever a
planner stopped, and for skewed ratios, too. No block of a run holds what sessions differ by; that is added as the
squares of one standard deviation for each run (the guard of `judging`).

Two verdicts are of different kinds more often than two truths are: 3 % faster and the same within 5 % can both be true.
So a verdict is *otherwise* only where the ratios are distinguished, too; and one that was open before, or is open now,
says nothing of a change (Gelman & Stern 2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import over_sessions
from trifecta.design.model import VerdictKind

Became = Literal["alike", "otherwise", "not told apart", "newly", "no longer", "open in both"]
ALIKE: Became = "alike"
OTHERWISE: Became = "otherwise"
INDISTINGUISHABLE: Became = "not told apart"
NEWLY: Became = "newly"
NO_LONGER: Became = "no longer"
OPEN_IN_BOTH: Became = "open in both"
OUTCOMES: tuple[Became, ...] = (OTHERWISE, INDISTINGUISHABLE, NO_LONGER, NEWLY, ALIKE, OPEN_IN_BOTH)


@dataclass(frozen=True)
class RatioOfRatios:
    """The ratio of ratios, as a log: with its interval by itself, and with that among all questions of both runs."""

    alone: Estimate
    among: Estimate

    @property
    def distinct(self) -> bool:
        """Whether the two ratios differ by more than blocks and sessions do, in any of all questions by chance."""
        low, high = self.among.low, self.among.high
        return (low is not None and low > 0) or (high is not None and high < 0)


def ratio_of_ratios(
    first: Estimate, second: Estimate, sessions: float, confidence: float, questions: int
) -> RatioOfRatios:
    """How far two ratios (logs, with their confidence sequences at ``confidence``) lie apart.

    ``sessions`` is the standard deviation between sessions of a ratio (log), ``questions`` how many are asked at once:
    all intervals ``among`` them hold with ``confidence`` together (Bonferroni). Without an interval in either run there
    is none.
    """
    alpha = 1 - confidence
    normal, stricter = (NormalDist().inv_cdf(1 - alpha / 2 / count) for count in (1, max(1, questions)))
    deviation = math.sqrt(2) * sessions
    difference = _difference(first, second)
    return RatioOfRatios(
        over_sessions(difference, deviation, normal),
        over_sessions(_longer(difference, stricter / normal), deviation, stricter),
    )


def _difference(first: Estimate, second: Estimate) -> Estimate:
    """The second less the first."""
    blocks = min(first.blocks, second.blocks)
    if first.value is None or second.value is None:
        # A median that is censored is nowhere: then the intervals must not overlap, which asks for more.
        low = None if second.low is None or first.high is None else second.low - first.high
        high = None if second.high is None or first.low is None else second.high - first.low
        return Estimate(None, low, high, blocks)
    value = second.value - first.value
    down, up = _reach(second, first), _reach(first, second)
    return Estimate(value, None if down is None else value - down, None if up is None else value + up, blocks)


def _reach(downwards: Estimate, upwards: Estimate) -> float | None:
    """How far two values may come nearer to each other."""
    if downwards.value is None or downwards.low is None or upwards.value is None or upwards.high is None:
        return None
    return math.hypot(downwards.value - downwards.low, upwards.high - upwards.value)


def _longer(estimate: Estimate, times: float) -> Estimate:
    """The interval at a stricter level, as a normal one grows; a sequence at that level asks for more blocks to begin.

    Sequences are longer than intervals for one look, which makes up for tails that are not normal (test_two_runs.py).
    """
    if estimate.value is None:
        return estimate
    low = None if estimate.low is None else estimate.value - times * (estimate.value - estimate.low)
    high = None if estimate.high is None else estimate.value + times * (estimate.high - estimate.value)
    return Estimate(estimate.value, low, high, estimate.blocks)


def became(first: VerdictKind, second: VerdictKind, *, told_apart: bool) -> Became:
    """What became of a verdict; ``told_apart``: of its ratio."""
    before, now = first != "undecided", second != "undecided"
    if before and now:
        return ALIKE if first == second else OTHERWISE if told_apart else INDISTINGUISHABLE
    return NEWLY if now else NO_LONGER if before else OPEN_IN_BOTH


def count_outcomes(outcomes: Sequence[Became]) -> dict[Became, int]:
    """How many there are of each."""
    return {one: outcomes.count(one) for one in OUTCOMES}

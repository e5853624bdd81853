"""What a ladder says: the effect of every step on a log ratio, the difference from end to end, and what is left.

A rung's value in a round is the log of arm / reference in its block. A step's effect is the difference of its two
rungs within rounds, with Student's interval over rounds. The difference from end to end comes from second blocks of
the two ends (`ladder_planner`), so that the remainder, end to end less the sum of the steps, is measured and not zero
by construction. For a number of rounds set in advance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trifecta.analysis.answers import Answer, combine
from trifecta.analysis.contrasts import holm
from trifecta.analysis.intervals import Estimate, Floats, linear
from trifecta.analysis.judging import OPEN, State, judge
from trifecta.analysis.ladder_planner import block_of
from trifecta.analysis.statements import Assertion
from trifecta.analysis.student import two_sided_p

Logs = Mapping[int, float]
"""By block the log of arm / reference of one rung; finite values alone."""


@dataclass(frozen=True)
class StepEffect:
    """By how much a step changes the log ratio, and how often chance alone would do that (Holm over the steps)."""

    change: Estimate
    p_holm: float | None

    def counts(self, confidence: float) -> bool:
        """Whether it changes anything, among all steps together."""
        return self.p_holm is not None and self.p_holm <= 1 - confidence


@dataclass(frozen=True)
class LadderEstimate:
    """A ladder measured: its rungs and steps, from the lowest up.

    ``summed`` is the sum of the steps and ``left`` what end to end has beyond it, both over the ``complete`` rounds, in
    which every rung has a value; a step has those in which both of its rungs do.
    """

    rungs: tuple[Estimate, ...]
    steps: tuple[StepEffect, ...]
    end_to_end: Estimate
    summed: Estimate
    left: Estimate
    rounds: int
    complete: int

    @property
    def meets(self) -> bool | None:
        """Whether the steps add up to the whole within the interval of what is left; None where that has none."""
        low, high = self.left.low, self.left.high
        return None if low is None or high is None else low <= 0 <= high


@dataclass(frozen=True)
class OrderComparison:
    """One of two steps in both orders: its effect before the other, after it, and the difference (after less before).

    Two steps that act on their own have a difference of zero.
    """

    before: Estimate
    after: Estimate
    difference: Estimate


def climb(values: Sequence[Logs], rounds: int, confidence: float) -> LadderEstimate:
    """From the values of the rungs, the lowest first; the ends have second blocks."""
    even = [{number: one[block_of(number)] for number in range(rounds) if block_of(number) in one} for one in values]
    ends = [
        {number: one[block_of(number, end=True)] for number in range(rounds) if block_of(number, end=True) in one}
        for one in (values[0], values[-1])
    ]
    changes = [_less(upper, lower) for lower, upper in itertools.pairwise(even)]
    p = holm([_p(change) for change in changes])
    steps = tuple(
        StepEffect(mean_of_blocks(change, confidence), value) for change, value in zip(changes, p, strict=True)
    )
    complete = [number for number in range(rounds) if all(number in one for one in even)]
    end_to_end = _less(ends[1], ends[0])
    summed = {number: even[-1][number] - even[0][number] for number in complete}
    return LadderEstimate(
        rungs=tuple(mean_of_blocks(one, confidence) for one in values),
        steps=steps,
        end_to_end=mean_of_blocks(end_to_end, confidence),
        summed=mean_of_blocks(summed, confidence),
        left=mean_of_blocks(_less(end_to_end, summed), confidence),
        rounds=rounds,
        complete=len(complete),
    )


def compare_orders(below: Logs, first: Logs, without: Logs, top: Logs, confidence: float) -> OrderComparison:
    """A step in both orders, round by round: ``below`` to ``first`` is the step before the other one, ``without`` to
    ``top`` the step after it.
    """
    shared = [block for block in below if all(block in one for one in (first, without, top))]
    before = {block: first[block] - below[block] for block in shared}
    after = {block: top[block] - without[block] for block in shared}
    return OrderComparison(
        mean_of_blocks(before, confidence),
        mean_of_blocks(after, confidence),
        mean_of_blocks(_less(after, before), confidence),
    )


def answer(
    assertion: Assertion, bottom: Estimate, top: Estimate, estimate: Estimate, *, margin: float, sessions: float
) -> tuple[Answer, str, State, State]:
    """What becomes of the statement: its answer, why, and its states on the lowest and the highest rung.

    *Held then* is what is true below and not above, where the two also differ from end to end: a truth that did not
    change is called so at most as often as one that is decided wrongly.
    """
    then, why_then = judge(assertion, bottom, margin, sessions)
    now, why_now = judge(assertion, top, margin, sessions)
    changed = estimate.low is not None and estimate.high is not None and not estimate.low <= 0 <= estimate.high
    final, why = combine(then, now, changed=changed)
    if OPEN in (then, now):
        ends = (("as published", then, why_then), ("today", now, why_now))
        why = "; ".join(f"{where}: {words}" if state == OPEN else f"{state} {where}" for where, state, words in ends)
    return final, why, then, now


def mean_of_blocks(values: Logs, confidence: float) -> Estimate:
    """The mean of what is known by block, with its interval."""
    return linear([(1.0, in_block_order(values))], confidence)


def _less(first: Logs, second: Logs) -> dict[int, float]:
    return {number: value - second[number] for number, value in first.items() if number in second}


def in_block_order(values: Logs) -> Floats:
    """What is known by block, in the order of blocks."""
    return np.array([values[number] for number in sorted(values)], dtype=np.float64)


def _p(values: Logs) -> float | None:
    """Student's test of no change."""
    known = in_block_order(values)
    if len(known) < 2:
        return None
    error = float(known.std(ddof=1)) / math.sqrt(len(known))
    mean = float(known.mean())
    if error <= 1e-12 * max(1.0, abs(mean)):
        return 1.0 if mean == 0 else 0.0
    return two_sided_p(mean / error, len(known) - 1)

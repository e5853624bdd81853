"""How many of the decisions of a reproduction can be expected to be false: each statement is judged by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trifecta.analysis import interim_looks
from trifecta.analysis.published import Evaluation


@dataclass(frozen=True)
class Chance:
    """``measured`` statements, the largest ``error`` of one, and how many false decisions are ``expected`` at most."""

    measured: int
    error: float
    expected: int


def by_chance(evaluations: Iterable[Evaluation]) -> Chance:
    """Every statement with an interval counts, decided or not: what is open could have been decided falsely."""
    errors = [
        interim_looks.error(one.rule.confidence, one.look)
        for one in evaluations
        if one.rule and (one.low, one.high) != (None, None)
    ]
    return Chance(len(errors), max(errors, default=0.0), round(sum(errors)))

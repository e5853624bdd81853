"""Under which condition a published sentence is true: it is put to every cell of an experiment, by one rule.

A study's cells show that two claims part; an experiment, which changes one thing and leaves the rest, shows at what.
The rule is that of the claims (`judging`): the whole interval beyond the margin, or within what "about" allows. The
intervals of an experiment's cells hold together (Bonferroni). ``further`` is what goes the way of a claimed ratio and
beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trifecta.analysis.intervals import Estimate, Floats, linear
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, judge
from trifecta.analysis.statements import ABOUT, Assertion, Is

Truth = Literal["true", "further", "false", "open"]


@dataclass(frozen=True)
class Test:
    """A sentence as a test of a ratio of times: above or below 1, the same, or about ``ratio``."""

    __test__ = False  # none of pytest's

    relation: Is
    ratio: float | None = None

    def band(self, margin: float) -> tuple[float | None, float | None]:
        """Between which ratios it is true; None is no end."""
        if self.ratio is not None:
            return self.ratio / ABOUT, self.ratio * ABOUT
        edge = 1 + margin
        return {"below": (None, 1 / edge), "above": (edge, None)}.get(self.relation, (1 / edge, edge))


@dataclass(frozen=True)
class Cell:
    """One cell of an experiment: its ratio (times: below 1 is the faster arm) and what it says to either side.

    ``expected`` is what round trips alone make, where that is known; ``truths`` is None for a side without a test.
    """

    experiment: str
    cell: str
    levels: Mapping[str, str]
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    truths: tuple[Truth | None, Truth | None]
    expected: float | None = None


def put(test: Test | None, estimate: Estimate, margin: float) -> Truth | None:
    """A test and the estimate of a cell, as a log ratio."""
    if test is None:
        return None
    if test.ratio is not None:
        return _about(test.ratio, estimate)
    state, _ = judge(Assertion("", (), relation=test.relation), estimate, margin)
    return "true" if state == CONFIRMED else "false" if state == CONTRADICTED else "open"


def _about(ratio: float, estimate: Estimate) -> Truth:
    """A sentence with a size is false as well where only its direction is right."""
    if estimate.low is None and estimate.high is None:
        return "open"
    low, high = (
        -math.inf if estimate.low is None else estimate.low,
        math.inf if estimate.high is None else estimate.high,
    )
    middle, reach = math.log(ratio), math.log(ABOUT)
    if middle - reach <= low and high <= middle + reach:
        return "true"
    if low <= middle + reach and high >= middle - reach:
        return "open"
    return "further" if _further(ratio, estimate) else "false"


def _further(ratio: float, estimate: Estimate) -> bool:
    claimed, (low, high) = math.log(ratio), (estimate.low, estimate.high)
    if claimed < 0:
        return high is not None and high < claimed - math.log(ABOUT)
    return low is not None and low > claimed + math.log(ABOUT)


def estimates(logs: Sequence[Floats], confidence: float) -> list[Estimate]:
    """Of each cell the mean of its blocks' log ratios, with intervals that hold together at ``confidence``."""
    known = sum(len(one) > 1 and bool(np.isfinite(one).all()) for one in logs)
    own = 1 - (1 - confidence) / max(1, known)
    return [linear([(1.0, one)], own) for one in logs]


@dataclass(frozen=True)
class Branch:
    """Cells of an experiment that say the same to a side and differ in one factor at most: ``along`` its levels."""

    experiment: str
    truth: Truth
    levels: Mapping[str, str]
    along: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def ratios(self) -> tuple[float, float] | None:
        """The least and the largest of what is known."""
        known = [one.ratio for one in self.cells if one.ratio is not None]
        return (min(known), max(known)) if known else None


def branches(cells: Sequence[Cell], side: int, along: str = "path") -> list[Branch]:
    """The cells of each experiment by what they say to a side, and by the factors that the experiment changes.

    Cells that are alike but for ``along`` stand together. Levels that every cell of an experiment has are left out.
    """
    cells_by_truth: dict[tuple[str, ...], list[Cell]] = {}
    changed = {name: changes([one for one in cells if one.experiment == name]) for name in _names(cells)}
    for one in cells:
        truth = one.truths[side]
        if truth is None or one.ratio is None:
            continue
        shown = tuple(f"{name}={one.levels[name]}" for name in changed[one.experiment] if name != along)
        cells_by_truth.setdefault((one.experiment, truth, *shown), []).append(one)
    return [_branch(key, cells_here, changed[key[0]], along) for key, cells_here in cells_by_truth.items()]


def _branch(key: tuple[str, ...], cells: list[Cell], changed: Sequence[str], along: str) -> Branch:
    levels = {name: cells[0].levels[name] for name in changed if name != along}
    sweep = tuple(dict.fromkeys(one.levels[along] for one in cells)) if along in changed else ()
    truth = next(one for one in ("true", "further", "false", "open") if one == key[1])
    return Branch(key[0], truth, levels, sweep, tuple(cells))


def _names(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(one.experiment for one in cells))


def changes(cells: Sequence[Cell]) -> list[str]:
    """The factors of which an experiment has several levels."""
    names = list(dict.fromkeys(name for one in cells for name in one.levels))
    return [name for name in names if len({one.levels.get(name, "") for one in cells}) > 1]

"""The questions of two runs side by side: what became of each verdict, and how far its ratios lie apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from trifecta.analysis import agreement, two_runs
from trifecta.analysis.agreement import RatioSpread
from trifecta.analysis.estimate import PairBlocks, arm_pairs, pair_blocks
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.nested import middle_of
from trifecta.analysis.sessions import between_starts
from trifecta.analysis.two_runs import OTHERWISE, Became, RatioOfRatios
from trifecta.analysis.verdict import interval_alone
from trifecta.conclude.comparisons import levels
from trifecta.conclude.two_runs import matched
from trifecta.conclude.two_runs.differences import Difference, differences
from trifecta.conclude.two_runs.matched import Key, Unmatched
from trifecta.conclude.two_runs.side import Side, metric_of, read
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.metric import Metric
from trifecta.design.model import Verdict


@dataclass(frozen=True)
class Question:
    """An arm against a reference in a cell, in both runs. ``cell`` is its key in the first.

    ``hindrances``: what was not asked alike, so that nothing is compared; ``became`` and ``apart`` are None then.
    ``means``: by run the mean of the log ratios over blocks and its variance; None with too few, or censored ones.
    """

    cell: str
    arm: str
    reference: str
    first: Verdict
    second: Verdict
    hindrances: tuple[Difference, ...]
    became: Became | None
    apart: RatioOfRatios | None
    means: tuple[tuple[float, float] | None, tuple[float, float] | None]

    @property
    def size(self) -> Literal["larger", "smaller", ""]:
        """What became of the effect, where the two ratios can be distinguished."""
        logs = [None if one.ratio is None else abs(math.log(one.ratio)) for one in (self.first, self.second)]
        if self.apart is None or not self.apart.distinct or logs[0] is None or logs[1] is None:
            return ""
        return "larger" if logs[1] > logs[0] else "smaller"


@dataclass(frozen=True)
class Compared:
    """Two runs. ``among`` is how many questions were asked of both, also where fewer are listed; ``sessions`` the
    standard deviation of a ratio (log) between sessions that is counted in.
    """

    first: Side
    second: Side
    metrics: tuple[Metric, Metric]
    confidence: float
    sessions: float
    among: int
    questions: tuple[Question, ...]
    only_first: tuple[Unmatched, ...]
    only_second: tuple[Unmatched, ...]
    differences: tuple[Difference, ...]

    @property
    def arms(self) -> list[str]:
        """The levels that either compares."""
        return list(dict.fromkeys([*plan.levels_of(self.first.study), *plan.levels_of(self.second.study)]))

    @property
    def comparable(self) -> list[Question]:
        """The questions that both asked alike."""
        return [one for one in self.questions if one.became is not None]

    @property
    def counts(self) -> dict[Became, int]:
        """How many of them became what."""
        return two_runs.count_outcomes([one.became for one in self.comparable if one.became is not None])

    @property
    def agree(self) -> bool:
        """Whether nothing that both decided is decided otherwise."""
        return not self.counts[OTHERWISE]

    @property
    def session_spread(self) -> RatioSpread | None:
        """How far the ratios of both lie apart, and how much of that their blocks do not explain."""
        spreads = []
        for one in self.comparable:
            first, second = one.means
            if first is not None and second is not None:
                name = f"{one.cell}: {one.arm} / {one.reference}"
                spreads.append((abs(second[0] - first[0]), first[1] + second[1], name))
        return agreement.ratio_spread(spreads)


def compare(first: Path, second: Path, *, metric: str | None = None, cell: str | None = None) -> Compared:
    """Read two runs and put the questions that both asked side by side.

    ``metric``: by this one, in place of the studies'. ``cell``: list only questions of cells with these levels, which
    are decided as among all of them. UserError where the runs have no question in common.
    """
    if first.resolve() == second.resolve():
        raise UserError(f"{first} and {second} are the same run; give two")
    sides = read(first), read(second)
    studies = sides[0].study, sides[1].study
    if studies[0].compare != studies[1].compare:
        raise UserError(
            f"{second / 'study.yaml'}: compare is {studies[1].compare}, and {studies[0].compare} in {first}, so they "
            f"have no question in common; run one again with `--compare {studies[0].compare}`"
        )
    by = metric_of(sides[0], metric), metric_of(sides[1], metric)
    builds = matched.builds(*studies)
    shared, only_first, only_second = matched.questions(*sides, builds)
    if not shared:
        raise UserError(
            f"{second} asks no question that {first} asks: {_comparison_in_words(sides[1])}, and "
            f"{_comparison_in_words(sides[0])}; give two runs "
            "that have a cell and two levels in common"
        )
    verdicts = sides[0].verdicts(by[0]), sides[1].verdicts(by[1])
    hindrances = [matched.hindrances(sides, by, pair, builds) for pair in shared]
    among = sum(not one for one in hindrances)
    maker = _Maker(sides, by, max(study.confidence for study in studies), among)
    questions = [
        maker.question(pair, (verdicts[0][pair[0]], verdicts[1][pair[1]]), found)
        for pair, found in zip(shared, hindrances, strict=True)
    ]
    return Compared(
        *sides,
        by,
        maker.confidence,
        maker.sessions,
        among,
        tuple(_chosen(questions, cell)),
        tuple(_unmatched_of_cell(only_first, cell)),
        tuple(_unmatched_of_cell(only_second, cell)),
        tuple(differences(*sides)),
    )


def _comparison_in_words(side: Side) -> str:
    """What a run compares, and where, for a message."""
    pairs = ", ".join(f"{arm} against {reference}" for arm, reference in arm_pairs(side.study)) or "one level alone"
    more = f" and {len(side.cells) - 1} more" if len(side.cells) > 1 else ""
    return (
        f"{side.folder} compares {pairs} in {side.cells[0].key}{more}" if side.cells else f"{side.folder} has no cell"
    )


class _Maker:
    """Makes the questions of two runs."""

    def __init__(self, sides: tuple[Side, Side], metrics: tuple[Metric, Metric], confidence: float, among: int) -> None:
        self.sides, self.metrics, self.confidence, self.among = sides, metrics, confidence, among
        self.sessions = between_starts(metrics[0])
        self.trials = sides[0].by_cell, sides[1].by_cell

    def question(
        self, keys: tuple[Key, Key], verdicts: tuple[Verdict, Verdict], hindrances: tuple[Difference, ...]
    ) -> Question:
        """One question, from its verdicts in both."""
        pairs = [self._pair(place, key) for place, key in enumerate(keys)]
        apart: RatioOfRatios | None = None
        became: Became | None = None
        if not hindrances:
            estimates = [self._estimate(place, pair) for place, pair in enumerate(pairs)]
            apart = two_runs.ratio_of_ratios(estimates[0], estimates[1], self.sessions, self.confidence, self.among)
            became = two_runs.became(verdicts[0].verdict, verdicts[1].verdict, told_apart=apart.distinct)
        means = _mean(pairs[0]), _mean(pairs[1])
        return Question(*keys[0], *verdicts, hindrances, became, apart, means)

    def _pair(self, place: int, key: Key) -> PairBlocks:
        cell, arm, reference = key
        baseline = self.sides[place].study.baseline.level
        rows = self.trials[place].get(cell, [])
        return pair_blocks(cell, rows, self.metrics[place], arm=arm, reference=reference, baseline=baseline)

    def _estimate(self, place: int, pair: PairBlocks) -> Estimate:
        """The median log ratio with its confidence sequence, at the level of both."""
        interval = interval_alone(self.metrics[place], pair, self.confidence)
        return Estimate(middle_of(pair.logs, pair.nodes), interval.low, interval.high, pair.blocks)


def _mean(pair: PairBlocks) -> tuple[float, float] | None:
    """The mean log ratio and its variance, that of few blocks as Student's t has it; none of blocks on several nodes,
    which are not independent.
    """
    if len(set(pair.nodes)) > 1:
        return None
    logs = pair.log_ratios()
    freedom = len(logs) - 1
    if len(logs) < agreement.LEAST_BLOCKS or not np.isfinite(logs).all():
        return None
    return float(logs.mean()), float(logs.var(ddof=1)) / len(logs) * freedom / (freedom - 2)


def _chosen(questions: Sequence[Question], cell: str | None) -> list[Question]:
    """The questions of cells that have these levels; UserError where there is none."""
    of_cell = [one for one in questions if _has_levels(one.cell, cell)]
    if cell is not None and not of_cell:
        cells = "; ".join(dict.fromkeys(one.cell for one in questions))
        raise UserError(f"option --cell: no cell {cell!r} in both runs; choose from {cells}")
    return of_cell


def _unmatched_of_cell(lone: Sequence[Unmatched], cell: str | None) -> list[Unmatched]:
    return [one for one in lone if _has_levels(one.cell, cell)]


def _has_levels(key: str, wanted: str | None) -> bool:
    return wanted is None or key == wanted or levels(wanted).items() <= levels(key).items()


def ratio(log: float | None) -> float | None:
    """A log ratio as a ratio."""
    return None if log is None else math.exp(log)
